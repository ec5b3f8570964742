"""What depth buys: targets that are made in layers, and networks that learn them layer by layer."""

from __future__ import annotations

from solvable.models.depth.hierarchical import HierarchicalTarget, LayerwiseSpectral
from solvable.models.depth.learners import JointTraining, Layerwise
from solvable.models.depth.tree import TreeTarget

__all__ = ["HierarchicalTarget", "JointTraining", "Layerwise", "LayerwiseSpectral", "TreeTarget"]
