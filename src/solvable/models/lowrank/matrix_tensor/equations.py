r"""State evolution of the four factors of a matrix and a tensor, and its reduction to one equation for the shared one.

With a_k the sizes of u, v, x, y over that of u, $\Delta_m$, $\Delta_t$ the noises and q_k the overlaps of posterior
means, the fields have the precisions

    G_u = a_v q_v / Dm + a_x a_y q_x q_y / Dt,   G_v = q_u / Dm,   G_x = a_y q_u q_y / Dt,   G_y = a_x q_u q_x / Dt,

and q = G / (1 + G). Three of the four equations are explicit in q_u:

    q_v = q_u / (q_u + Dm),    q_x = (1 - e^2) / (1 + b e),    q_y = (1 - e^2) / (1 + e / b),

with b = sqrt(a_x / a_y) and e = onset / q_u, where the onset Dt / sqrt(a_x a_y) is the q_u above which x and y are
found; below it they are not, q_x = q_y = 0. What is left is one equation in log odds, t = log(q_u / (1 - q_u)):

    t = log G_u(t).

Factors on spheres that maximise the likelihood obey the same three equations for their squared cosines, and another
G_u (`Spheres`). [tabanelli2025computational, barbier2017layered]
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import expit, logit

from solvable.engine.interactions import FieldDenoiser
from solvable.engine.sides import BayesOutput
from solvable.numerics.roots import every_root

FACTORS = ("u", "v", "x", "y")
_GEOMETRIC, _LINEAR = 400, 400
"""Points of the grid on which roots are looked for: at all distances from the onset, and everywhere."""
_ROUNDING = 1e-14
_LEAST = 1e-80
"""A smaller variance acts as this one: what it leaves unknown is nothing beside one, and cubes stay finite."""


@dataclasses.dataclass(frozen=True)
class Couplings(BayesOutput):
    """The two precisions 1/Dm = `matrix` and 1/Dt = `tensor`, from 0 to infinity, and the sizes a of the factors.

    As the output of the model it is half a step of state evolution, and on data it passes the field on.
    """

    matrix: float
    tensor: float
    sizes: tuple[float, float, float, float]

    @classmethod
    def of(cls, matrix_noise: float, tensor_noise: float, ratios: tuple[float, ...]) -> Couplings:
        """Those of a model; the size of u is the unit."""
        a = [ratio / ratios[0] for ratio in ratios]
        return cls(_inverse(matrix_noise), _inverse(tensor_noise), (1.0, a[1], a[2], a[3]))

    @property
    def projections(self) -> int:
        return 4

    def fields(self, q: np.ndarray) -> np.ndarray:
        """The precisions G (..., 4) of the fields at overlaps q (..., 4)."""
        u, v, x, y = np.moveaxis(np.asarray(q, float), -1, 0)
        _, a_v, a_x, a_y = self.sizes
        g, h = self.matrix, self.tensor
        parts = (
            _times(g, a_v * v) + _times(h, a_x * a_y * x * y),
            _times(g, u),
            _times(h, a_y * u * y),
            _times(h, a_x * u * x),
        )
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def information(self, V: Any) -> np.ndarray:
        q = 1 - np.diagonal(np.asarray(V, float), axis1=-2, axis2=-1)
        return np.where(np.eye(4) > 0, self.fields(q)[..., None], 0.0)

    def denoiser(self, y: Any) -> FieldDenoiser:
        """The interaction takes the place of labels."""
        return FieldDenoiser(y)

    @property
    def onset(self) -> float:
        """The overlap of u above which x and y are found."""
        return _inverse(self.tensor * math.sqrt(self.sizes[2] * self.sizes[3]))

    def overlaps(self, u: Any) -> np.ndarray:
        """The four overlaps (..., 4) that solve all equations but that of u, whose overlap is given."""
        u = np.asarray(u, float)
        _, _, a_x, a_y = self.sizes
        b = math.sqrt(a_x / a_y)
        with np.errstate(divide="ignore", invalid="ignore"):
            e = np.minimum(np.where(u > 0, self.onset / u, np.inf), 1.0)
            v = 1.0 * (u > 0) if math.isinf(self.matrix) else self.matrix * u / (1 + self.matrix * u)
        found = (1 - e) * (1 + e)
        return np.stack([u, v, found / (1 + b * e), found / (1 + e / b)], axis=-1)

    def mutual_information(self, q: np.ndarray) -> np.ndarray:
        r"""That of data and factors over the size of u, at the overlaps of a fixed point, with p = 1 - q:

        $\frac{a_v}{2\Delta_m} p_u p_v + \frac{a_x a_y}{2\Delta_t}(p_u p_x + p_u p_y + p_x p_y - 2 p_u p_x p_y)
        + \frac12\sum_k a_k\log(1 + G_k)$. Every fixed point is stationary; that of a posterior is the smallest.
        """
        q = np.asarray(q, float)
        if math.isinf(self.matrix) or math.isinf(self.tensor):
            return np.full(q.shape[:-1], np.inf)
        u, v, x, y = np.moveaxis(1 - q, -1, 0)
        _, a_v, a_x, a_y = self.sizes
        lost = self.matrix * a_v * u * v + self.tensor * a_x * a_y * (u * x + u * y + x * y - 2 * u * x * y)
        return 0.5 * lost + 0.5 * np.log1p(self.fields(q)) @ np.asarray(self.sizes)


class Equation(abc.ABC):
    """The equation t = log G_u(t) of one kind of learner."""

    def __init__(self, couplings: Couplings):
        self.couplings = couplings
        _, a_v, a_x, a_y = couplings.sizes
        self.matrix, self.tensor = couplings.matrix * a_v, couplings.tensor * a_x * a_y
        self.noiseless = math.isinf(self.matrix) or math.isinf(self.tensor)

    @property
    @abc.abstractmethod
    def matrix_stage(self) -> float:
        """The overlap of u that the matrix alone leads to, while x and y are not found."""

    @abc.abstractmethod
    def log_field(self, t: np.ndarray) -> np.ndarray:
        """log G_u where x and y are found."""

    def above_onset(self) -> tuple[np.ndarray, np.ndarray]:
        """All q_u above the onset that solve the equation, in order, and whether each is stable."""
        onset = self.couplings.onset
        if onset >= 1:
            return np.empty(0), np.empty(0, bool)
        low = logit(onset)
        # No field is stronger than that of factors that are known.
        width = max(math.log(self.matrix + self.tensor) + 1 - low, 1.0)
        grid = low + np.union1d(np.geomspace(1e-6, width, _GEOMETRIC), np.linspace(0.0, width, _LINEAR))
        t, rises = every_root(lambda t: self.log_field(t) - t, grid)
        return expit(t), ~rises

    def uninformed(self) -> float:
        """The q_u that the iteration reaches from next to nothing: the matrix first, then the tensor if it can."""
        if self.noiseless:
            return 1.0
        alone = self.matrix_stage
        if alone <= self.couplings.onset:
            return alone
        u, stable = self.above_onset()
        return float(u[stable][0]) if stable.any() else alone

    def stable(self) -> np.ndarray:
        """The q_u of every stable fixed point, in order."""
        if self.noiseless:
            return np.ones(1)
        alone = self.matrix_stage
        u, stable = self.above_onset()
        below = [alone] if alone <= self.couplings.onset else []
        return np.concatenate([below, u[stable]])

    def error(self, u: float) -> float:
        """How far a solution may be off: to where the two sides of the equation differ by more than rounding."""
        if self.noiseless or not self.couplings.onset < u < 1:
            return _ROUNDING
        t, steps, low = logit(u), np.geomspace(1e-15, 1.0, 61), logit(self.couplings.onset)
        sides = np.concatenate([t - steps, t + steps])
        gap = np.abs(self.log_field(np.maximum(sides, low)) - sides)
        beyond = ((gap > _ROUNDING * (1 + abs(t))) | (sides < low)).reshape(2, -1).all(axis=0)
        return float(u * (1 - u) * (steps[np.argmax(beyond)] if beyond.any() else 1.0)) + _ROUNDING


class Posterior(Equation):
    """The overlap of posterior means: G_u = a_v q_v / Dm + a_x a_y q_x q_y / Dt."""

    @property
    def matrix_stage(self) -> float:
        """(a_v - Dm^2) / (a_v + Dm), zero from Dm = sqrt(a_v) on."""
        g, root = self.couplings.matrix, math.sqrt(self.couplings.sizes[1])
        if g * root <= 1:
            return 0.0
        return (root * g - 1) * (root * g + 1) / (g * (root * root * g + 1))

    def log_field(self, t: np.ndarray) -> np.ndarray:
        q = self.couplings.overlaps(expit(t))
        with np.errstate(divide="ignore"):
            return np.log(self.matrix * q[:, 1] + self.tensor * q[:, 2] * q[:, 3])


class Spheres(Equation):
    r"""The squared cosine of factors on spheres that maximise the likelihood.

    With m the cosines the field of u has the mean $S = a_v m_v/\Delta_m + a_x a_y m_x m_y/\Delta_t$ and the variance
    $n = a_v/\Delta_m + a_x a_y/\Delta_t$ whatever is known: $G_u = S^2/n$. A tensor of which nothing is known adds
    noise.
    """

    @property
    def matrix_stage(self) -> float:
        """(S^2 - n Dm) / (S^2 + n) at m_v = 1: zero where the matrix does not outweigh the noise of the tensor."""
        g, S, n = self.couplings.matrix, self.matrix, self.matrix + self.tensor
        return max(0.0, (S * S * g - n) / (g * (S * S + n))) if g > 0 else 0.0

    def log_field(self, t: np.ndarray) -> np.ndarray:
        q = self.couplings.overlaps(expit(t))
        mean = self.matrix * np.sqrt(q[:, 1]) + self.tensor * np.sqrt(q[:, 2] * q[:, 3])
        with np.errstate(divide="ignore"):
            return 2 * np.log(mean) - math.log(self.matrix + self.tensor)


def _inverse(variance: float) -> float:
    """A precision. None but that of no noise at all is infinite: a tensor without any needs no start."""
    return math.inf if variance == 0 else 1 / max(variance, _LEAST)


def _times(precision: float, q: np.ndarray) -> np.ndarray:
    """The product, zero where nothing is known even if the precision is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(q > 0, precision * q, 0.0)
