"""A law given by its density: a function on an interval, or a table, with point masses if there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.spectra.law import Law
from solvable.spectra.pieces import Panels, RootSeries, adaptive_panels, root_series, table_panels

_NEGATIVE = 1e-10


class Density(Law):
    """The law of density proportional to `function` on [`low`, `high`], plus point masses.

    - `function`: a function of an array, written with numpy or `jax.numpy`; or a table, a pair of arrays (x, values)
      with x increasing, between which a monotone cubic is laid.
    - `low`, `high`: the interval; for a table its first and last x, and not given.
    - `atoms`: the point masses, `{place: weight}`; the density is scaled so that everything sums to one.

    Ends like a square root, as random matrices have them, jumps and kinks are all resolved to 1e-10 or better. The
    function is called only here; what is kept are coefficients.
    """

    body: RootSeries | Panels
    places: np.ndarray
    masses: np.ndarray
    support: np.ndarray
    holes: np.ndarray
    moments: np.ndarray

    def __init__(
        self,
        function: Callable[[Any], Any] | tuple[Any, Any],
        low: float | None = None,
        high: float | None = None,
        atoms: Mapping[float, float] | None = None,
    ):
        self.places, self.masses = _checked_atoms(atoms or {})
        body = _body_of_function(function, low, high) if callable(function) else _body_of_table(function, low, high)
        mass = body.moments()[0]
        if not (np.isfinite(mass) and mass > 0):
            raise bad_parameter("function", function, "a density with a positive and finite integral")
        self.body = body.scaled((1 - self.masses.sum()) / mass)
        self.support, self.holes = _support(self.body, self.places)
        self.moments = np.array([m + self.masses @ self.places**k for k, m in enumerate(self.body.moments())][1:])

    def stieltjes(self, z: Any) -> jax.Array:
        return self._transform(z, 0)

    def stieltjes_slope(self, z: Any) -> jax.Array:
        return self._transform(z, 1)

    def spread_slope(self, u: Any) -> jax.Array:
        return -jnp.real(self._transform(u, 2))

    def _transform(self, z: Any, order: int) -> jax.Array:
        z = jnp.asarray(z) + 0j
        sign = (1, -1, 2)[order]
        point_masses = jnp.sum(sign * self.masses / (z[..., None] - self.places) ** (order + 1), -1)
        return self.body.transform(z, order) + point_masses

    @property
    def ends(self) -> tuple[Any, Any]:
        return self.support[0], self.support[1]

    @property
    def gaps(self) -> jax.Array:
        return jnp.asarray(self.holes)

    @property
    def mean(self) -> Any:
        return jnp.asarray(self.moments[0])

    @property
    def second_moment(self) -> Any:
        return jnp.asarray(self.moments[1])

    @property
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(self.places), jnp.asarray(self.masses)

    def eigenvalues(self, d: int) -> np.ndarray:
        places, mass = self.body.quantiles()
        for place, weight in zip(self.places, self.masses, strict=True):
            index = np.searchsorted(places, place)
            below = np.interp(place, places, mass, left=0.0)
            mass = np.concatenate([mass[:index], [below, below + weight], mass[index:] + weight])
            places = np.concatenate([places[:index], [place, place], places[index:]])
        return np.interp((np.arange(d) + 0.5) / d, mass / mass[-1], places)


def _checked_atoms(atoms: Mapping[float, float]) -> tuple[np.ndarray, np.ndarray]:
    takes = "point masses {place: weight} at finite places, of positive weights that sum to less than one"
    try:
        given = {real_number("place", place, takes): real_number("weight", atoms[place], takes) for place in atoms}
    except (TypeError, ValueError):
        raise bad_parameter("atoms", atoms, takes) from None
    places = np.array(sorted(given), float)
    masses = np.array([given[place] for place in sorted(given)], float)
    if places.ndim != 1 or not (np.isfinite(places).all() and (masses > 0).all() and masses.sum() < 1):
        raise bad_parameter("atoms", atoms, takes)
    return places, masses


def _support(body: RootSeries | Panels, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the support, and the gaps in it (m x 2).

    A point mass inside the support is a gap of no width: the law is best cut in two there.
    """
    pieces = sorted([*body.supports(), *((place, place) for place in places.tolist())])
    holes, reached = [], pieces[0][1]
    for low, high in pieces[1:]:
        holes.append((min(reached, low), low))
        reached = max(reached, high)
    return np.array([pieces[0][0], reached]), np.array(holes, float).reshape(-1, 2)


def _body_of_function(function: Callable[[Any], Any], low: Any, high: Any) -> RootSeries | Panels:
    for name, value in (("low", low), ("high", high)):
        real_number(name, value, "a finite number, an end of the interval that holds the density")
    if not low < high:
        raise bad_parameter("high", high, f"larger than low = {low}")

    def evaluate(x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            values = np.asarray(function(jnp.asarray(x)), float)
        values = np.broadcast_to(values, x.shape)
        return _checked_values("function", function, x, values)

    return root_series(evaluate, low, high) or adaptive_panels(evaluate, low, high)


def _body_of_table(table: Any, low: Any, high: Any) -> Panels:
    takes = "a function, or a pair of arrays (x, values) of one length, x increasing"
    try:
        x, values = (np.asarray(part, float) for part in table)
    except (TypeError, ValueError):
        raise bad_parameter("function", table, takes) from None
    if x.ndim != 1 or x.shape != values.shape or len(x) < 2 or not (np.isfinite(x).all() and (np.diff(x) > 0).all()):
        raise bad_parameter("function", table, takes)
    if low not in (None, x[0]) or high not in (None, x[-1]):
        name, got = ("low", low) if low not in (None, x[0]) else ("high", high)
        raise bad_parameter(name, got, "left out with a table, which has its own ends")
    values = _checked_values("function", table, x, values)
    from scipy.interpolate import PchipInterpolator  # loaded when needed: it takes long to import

    return table_panels(x, PchipInterpolator(x, values))


def _checked_values(name: str, got: Any, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        bad = x[~np.isfinite(values)][0]
        raise bad_parameter(name, got, f"a density with finite values inside the interval (it has none at x = {bad:g})")
    if (values < -_NEGATIVE * np.abs(values).max()).any():
        raise bad_parameter(name, got, f"a density: it is negative at x = {x[values.argmin()]:g}")
    return np.maximum(values, 0.0)
