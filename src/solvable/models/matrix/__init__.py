"""Quadratic networks, matrix sensing and bilinear sequences, n = alpha d^2."""

from __future__ import annotations

from solvable.models.matrix import (
    amp_algorithm,
    bayes_theory,
    bilinear_algorithm,
    bilinear_theory,
    gradient_descent,
    lazy_algorithm,
    lazy_theory,
    nuclear_algorithm,
    nuclear_theory,
    thresholds,
)
from solvable.models.matrix.bilinear_sequence import BilinearSequence
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork

__all__ = [
    "BilinearSequence",
    "MatrixSensing",
    "QuadraticNetwork",
    "amp_algorithm",
    "bayes_theory",
    "bilinear_algorithm",
    "bilinear_theory",
    "gradient_descent",
    "lazy_algorithm",
    "lazy_theory",
    "nuclear_algorithm",
    "nuclear_theory",
    "thresholds",
]
