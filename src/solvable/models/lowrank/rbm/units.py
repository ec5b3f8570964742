r"""Hidden units of a restricted Boltzmann machine: what they make of the log-likelihood of its weights.

The machine $P(x, h) \propto P(x) P(h)\, e^{x\cdot W h/\sqrt d}$ has visible units x of mean 0 and variance 1, Gaussian
or not, and few independent hidden units h. For large d the log-likelihood of samples x relative to W = 0 is

    sum_mu eta1(W^T x_mu / sqrt d) - n eta2(W^T W / d),     eta1(z) = log E e^{z.h},    eta2(Q) = log E e^{h^T Q h / 2},

so that the weights are those of a model that learns without labels: a loss -eta1 of the projections, and a penalty of
their self-overlaps Q alone, which acts at a maximum as the ridge $\Lambda = 2\alpha\,\nabla\eta_2(Q)$.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from solvable.channels.losses import Loss
from solvable.core.errors import bad_parameter

MOST = 12
"""The most hidden units: the average over binary ones is a sum over 2^(units - 1) signs."""
_LOG_2 = float(np.log(2))
_ROUNDING = 1e-15
_NEWTON = 60


class BinaryLoss(Loss):
    """-log cosh z; f'' = -1/cosh^2 z is as low as -1, so that the proximal operator has one value for V < 1."""

    def profile(self, u: Any, y: Any) -> Any:
        return _LOG_2 - jnp.logaddexp(u, -u)

    def slope(self, u: Any, y: Any) -> Any:
        return -jnp.tanh(u)

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.tanh(u) ** 2 - 1

    @property
    def lowest_curvature(self) -> Any:
        return -1.0

    def splits(self, y: Any) -> Any:
        # 1 + V f'' is smallest at the origin, and f'' is nothing beyond a few units.
        return jnp.array([-6.0, -3.0, -1.2, -0.4, 0.0, 0.4, 1.2, 3.0, 6.0])

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        """Newton's iteration for z - V tanh z = |x| from above, where the left side is convex: it falls to the root.

        Where there are several roots, for V >= 1, this is the one of least loss.
        """
        size, V = jnp.broadcast_arrays(jnp.abs(x), V)
        bound = jnp.where(V < 1, size / jnp.where(V < 1, 1 - V, 1.0), jnp.inf)  # since tanh z < z and tanh z < 1

        def step(state: Any) -> Any:
            z, _, count = state
            tanh = jnp.tanh(z)
            slope = 1 - V * (1 - tanh**2)
            move = jnp.where(slope > 0, (z - V * tanh - size) / slope, 0.0)
            return z - move, jnp.max(jnp.abs(move) - _ROUNDING * (1 + z)), count + 1

        start = (jnp.minimum(size + V, bound), jnp.asarray(jnp.inf), 0)
        z, *_ = jax.lax.while_loop(lambda state: (state[1] > 0) & (state[2] < _NEWTON), step, start)
        return jnp.sign(x) * z


class GaussianLoss(Loss):
    """-z^2 / 2."""

    def profile(self, u: Any, y: Any) -> Any:
        return -(u**2) / 2

    @property
    def lowest_curvature(self) -> Any:
        return -1.0

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        return x / (1 - V)


@dataclasses.dataclass(frozen=True)
class Units(abc.ABC):
    """`count` independent hidden units of one kind. Projections z have one row a sample, (n, count)."""

    count: int
    loss: ClassVar[Loss]

    @abc.abstractmethod
    def gain(self, z: np.ndarray) -> np.ndarray:
        """eta1 of every sample."""

    @abc.abstractmethod
    def force(self, z: Any) -> Any:
        """The gradient of eta1, elementwise, of NumPy or JAX arrays."""

    @abc.abstractmethod
    def cost(self, Q: np.ndarray) -> float:
        """eta2, infinite where the machine has no normalisation."""

    @abc.abstractmethod
    def ridge(self, Q: np.ndarray) -> np.ndarray:
        """Twice the gradient of eta2: Lambda for alpha = 1; NaN where the machine has no normalisation."""


class BinaryUnits(Units):
    """Units +-1: eta1 = sum of log cosh z_i, and eta2 of one unit is Q / 2, a plain ridge."""

    loss: ClassVar[Loss] = BinaryLoss()

    def gain(self, z: np.ndarray) -> np.ndarray:
        return np.sum(np.logaddexp(z, -z) - _LOG_2, axis=1)

    def force(self, z: Any) -> Any:
        return np.tanh(z) if isinstance(z, np.ndarray) else jnp.tanh(z)

    def cost(self, Q: np.ndarray) -> float:
        energy = self._energy(Q)
        return float(logsumexp(energy) - np.log(len(energy)))

    def ridge(self, Q: np.ndarray) -> np.ndarray:
        signs, energy = _signs(self.count), self._energy(Q)
        weight = np.exp(energy - energy.max())
        return (signs.T * (weight / weight.sum())) @ signs

    def _energy(self, Q: np.ndarray) -> np.ndarray:
        signs = _signs(self.count)
        return np.einsum("si,ij,sj->s", signs, Q, signs) / 2


class GaussianUnits(Units):
    """Standard Gaussian units: eta1 = |z|^2 / 2, eta2 = -log det(1 - Q) / 2: principal component analysis."""

    loss: ClassVar[Loss] = GaussianLoss()

    def gain(self, z: np.ndarray) -> np.ndarray:
        return np.sum(z**2, axis=1) / 2

    def force(self, z: Any) -> Any:
        return z

    def cost(self, Q: np.ndarray) -> float:
        left = 1 - np.linalg.eigvalsh(Q)
        return float(-np.sum(np.log(left)) / 2) if left.min() > 0 else float("inf")

    def ridge(self, Q: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(Q) if np.all(np.isfinite(Q)) else (np.full(1, np.inf), np.eye(len(Q)))
        return (vectors / (1 - values)) @ vectors.T if values[-1] < 1 else np.full(Q.shape, np.nan)


KINDS: dict[str, type[Units]] = {"binary": BinaryUnits, "gaussian": GaussianUnits}


def check_hidden(hidden: Any) -> str:
    """The name of a kind of hidden units, or a `ValueError`."""
    if hidden not in tuple(KINDS):
        raise bad_parameter("hidden", hidden, "'binary' or 'gaussian'")
    return hidden


@functools.cache
def _signs(count: int) -> np.ndarray:
    """All signs of the units but for the common one, which h^T Q h does not see."""
    return np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=count - 1)])
