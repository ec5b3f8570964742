"""Networks with a frozen or barely trained first layer: random features, and what follows from them."""

from __future__ import annotations

from solvable.models.features.learners import RandomFeatures
from solvable.models.features.power_law import PowerLawFeatures
from solvable.models.features.two_layer import random_features
from solvable.models.features.two_layer.model import TwoLayer

__all__ = ["PowerLawFeatures", "RandomFeatures", "TwoLayer", "random_features"]
