"""Quadratic networks, matrix sensing and bilinear sequences, n = alpha d^2."""

from __future__ import annotations

from solvable.models.matrix import gradient_descent, lazy, recovery
from solvable.models.matrix.bilinear_sequence import BilinearSequence
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.nuclear import convex, theory
from solvable.models.matrix.quadratic_network import QuadraticNetwork

__all__ = [
    "BilinearSequence",
    "MatrixSensing",
    "QuadraticNetwork",
    "convex",
    "gradient_descent",
    "lazy",
    "recovery",
    "theory",
]
