"""Channels of contaminated labels."""

from __future__ import annotations

from solvable.channels.mixture.linear import LinearMixture
from solvable.channels.mixture.noisy import NoisyMixture

__all__ = ["LinearMixture", "NoisyMixture"]
