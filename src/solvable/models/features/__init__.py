"""Networks with a frozen or barely trained first layer: random features, and one giant gradient step."""

from __future__ import annotations

from solvable.models.features.learners import RandomFeatures
from solvable.models.features.one_step import run, theory
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.power_law import PowerLawFeatures
from solvable.models.features.two_layer import random_features
from solvable.models.features.two_layer.model import TwoLayer

__all__ = ["OneStep", "PowerLawFeatures", "RandomFeatures", "TwoLayer", "random_features", "run", "theory"]
