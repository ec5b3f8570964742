"""The output channel P(y|z) of one projection: what a label says about z, and how much labels say on average.

Notation: omega ~ N(0, q) is what is known of z, V = 1 - q the variance left, z | omega ~ N(omega, V), and

    Z(y, omega, V)  = E_{z ~ N(omega, V)} P(y|z)
    g(y, omega, V)  = d log Z / d omega = (E[z | y, omega] - omega) / V
    information I(V) = E[g^2],          Psi(V) = E[log Z],          dPsi/dq = I / 2.
"""

from __future__ import annotations

import abc
import concurrent.futures
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels import prediction
from solvable.core.precision import float64
from solvable.numerics.gaussian import normal_trapezoid
from solvable.targets.landscape import Landscape

REACH = 6.2
"""Gaussian factors inside a posterior are cut at this many standard deviations (mass beyond: 6e-10)."""

NARROW = 0.01
"""Below this variance, structure near the edges of g at the scale sqrt(V) needs a rule of its own."""


_CHUNK = 8


class Posterior(NamedTuple):
    """Normalisation, mean and variance of z given a label and omega, elementwise."""

    log_Z: Any
    mean: Any
    variance: Any


class PosteriorKernel(eqx.Module):
    """The posterior as a pure function of arrays, elementwise over rows, for NumPy and JAX alike."""

    @abc.abstractmethod
    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> Posterior:
        """The posterior with `xp` (numpy or jax.numpy) as the array namespace; log_Z may be None without `evidence`."""

    def __call__(self, observation: Any, omega: Any, V: Any) -> Posterior:
        return self.evaluate(jnp, observation, omega, V)


class Rows(NamedTuple):
    """A quadrature rule over (z, y): E f(z, y) = sum of weight * f, the labels given as an observation."""

    z: Any
    weight: Any
    observation: Any


class Information(NamedTuple):
    """How much a label says at variance V: `information` E[g^2], and `entropy` Psi = E[log Z]."""

    information: Any
    entropy: Any


class LabelLaw(NamedTuple):
    """The law of a label, before anything is known: E f(y) = sum of weight * f.

    `mean` is E[z|y], which is not zero where one step of AMP learns; `G` is E[z^2|y] - 1, whose square sets the
    weak-recovery threshold, 1 / alpha_weak = E[G^2], where the mean vanishes.
    """

    weight: np.ndarray
    mean: np.ndarray
    G: np.ndarray


class Channel(abc.ABC):
    """P(y|z) for one projection, on which theory and algorithms rest.

    A channel gives `kernel`, the posterior (observation, omega, V) -> Posterior as a pure function, and `observe`,
    which computes once everything that depends on the labels alone (roots, intervals).
    """

    kernel: PosteriorKernel
    landscape: Landscape
    noise: float = 0.0
    omega_step: float = 0.2
    keeps_exponent: bool = True
    """Whether labels have the generative exponent of the noiseless target, as with noise added to them."""

    @abc.abstractmethod
    def observe(self, y: np.ndarray) -> Any:
        """A pytree of arrays, one row a label, that the kernel takes; independent of omega and V."""

    @abc.abstractmethod
    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        """A quadrature rule over the label law, for V >= NARROW or for `narrow` V below.

        `fineness` 1 is the rule that results are computed with; the change from a lower one estimates the error.
        """

    @functools.cache  # noqa: B019 - a channel lives as long as its rules
    def rows(self, fineness: float = 1.0, narrow: bool = False) -> Rows:
        """The quadrature rule over the label law, made once."""
        return self.make_rows(fineness, narrow)

    def average_kernel(self, fineness: float, narrow: bool) -> PosteriorKernel:
        """The kernel for averages: coarser with `fineness`, and without safeguards for labels that omega excludes."""
        return self.kernel

    @property
    def atoms(self) -> np.ndarray:
        """The values that the noiseless label takes with positive probability."""
        return self.landscape.atoms

    @property
    def continuous_mass(self) -> float:
        """The weight c of the part of the label that pins z down exactly: I ~ c / V as V -> 0 (0 with noise)."""
        return self.landscape.continuous_mass if self.noise == 0 else 0.0

    @property
    def deterministic(self) -> bool:
        """Whether z fixes the label."""
        return self.noise == 0

    @property
    def sharp(self) -> bool:
        """Whether I grows without bound as V -> 0, so that perfect recovery can be a fixed point."""
        return self.deterministic

    @property
    def settled_entropy(self) -> float:
        """Psi at V = 0 of labels that do not pin z down: E[log P(y|z)], zero where z fixes a discrete label."""
        return 0.0

    @property
    def deepest(self) -> float:
        """log(q / V) down to which averages are computed; from there on log I and Psi are linear in it."""
        return 24.0

    @property
    def discrete(self) -> bool:
        """Whether the noiseless label takes finitely many values."""
        return bool(self.landscape.flat.all())

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels y = g(z) + sqrt(noise) xi."""
        clean = self.landscape.target.numpy(np.asarray(z, float)[..., None])
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape) if self.noise else clean

    def posterior(self, observation: Any, omega: np.ndarray, V: float, evidence: bool = True) -> Posterior:
        """The posterior of z at each row, as NumPy arrays; a few exponentials a row are cheaper than a call to XLA."""
        return self._evaluate(np, observation, omega, V, evidence)

    @functools.cached_property
    def _evaluate(self) -> Callable[..., Posterior]:
        # Taking a method off an equinox module costs more than a small posterior: do it once.
        return self.kernel.evaluate

    def predict(self, omega: np.ndarray, V: float) -> np.ndarray:
        """The posterior mean of the noiseless label, E[g(z)], z ~ N(omega, V), elementwise."""
        return prediction.predict(self.landscape, omega, V)

    def classify(self, omega: np.ndarray, V: float) -> np.ndarray:
        """The most probable noiseless label, z ~ N(omega, V), elementwise; for discrete targets."""
        return prediction.classify(self.landscape, omega, V)

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        """The law of the label with its first two conditional moments of z ~ N(0, 1)."""
        rows = self.rows(fineness)
        posterior = self.posterior(rows.observation, np.zeros(len(rows.z)), 1.0)
        return LabelLaw(rows.weight, posterior.mean, posterior.variance + posterior.mean**2 - 1)

    def information(self, V: Any, fineness: float = 1.0) -> Information:
        """I(V) and Psi(V) for an array of variances V in (0, 1], vectorised."""
        V = np.asarray(V, float)
        result = np.empty((2, *V.shape))

        def fill(narrow: bool) -> None:
            here = (V < NARROW) == narrow
            if here.any():
                result[:, here] = self.average(V[here], fineness, narrow)

        # The two rules compile and run side by side.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(fill, (False, True)))
        return Information(*result)

    def average(self, V: np.ndarray, fineness: float, narrow: bool) -> np.ndarray:
        """I and Psi, stacked, by the rule for V >= NARROW or for `narrow` V."""
        kernel, rows = self.average_kernel(fineness, narrow), self.rows(fineness, narrow)
        x, x_weight = normal_trapezoid(self.omega_step / fineness, 6.0)
        return in_chunks(functools.partial(_information, kernel, rows, x, x_weight), V)


@eqx.filter_jit
def _information(kernel, rows: Rows, x, x_weight, V) -> Information:
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
        return Information(x_weight @ information, x_weight @ entropy)

    return jax.lax.map(at, V)


def in_chunks(function: Callable[[Any], Any], V: np.ndarray) -> np.ndarray:
    """Evaluate at each V in chunks of one length, compiled with the first and run two at a time."""
    chunks = np.split(np.pad(V, (0, -len(V) % _CHUNK), mode="edge"), -(-len(V) // _CHUNK))

    @float64
    def run(chunk: np.ndarray) -> np.ndarray:
        return np.asarray(function(jnp.asarray(chunk)))

    first = run(chunks[0])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return np.concatenate([first, *pool.map(run, chunks[1:])], -1)[:, : len(V)]


def pad_rows(rows: Rows, multiple: int = 128) -> Rows:
    """Repeat the last row with weight zero up to a multiple, so that targets share compiled code."""
    extra = -len(rows.z) % multiple

    def pad(a):
        return np.concatenate([a, np.repeat(a[-1:], extra, 0)]) if extra else a

    weight = np.concatenate([rows.weight, np.zeros(extra)])
    return Rows(pad(rows.z), weight, jax.tree.map(pad, rows.observation))
