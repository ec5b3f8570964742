"""The output channel P(y|z) of one projection, elementwise: what a label says about z, and how much on average.

Notation: omega ~ N(0, q) is what is known of z, V = 1 - q the variance left, z | omega ~ N(omega, V), and

    Z(y, omega, V)  = E_{z ~ N(omega, V)} P(y|z)
    g(y, omega, V)  = d log Z / d omega = (E[z | y, omega] - omega) / V
    information I(V) = E[g^2],          Psi(V) = E[log Z],          dPsi/dq = I / 2.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import (
    Channel,
    Information,
    LabelLaw,
    Linearisation,
    Posterior,
    TargetChannel,
)
from solvable.channels.contamination import Component
from solvable.channels.predictor import LandscapePredictor, Predictor
from solvable.numerics.batches import in_batches
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import normal_trapezoid
from solvable.numerics.threads import each
from solvable.targets.landscape import Landscape
from solvable.targets.target import Target

REACH = 6.2
"""Gaussian factors inside a posterior are cut at this many standard deviations (mass beyond: 6e-10)."""

NARROW = 0.01
"""Below this variance, structure near the edges of g at the scale sqrt(V) needs a rule of its own."""


_BATCH = 8


class ScalarPosterior(NamedTuple):
    """Log evidence, mean and variance of z given a label and omega, elementwise."""

    log_Z: Any
    mean: Any
    variance: Any


class PosteriorKernel(eqx.Module):
    """The posterior as a pure function of arrays, elementwise over rows, for NumPy and JAX alike."""

    @abc.abstractmethod
    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        """The posterior with `xp` (numpy or jax.numpy) as the array namespace; log_Z may be None without `evidence`."""

    def __call__(self, observation: Any, omega: Any, V: Any) -> ScalarPosterior:
        return self.evaluate(jnp, observation, omega, V)


class Rows(NamedTuple):
    """A quadrature rule over (z, y): E f(z, y) = sum of weight * f, the labels given as an observation."""

    z: Any
    weight: Any
    observation: Any


class ScalarInformation(NamedTuple):
    """How much a label says at each variance V (k,): `information` E[g^2], and `entropy` Psi = E[log Z]."""

    information: Any
    entropy: Any


def scalar_law(weight: np.ndarray, mean: np.ndarray, square: np.ndarray) -> LabelLaw:
    """The law of a label from E[z|y] and E[z^2|y] of each node, all (L,)."""
    return LabelLaw(weight, mean[:, None], (square - 1)[:, None, None])


class ScalarChannel(TargetChannel):
    """P(y|z) for one projection.

    A member gives `kernel`, the posterior (observation, omega, V) -> ScalarPosterior as a pure elementwise function,
    and `observe`, which computes once everything that depends on the labels alone (roots, intervals). `posterior` and
    `information` are these in the shapes of r projections.
    """

    kernel: PosteriorKernel
    landscape: Landscape
    omega_step: float = 0.2
    exponent: float | None = None
    """The generative exponent, where it is known without looking at the label law."""
    keeps_exponent: bool = True
    """Whether labels have the generative exponent of the noiseless target, as with noise added to them."""

    @property
    def target(self) -> Target:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.landscape.target

    @abc.abstractmethod
    def observe(self, y: np.ndarray) -> Any:
        """A pytree of arrays, one row a label, that the kernel takes; independent of omega and V."""

    @abc.abstractmethod
    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        """A quadrature rule over the label law, for V >= NARROW or for `narrow` V below.

        `fineness` 1 is the rule that results are computed with; the change from a lower one estimates the error.
        """

    @functools.lru_cache(maxsize=64)  # noqa: B019 - bounded: it keeps its channels
    def rows(self, fineness: float = 1.0, narrow: bool = False) -> Rows:
        """The quadrature rule over the label law, made once."""
        return self.make_rows(fineness, narrow)

    def average_kernel(self, fineness: float, narrow: bool) -> PosteriorKernel:
        """The kernel for averages: coarser with `fineness`, and without safeguards for labels that omega excludes."""
        return self.kernel

    @property
    def components(self) -> tuple[Component, ...] | None:
        """The mixture of (probability, slope, noise) for labels y = slope g(z) + sqrt(noise) xi; None for others."""
        return ((1.0, 1.0, self.noise),)

    @property
    def labels(self) -> np.ndarray | None:
        """The values that a label can take, in increasing order; None where there are infinitely many."""
        return self.atoms if self.discrete and self.noise == 0 else None

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """P(y|z) of each of `labels` along a new last axis, elementwise in z; for finitely many labels only."""
        if self.labels is None:
            raise ValueError(f"{self!r} has infinitely many labels, each of probability zero.")
        value = self.target.numpy(np.asarray(z, float)[..., None])
        return (self.landscape.atom_of(value)[..., None] == np.arange(len(self.labels))).astype(float)

    @property
    def atoms(self) -> np.ndarray:
        return self.landscape.atoms

    @property
    def discrete(self) -> bool:
        return bool(self.landscape.flat.all())

    @property
    def continuous_mass(self) -> float:
        """The weight c of the part of the label that pins z down exactly: I ~ c / V as V -> 0 (0 with noise)."""
        return self.landscape.continuous_mass if self.noise == 0 else 0.0

    def pinned_mass(self, directions: np.ndarray) -> float:
        return self.continuous_mass if directions.shape[1] else 0.0

    @property
    def resolution(self) -> float:
        return 1e-9

    @property
    def row_resolution(self) -> float:
        return 1e-6

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        log_Z, mean, variance = self.scalar_posterior(observation, Omega[:, 0], V[0, 0], evidence)
        return Posterior(log_Z, mean[:, None], variance[:, None, None])

    def scalar_posterior(self, observation: Any, omega: np.ndarray, V: float, evidence: bool = True) -> ScalarPosterior:
        """The posterior of z at each row, as NumPy arrays; a few exponentials a row are cheaper than a call to XLA."""
        return self._evaluate(np, observation, omega, V, evidence)

    @functools.cached_property
    def _evaluate(self) -> Callable[..., ScalarPosterior]:
        # Taking a method off an equinox module costs more than a small posterior: do it once.
        return self.kernel.evaluate

    @functools.cached_property
    def predictor(self) -> Predictor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return LandscapePredictor(self.landscape)

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        rows = self.rows(fineness)
        found = self.scalar_posterior(rows.observation, np.zeros(len(rows.z)), 1.0)
        return scalar_law(rows.weight, found.mean, found.variance + found.mean**2)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """At M = 0, the only place where there is a direction left."""
        weight, mean, G = self.label_law()
        outer = basis.T @ basis
        trivial, easy = weight @ mean[:, 0] ** 2, weight @ G[:, 0, 0] ** 2
        return Linearisation(basis, trivial * outer, easy * np.kron(outer, outer), 1e-6)

    def known(self, directions: np.ndarray) -> Channel:
        if directions.shape[1]:
            raise ValueError(f"nothing is left to learn from {self!r} once its one direction is known.")
        return self

    def information(self, V: np.ndarray, fineness: float = 1.0) -> Information:
        variance = np.asarray(V, float)[:, 0, 0]
        fine = self.scalar_information(variance, fineness)

        def estimate() -> tuple[np.ndarray, np.ndarray]:
            coarse = self.scalar_information(variance, COARSER * fineness)
            return np.abs(fine.information - coarse.information), np.abs(fine.entropy - coarse.entropy)

        return Information.estimated(fine.information[:, None, None], fine.entropy, estimate)

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        """I and Psi for variances V (k,) in (0, 1], by one rule: half the cost of `information` with its errors."""
        V = np.asarray(V, float)
        result = np.empty((2, *V.shape))

        def fill(narrow: bool) -> None:
            here = (V < NARROW) == narrow
            if here.any():
                result[:, here] = self.rule_average(V[here], fineness, narrow)

        # The two rules compile and run side by side.
        each(fill, (False, True))
        return ScalarInformation(*result)

    def rule_average(self, V: np.ndarray, fineness: float, narrow: bool) -> np.ndarray:
        """I and Psi, stacked, by the rule for V >= NARROW or for `narrow` V."""
        kernel, rows = self.average_kernel(fineness, narrow), self.rows(fineness, narrow)
        x, x_weight = normal_trapezoid(self.omega_step / fineness, 6.0)
        return averaged(functools.partial(_information, kernel, rows, x, x_weight), V)


@eqx.filter_jit
def _information(kernel, rows: Rows, x, x_weight, V) -> ScalarInformation:
    """E over the label law: z first, then omega | z ~ N(q z, q V), so that the breaks of g stay on the nodes of z."""

    def at(V):
        q = 1 - V

        # One omega a row at a time: the working set then stays in the cache.
        def at_node(x):
            omega = q * rows.z + jnp.sqrt(q * V) * x
            posterior = kernel(rows.observation, omega, V)
            g = (posterior.mean - omega) / V
            log_Z = jnp.where(rows.weight > 0, posterior.log_Z, 0.0)
            return jnp.sum(rows.weight * g**2), jnp.sum(rows.weight * log_Z)

        information, entropy = jax.lax.map(at_node, x)
        return ScalarInformation(x_weight @ information, x_weight @ entropy)

    return jax.lax.map(at, V)


def averaged(function: Callable[[Any], ScalarInformation], V: np.ndarray) -> np.ndarray:
    """I and Psi, stacked, of a compiled function of a few V at a time: compiled with the first, then two at a time."""
    return np.array(in_batches(function, V, batch=_BATCH, alone=False, threads=2))


def pad_rows(rows: Rows, multiple: int = 128) -> Rows:
    """Repeat the last row with weight zero up to a multiple, so that targets share compiled code."""
    extra = -len(rows.z) % multiple

    def pad(a):
        return np.concatenate([a, np.repeat(a[-1:], extra, 0)]) if extra else a

    weight = np.concatenate([rows.weight, np.zeros(extra)])
    return Rows(pad(rows.z), weight, jax.tree.map(pad, rows.observation))
