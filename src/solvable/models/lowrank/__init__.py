"""Low-rank inference: spiked matrices, tensors and covariances."""

from __future__ import annotations

from solvable.models.lowrank.rbm import RBM, RBMAscent
from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor

__all__ = ["RBM", "RBMAscent", "SpikedCovariance", "SpikedMatrix", "SpikedTensor"]
