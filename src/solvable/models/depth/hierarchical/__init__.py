"""Targets with features of falling weight, which are learned layer by layer."""

from __future__ import annotations

from solvable.models.depth.hierarchical import kernel, lofi, run, theory  # noqa: F401  (it fills the registry)
from solvable.models.depth.hierarchical.learner import LayerwiseSpectral
from solvable.models.depth.hierarchical.model import HierarchicalTarget

__all__ = ["HierarchicalTarget", "LayerwiseSpectral"]
