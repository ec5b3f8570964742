"""Learning by descent, sample by sample or on a batch: what a network trained by gradients learns of a target."""

from __future__ import annotations

from solvable.models.index.dynamics import batch, escape, sgd
from solvable.models.index.dynamics.learners import BatchGD, Extragradient, OnlineSGD, RepeatedSGD

__all__ = ["BatchGD", "Extragradient", "OnlineSGD", "RepeatedSGD", "batch", "escape", "sgd"]
