"""Labels read by their posterior under the true law P(y|z): the output side of Bayes-optimal learning.

On averages it is what a channel says at any overlap, each thing computed once and continued to V -> 0; nothing of it
depends on the number of samples or on earlier questions, so all that is solved for one channel shares it. On data it is
the posterior of z given each label.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from solvable.channels import Channel
from solvable.channels.base import Average, Linearisation
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.sides import BayesOutput, OutputStep
from solvable.numerics.cache import Cache
from solvable.numerics.subspaces import tidy

DEEPEST = 34.0
"""The largest -log V followed: beyond, M = I - V rounds to one."""
_FINEST = 1e-6
_COARSE = 1e-3
_DOUBT = 0.02
"""The relative error, for each factor e in V, of what is said below the channel's resolution."""
_MOST_VALUES, _MOST_LINEARISATIONS, _MOST_MASSES, _MOST_KNOWN = 4096, 1024, 1024, 64


class PosteriorOutput(BayesOutput):
    """The posterior of z under a channel; equal for equal channels."""

    def __init__(self, channel: Channel):
        self.channel = channel
        self.evaluations = 0
        self.sharp = -float(np.log(np.clip(channel.resolution, _FINEST, _COARSE)))
        """The -log V from which on a direction counts as known better than the channel resolves."""
        self._floor = channel.resolution if channel.resolution <= _COARSE else _FINEST
        self._values = Cache(self._evaluate, _MOST_VALUES)
        self._linearised = Cache(self._linearisation, _MOST_LINEARISATIONS)
        self._masses = Cache(channel.pinned_mass, _MOST_MASSES)
        self._known = Cache(lambda directions: PosteriorOutput(channel.known(directions)), _MOST_KNOWN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PosteriorOutput) and self.channel == other.channel

    def __hash__(self) -> int:
        return hash((PosteriorOutput, self.channel))

    def __repr__(self) -> str:
        return f"PosteriorOutput({self.channel!r})"

    @property
    def projections(self) -> int:
        return self.channel.projections

    @property
    def calls(self) -> int:
        """How often the information of the channel, or of one with known directions, has been evaluated."""
        return self.evaluations + sum(child.calls for child in self._known.values)

    def information(self, V: Any) -> np.ndarray:
        V = np.asarray(V, float)
        found = self.channel.information(V.reshape(-1, *V.shape[-2:]))
        return np.asarray(found.information).reshape(V.shape)

    def denoiser(self, y: np.ndarray) -> PosteriorDenoiser:
        return PosteriorDenoiser(self.channel, y)

    def likelihood(self) -> Likelihood:
        return Likelihood.of(self.channel)

    def labels(self, M: np.ndarray) -> Average:
        """What the labels say at any M with eigenvalues up to one; each M is evaluated once.

        A channel of coarse resolution (above 1e-3) continues itself below it, down to V = 1e-6 here. From there on,
        and below a fine resolution, E[g g^T] grows like V^-1 where labels without noise pin the sharp directions down,
        like V^-1/2 for discrete labels without noise, and no more otherwise.
        """
        v, u = np.linalg.eigh(np.eye(len(M)) - M)
        if v[0] >= self.channel.resolution:
            return self._values((M + M.T) / 2)
        v = np.maximum(v, np.exp(-DEEPEST))
        doubt = _DOUBT * float(np.log(self.channel.resolution / v[0]))
        c = np.maximum(v, self._floor)
        floored = (u * (1 - c)) @ u.T
        found = self._values((floored + floored.T) / 2)
        power = self._power(u[:, v < self._floor])
        stretch = (u * (c / v) ** (power / 2)) @ u.T
        information = stretch @ found.information @ stretch
        diagonal = np.diag(u.T @ found.information @ u)
        grown = np.log(c / v) * c if power == 1 else (c - v * (c / v) ** power) / (1 - power)
        return Average(
            information,
            found.entropy + 0.5 * float(np.sum(diagonal * grown)),
            found.error * float((c / v).max()) ** power + doubt * float(np.abs(information).max()),
            found.entropy_error,
        )

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """How state evolution moves off M in the directions `basis`; ArithmeticError if that is not finite."""
        return self._linearised(M, basis)

    def known(self, directions: np.ndarray) -> PosteriorOutput:
        """The output side for the other directions once these are known exactly."""
        return self._known(directions)

    def mass(self, directions: np.ndarray) -> float:
        """The probability of a label that depends on these directions only, and not flatly."""
        return self._masses(directions) if directions.shape[1] else 0.0

    def gain_exact(self, directions: np.ndarray) -> float:
        """The samples per unknown above which exact knowledge of these directions (r x k) is stable.

        For each part W of them that may be known (columns), the labels that depend on them, but not on W alone, must
        exceed the unknowns left: gain (mass(all) - mass(W)) > k - dim W. Infinite with noise or discrete labels.
        """
        k = directions.shape[1]
        if not self.channel.deterministic or self.channel.discrete or not k:
            return np.inf
        whole = self.mass(directions)
        parts = (list(chosen) for size in range(k) for chosen in itertools.combinations(range(k), size))
        masses = ((whole - self.mass(directions[:, part]), k - len(part)) for part in parts)
        return max(left / mass if mass > 1e-12 else np.inf for mass, left in masses)

    def pins(self, directions: np.ndarray, gain: float) -> bool:
        """Whether, without noise, exact knowledge of these directions is stable."""
        return gain > self.gain_exact(directions)

    @functools.cached_property
    def subspaces(self) -> list[np.ndarray]:
        """The coordinate subspaces, of which a better fixed point may know one: smallest first, the whole last."""
        r = self.projections
        sizes = range(1, r + 1)
        return [np.eye(r)[:, list(axes)] for size in sizes for axes in itertools.combinations(range(r), size)]

    def _power(self, sharp: np.ndarray) -> float:
        if not self.channel.deterministic or not sharp.shape[1]:
            return 0.0
        if self.channel.discrete:
            return 0.5
        return float(self.mass(tidy(sharp, 1e-3)) > 0)

    def _evaluate(self, M: np.ndarray) -> Average:
        self.evaluations += 1
        found = self.channel.information((np.eye(len(M)) - M)[None])
        information = np.asarray(found.information[0], float)
        errors = float(found.error[0]), float(found.entropy_error[0])
        return Average((information + information.T) / 2, float(found.entropy[0]), *errors)

    def _linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        found = self.channel.linearisation(M, basis)
        if not (np.isfinite(found.trivial).all() and np.isfinite(found.easy).all()):
            raise ArithmeticError(f"the linearisation of {self.channel!r} at M = {M.tolist()} is not finite.")
        return found


class PosteriorDenoiser:
    r"""The output denoiser of a channel: $g = V^{-1}(E[z|y,\omega,V] - \omega)$, the mean of whose derivative is
    $-V^{-1} + V^{-1} \mathrm{Cov}[z|y,\omega,V] V^{-1}$."""

    def __init__(self, channel: Channel, y: np.ndarray):
        self._posterior, self._labels = channel.posterior, channel.observe(y)

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        found = self._posterior(self._labels, Omega, V, evidence=False)
        # A mean over samples by `reduce` and the inverse of one number by division: at small sizes these are the time.
        covariance = np.add.reduce(found.covariance, axis=0) / len(Omega)
        inverse = 1 / V if V.shape == (1, 1) else np.linalg.inv(V)
        derivative = inverse - inverse @ covariance @ inverse
        g = (found.mean - Omega) / V if V.shape == (1, 1) else (found.mean - Omega) @ inverse
        return OutputStep(
            g,
            0.5 * (derivative + derivative.T),
            log_Z=lambda: self.log_Z(Omega, V),
            derivatives=lambda: inverse @ np.asarray(found.covariance) @ inverse - inverse,
        )

    def log_Z(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The log evidence of each label, (n,)."""
        return self._posterior(self._labels, Omega, V).log_Z
