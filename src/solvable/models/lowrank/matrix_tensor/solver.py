r"""The fixed points of the four overlaps, and the noises of the matrix at which what can be found changes.

Every stable fixed point is a solution of one equation for q_u (`equations`). As the noise of the matrix falls, message
passing finds u and v at a first step and x and y at a second. With $1/\Delta_m$ in the place of an unknown the equation
is quadratic,

    a_v q_u / (Dm (q_u + Dm)) = K,        K = q_u / (1 - q_u) - a_x a_y q_x q_y / Dt,

so that the curve $\Delta_m(q_u)$ of all fixed points is explicit. The second step is continuous at first, since what x
and y say of u is of second order in them; but where the tensor has little noise the curve folds soon after, and message
passing jumps. Then there is a hard phase: x and y could be found at larger $\Delta_m$ than message passing needs.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import expit, logit

from solvable.core.status import Status
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds
from solvable.models.lowrank.matrix_tensor.equations import Couplings, Posterior
from solvable.numerics.roots import crossing, every_root

_CLOSE = 1e-12
"""The difference of two mutual informations, relative to their size, below which either may be the smaller."""


@dataclasses.dataclass(frozen=True)
class FactorSolver(Solver):
    """Fixed points of posterior means; a gain of k is that of k matrices and tensors of the same factors."""

    couplings: Couplings

    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        return _joined([self._point(c, Posterior(c).uninformed()) for c in self._each(gain)])

    def optimal(self, gain: np.ndarray) -> FixedPoints:
        return _joined([self._best(c) for c in self._each(gain)])

    def _each(self, gain: np.ndarray) -> list[Couplings]:
        c = self.couplings
        return [Couplings(c.matrix * k, c.tensor * k, c.sizes) for k in np.asarray(gain, float).tolist()]

    def _best(self, couplings: Couplings) -> FixedPoints:
        """The stable fixed point of smallest mutual information."""
        stable = Posterior(couplings).stable()
        cost = couplings.mutual_information(couplings.overlaps(stable))
        best = int(np.argmin(cost))
        others = np.delete(cost, best)
        ambiguous = others.size > 0 and others.min() - cost[best] <= _CLOSE * (1 + abs(cost[best]))
        return self._point(couplings, float(stable[best]), Status.AMBIGUOUS_BRANCH if ambiguous else Status.CONVERGED)

    def _point(self, couplings: Couplings, u: float, status: Status = Status.CONVERGED) -> FixedPoints:
        error = Posterior(couplings).error(u)
        q, low, high = couplings.overlaps(np.clip([u, u - error, u + error], 0.0, 1.0))
        G = couplings.fields(q)
        with np.errstate(invalid="ignore"):
            again = np.where(np.isinf(G), 1.0, G / (1 + G))
            gained = couplings.mutual_information(np.zeros(4)) - couplings.mutual_information(q)
        residual = float(np.max(np.abs(again - q) / np.where(q > 0, q, 1.0)))
        spread = float(np.max(np.abs(np.stack([low, high]) - q)))
        if residual > 1e-8 and residual > 100 * spread:
            status = Status.MAX_STEPS
        return FixedPoints(
            overlap=np.diag(q)[None],
            variance=np.diag(np.where(q < 1, 1 - q, 0.0))[None],
            field=np.diag(G)[None],
            free_entropy=np.array([np.nan_to_num(gained, nan=np.inf)]),
            status=np.array([status]),
            uncertainty=np.array([spread]),
            residual=np.array([residual]),
            iterations=np.zeros(1, int),
        )

    def thresholds(self) -> Thresholds:
        """Noises of the matrix at the given noise of the tensor, below which something changes (0: none, inf: any).

        `matrix_step` and `tensor_step`: message passing finds u and v, and x and y. `algorithmic`: where that second
        step ends in a jump, after it; `information_theoretic`: where Bayes-optimal learning jumps; `spinodal`: where
        the fixed point that knows all four appears. Without a jump the last three equal `tensor_step`.
        """
        couplings = self.couplings
        if math.isinf(couplings.tensor):
            return Thresholds(
                dict.fromkeys(
                    ("matrix_step", "tensor_step", "algorithmic", "information_theoretic", "spinodal"), math.inf
                )
            )
        curve = PrecisionCurve(couplings)
        first, second = math.sqrt(couplings.sizes[1]), curve.onset_noise
        found = Thresholds(matrix_step=first, tensor_step=second)
        folds = curve.folds()
        if len(folds) < 2:
            return Thresholds(found | dict.fromkeys(("algorithmic", "information_theoretic", "spinodal"), second))
        top, bottom = max(folds), min(folds)
        noises = [_inverse(level) for level in (top, self._preferred(bottom, top), bottom)]
        names = ("algorithmic", "information_theoretic", "spinodal")
        return Thresholds(found | dict(zip(names, noises, strict=True)))

    def _preferred(self, bottom: float, top: float) -> float:
        """The precision of the matrix from which on the fixed point that knows more has the smaller information.

        The difference grows with the precision: its derivative is a_v (q_u q_v - q_u' q_v') / 2.
        """

        def better(matrix: float) -> float:
            couplings = dataclasses.replace(self.couplings, matrix=matrix)
            stable = Posterior(couplings).stable()
            cost = couplings.mutual_information(couplings.overlaps(stable))
            return float(cost[0] - cost[-1]) if len(stable) > 1 else -1.0 if matrix < (top + bottom) / 2 else 1.0

        return crossing(better, bottom, top)


class PrecisionCurve:
    """The precision g = 1/Dm of the matrix at which an overlap of u is a fixed point, at one noise of the tensor."""

    def __init__(self, couplings: Couplings):
        self.couplings = couplings
        _, self._a_v, a_x, a_y = couplings.sizes
        self._b, self._tensor = math.sqrt(a_x / a_y), couplings.tensor * a_x * a_y

    @property
    def onset_noise(self) -> float:
        """The noise at which the matrix alone leads to the onset: zero where no matrix does."""
        onset = self.couplings.onset
        return _inverse(self._precision(onset / (1 - onset), onset)) if onset < 1 else 0.0

    def level(self, t: np.ndarray) -> np.ndarray:
        """g at log odds t of q_u; zero where the tensor alone is more than enough."""
        u = expit(t)
        return self._precision(np.exp(t) - self._from_tensor(u)[0], u)

    def rises(self, t: np.ndarray) -> np.ndarray:
        """A number of the sign of the slope of the curve: that of K less the part of the matrix at fixed g."""
        u, g = expit(t), self.level(t)
        return 1 - (self._from_tensor(u)[1] + self._a_v * (g / (1 + u * g)) ** 2) * (1 - u) ** 2

    def folds(self) -> list[float]:
        """The levels at which the curve turns, in the order of q_u."""
        onset = self.couplings.onset
        if onset >= 1:
            return []
        low = logit(onset)
        width = max(math.log1p(self._tensor + self._a_v) + 6 - low, 1.0)
        grid = low + np.union1d(np.geomspace(1e-6, width, 600), np.linspace(0.0, width, 600))
        return self.level(every_root(self.rises, grid)[0]).tolist()

    def _precision(self, K: Any, u: Any) -> Any:
        K = np.maximum(K, 0.0)
        return (K + np.sqrt(K * K + 4 * K * self._a_v / u)) / (2 * self._a_v)

    def _from_tensor(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a_x a_y q_x q_y / Dt and its derivative in q_u."""
        b, e = self._b, np.minimum(self.couplings.onset / u, 1.0)
        part, share = (1 - e) * (1 + e), self._tensor / ((1 + b * e) * (1 + e / b))
        slope = 4 * e * part + part**2 * (b / (1 + b * e) + 1 / (b + e))
        return share * part**2, share * slope * e / u


def _joined(points: list[FixedPoints]) -> FixedPoints:
    names = [field.name for field in dataclasses.fields(FixedPoints)]
    return FixedPoints(
        **{name: np.concatenate([np.atleast_1d(getattr(point, name)) for point in points]) for name in names}
    )


def _inverse(x: float) -> float:
    return math.inf if x == 0 else 1 / float(x)
