r"""A loss of one's own: any function of (y, z) written with `jax.numpy`.

What the theory must know of it is found from values. A function of y - z alone is a regression loss and one of y z
alone a classification loss; the places where its slope or curvature jumps are searched for on |u| < 40, at one label
for those two kinds. Kinks that move with the label in any other way must be given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses.base import Kinks, Loss
from solvable.channels.losses.named import ladder
from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.targets.breaks import find_breaks
from solvable.targets.target import Target

_REACH = 40.0
_NEAR = 1e-6
_JUMP = 1e-5
_LABELS = (-8.0, -2.7, -1.0, -0.4, 1.0, 1.9, 6.0)
_OUTPUTS = (-3.1, -0.9, 0.35, 1.3, 2.2)


class Custom(Loss):
    """`function(y, z)` as a loss; `name` is what reports call it."""

    function: Callable[[Any, Any], Any] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    residual: bool = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    margin: bool = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    mirrored: bool = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    _kinks: tuple[tuple[float, float, float], ...] = eqx.field(static=True)
    _splits: tuple[float, ...] = eqx.field(static=True)
    _lowest: float = eqx.field(static=True)

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None):
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        _check_values(function)
        self.residual = _agrees(function, lambda y, z: (y - z, 0.0 * z))
        self.margin = not self.residual and _agrees(function, lambda y, z: (1.0 + 0.0 * y, y * z))
        self.mirrored = _agrees(function, lambda y, z: (-y, -z))
        labels = (1.0,) if self.residual or self.margin else _LABELS
        derivatives = jax.jit(lambda u, y: (self.profile(u, y), self.slope(u, y), self.curvature(u, y)))
        found = [_structure(self, y, derivatives) for y in labels]
        places = [[kink[0] for kink in kinks] + list(splits) for kinks, splits, _ in found]
        if any(len(p) != len(places[0]) or not np.allclose(p, places[0], atol=1e-6) for p in places):
            raise bad_parameter(
                "loss",
                self.name,
                "a function of y - z, or of y z, or one whose kinks in z are at the same places for every label",
            )
        if len(labels) > 1 and any(kinks for kinks, _, _ in found):
            raise bad_parameter("loss", self.name, "a function of y - z, or of y z, or one without kinks in z")
        self._kinks, self._splits, _ = found[0]
        self._lowest = min(lowest for _, _, lowest in found)

    def __call__(self, y: Any, z: Any) -> Any:
        return self.function(y, z)

    def profile(self, u: Any, y: Any) -> Any:
        return self.function(u, 0.0 * u) if self.residual else self.function(y, u)

    @property
    def lowest_curvature(self) -> Any:
        return self._lowest

    def kinks(self, y: Any) -> Kinks:
        if not self._kinks:
            return super().kinks(y)
        place, left, right = jnp.array(self._kinks).T
        if not self.margin:
            return Kinks(place, left, right)
        # For the label -1 the profile is the mirror image of that for the label 1.
        positive = jnp.asarray(y) > 0
        return Kinks(*(jnp.where(positive, a, -b) for a, b in ((place, place), (left, right), (right, left))))

    def splits(self, y: Any) -> Any:
        places = jnp.array(self._splits, dtype=float)
        places = jnp.where(jnp.asarray(y) > 0, places, -places) if self.margin else places
        return jnp.concatenate([places, ladder()])


def _agrees(function: Callable, reduced: Callable) -> bool:
    """Whether l(y, z) equals the loss at the arguments that `reduced` makes of them."""
    y, z = np.meshgrid(np.array(_LABELS) * 1.07, _OUTPUTS)
    with jax.enable_x64(True):
        here, there = (np.asarray(function(jnp.asarray(a), jnp.asarray(b))) for a, b in ((y, z), reduced(y, z)))
    return bool(np.all(np.abs(here - there) <= 1e-9 * (1 + np.abs(here))))


def _check_values(function: Callable) -> None:
    y, z = np.meshgrid(_LABELS, _OUTPUTS)
    takes = "a function of (y, z), elementwise on arrays and written with jax.numpy, with finite real values"
    try:
        with jax.enable_x64(True):
            values = np.asarray(function(jnp.asarray(y), jnp.asarray(z)))
    except Exception as error:
        raise bad_parameter("loss", function, f"{takes} (calling it gave {type(error).__name__}: {error})") from error
    if values.shape != y.shape or values.dtype.kind != "f" or not np.all(np.isfinite(values)):
        raise bad_parameter("loss", function, takes)


@float64
def _structure(
    loss: Custom, y: float, derivatives: Callable[[Any, float], tuple[Any, Any, Any]]
) -> tuple[tuple[tuple[float, float, float], ...], tuple[float, ...], float]:
    """The kinks and splits of the profile at one label, and its lowest curvature.

    `derivatives` gives the profile, its slope and its curvature, compiled.
    """
    breaks = find_breaks(Target(lambda u: loss.profile(u, y), projections=1), _REACH)
    near = _NEAR * (1 + np.abs(breaks))

    def side(sign: float) -> tuple[np.ndarray, ...]:
        """Value, slope and curvature at the breaks, from one side."""
        step = sign * near
        value, slope, curvature = (np.asarray(part) for part in derivatives(breaks + step, y))
        slope = slope - step * curvature
        return value - step * slope, slope, curvature

    kinks, splits = [], []
    if breaks.size:
        ends = (zip(*side(sign), strict=True) for sign in (-1.0, 1.0))
        for b, (value, left, bend), (next_value, right, next_bend) in zip(breaks, *ends, strict=True):
            if _jumps(value, next_value):
                raise bad_parameter("loss", loss.name, "continuous in z")
            if _jumps(left, right):
                kinks.append((float(b), float(left), float(right)))
            elif _jumps(bend, next_bend):  # else rounding looked like a break
                splits.append(float(b))
    if any(left > right for _, left, right in kinks):
        raise bad_parameter("loss", loss.name, "without kinks that point upwards")
    curvature = np.asarray(derivatives(np.linspace(-_REACH, _REACH, 16001), y)[2])
    lowest = float(np.min(curvature[np.isfinite(curvature)], initial=0.0))
    return tuple(kinks), tuple(splits), min(lowest, 0.0) if lowest < -1e-9 else 0.0


def _jumps(left: float, right: float) -> bool:
    return bool(abs(right - left) > _JUMP * (1 + abs(left) + abs(right)))
