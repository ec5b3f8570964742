r"""T projections of one direction known up to a common sign: what one layer of tied attention shows of T tokens.

With z of T independent entries, $z_t \sim N(\omega_t, V)$ and $u = \pm z$ known, the posterior mean is
$u \tanh(u\cdot\omega/V)$. Averages over $\omega$ of entries N(0, q), q = 1 - V, depend on $\kappa = q/V$ alone: with
$r^2 = \kappa\chi^2_T$, $\zeta \sim N(0, 1)$ and $x = r (r + \zeta)$

    V I = T - E[((r + zeta)^2 + T - 1) / cosh^2 x] = E[((r + zeta)^2 + T - 1) tanh^2 x] - T kappa,
    Psi = -(T/2) [log(2 pi) + 1 - log(1 + kappa)] + E log(1 + exp(-2 x)).

T = 1 is phase retrieval. As q -> 0, I = T (T + 1) q: the direction is seen from 1/(T (T + 1)) samples for each unknown
on; without noise it is known exactly from 1/T on. [troiani2025fundamental]
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from scipy.special import gammaln

from solvable.engine.outputs.explicit import ExplicitOutput
from solvable.engine.sides import OutputStep
from solvable.numerics import interpolation
from solvable.numerics.errors import COARSER
from solvable.numerics.interpolation import PiecewiseChebyshev

_STEP_R, _STEP_ZETA, _REACH, _DECADES = 0.08, 0.125, 9.0, 37.0
_EDGES = np.array([-12.0, -7.0, -4.0, -2.0, -0.5, 1.0, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 24.0])
_DEGREE = 10
_EXPONENTS = 350.0


@dataclasses.dataclass(frozen=True)
class SignlessOutput(ExplicitOutput):
    """Samples of `tokens` projections, known up to a sign that they share."""

    tokens: int

    @property
    def gain_weak(self) -> float:
        return 1 / (self.tokens * (self.tokens + 1))

    @property
    def sharp(self) -> bool:
        return True

    @property
    def pinned_mass(self) -> float:
        return float(self.tokens)

    @property
    def entropy_at_zero(self) -> float:
        return _offset(self.tokens) + float(np.log(2))

    def log_information(self, t: np.ndarray) -> np.ndarray:
        # Below the table V I is T (T + 1) q, above it is T.
        t = np.asarray(t, float)
        inside = np.clip(t, _EDGES[0], _EDGES[-1])
        return _table(self.tokens).log_J(inside) + np.minimum(t - _EDGES[0], 0.0) + np.logaddexp(0.0, t)

    def entropy(self, t: np.ndarray | float) -> np.ndarray:
        t = np.asarray(t, float)
        inside = np.clip(t, _EDGES[0], _EDGES[-1])
        known = self.tokens / 2 * np.logaddexp(0.0, t)
        return _offset(self.tokens) + known + _table(self.tokens).rest(inside)

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        table, inside = _table(self.tokens), np.clip(t, _EDGES[0], _EDGES[-1])
        return np.interp(inside, table.probes, table.error) + table.log_J.error(inside) + 1e-9

    def denoiser(self, y: np.ndarray) -> SignlessLabels:
        """That of u (n, T)."""
        return SignlessLabels(np.asarray(y, float))


def _offset(T: int) -> float:
    return -T / 2 * (float(np.log(2 * np.pi)) + 1)


@dataclasses.dataclass(frozen=True)
class _Table:
    """log of V I and E log(1 + exp(-2 x)) over t = log kappa, and the error of the first at `probes`."""

    log_J: PiecewiseChebyshev
    rest: PiecewiseChebyshev
    probes: np.ndarray
    error: np.ndarray


@functools.lru_cache(maxsize=32)
def _table(T: int) -> _Table:
    nodes = interpolation.chebyshev_nodes(_EDGES, _DEGREE)
    values = np.array([averages(float(kappa), T) for kappa in np.exp(nodes.ravel())]).T.reshape(2, *nodes.shape)
    probes = nodes[:, _DEGREE // 2]
    coarse = np.array([averages(float(kappa), T, COARSER)[0] for kappa in np.exp(probes)])
    return _Table(
        interpolation.fit(_EDGES, _DEGREE, np.log(values[0])),
        interpolation.fit(_EDGES, _DEGREE, values[1]),
        probes,
        np.abs(coarse / values[0][:, _DEGREE // 2] - 1),
    )


def averages(kappa: float, T: int, fineness: float = 1.0) -> tuple[float, float]:
    """V I and E log(1 + exp(-2 x)), by trapezoidal rules in log r and zeta, which are dense where r is of order one."""
    top = np.log(np.sqrt(T) + _REACH)
    s = np.arange(top - _DECADES / T - 2.0, top, _STEP_R / fineness)
    c = np.exp(s)
    log_density = T * s - c**2 / 2 + (1 - T / 2) * np.log(2) - gammaln(T / 2)
    zeta = np.arange(-_REACH, _REACH + 1e-9, _STEP_ZETA / fineness)
    weight = np.exp(log_density)[:, None] * np.exp(-(zeta**2) / 2)
    weight /= weight.sum()
    r = np.sqrt(kappa) * c[:, None]
    a = r + zeta
    x = r * a
    power = a**2 + T - 1
    if kappa < 1:
        J = np.sum(weight * power * np.tanh(x) ** 2) - T * kappa
    else:
        J = T - np.sum(weight * power / np.cosh(np.clip(x, -_EXPONENTS, _EXPONENTS)) ** 2)
    return float(J), float(np.sum(weight * np.logaddexp(0.0, -2 * x)))


@dataclasses.dataclass(frozen=True, eq=False)
class SignlessLabels:
    """The denoiser of projections `u` (n, T) of unknown sign; the T measurements of a sample follow each other."""

    u: np.ndarray

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        v, (n, T) = float(V[0, 0]), self.u.shape
        omega = Omega.reshape(n, T)
        x = np.sum(self.u * omega, axis=1) / v
        mean = np.tanh(x)
        g = (self.u * mean[:, None] - omega) / v
        slope = (self.u**2 * (1 - mean**2)[:, None] / v - 1) / v

        def log_Z() -> np.ndarray:
            squares = np.sum(self.u**2 + omega**2, axis=1) / (2 * v)
            return np.logaddexp(x, -x) - squares - T / 2 * np.log(2 * np.pi * v)

        minus_derivative = np.full((1, 1), -slope.mean())
        return OutputStep(g.reshape(-1, 1), minus_derivative, None, log_Z, lambda: slope.reshape(-1, 1, 1))
