"""Networks with a frozen or barely trained first layer: random features, and what follows from them."""

from __future__ import annotations

from solvable.models.features.learners import RandomFeatures

__all__ = ["RandomFeatures"]
