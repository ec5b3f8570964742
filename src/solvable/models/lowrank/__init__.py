"""Low-rank inference: spiked matrices, tensors and covariances, and wide teachers, whose features are spikes."""

from __future__ import annotations

from solvable.models.lowrank.spiked import SpikedCovariance, SpikedMatrix, SpikedTensor
from solvable.models.lowrank.wide_teacher import AdamStudent, BayesStudent, WideNetwork, WideTeacher

__all__ = [
    "AdamStudent",
    "BayesStudent",
    "SpikedCovariance",
    "SpikedMatrix",
    "SpikedTensor",
    "WideNetwork",
    "WideTeacher",
]
