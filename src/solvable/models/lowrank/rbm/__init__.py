"""Restricted Boltzmann machines that learn a spiked covariance: the largest likelihood, and ascent towards it."""

from __future__ import annotations

from solvable.models.lowrank.rbm import ascent, run, stability, theory
from solvable.models.lowrank.rbm.learners import RBM, RBMAscent

__all__ = ["RBM", "RBMAscent", "ascent", "run", "stability", "theory"]
