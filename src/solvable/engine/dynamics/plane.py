r"""Averages over one projection z and one field h, Gaussian with $E z^2 = 1$, $E z h = m$, $E h^2 = q$.

With $h = m z + \sqrt{q - m^2}\, x$ the plane is cut into panels in z at the breaks of the target and, for each z, into
panels in x at the kinks of the activation. A kink is seen from z blurred by the width of x, for which there are panels
as well: so all is smooth in every panel, however close h is to m z.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from solvable.numerics.gaussian import RADIUS, normal_density, panels, row_panels, standard_edges
from solvable.targets.breaks import find_breaks
from solvable.targets.target import Target

NODES = 12
_STEPS = np.array([-16.0, -6.0, -2.5, -1.0, 0.0, 1.0, 2.5, 6.0, 16.0])
"""Where panels end around a kink as seen from z, in units of its blur."""


class PlaneRule(NamedTuple):
    """E f(z, h) = sum of weight * f(z[:, None], h); z is (n,), h and the weight are (n, k)."""

    z: np.ndarray
    h: np.ndarray
    weight: np.ndarray


def plane_rule(m: float, q: float, target: Target, activation: Target, nodes: int = NODES) -> PlaneRule:
    """A rule for functions of z and h that break where the target or the activation does."""
    s = np.sqrt(max(q - m**2, 0.0))
    kinks = _kinks(activation, max(1.0, float(2 ** np.ceil(np.log2(q) / 2))) if q > 0 else 1.0)
    seen = kinks[:, None] / m + s / abs(m) * _STEPS if m else np.zeros(0)
    z, weight = panels(standard_edges([*target.breaks, *np.ravel(seen)]), nodes, graded=False)
    weight = weight * normal_density(z)
    z, weight = (part[weight > 1e-20] for part in (z, weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = np.nan_to_num((kinks - m * z[:, None]) / s, nan=0.0)
    x, x_weight = row_panels(breaks, nodes)
    return PlaneRule(z, m * z[:, None] + s * x, weight[:, None] * x_weight)


@functools.lru_cache(maxsize=64)
def _kinks(activation: Target, scale: float) -> np.ndarray:
    """Its breaks as far as fields of that scale reach."""
    return find_breaks(activation, RADIUS * scale) if scale > 1 else activation.breaks
