r"""Gaussian averages of an activation and of a target: all that random features see of them.

For z ~ N(0, 1) and a function s of one variable,

    mu0 = E[s],    mu1 = E[s z],    mu*^2 = E[s^2] - mu0^2 - mu1^2:

in high dimension the feature s(w.x), |w| = 1, acts as mu0 + mu1 w.x + mu* xi with xi an independent N(0, 1): Gaussian
equivalence [goldt2022gaussian, hu2023universality]. Integrals are cut at the kinks and jumps of the function.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.errors import TargetError
from solvable.core.programs import count_target
from solvable.numerics.gaussian import gaussian_panels, row_panels
from solvable.targets.hermite import hermite_tensor
from solvable.targets.landscape import refuse_infinite_variance
from solvable.targets.target import Target

NODES = 48
"""Nodes on each panel; half of them show the error."""
_REACH, _COARSE_REACH = 14.0, 11.0
"""How far averages go; that those which show the error go less far tells what tails of a steep function may hide."""
_ROW_NODES, _MOST_NODES = 8, 64
_ENOUGH = 1e-12
_ZERO = 1e-10
"""A mean below this share of the root mean square is zero, and so is the square root of a rest below its square."""


class Moments(NamedTuple):
    """`mean` = E[s], `slope` = |E[s z]| with the sign for one projection, `square` = E[s^2]."""

    mean: float
    slope: float
    square: float

    @property
    def rest(self) -> float:
        """What neither a constant nor a linear function explains: E[s^2] - E[s]^2 - |E[s z]|^2."""
        rest = self.square - self.mean**2 - self.slope**2
        return rest if rest > _ZERO * self.square else 0.0


@functools.lru_cache(maxsize=256)
def moments(function: Target, fine: bool = True) -> Moments:
    """The moments of a function of one or several projections; with `fine` False by a rule of half as many nodes."""
    if function.projections > 1:
        return _several(function, fine)
    if fine:
        count_target()
        refuse_infinite_variance(function, function.breaks)
    z, weight = gaussian_panels(function.breaks, *((NODES, _REACH) if fine else (NODES // 2, _COARSE_REACH)))
    with np.errstate(over="ignore"):
        s = np.where(weight > 0, function.numpy(z[:, None]), 0.0)
    found = Moments(*(float(weight @ part) for part in (s, s * z, s**2)))
    if not np.all(np.isfinite(found)):
        raise TargetError(f"{function.name!r} has no finite moments")
    return _tidied(found)


def _several(target: Target, fine: bool) -> Moments:
    """Those of a target of several projections; its estimated error is what the coarse ones differ by."""
    tensor = hermite_tensor(target, 1)
    error = 0.0 if fine else tensor.error
    mean = tensor.coefficients[(0,) * target.projections]
    slope = np.linalg.norm([c for k, c in tensor.coefficients.items() if sum(k) == 1])
    return _tidied(Moments(mean + error, float(slope) + error, tensor.variance + mean**2))


def _tidied(found: Moments) -> Moments:
    """With exact zeros where rounding has left something: a mean that is not zero is fitted whatever its size."""
    small = _ZERO * np.sqrt(found.square)
    mean, slope = (0.0 if abs(part) < small else part for part in (found.mean, found.slope))
    return Moments(mean, slope, found.square)


def linear_part(target: Target) -> np.ndarray:
    """E[g(z) z], a vector of as many entries as there are projections."""
    if target.projections == 1:
        return np.array([moments(target).slope])
    first = hermite_tensor(target, 1).coefficients
    return np.array([first[tuple(row)] for row in np.eye(target.projections, dtype=int).tolist()])


class Smoothed(NamedTuple):
    """Averages over t = centre + spread z: `mean` = E[s(t)], `slope` = E[s(t) z]/spread, `square` = E[s(t)^2]."""

    mean: Any
    slope: Any
    square: Any


def smoothed(function: Target, centre: Any, spread: Any, fine: bool = True) -> Smoothed:
    """The averages of a function of one variable at many centres; differentiable in centres and spread.

    The nodes are placed by the values alone, and derivatives are those of the Gaussian weight of the nodes: so they are
    right also where the function jumps.
    """
    at, width = (np.asarray(jax.lax.stop_gradient(part), float) for part in (centre, spread))
    nodes, refined = _ROW_NODES, None
    while True:
        z, weight = row_panels((function.breaks - at[:, None]) / width, nodes if fine else nodes // 2)
        s = function.numpy((at[:, None] + width * z)[..., None])
        found = _sums(z, weight, s, width)
        if refined is not None and (np.allclose(found, refined, rtol=0, atol=_ENOUGH) or nodes >= _MOST_NODES):
            break
        nodes, refined = 2 * nodes, found
    if not is_traced((centre, spread)):
        return found
    t = at[:, None] + width * z
    turned = (t - jnp.asarray(centre)[:, None]) / spread
    moved = weight * width / spread * jnp.exp((z**2 - turned**2) / 2)
    return _sums(turned, moved, s, spread)


def _sums(z: Any, weight: Any, s: np.ndarray, spread: Any) -> Smoothed:
    return Smoothed((weight * s).sum(1), (weight * s * z).sum(1) / spread, (weight * s**2).sum(1))
