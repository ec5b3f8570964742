r"""Labels that name, for each token, the token with the largest score: hardmax attention of two tokens.

With T = 2 the label is the pair of signs $s_1 = sgn(h_{11} - h_{12})$, $s_2 = sgn(h_{22} - h_{12})$. Given what is
known of the scores, $h_{ab} \sim N(\omega_{ab}, (1 + \delta_{ab}) V)$, the two differences have variance 3V and
correlation 1/3, so that with $k_a = s_a(\omega_{aa} - \omega_{12})/\sqrt{3V}$ and $c = s_1 s_2/3$

    P(y) = Phi_2(k_1, k_2; c),    dP/dk_1 = phi(k_1) Phi((k_2 - c k_1) / sqrt(1 - c^2)),
    g_11 = s_1 (dP/dk_1) / (sqrt(3V) P),    g_22 likewise,    g_12 = -(g_11 + g_22),

and the information of a sample is $E \sum_{a\le b} (1 + \delta_{ab}) g_{ab}^2 = E[2 g_{11}^2 + 2 g_{22}^2 + g_{12}^2]$.
The public code of [boncoraglio2025bayes] has the density of the pair in the place of the derivative of its distribution
function, and its errors are larger.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from solvable.engine.sides import BayesOutput, OutputStep
from solvable.numerics import interpolation
from solvable.numerics.interpolation import PiecewiseChebyshev
from solvable.numerics.orthants import quadrant

_STEP, _LEAST_STEPS, _REACH = 0.2, 12, 8.5
"""The rule's step in s, the least number of steps on each side, and how many deviations it goes out."""
_COARSE = 0.85
"""The fineness of the rule that tells the error; a much coarser one would tell a thousand times as much."""
_EDGES = np.array([0.0, 0.7, 1.5, 3.0, 5.0, 8.0, 12.0, 16.0])
_DEGREE = 10
_NEGLIGIBLE = 1e-18
_S = float(np.sqrt(1 - 1 / 9))


@dataclasses.dataclass(frozen=True)
class HardmaxOutput(BayesOutput):
    """The two signs of a pair of tokens, where the part of the scores that is always known has variance `known`.

    It is the square of the mean eigenvalue, rho for a network: the trace of the matrix is known from its law. The
    information is J(q / V) / V with one function J for all, tabulated when it is first asked for.
    """

    known: float
    monotone = True

    @property
    def projections(self) -> int:
        return 1

    def information(self, V: Any) -> Any:
        V = np.asarray(V, float)
        x = np.log1p(self._ratio(V))
        # Beyond the table only labels next to a tie inform, a share of sqrt(V / q) of them.
        return np.exp(_table()[0](np.minimum(x, _EDGES[-1])) - np.maximum(x - _EDGES[-1], 0.0) / 2) / V

    def information_error(self, V: Any) -> np.ndarray:
        """That of the information, estimated by a coarser rule and the truncation of the table."""
        log_J, probes, error = _table()
        x = np.minimum(np.log1p(self._ratio(np.asarray(V, float))), _EDGES[-1])
        return np.interp(x, probes, error) + log_J.error(x)

    def _ratio(self, V: np.ndarray) -> np.ndarray:
        """q / V."""
        return (1 + self.known - V) / V

    def denoiser(self, y: np.ndarray) -> HardmaxLabels:
        return HardmaxLabels(np.asarray(y, float))


@functools.cache
def _table() -> tuple[PiecewiseChebyshev, np.ndarray, np.ndarray]:
    """log J over log(1 + q/V), which it continues linearly, and its error at a few places."""
    nodes = interpolation.chebyshev_nodes(_EDGES, _DEGREE)
    fine = np.array([sample_information(x) for x in np.expm1(nodes.ravel())]).reshape(nodes.shape)
    probes = nodes[:, _DEGREE // 2]
    coarse = np.array([sample_information(x, _COARSE) for x in np.expm1(probes)])
    return (
        interpolation.fit(_EDGES, _DEGREE, np.log(fine)),
        probes,
        np.abs(coarse / fine[:, _DEGREE // 2] - 1),
    )


def sample_information(ratio: float, fineness: float = 1.0) -> float:
    r"""J: V times $E \sum_{a\le b}(1 + \delta_{ab}) g_{ab}^2$ at $\omega_{ab} \sim N(0, (1 + \delta_{ab}) q)$.

    `ratio` is q / V. By the trapezoidal rule in s with $\omega_{aa} - \omega_{12} = \sqrt{3V} \sinh s$, dense where a
    difference is of the order of its uncertainty, whatever V. The differences have the correlation 1/3. Exchange of the
    tokens and a turn of all signs leave a half of the plane and three of the four labels.
    """
    width = np.sqrt(ratio)
    most = np.arcsinh(_REACH * width)
    steps = max(int(np.ceil(most * fineness / _STEP)), int(_LEAST_STEPS * fineness))
    s = np.linspace(-most, most, 2 * steps + 1)
    if most == 0:
        return float(_label(np.zeros(1), np.zeros(1))[0])
    x = np.sinh(s) / width
    weight = np.cosh(s) * (s[1] - s[0]) / width
    i, j = np.triu_indices(len(s))
    mass = np.where(i == j, 1.0, 2.0) * weight[i] * weight[j]
    mass *= np.exp(-(x[i] ** 2 + x[j] ** 2 - 2 / 3 * x[i] * x[j]) / (2 * _S**2)) / (2 * np.pi * _S)
    kept = mass > _NEGLIGIBLE * mass.max()
    k = np.sinh(s)
    return float(mass[kept] @ _label(k[i[kept]], k[j[kept]]))


def _label(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum over labels of P times the squares, in units of 1/V, averaged over the symmetries of the plane."""
    return 2 * _squares(a, b, 1 / 3) + _squares(a, -b, -1 / 3) + _squares(-a, b, -1 / 3)


def _squares(a: np.ndarray, b: np.ndarray, c: float) -> np.ndarray:
    """P times the sum of squares of one label, at its k_1 and k_2, for V = 1."""
    found = quadrant(a, b, c, _S)
    first, second = found.slope[..., 0], found.slope[..., 1]
    return np.exp(found.log_P) * (2 * first**2 + 2 * second**2 + (first + np.sign(c) * second) ** 2) / 3


@dataclasses.dataclass(frozen=True, eq=False)
class HardmaxLabels:
    """The denoiser of signs `y` (n, 2), for three measurements of a sample: 11, 12 and 22, the first and last over
    the root of two."""

    y: np.ndarray
    always: float | np.ndarray = 0.0
    """The part of the scores that is always known, (3 n, 1)."""

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        v = float(V[0, 0])
        scale = np.array([np.sqrt(2.0), 1.0, np.sqrt(2.0)])
        omega = (Omega + self.always).reshape(-1, 3) * scale
        k = self.y * (omega[:, ::2] - omega[:, 1:2]) / np.sqrt(3 * v)
        same = self.y[:, 0] * self.y[:, 1] > 0
        log_P, slope, curvature = np.empty(len(k)), np.empty((len(k), 2)), np.empty((len(k), 2, 2))
        for rows, c in ((same, 1 / 3), (~same, -1 / 3)):
            found = quadrant(k[rows, 0], k[rows, 1], c, _S)
            log_P[rows], slope[rows], curvature[rows] = found
        # The derivatives of log P in the three scores, through the two differences.
        pull = self.y * slope
        g = np.stack([scale[0] * pull[:, 0], -pull.sum(1), scale[2] * pull[:, 1]], axis=1) / np.sqrt(3 * v)
        bend = curvature - slope[:, :, None] * slope[:, None, :]
        own = np.mean(bend[:, 0, 0] + bend[:, 1, 1] + 2 / 3 * np.prod(self.y, axis=1) * bend[:, 0, 1]) / v

        def log_Z() -> np.ndarray:
            return log_P

        return OutputStep(g.reshape(-1, 1), np.full((1, 1), -own / 3), None, log_Z)
