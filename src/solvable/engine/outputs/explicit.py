r"""Outputs whose information is a closed function of one overlap: spikes in matrices and tensors, and latent variables.

With q the overlap of a posterior mean, `information` I(q) and its primitive `entropy` Psi(q) = (1/2) int_0^q I are all
that the curve of fixed points needs. Two members cover the models of low-rank inference [lesieur2017statistical]:

    a spike seen through a symmetric tensor of order k, noise of unit strength      I = q^(k-1)
    rows of a matrix that are a latent variable u times the unknown, plus noise     I = theta overlap_u(theta q)

The second has a latent variable where labels would be: its posterior mean takes the place of the output function.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from solvable.engine.interactions import FieldDenoiser, Interaction
from solvable.engine.sides import BayesOutput, OutputStep
from solvable.engine.signals.separable import precision_from_norm
from solvable.numerics.interpolation import PiecewiseChebyshev, chebyshev_nodes, fit
from solvable.priors import Prior

_ROUNDING = 1e-14
_PANELS, _DEGREE = np.arange(-40.0, 60.5, 0.5), 16
"""Panels of log qhat. Below, an overlap is qhat but for rounding; above, it is one, or falls short of it by a power."""


class Information(abc.ABC):
    """What the curve of fixed points needs of an output: I and Psi over t = log(q / V), and their limits.

    `gain_weak` is the limit of qhat / I at q -> 0: 0 when the first step already learns, infinite when no gain makes
    q = 0 unstable. `sharp` says whether perfect recovery can be a fixed point; then `pinned_mass` is the limit of V I
    at V -> 0, and `settled_entropy` that of Psi. `entropy_at_zero` is Psi where nothing is known.
    """

    @property
    @abc.abstractmethod
    def gain_weak(self) -> float: ...

    @property
    def sharp(self) -> bool:
        return False

    @property
    def pinned_mass(self) -> float:
        return 0.0

    @property
    def entropy_at_zero(self) -> float:
        return 0.0

    @property
    def settled_entropy(self) -> float:
        return float("nan")

    @abc.abstractmethod
    def log_information(self, t: np.ndarray) -> np.ndarray:
        """log I."""

    @abc.abstractmethod
    def entropy(self, t: np.ndarray | float) -> np.ndarray:
        """Psi."""

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        """The estimated relative error of I: rounding, where it is a closed form."""
        return np.full(np.shape(t), _ROUNDING)


class ExplicitOutput(BayesOutput, Information):
    """An output of one projection that is its own table."""

    @property
    def projections(self) -> int:
        return 1

    def information(self, V: Any) -> Any:
        q = 1 - np.asarray(V, float)
        with np.errstate(divide="ignore"):
            return np.exp(self.log_information(np.log(q) - np.log1p(-q)))

    @property
    def settled_entropy(self) -> float:
        return float(self.entropy(np.inf))

    def missing_entropy(self, t: np.ndarray) -> np.ndarray:
        """What Psi lacks of its value at q = 1, which a gain multiplies in the mutual information."""
        return self.settled_entropy - self.entropy(t)


@dataclasses.dataclass(frozen=True)
class SpikeOutput(ExplicitOutput):
    r"""A symmetric tensor of `order` k that holds the unknown: $I = q^{k-1}$, $\Psi = q^k/(2k)$, the gain $1/\Delta$.

    For k = 2 any gain above one makes q = 0 unstable; for larger k none does. On data the field that the interaction
    makes is the signal's at once: there is nothing between them.
    """

    order: int

    @property
    def gain_weak(self) -> float:
        return 1.0 if self.order == 2 else float("inf")

    def log_information(self, t: np.ndarray) -> np.ndarray:
        return -(self.order - 1) * np.logaddexp(0.0, -np.asarray(t, float))

    def entropy(self, t: np.ndarray | float) -> np.ndarray:
        return expit(t) ** self.order / (2 * self.order)

    def missing_entropy(self, t: np.ndarray) -> np.ndarray:
        """$(1 - q^k)/(2k)$, small values to relative precision."""
        return -np.expm1(-self.order * np.logaddexp(0.0, -np.asarray(t, float))) / (2 * self.order)

    def denoiser(self, y: Interaction) -> FieldDenoiser:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The interaction takes the place of labels: it says how strong the field of an estimate should be."""
        return FieldDenoiser(y, y.bethe)  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class LatentOutput(ExplicitOutput):
    r"""Samples $x = \sqrt{\theta/d}\, u\, w^* + z$ with a latent u of law `prior` for each, $\theta$ = `snr`.

    $I = \theta\, overlap_u(\theta q)$ and $\Psi = potential_u(\theta q)$. On data
    $g = \sqrt\theta\, E[u | \Omega]$, whose derivative in $\Omega$ is positive: $\Omega$ is the projection of a
    sample on the estimate, and $\sqrt\theta\,\Omega$ the field of u at precision $\theta q$.
    """

    prior: Prior
    snr: float

    @property
    def gain_weak(self) -> float:
        return 1 / self.snr**2 if self.snr > 0 else float("inf")

    def log_information(self, t: np.ndarray) -> np.ndarray:
        return self._log_snr + _log_overlap(self.prior, self._log_precision(t))

    def entropy(self, t: np.ndarray | float) -> np.ndarray:
        return self.prior.potential(self.snr * expit(np.asarray(t, float)))

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        """Rounding, and the truncation of the table."""
        return _ROUNDING + _table(self.prior).error(self._log_precision(t))

    def _log_precision(self, t: np.ndarray | float) -> np.ndarray:
        """log(theta q) of the field of u."""
        return self._log_snr - np.logaddexp(0.0, -np.asarray(t, float))

    @property
    def _log_snr(self) -> float:
        return math.log(self.snr) if self.snr > 0 else -math.inf

    def denoiser(self, y: Any = None) -> LatentDenoiser:
        return LatentDenoiser(self.prior, self.snr)


def _log_overlap(prior: Prior, x: np.ndarray) -> np.ndarray:
    """log overlap of a posterior mean at x = log qhat."""
    return _table(prior)(np.maximum(x, _PANELS[0])) + np.minimum(x - _PANELS[0], 0.0)


@functools.lru_cache(maxsize=64)
def _table(prior: Prior) -> PiecewiseChebyshev:
    """The same from the first panel on, tabulated once for spikes of any strength."""
    nodes = chebyshev_nodes(_PANELS, _DEGREE)
    return fit(_PANELS, _DEGREE, np.log(prior.overlap(np.exp(nodes.ravel()))).reshape(nodes.shape))


@dataclasses.dataclass(frozen=True, eq=False)
class LatentDenoiser:
    """The posterior mean of the latent variables, in the place of an output function; it needs no labels."""

    prior: Prior
    snr: float

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        field, A, mean, variance = self._posterior(Omega)
        g = np.sqrt(self.snr) * mean
        derivative = np.full((1, 1), self.snr * np.mean(variance))
        strength = self.snr * np.mean(mean**2, keepdims=True)
        return OutputStep(g, -derivative, log_Z=lambda: self.prior.log_partition(field, A)[:, 0], strength=strength)

    def latent(self, Omega: np.ndarray) -> np.ndarray:
        """E[u | Omega] of each sample, (n, 1)."""
        return self._posterior(Omega)[2]

    @functools.cached_property
    def _denoise(self) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
        # Taking a method off an equinox module costs more than a small method itself: do it once.
        return self.prior.denoise

    def _posterior(self, Omega: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        field = np.sqrt(self.snr) * Omega
        A = float(precision_from_norm(field)[0][0])
        return field, A, *self._denoise(field, A)
