r"""Square loss and a penalty on the trace: the two equations of `spectra.thresholded` for D and u, at many points.

The unknowns are log D and $s = u/\delta$. With $a = \theta/\delta$, $b = 1 - Df/(2\alpha)$, both not negative, and
$m = \lambda/(4\alpha\delta)$ the equations read

    E1 = a + b - sqrt((a - b)^2 + 4 m) = 0, which says a b = m,     E2 = log((mse + Delta/2) / (2 alpha D)) = 0.

In this form a vanishing penalty is nothing special: then the smaller of a and b is zero (b: the labels are
interpolated). At given D the first equation increases with s, so its root is unique and can be bracketed. Along that
root the second has one zero, since the problem is convex, with E2 > 0 below. So D is searched outside, s inside, both
by Newton's method kept within brackets, and the two together once they are close.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from solvable.numerics.roots import crossing, first_beyond, halving
from solvable.spectra import Law
from solvable.spectra.thresholded import Thresholded, thresholded

TOLERANCE = 1e-12
"""Residuals below this are rounding: the search stops."""
ACCEPTED = 1e-9
"""Residuals below this count as a solution if rounding forbids better."""
CERTAIN = 1e-6
"""The error of log D must be below this: where the equations are flat a small residual says little."""
_ROUNDING = 1e-14
_EVALUATIONS = 150
_LONGEST = 3.0
_CLOSE = 1e-4
_FARTHEST = 200.0
_STEPS_DOWN = 12


class Solution(NamedTuple):
    """D, u and the integrals there, how well the equations are solved, the evaluations it took, whether it ended."""

    D: np.ndarray
    u: np.ndarray
    integrals: Thresholded
    residual: np.ndarray
    evaluations: np.ndarray
    solved: np.ndarray

    def put(self, where: np.ndarray, other: Solution, which: Any = slice(None)) -> None:
        """Write the points `which` of another solution at the places `where`."""
        for mine, new in zip(jax.tree.leaves(self), jax.tree.leaves(other), strict=True):
            mine[where] = new[which]


class Equations(NamedTuple):
    """E1 and E2, and their derivatives in s and in log D."""

    E1: np.ndarray
    E2: np.ndarray
    E1_s: np.ndarray
    E1_log: np.ndarray
    E2_s: np.ndarray
    E2_log: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        return np.maximum(np.abs(self.E1), np.abs(self.E2))

    @property
    def slide(self) -> np.ndarray:
        """ds/dlog D along the root of E1."""
        with np.errstate(all="ignore"):
            return -self.E1_log / self.E1_s

    @property
    def slope(self) -> np.ndarray:
        """The derivative of E2 in log D along the root of E1."""
        return self.E2_log + self.E2_s * self.slide


def solve(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> Solution:
    """The solution at each alpha > 0; where there is none within reach the residual is not small."""
    log_D, s = _start(law, noise, penalty, alpha)
    count = len(alpha)
    search = _Search(np.full((2, count), [[-np.inf], [np.inf]]), np.full((2, count), [[-np.inf], [np.inf]]))
    best = Solution(
        np.exp(log_D),
        s * np.exp(log_D / 2),
        Thresholded(*np.full((len(Thresholded._fields), count), np.nan)),
        np.full(count, np.inf),
        np.zeros(count, int),
        np.zeros(count, bool),
    )
    active = np.arange(count)
    for _ in range(_EVALUATIONS):
        D, u = np.exp(log_D[active]), s[active] * np.exp(log_D[active] / 2)
        integrals = thresholded(law, D, u)
        found = equations(integrals, noise, penalty, alpha[active], D, u)
        residual = np.where(np.isnan(found.residual), np.inf, found.residual)
        new_log, new_s = search.step(active, found, log_D[active], s[active])
        certain = residual + _ROUNDING < CERTAIN * np.abs(found.slope)
        stalled = (best.residual[active] < ACCEPTED) & (residual > best.residual[active] / 4)
        better = residual < best.residual[active]
        best.evaluations[active] += 1
        best.put(active[better], Solution(D, u, integrals, residual, best.evaluations[active], certain), better)
        log_D[active], s[active] = new_log, new_s
        ended = ((residual < TOLERANCE) | stalled) & certain
        active = active[~(ended | (np.abs(new_log) > _FARTHEST))]
        if not active.size:
            break
    return best._replace(solved=best.solved & (best.residual < ACCEPTED))


def solve_interpolating(law: Law, noise: float, alpha: float, largest: float) -> Solution | None:
    """The solution without penalty at one alpha below the interpolation threshold, at which D is `largest`.

    There b = 0 has a second solution with theta < 0 close by, on the other side of `largest`, which misleads a search.
    So D is bracketed below `largest`, going down until E2 > 0, and at each D the cut is the root of b alone. None where
    there is no bracket.
    """
    span = float(np.max(np.abs(np.array(law.ends)))) + 1

    def at(log_D: float) -> tuple[Thresholded, Equations, float]:
        """The integrals and equations at D and the cut where b = 0."""
        delta = np.exp(log_D / 2)
        reach = span / delta + 3

        def b(s: float) -> float:
            return 1 - float(thresholded(law, np.exp([log_D]), np.array([s * delta])).Df[0]) / (2 * alpha)

        s = crossing(b, -reach, reach, 1e-14)
        integrals = thresholded(law, np.exp([log_D]), np.array([s * delta]))
        args = np.array([alpha]), np.exp([log_D]), np.array([s * delta])
        return integrals, equations(integrals, noise, 0.0, *args), s * delta

    def excess(log_D: float) -> float:
        return -float(at(log_D)[1].E2[0])

    top = np.log(largest)
    bracket = first_beyond(lambda log_D: excess(log_D) < 0, top - np.arange(_STEPS_DOWN))
    if bracket is None:
        return None
    log_D = crossing(excess, bracket.high, bracket.low, 1e-14)
    integrals, found, u = at(log_D)
    solved = np.abs(found.E2) < ACCEPTED
    return Solution(np.exp([log_D]), np.array([u]), integrals, np.abs(found.E2), np.ones(1, int), solved)


def equations(
    found: Thresholded, noise: float, penalty: float, alpha: np.ndarray, D: np.ndarray, u: np.ndarray
) -> Equations:
    """E1 and E2 with their derivatives, from the integrals at D and u."""
    delta = np.sqrt(D)
    a, b, m = found.theta / delta, 1 - found.Df / (2 * alpha), penalty / (4 * alpha * delta)
    root = np.maximum(np.sqrt((a - b) ** 2 + 4 * m), 1e-300)
    # The second form is the same number without cancellation.
    E1 = np.where(a + b > 0, 4 * (a * b - m) / (np.maximum(a + b, 0.0) + root), a + b - root)
    total = np.maximum(found.mse + noise / 2, 1e-300)
    theta_s = found.theta_in_u * delta
    theta_log = found.theta_in_u * u / 2 + found.theta_in_D * D
    mse_D = found.Df - 2 * found.theta * found.H + 4 * D * found.G
    mse_theta = 2 * found.theta * found.rank - 4 * D * found.H
    a_s, a_log = theta_s / delta, theta_log / delta - a / 2
    b_s, b_log = (found.H * theta_s) / alpha, (found.H * theta_log - found.G * D) / alpha
    tilt = (a - b) / root
    return Equations(
        E1=E1,
        E2=np.log(total / (2 * alpha * D)),
        E1_s=a_s * (1 - tilt) + b_s * (1 + tilt),
        E1_log=a_log * (1 - tilt) + b_log * (1 + tilt) + m / root,
        E2_s=mse_theta * theta_s / total,
        E2_log=(mse_theta * theta_log + mse_D * D) / total - 1,
    )


class _Search(NamedTuple):
    """Brackets (2 x points) of s at the present D, and of log D."""

    inner: np.ndarray
    outer: np.ndarray

    def step(
        self, active: np.ndarray, found: Equations, log_D: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The next log D and s of the active points."""
        reach = np.maximum(1.0, np.abs(s) / 2)
        with np.errstate(all="ignore"):
            change = -found.E1 / found.E1_s
            change = np.where(np.isfinite(change), change, -np.sign(found.E1) * reach)
            E2 = found.E2 + found.E2_s * change  # at the root of E1, to first order
            close = found.residual < _CLOSE
            outward = close | (np.abs(found.E1) < 1e-3 * np.minimum(1.0, np.abs(E2)))
            low, high = self.inner[:, active]
            low, high = np.where(found.E1 < 0, s, low), np.where(found.E1 > 0, s, high)
            along_s = _within(s + np.clip(change, -reach, reach), low, high)
            self.inner[:, active] = np.where(outward, [[-np.inf], [np.inf]], [low, high])

            low, high = self.outer[:, active]
            nearer = np.where(E2 > 0, log_D, low), np.where(E2 < 0, log_D, high)
            low, high = self.outer[:, active] = np.where(outward, nearer, [low, high])
            jump = _outer_step(E2, found.slope)
            new_log = np.where(close, log_D + jump, _within(log_D + jump, low, high))
            across_s = s + np.clip(change + found.slide * (new_log - log_D), -reach, reach)
        lost = ~np.isfinite(found.residual)  # the cut fell on a singular point: move it a little
        new_s = np.where(lost, s + 1e-5 * reach, np.where(outward, across_s, along_s))
        return np.where(outward & ~lost, new_log, log_D), new_s


def _outer_step(E2: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The change of log D, from E2 and its slope along the root of E1.

    Close to the root Newton's step in log D. Farther away above it Newton's step in D for 2 alpha D - mse - Delta/2,
    which is nearly linear in D even where its logarithm is flat; below it the step is limited.
    """
    newton = np.clip(-E2 / slope, -_LONGEST, _LONGEST)
    ratio = 1 - np.expm1(E2) / (np.exp(E2) * (1 + slope) - 1)
    down = np.log(np.clip(ratio, np.exp(-2 * _LONGEST), 1.0))
    up = np.where(slope < 0, np.abs(newton), _LONGEST)
    return np.where(np.abs(E2) < 0.01, newton, np.where(E2 < 0, down, up))


def _within(new: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """`new`, or the middle of the bracket where it falls outside one that is finite."""
    outside = ~((new > low) & (new < high)) & np.isfinite(low + high)
    return np.where(outside, (low + high) / 2, new)


def _start(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log D and s as if R were pure noise, for which D = (E A^2 + Delta/2) / (2 alpha) and E1 is explicit in theta."""
    D = (float(law.second_moment) + noise / 2) / (2 * alpha)
    m = penalty / (4 * alpha * np.sqrt(D))

    def beyond(t: np.ndarray) -> np.ndarray:
        """Whether theta/delta = t is too large; with t = 2 cos(phi) the semicircle has explicit integrals beyond."""
        phi = np.arccos(np.minimum(t / 2, 1.0))
        first, second = 4 / (3 * np.pi) * np.sin(phi) ** 3, (phi - np.sin(4 * phi) / 4) / np.pi
        return t * (1 - (second - t * first) / (2 * alpha)) >= m

    t = halving(beyond, np.zeros_like(alpha), np.maximum(2.0, m), 29).middle
    return np.log(D), np.where(t < 2, t / 2, (t + np.sqrt(np.maximum(t**2 - 4, 0.0))) / 2)
