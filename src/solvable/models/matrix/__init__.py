"""Quadratic networks and matrix sensing, n = alpha d^2."""

from __future__ import annotations

from solvable.models.matrix import bayes_theory
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork

__all__ = ["MatrixSensing", "QuadraticNetwork", "bayes_theory"]
