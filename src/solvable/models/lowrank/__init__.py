"""Low-rank inference: spiked matrices, tensors and covariances, two modalities, Boltzmann machines, wide teachers."""

from __future__ import annotations

from solvable.models.lowrank import bayes, pca
from solvable.models.lowrank.matrix_tensor import Curriculum, MatrixTensor, MaximumLikelihood
from solvable.models.lowrank.rbm import RBM, RBMAscent
from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor
from solvable.models.lowrank.wide_teacher import AdamStudent, BayesStudent, WideNetwork, WideTeacher

__all__ = [
    "AdamStudent",
    "BayesStudent",
    "Curriculum",
    "MatrixTensor",
    "MaximumLikelihood",
    "RBM",
    "RBMAscent",
    "SpikedCovariance",
    "SpikedMatrix",
    "SpikedTensor",
    "WideNetwork",
    "WideTeacher",
    "bayes",
    "pca",
]
