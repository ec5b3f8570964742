"""Hermite analysis of a one-projection target: its coefficients, information exponent, and second moment.

c_k = E[g(z) h_k(z)] with orthonormal h_k = He_k / sqrt(k!), so that the sum of c_k^2 is E[g^2].
"""

from __future__ import annotations

import numpy as np

from solvable.core.errors import TargetError
from solvable.numerics.gaussian import gaussian_panels, hermite_functions, normal_density, panels
from solvable.targets.target import Target

_REACH = 14.0
_ZERO = 10**-5.5
"""A coefficient below this, relative to the standard deviation, is taken for zero.

Its square is what counts as zero in the label law, where lambda_k >= c_k^2 / Var g: the exponents stay consistent.
"""


def hermite_coefficients(target: Target, order: int) -> np.ndarray:
    """c_0..c_order, exact across the breaks of g."""
    z, weight = gaussian_panels(target.breaks, 48, _REACH)
    with np.errstate(over="ignore"):
        values = target.numpy(z[:, None])
    return hermite_functions(z, order) @ (weight * np.where(weight > 0, values, 0.0))


def information_exponent(coefficients: np.ndarray) -> float:
    """The lowest degree k > 0 with c_k != 0, or infinity if there is none among those given."""
    scale = np.sqrt(np.sum(coefficients[1:] ** 2))
    nonzero = np.nonzero(np.abs(coefficients[1:]) > _ZERO * max(scale, 1e-300))[0]
    return float(nonzero[0] + 1) if nonzero.size else np.inf


def refuse_infinite_variance(target: Target, breaks: np.ndarray) -> None:
    """Raise a `TargetError` if E[g^2] diverges, at a pole or in the tails."""
    distance = 2.0 ** -np.arange(20, 41, 5)
    for location in breaks:
        for side in (-1.0, 1.0):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                size = np.abs(target.numpy((location + side * distance)[:, None]))
                shells = size**2 * distance
            # Shells that halve in width must lose mass for the integral of g^2 to exist.
            if size[-1] > 1e3 and not shells[-1] < 0.75 * shells[0]:
                raise TargetError(
                    f"the target {target.name!r} has infinite variance: it diverges too fast at z = {location:.6g}"
                )
    z, weight = panels([-37.0, -24.0, -16.0, -12.0, -6.0, 0.0, 6.0, 12.0, 16.0, 24.0, 37.0], 32)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = target.numpy(z[:, None]) ** 2 * weight * normal_density(z)
    mass = np.where(np.isnan(mass), np.inf, mass)
    if not mass[np.abs(z) > 12].sum() <= 1e-6 * mass[np.abs(z) <= 12].sum():
        raise TargetError(
            f"the target {target.name!r} grows too fast: its variance is infinite, or comes from |z| > 12, which no "
            "sample ever reaches"
        )
