"""Networks with a frozen or barely trained first layer: random features, and one giant gradient step."""

from __future__ import annotations

from solvable.models.features.learners import RandomFeatures
from solvable.models.features.one_step import run, theory
from solvable.models.features.one_step.bounds import best_step_bounds, risk_bounds
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.spectrum import feature_spectrum
from solvable.models.features.power_law import PowerLawFeatures
from solvable.models.features.two_layer import random_features
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_steps import run as _run  # noqa: F401  (it fills the registry)
from solvable.models.features.two_steps.learner import TwoSteps

__all__ = [
    "OneStep",
    "PowerLawFeatures",
    "RandomFeatures",
    "TwoLayer",
    "TwoSteps",
    "best_step_bounds",
    "feature_spectrum",
    "random_features",
    "risk_bounds",
    "run",
    "theory",
]
