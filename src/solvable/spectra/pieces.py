r"""Two representations of a density whose Stieltjes transform is known in closed form, up to the support itself.

`RootSeries` is for densities with ends like $(x - x_-)^{\pm 1/2}$ that are analytic between, as those of random
matrices are: with $x = c + h \cos\theta$, $\rho(x) h \sin\theta = \sum_k a_k \cos k\theta$. `Panels` is for all
others: a polynomial on each of a number of intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import gauss_legendre

_TOLERANCE = 1e-14
_SERIES_LENGTHS = (64, 128, 256, 512)
_PANEL_NODES = 16
_DEEPEST = 45
_MOST_PANELS = 600
_LOST = 1e-6

Function = Callable[[np.ndarray], np.ndarray]


class RootSeries(eqx.Module):
    r"""$g(z) = \frac{\pi}{h \sqrt{w^2 - 1}} \sum_k a_k J^k$ with $w = (z - c)/h$, $J = w - \sqrt{w^2 - 1}$.

    Where the density vanishes at both ends, $\rho(x) h = \sum_k b_k \sin (k + 1)\theta$ and nothing is divided by zero
    there: $g(z) = \frac{\pi}{h} \sum_k b_k J^{k + 1}$.
    """

    centre: float
    half: float
    coefficients: np.ndarray
    vanishing: bool = eqx.field(static=True)

    def transform(self, z: Any, order: int) -> jax.Array:
        """The derivative of g of the given order, at most 2."""
        w = (z - self.centre) / self.half
        root = jnp.sqrt(w - 1) * jnp.sqrt(w + 1)
        J = 1 / (w + root)
        degrees = np.arange(len(self.coefficients)) + int(self.vanishing)
        # S_m = sum_k k^m a_k J^k, by Horner's rule; the derivative of J^k in w is -k J^k / root.
        rows = self.coefficients[::-1, None] * degrees[::-1, None] ** np.arange(order + 1)

        def horner(total: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
            return total * J[..., None] + row, None

        S = jax.lax.scan(horner, jnp.zeros((*J.shape, order + 1), J.dtype), jnp.asarray(rows), unroll=4)[0]
        S = jnp.moveaxis(S * J[..., None] if self.vanishing else S, -1, 0)
        if self.vanishing:
            value = (S[0], -S[-1] / root, (S[-1] + w / root * S[order // 2]) / root**2)[order]
        else:
            second = (3 * w**2 / root**2 - 1) * S[0] + 3 * w / root * S[order // 2] + S[-1]
            value = (S[0] / root, -(w / root * S[0] + S[-1]) / root**2, second / root**3)[order]
        return jnp.pi / self.half ** (order + 1) * value

    def quantiles(self) -> tuple[np.ndarray, np.ndarray]:
        """The distribution function at many places: (places, mass below), both increasing."""
        theta = np.linspace(np.pi, 0, 20001)
        k = np.arange(len(self.coefficients))
        if self.vanishing:
            wave = np.sin(theta[:, None] * (k + 1)) @ self.coefficients
            density = wave * np.sin(theta)
        else:
            density = np.cos(theta[:, None] * k) @ self.coefficients
        step = np.pi / (len(theta) - 1)
        mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2) * step])
        return self.centre + self.half * np.cos(theta), np.maximum.accumulate(mass)

    def moments(self) -> tuple[float, float, float]:
        """Mass, first and second moment."""
        c, h = self.centre, self.half
        a = np.zeros(max(5, len(self.coefficients) + 2))
        if self.vanishing:  # sin(theta) sin((k+1) theta) = (cos(k theta) - cos((k+2) theta)) / 2
            a[: len(self.coefficients)] += self.coefficients / 2
            a[2 : 2 + len(self.coefficients)] -= self.coefficients / 2
        else:
            a[: len(self.coefficients)] = self.coefficients
        mass, cosine, square = np.pi * a[0], np.pi / 2 * a[1], np.pi * (a[0] / 2 + a[2] / 4)
        return mass, c * mass + h * cosine, c * c * mass + 2 * c * h * cosine + h * h * square

    def scaled(self, factor: float) -> RootSeries:
        return RootSeries(self.centre, self.half, self.coefficients * factor, self.vanishing)

    def supports(self) -> list[tuple[float, float]]:
        """The intervals that hold mass, from left to right."""
        return [(self.centre - self.half, self.centre + self.half)]


class Panels(eqx.Module):
    r"""A polynomial p on each interval, by its values at Gauss-Legendre nodes $t_j$ with weights $w_j$.

    With $\zeta$ the place of z in units of the interval, $R(\zeta) = \log\frac{\zeta+1}{\zeta-1} - \sum_j
    \frac{w_j}{\zeta-t_j}$ the error of the quadrature rule for the constant 1, the transform of p is exactly
    $\sum_j \frac{w_j p_j}{\zeta - t_j} + p(\zeta) R(\zeta)$; R is below rounding far from the interval.
    """

    centres: np.ndarray
    halves: np.ndarray
    values: np.ndarray

    def transform(self, z: Any, order: int) -> jax.Array:
        """The derivative of g of the given order, at most 2."""
        count = self.values.shape[1]
        nodes, weights = (2 * part for part in gauss_legendre(count))
        nodes = nodes - 1
        zeta = (z[..., None] - self.centres) / self.halves
        near = jnp.abs(zeta + jnp.sqrt(zeta - 1) * jnp.sqrt(zeta + 1)) < 10.0 ** (8 / count)
        poles = 1 / (zeta[..., None] - nodes)
        sign = (1, -1, 2)[order]
        total = jnp.sum(sign * poles ** (order + 1) * (weights * self.values), -1)
        # Leibniz' rule for p R, with the derivatives of p by interpolation.
        close = jnp.where(near, zeta, 2.0 + 0j)
        poles = 1 / (close[..., None] - nodes)
        shares = poles * _barycentric(nodes)
        shares = shares / jnp.sum(shares, -1, keepdims=True)
        slope = _differentiation(nodes)
        p, R = [self.values], [jnp.log((close + 1) / (close - 1)) - jnp.sum(poles * weights, -1)]
        for k in range(1, order + 1):
            p.append(p[-1] @ slope.T)
            ends = (close + 1) ** -k - (close - 1) ** -k
            R.append((1, -1)[k - 1] * ends - (-1, 2)[k - 1] * jnp.sum(poles ** (k + 1) * weights, -1))
        binomial = ((1,), (1, 1), (1, 2, 1))[order]
        extra = sum(binomial[k] * jnp.sum(shares * p[k], -1) * R[order - k] for k in range(order + 1))
        return jnp.sum((total + jnp.where(near, extra, 0.0)) / self.halves**order, -1)

    def quantiles(self) -> tuple[np.ndarray, np.ndarray]:
        """The distribution function at many places: (places, mass below), both increasing."""
        t = -np.cos(np.linspace(0, np.pi, max(33, 20000 // len(self.centres))))
        legendre = np.polynomial.legendre
        antiderivative = legendre.legint(self._legendre().T, lbnd=-1)
        within = legendre.legval(t, antiderivative) * self.halves[:, None]
        before = np.concatenate([[0.0], np.cumsum(within[:, -1])[:-1]])
        places = self.centres[:, None] + self.halves[:, None] * t
        return places.ravel(), np.maximum.accumulate((before[:, None] + within).ravel())

    def moments(self) -> tuple[float, float, float]:
        """Mass, first and second moment."""
        nodes, weights = gauss_legendre(self.values.shape[1])
        x = self.centres[:, None] + self.halves[:, None] * (2 * nodes - 1)
        mass = 2 * weights * self.halves[:, None] * self.values
        return float(mass.sum()), float((mass * x).sum()), float((mass * x * x).sum())

    def scaled(self, factor: float) -> Panels:
        return Panels(self.centres, self.halves, self.values * factor)

    def supports(self) -> list[tuple[float, float]]:
        """The intervals that hold mass, from left to right; panels that touch are one."""
        low, high = self.centres - self.halves, self.centres + self.halves
        apart = low[1:] - high[:-1] > 1e-9 * (high[-1] - low[0])
        first, last = np.concatenate([[True], apart]), np.concatenate([apart, [True]])
        return list(zip(low[first].tolist(), high[last].tolist(), strict=True))

    def _legendre(self) -> np.ndarray:
        return self.values @ _to_legendre(self.values.shape[1])


def root_series(function: Function, low: float, high: float) -> RootSeries | None:
    """The series of a density, or None if it has not converged at the longest length that is tried."""
    from scipy import fft  # loaded when needed: it takes long to import

    centre, half = (low + high) / 2, (high - low) / 2
    for length in _SERIES_LENGTHS:
        theta = (np.arange(length) + 0.5) * np.pi / length
        density = half * function(centre + half * np.cos(theta))
        a = np.asarray(fft.dct(density * np.sin(theta), type=2)) / length
        a[0] /= 2
        size = np.abs(a).max()
        if size == 0:
            return None
        if np.abs(a[2 * length // 3 :]).max() > 10 * _TOLERANCE * size:
            continue
        ends = abs(a.sum()), abs((a * (-1.0) ** np.arange(length)).sum())
        if max(ends) > 1e-11 * size:
            return RootSeries(centre, half, _trimmed(a), False)
        b = np.asarray(fft.dst(density, type=2)) / length
        b[-1] /= 2
        return RootSeries(centre, half, _trimmed(b), True)
    return None


def adaptive_panels(function: Function, low: float, high: float) -> Panels:
    """Polynomials on panels that are halved until each resolves the density."""
    nodes = 2 * gauss_legendre(_PANEL_NODES)[0] - 1
    weights = 2 * gauss_legendre(_PANEL_NODES)[1]
    to_legendre = _to_legendre(_PANEL_NODES)
    centres, halves = np.array([(low + high) / 2]), np.array([(high - low) / 2])
    done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    mass = 0.0
    for depth in range(_DEEPEST + 1):
        values = function((centres[:, None] + halves[:, None] * nodes).ravel()).reshape(-1, _PANEL_NODES)
        masses = np.abs(values @ weights) * halves
        total = mass + masses.sum()
        tail = np.abs((values @ to_legendre)[:, -4:]).max(1) * halves
        resolved = tail <= 10 * _TOLERANCE * total
        if depth == _DEEPEST:
            if masses[~resolved].sum() > _LOST * total:
                raise bad_parameter("function", function, "a density whose integral is finite")
            resolved[:] = True
        done.append((centres[resolved], halves[resolved], values[resolved]))
        mass += masses[resolved].sum()
        centres, halves = centres[~resolved], halves[~resolved] / 2
        centres = np.concatenate([centres - halves, centres + halves])
        halves = np.concatenate([halves, halves])
        if not centres.size:
            break
        if centres.size + sum(len(part[0]) for part in done) > _MOST_PANELS:
            raise bad_parameter("function", function, "a density that is smooth but for a few points")
    centres, halves, values = (np.concatenate(part) for part in zip(*done, strict=True))
    return _sorted_panels(centres, halves, values)


def table_panels(x: np.ndarray, interpolant: Function) -> Panels:
    """The panels between the places of a table, on each of which the interpolant is a cubic."""
    nodes = 2 * gauss_legendre(4)[0] - 1
    centres, halves = (x[1:] + x[:-1]) / 2, np.diff(x) / 2
    return _sorted_panels(centres, halves, interpolant(centres[:, None] + halves[:, None] * nodes))


def _sorted_panels(centres: np.ndarray, halves: np.ndarray, values: np.ndarray) -> Panels:
    """Panels in order, without those where the density is zero: they are gaps of the support."""
    order = np.argsort(centres)
    order = order[np.abs(values[order]).max(1) > _TOLERANCE * np.abs(values).max()]
    return Panels(centres[order], halves[order], values[order])


def _trimmed(coefficients: np.ndarray) -> np.ndarray:
    kept = np.flatnonzero(np.abs(coefficients) > _TOLERANCE / 10 * np.abs(coefficients).max())
    return coefficients[: kept[-1] + 1]


def _to_legendre(count: int) -> np.ndarray:
    """The matrix that takes values at the Gauss-Legendre nodes to Legendre coefficients, from the right."""
    nodes, weights = gauss_legendre(count)
    k = np.arange(count)
    return np.polynomial.legendre.legvander(2 * nodes - 1, count - 1) * weights[:, None] * (2 * k + 1)


def _differentiation(nodes: np.ndarray) -> np.ndarray:
    """The matrix that takes values of a polynomial at the nodes to those of its derivative."""
    weights = _barycentric(nodes)
    gaps = nodes[:, None] - nodes + np.eye(len(nodes))
    D = weights / weights[:, None] / gaps
    np.fill_diagonal(D, 0.0)
    np.fill_diagonal(D, -D.sum(1))
    return D


def _barycentric(nodes: np.ndarray) -> np.ndarray:
    """Weights of the interpolation formula through these nodes."""
    differences = 2 * (nodes[:, None] - nodes) + np.eye(len(nodes))
    return 1 / np.prod(differences, 1)
