"""Low-rank inference: spiked matrices, tensors and covariances."""

from __future__ import annotations

from solvable.models.lowrank import bayes, pca
from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor

__all__ = ["SpikedCovariance", "SpikedMatrix", "SpikedTensor", "bayes", "pca"]
from solvable.models.lowrank.matrix_tensor import Curriculum, MatrixTensor, MaximumLikelihood
from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor

__all__ = ["Curriculum", "MatrixTensor", "MaximumLikelihood", "SpikedCovariance", "SpikedMatrix", "SpikedTensor"]
from solvable.models.lowrank.rbm import RBM, RBMAscent
from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor

__all__ = ["RBM", "RBMAscent", "SpikedCovariance", "SpikedMatrix", "SpikedTensor"]
