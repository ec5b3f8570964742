"""What the labels of several projections say at any overlap matrix M: remembered, and continued to V -> 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.base import Channel
from solvable.numerics.cache import Kept
from solvable.numerics.subspaces import tidy

DEEPEST = 34.0
"""The largest -log V followed: beyond, M = I - V rounds to one."""
_FINEST = 1e-6
_COARSE = 1e-3
_REMEMBERED = 4096
_DOUBT = 0.02
"""The relative error, for each factor e in V, of what is said below the channel's resolution."""


class Said(NamedTuple):
    """E[g g^T] (r x r) and Psi at one M, with the errors of both."""

    information: np.ndarray
    entropy: float
    error: float
    entropy_error: float


class Labels:
    """E[g g^T] and Psi of a channel at any M with eigenvalues up to one; each M is evaluated once.

    A channel of coarse resolution (above 1e-3) continues itself below it, down to V = 1e-6 here. From there on, and
    below a fine resolution, E[g g^T] grows like V^-1 where labels without noise pin the sharp directions down, like
    V^-1/2 for discrete labels without noise, and no more otherwise. `sharp` is the -log V from which on a direction
    counts as known better than the channel resolves.
    """

    def __init__(self, channel: Channel):
        self.channel = channel
        self.calls = 0
        self.sharp = -float(np.log(np.clip(channel.resolution, _FINEST, _COARSE)))
        self._floor = channel.resolution if channel.resolution <= _COARSE else _FINEST
        self._known = Kept(self._information, _REMEMBERED)

    def __call__(self, M: np.ndarray) -> Said:
        v, u = np.linalg.eigh(np.eye(len(M)) - M)
        if v[0] >= self.channel.resolution:
            return self._evaluated(M)
        v = np.maximum(v, np.exp(-DEEPEST))
        doubt = _DOUBT * float(np.log(self.channel.resolution / v[0]))
        c = np.maximum(v, self._floor)
        found = self._evaluated((u * (1 - c)) @ u.T)
        power = self._power(u[:, v < self._floor])
        stretch = (u * (c / v) ** (power / 2)) @ u.T
        information = stretch @ found.information @ stretch
        diagonal = np.diag(u.T @ found.information @ u)
        grown = np.log(c / v) * c if power == 1 else (c - v * (c / v) ** power) / (1 - power)
        return Said(
            information,
            found.entropy + 0.5 * float(np.sum(diagonal * grown)),
            found.error * float((c / v).max()) ** power + doubt * float(np.abs(information).max()),
            found.entropy_error,
        )

    def _power(self, sharp: np.ndarray) -> float:
        if not self.channel.deterministic or not sharp.shape[1]:
            return 0.0
        if self.channel.discrete:
            return 0.5
        return float(self.channel.pinned_mass(tidy(sharp, 1e-3)) > 0)

    def _evaluated(self, M: np.ndarray) -> Said:
        return self._known((M + M.T) / 2)

    def _information(self, M: np.ndarray) -> Said:
        self.calls += 1
        found = self.channel.information((np.eye(len(M)) - M)[None])
        information = found.information[0]
        entropy, error, entropy_error = float(found.entropy[0]), float(found.error[0]), float(found.entropy_error[0])
        return Said((information + information.T) / 2, entropy, error, entropy_error)
