"""A matrix and a tensor with a common factor, and the learners that are its own."""

from __future__ import annotations

from solvable.models.lowrank.matrix_tensor.curriculum import Curriculum
from solvable.models.lowrank.matrix_tensor.maximum_likelihood import MaximumLikelihood
from solvable.models.lowrank.matrix_tensor.model import MatrixTensor

__all__ = ["Curriculum", "MatrixTensor", "MaximumLikelihood"]
