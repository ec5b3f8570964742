r"""Power-law targets $t_k = C k^{-\gamma}$, k = 1 .. d: how the error falls with samples and with width.

Eigenvalues above the threshold theta of nuclear-norm learning are learned, the others are lost: the effective rank is
the k with t_k = theta. Since t_k is about sqrt(d) k^-gamma and theta = penalty / (4 alpha) for alpha >> 1, with
n = alpha d^2 = d^a and penalty = d^l

    log_d k_eff = min(1, (a - l - 3/2) / gamma).

Three laws follow, each for 1 << k << d:

- fixed penalty: k_eff ~ n^(1 / gamma);
- penalty in proportion to sqrt(alpha), so that theta stays a multiple of the noise delta: k_eff ~ (n/d)^(1 / (2 gamma))
  and the error, lost eigenvalues and noise in the learned ones alike, falls as (n/d)^(-1 + 1 / (2 gamma));
- many samples and a narrow student: the error is the square of the lost eigenvalues, r^(1 - 2 gamma).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.models.matrix.nuclear.width import WidthTheory
from solvable.spectra import PowerLaw


class Exponent(NamedTuple):
    """A slope on logarithmic axes: `local` ones between neighbouring points, at `where`; a mean; the predicted one."""

    variable: str
    where: np.ndarray
    local: np.ndarray
    fitted: float
    predicted: float


def effective_rank(law: PowerLaw, theta: np.ndarray | float) -> np.ndarray:
    """The k with t_k = theta, at most d."""
    size = len(law.values)
    with np.errstate(divide="ignore"):
        return np.minimum((law.values[-1] / np.asarray(theta, float)) ** (1 / law.gamma), size)


def predicted_exponents(gamma: float) -> dict[str, float]:
    """The exponents of the three laws: see `fitted_exponents` for the names."""
    return {
        "effective_rank_fixed_penalty": 1 / gamma,
        "effective_rank": 1 / (2 * gamma),
        "estimation_error": -1 + 1 / (2 * gamma),
        "error_of_width": 1 - 2 * gamma,
    }


def width_phases(
    law: PowerLaw, noise: float, penalty: float | Callable[[float], float], widths: np.ndarray, alpha: np.ndarray
) -> dict[str, np.ndarray]:
    """The width-limited theory on a grid, widths x alpha; the penalty may be a function of alpha.

    Beside the outputs of `WidthTheory`: `effective_rank`, `limited` (whether the width is a limit) and `lost`, the
    least error of that width, all widths x alpha.
    """
    size = len(law.values)
    widths, alpha = np.ravel(widths), np.ravel(np.asarray(alpha, float))
    if not np.all((widths >= 1) & (widths <= size) & (widths == np.round(widths))):
        raise bad_parameter("widths", widths, f"whole numbers from 1 to {size}")
    theory = WidthTheory(law)
    penalties = [penalty(a) if callable(penalty) else penalty for a in alpha]
    rows = [
        [theory.solve(noise, p, width / size, np.array([a])) for p, a in zip(penalties, alpha, strict=True)]
        for width in widths
    ]
    found = {key: np.array([[point[key][0] for point in row] for row in rows]) for key in rows[0][0]}
    squares = np.sort(np.asarray(law.values))[::-1] ** 2 / size
    lost = np.array([squares[int(width) :].sum() for width in widths])
    found["effective_rank"] = effective_rank(law, found["theta"])
    found["limited"] = np.abs(found["rank"] - widths[:, None] / size) < 1e-6 / size
    found["lost"] = np.broadcast_to(lost[:, None], found["rank"].shape)
    return found


def fitted_exponents(
    law: PowerLaw, noise: float = 0.1, alpha: np.ndarray | None = None, penalty: float = 1.0
) -> dict[str, Exponent]:
    """The exponents that the theory has at the size d of the law, beside the predicted ones.

    - `effective_rank`, `estimation_error`: no limit of width, penalty = 4 sqrt(alpha noise), against n;
    - `effective_rank_fixed_penalty`: the same with the given `penalty`, against n;
    - `error_of_width`: at the largest alpha, against the width r.

    Slopes are averaged over points with an effective rank of 8 to d/4, or a width of 4 to d/16: there the size d and
    the noise are felt least.
    """
    size = len(law.values)
    alpha = np.geomspace(0.1, 100, 13) if alpha is None else np.ravel(np.asarray(alpha, float))
    if noise <= 0:
        raise bad_parameter("noise", noise, "a positive number, to which the penalty is matched")
    if len(alpha) < 2 or not np.all(np.diff(alpha) > 0) or alpha[0] <= 0:
        raise bad_parameter("alpha", alpha, "at least two increasing positive numbers")
    matched = width_phases(law, noise, lambda a: 4 * np.sqrt(a * noise), np.array([size]), alpha)
    fixed = width_phases(law, noise, penalty, np.array([size]), alpha)
    widths = np.unique(np.round(np.geomspace(2, max(size / 12, 4), 8)))
    narrow = width_phases(law, noise, 4 * np.sqrt(alpha[-1] * noise), widths, alpha[-1:])
    n, rank, fixed_rank = alpha * size**2, matched["effective_rank"][0], fixed["effective_rank"][0]
    wide, narrow_range = (8, size / 4), (4, size / 16)
    curves = {
        "effective_rank_fixed_penalty": ("n", n, fixed_rank, fixed_rank, wide),
        "effective_rank": ("n", n, rank, rank, wide),
        "estimation_error": ("n", n, matched["estimation_error"][0], rank, wide),
        "error_of_width": ("width", widths, narrow["estimation_error"][:, 0], widths, narrow_range),
    }
    predicted = predicted_exponents(law.gamma)
    return {name: _exponent(curve, predicted[name]) for name, curve in curves.items()}


def _exponent(curve: tuple[str, np.ndarray, np.ndarray, np.ndarray, tuple[float, float]], predicted: float) -> Exponent:
    """Slopes of y against x, averaged where the rank k is in a range."""
    variable, x, y, k, (low, high) = curve
    local = np.diff(np.log(y)) / np.diff(np.log(x))
    middle = np.sqrt(k[1:] * k[:-1])
    inside = (middle >= low) & (middle <= high)
    fitted = float(local[inside].mean()) if inside.any() else np.nan
    return Exponent(variable, np.sqrt(x[1:] * x[:-1]), local, fitted, predicted)
