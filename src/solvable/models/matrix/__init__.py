"""Quadratic networks, matrix sensing and bilinear sequences, n = alpha d^2."""

from __future__ import annotations

from solvable.models.matrix import gradient_descent, recovery
from solvable.models.matrix.bilinear_sequence import BilinearSequence
from solvable.models.matrix.lazy import Lazy
from solvable.models.matrix.model import MatrixSensing, QuadraticNetwork
from solvable.models.matrix.nuclear import convex
from solvable.models.matrix.nuclear.theory import NuclearNorm

__all__ = [
    "BilinearSequence",
    "Lazy",
    "MatrixSensing",
    "NuclearNorm",
    "QuadraticNetwork",
    "convex",
    "gradient_descent",
    "recovery",
]
