r"""The law of the labels of a hierarchical target, and what a label says of the square of each feature.

A label is $y = \sum_k \lambda_k (h_k^2 - 1) + \sqrt\Delta\,\xi$ with independent standard normal $h_k$, so that

    E[e^{-s y}] = e^{W(s)},   W(s) = Delta s^2/2 + sum_k [lambda_k s - log(1 + 2 lambda_k s)/2],
    p(y) = int e^{s y + W(s)} ds/(2 pi i),      E[h_k^2|y] p(y) = int e^{s y + W(s)}/(1 + 2 lambda_k s) ds/(2 pi i).

All singularities lie on the real axis at and below $-1/(2\lambda_1)$. Each integral goes through its saddle point, a
real s, on a hyperbola that bends to the left with the curvature of the path of steepest descent there, and whose arms
stay closer to the vertical than to the horizontal, where $e^{\Delta s^2/2}$ still falls. The trapezoidal rule in v,
$\theta = \tau \sinh v$ the distance from the real axis, then converges geometrically.

Labels are integrated over by their saddle points, $y(s) = -W'(s)$, which leaves no equation to be solved: with
$s = (e^u - 1)/(2\lambda_1)$ both ends of the law, the exponential tail and the power at the least label, fall
exponentially in u. The sums over infinitely many features are those of `numerics.series`, with the square of the terms
beyond its last octave.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvable.numerics.gaussian import panels
from solvable.numerics.roots import halving
from solvable.numerics.series import COARSE, FINE, integer_rule

_DEPTH = 42.0
"""Labels whose density is below e^-42 of the largest are left out."""
_SMALL = 0.05
"""Features with 2 lambda |s| below this enter by their power sums."""
_POWERS = 12
_SLOPE = 0.8
"""Of the arms of a hyperbola: below one."""
_REACH = 90.0
"""The largest u: for a single feature the density at the least label is integrable but infinite."""
_FARTHEST = 7.0
"""The largest v."""
NODES, STEP = (10, 8), (0.06, 0.08)
"""Labels on a panel, and the step of v: of the rule, and of the coarse one."""
_PANELS, _WIDEST = 24, 0.5
"""How many panels of labels there are at least, and how wide they are at most."""


class Amplitudes(NamedTuple):
    """The amplitudes at the nodes of a rule for sums over them, and the sum of the squares of all that lie beyond."""

    values: np.ndarray
    weights: np.ndarray
    beyond: float


def amplitudes(decay: float, features: int | None, count: int = FINE) -> Amplitudes:
    r"""$\lambda_k \propto k^{-\gamma}$ with $2\sum_k \lambda_k^2 = 1$: a label without noise has variance one."""
    logs, weights, end = integer_rule(count, features)
    values, beyond = np.exp(-decay * logs), 0.0
    if features is None:
        beyond = (end - 0.5) ** (1 - 2 * decay) / (2 * decay - 1)
    total = 2 * (weights @ values**2 + beyond)
    return Amplitudes(values / np.sqrt(total), weights, float(beyond / total))


class Labels(NamedTuple):
    """Labels `y` with their weights, which sum to one, and of each the contour (`saddles`, y x v) and its weights."""

    y: np.ndarray
    weight: np.ndarray
    contour: np.ndarray
    parts: np.ndarray

    def second(self, amplitude: np.ndarray) -> np.ndarray:
        """weight times E[h^2|y] - 1 of features of these amplitudes, (features, y)."""
        amplitude = np.asarray(amplitude, float)
        # 1/(1 + 2 lambda s) - 1, so that weak features keep their digits.
        rows = [
            np.sum(self.parts * (-2 * a * self.contour / (1 + 2 * a * self.contour)), axis=1).real for a in amplitude
        ]
        return np.array(rows).reshape(len(amplitude), len(self.y))


@functools.lru_cache(maxsize=16)
def labels(
    decay: float, features: int | None, noise: float, breaks: Sequence[float] = (), coarse: bool = False
) -> Labels:
    """The law of the labels; functions of them may have kinks at `breaks`. A `coarse` rule tells the error."""
    found = amplitudes(decay, features, COARSE if coarse else FINE)
    law = _Law(found, noise, features is not None)
    edges = law.range_of_u()
    if breaks:
        edges = np.unique(np.concatenate([edges, law.u_of(np.asarray(breaks), edges)]))
    u, du = panels(edges, NODES[coarse], graded=False)
    s = np.expm1(u) / (2 * law.first)
    height, second, third = law.saddle(s)
    weight_of_y = du * second * np.exp(u) / (2 * law.first)
    # The hyperbola of vertex s whose curvature is that of the path of steepest descent, in units of tau.
    tau, bend = 1 / np.sqrt(second), third / (6 * second)
    step = STEP[coarse]
    v = np.arange(0.0, law.reach(s, height, tau, bend), step)
    theta = tau[:, None] * np.sinh(v)
    slope = tau[:, None] * np.cosh(v) * step
    slope[:, 0] /= 2
    width = (_SLOPE / (2 * bend))[:, None]
    root = np.sqrt(1 + (theta / width) ** 2)
    contour = s[:, None] + 1j * theta - _SLOPE * width * (root - 1)
    tangent = 1j - _SLOPE * theta / (width * root)
    parts = np.exp(law.exponent(contour, height[:, None])) * tangent * slope / (1j * np.pi) * weight_of_y[:, None]
    return Labels(height - law.height, parts.sum(axis=1).real, contour, parts)


class _Law:
    """W and its derivatives. Labels are counted from the least one, if there are finitely many features: close to it
    their distance has more digits than they have, and `height` is what it adds."""

    def __init__(self, found: Amplitudes, noise: float, finite: bool):
        self._values, self._weights, self._beyond = found
        self._noise, self._finite = noise, finite
        self.first = float(found.values[0])
        self.height = float(found.weights @ found.values) if finite else 0.0

    def saddle(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The label whose saddle point is s, and the second and minus the third derivative of W there."""
        ratio = 1 + 2 * self._values * s[..., None]
        squares = self._weights * 2 * self._values**2
        spread = self._noise + 2 * self._beyond
        if self._finite:
            y = -spread * s + np.sum(self._weights * self._values / ratio, axis=-1)
        else:
            y = -spread * s - np.sum(squares / ratio, axis=-1) * s
        return y, spread + np.sum(squares / ratio**2, axis=-1), np.sum(4 * self._values * squares / ratio**3, axis=-1)

    def exponent(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """s y + W(s)."""
        found = s * y + (self._noise / 2 + self._beyond) * s**2
        small = 2 * self._values * np.abs(s).max() < _SMALL
        linear = 0.0 if self._finite else 1.0
        for value, weight in zip(self._values[~small], self._weights[~small], strict=True):
            found += weight * (linear * value * s - np.log1p(2 * value * s) / 2)
        if np.any(small):
            values, weights = self._values[small], self._weights[small]
            found -= (1 - linear) * (weights @ values) * s
            for j in range(2, _POWERS):
                found -= (-1) ** (j + 1) * (2 * s) ** j * (weights @ values**j) / (2 * j)
        return found

    def range_of_u(self) -> np.ndarray:
        """Ends of panels between which the labels lie, of saddle points s = (e^u - 1)/(2 lambda_1)."""
        ends = []
        for side in (-1.0, 1.0):
            u = 0.02 * side
            while abs(u) < _REACH:
                s = np.expm1(np.array([u])) / (2 * self.first)
                if self.exponent(s, self.saddle(s)[0])[0] < -_DEPTH:
                    break
                u *= 1.1
            ends.append(u)
        count = max(_PANELS, math.ceil((ends[1] - ends[0]) / _WIDEST))
        return np.linspace(ends[0], ends[1], count + 1)

    def u_of(self, y: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """Where labels lie, of those between the ends."""
        bracket = halving(
            lambda u: self.saddle(np.expm1(u) / (2 * self.first))[0] - self.height < y,
            np.full(len(y), edges[0]),
            np.full(len(y), edges[-1]),
        )
        u = bracket.middle
        return u[(u > edges[0] + 1e-9) & (u < edges[-1] - 1e-9)]

    def reach(self, s: np.ndarray, y: np.ndarray, tau: np.ndarray, bend: np.ndarray) -> float:
        """The v beyond which nothing of the integrands is left."""
        rows = np.unique(np.linspace(0, len(s) - 1, 8).astype(int))
        s, y, tau, bend = s[rows], y[rows], tau[rows], bend[rows]
        centre, width = self.exponent(s, y), _SLOPE / (2 * bend)
        for v in np.arange(2.5, _FARTHEST, 0.5):
            theta = tau * np.sinh(v)
            at = s + 1j * theta - _SLOPE * width * (np.sqrt(1 + (theta / width) ** 2) - 1)
            if np.all(np.real(self.exponent(at, y) - centre) < -_DEPTH):
                return float(v)
        return _FARTHEST
