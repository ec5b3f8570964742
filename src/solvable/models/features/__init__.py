"""Features: what is learned by linear methods on features that are random, or follow a power law."""

from __future__ import annotations

from solvable.models.features.learners import RandomFeatures
from solvable.models.features.power_law import PowerLawFeatures

__all__ = ["PowerLawFeatures", "RandomFeatures"]
