r"""The eigenvalues of the matrix that `NuclearNorm` learns, and the singular values of the network's weights.

S has the eigenvalues of $(R - \theta)_+$, $R = A^* + \delta Z$: density $\mu_R(x + \theta)$ for x > 0, and a share of
zeros. A network of p >= d units computes it with weights W whose singular values over $(p d)^{1/4}$ are
$s = \sqrt x$, of density $2 s \mu_R(s^2 + \theta)$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import check_count
from solvable.core.errors import ConvergenceError, bad_parameter
from solvable.core.precision import float64
from solvable.core.status import Status
from solvable.models.matrix.model import MatrixModel
from solvable.models.matrix.nuclear.theory import NuclearNorm, NuclearPoints, nuclear_points
from solvable.numerics.batches import in_batches, rounded_up
from solvable.spectra import Law
from solvable.spectra.convolution import bulk_intervals, height

FEWEST = 20
"""Points on each interval of the spectrum."""
_LENGTH = 512


class Spectrum(NamedTuple):
    """`density` at the eigenvalues `x` > 0, the share `zero` of vanishing ones, and the same for the weights.

    `bulks` holds the ends of the intervals on which there are eigenvalues, m x 2, and `masses` the share of eigenvalues
    in each; the density vanishes at the ends, but for x = 0. `singular` and `singular_density` are those of
    W / (p d)^(1/4).
    """

    x: np.ndarray
    density: np.ndarray
    zero: float
    bulks: np.ndarray
    masses: np.ndarray
    singular: np.ndarray
    singular_density: np.ndarray


@float64
def spectrum(model: MatrixModel, learner: NuclearNorm, alpha: float, points: int = 400) -> Spectrum:
    """The spectrum at one alpha, on a grid of about `points` values that is denser towards the ends of each interval.

    **Raises:** `ValueError` for a learner of limited width, without samples, or where A* is recovered exactly (the
    spectrum is then its own); `ConvergenceError` where the theory has no solution.
    """
    points = check_count("points", points, least=FEWEST)
    if learner.width is not None:
        raise bad_parameter("width", learner.width, "None here: the spectrum of a wide network")
    if not alpha > 0:
        raise bad_parameter("alpha", alpha, "a positive number")
    found = nuclear_points(model.law, float(model.noise), float(learner.penalty), np.array([float(alpha)]))
    if found.status[0] != Status.CONVERGED:
        status = Status(int(found.status[0]))
        raise ConvergenceError(f"no spectrum for {model}, {learner}, alpha = {alpha:g}: {status.sentence}.")
    if found.D[0] == 0:
        raise bad_parameter("alpha", alpha, "below the recovery threshold: from there on the spectrum is that of A*")
    return _spectrum(model.law, found, points)


def _spectrum(law: Law, found: NuclearPoints, points: int) -> Spectrum:
    D, u, theta = float(found.D[0]), float(found.u[0]), float(found.theta[0])
    intervals = np.maximum(_merged(np.asarray(bulk_intervals(law, D))), u)
    intervals = intervals[intervals[:, 1] > intervals[:, 0]]
    if not len(intervals):
        nothing = np.zeros(0)
        return Spectrum(nothing, nothing, 1.0, np.zeros((0, 2)), nothing, nothing, nothing)
    widths = intervals[:, 1] - intervals[:, 0]
    counts = np.maximum(FEWEST, np.round(points * widths / widths.sum())).astype(int)
    turns = [np.linspace(0, np.pi, count) for count in counts]
    middle, half = intervals.sum(1) / 2, widths / 2
    place = np.concatenate([m - h * np.cos(phi) for m, h, phi in zip(middle, half, turns, strict=True)])
    length = rounded_up(len(place), _LENGTH)  # so that few sizes are ever compiled
    x, density, rate = in_batches(lambda u: _eigenvalues(law, D, u), place, batch=length, alone=False)
    x = np.maximum(x - theta, 0.0)
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    cut = intervals[:, 0] == u
    density[last], density[first[~cut]], x[first[cut]] = 0.0, 0.0, 0.0
    # The trapezoidal rule in the angle, which converges fast where the density vanishes at both ends.
    steps = np.concatenate([h * np.sin(phi) * phi[1] for h, phi in zip(half, turns, strict=True)])
    masses = np.add.reduceat(density * rate * steps, first)
    rank = float(found.integrals.rank[0])
    masses[cut] = rank - masses[~cut].sum()
    s = np.sqrt(x)
    return Spectrum(
        x,
        density,
        zero=1 - rank,
        bulks=np.stack([x[first], x[last]], -1),
        masses=masses,
        singular=s,
        singular_density=2 * s * density,
    )


def _merged(intervals: np.ndarray) -> np.ndarray:
    """Intervals that touch, made one."""
    apart = intervals[1:, 0] > intervals[:-1, 1]
    starts = np.concatenate([[True], apart])
    stops = np.concatenate([apart, [True]])
    return np.stack([intervals[starts, 0], intervals[stops, 1]], -1)


@jax.jit
def _eigenvalues(law: Law, D: Any, u: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The eigenvalue x of R, its density and dx/du, at Biane's u inside the bulk or at its ends."""
    v = height(law, D, u)
    inside = v > 0
    v = jnp.where(inside, v, 0.0)
    c = 1 + D * law.stieltjes_slope(u + 1j * v)
    rate = jnp.where(inside, jnp.abs(c) ** 2 / jnp.where(inside, jnp.real(c), 1.0), 0.0)
    return u + D * jnp.real(law.stieltjes(u + 1j * v)), v / (jnp.pi * D), rate
