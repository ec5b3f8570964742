r"""The spectrum of learned features, $K = \Phi^T\Phi/p$ of n samples (p x p), before and after one step.

Its resolvent is that of ridge regression (`ridge`) at a complex penalty: with $\lambda = -z$, $g(z) = G/\lambda$ is the
normalised trace $\frac1p\mathrm{Tr}(K - z)^{-1}$, averaged over the values of the second layer, and the density is
$\mathrm{Im}\, g(E + i0)/\pi$. The equations are followed from a large imaginary part down to a small one. There are as
many diverging eigenvalues as values of the second layer with a mean mu0(kappa) that does not vanish: of one value it is
$n E[\mu_0^2]$ [dandi2024random]. A share of zeros 1 - n/p there is where samples are fewer than units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.errors import ConvergenceError, bad_parameter
from solvable.core.precision import float64
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.ridge import effective_penalty, newton_map, parts, squares
from solvable.models.features.one_step.theory import Ingredients, ingredients
from solvable.models.features.two_layer.model import TwoLayer

_HEIGHTS = np.geomspace(3.0, 1e-5, 24)
_SWEEPS = 60
_NEWTON = 8
_SOLVED = 1e-8
_EMPTY = 1e-4


class FeatureSpectrum(NamedTuple):
    """`density` at `x`, the share `zero` of vanishing eigenvalues, the upper `edge` of the bulk, and `top`, what the
    largest eigenvalue is to leading order, divided by n."""

    x: np.ndarray
    density: np.ndarray
    zero: float
    edge: float
    top: float


@float64
def feature_spectrum(
    model: TwoLayer, learner: OneStep, alpha: float, highest: float | None = None, points: int = 400
) -> FeatureSpectrum:
    """The spectrum at one alpha, on a grid from 0 to `highest` (unless told a bound of the bulk).

    **Raises:** `ValueError` for a width that is infinite; `ConvergenceError` where the equations were not solved.
    """
    alpha = real_number("alpha", alpha, "a positive number", lambda x: x > 0)
    points = check_count("points", points, least=20)
    if np.isinf(model.width):
        raise bad_parameter("width", model.width, "finite: the spectrum is that of a number of units")
    _, given = ingredients(model, learner)
    if highest is None:
        _, grid, setting, _ = given
        strongest = float(jnp.max(squares(grid).sum(0)))
        highest = 1.2 * strongest * (np.sqrt(alpha * setting.narrow) + 1) ** 2 * (1 + 1 / np.sqrt(model.width)) ** 2
    highest = real_number("highest", highest, "a positive number", lambda x: x > 0)
    x = highest * (np.arange(points) + 0.5) ** 2 / points**2  # denser towards zero
    g, residual = (np.asarray(part) for part in _resolvents(given, alpha, x))
    if not np.all(residual < _SOLVED):
        raise ConvergenceError(f"no spectrum for {model}, {learner}, alpha = {alpha:g}: the equations were not solved.")
    density = np.maximum(g.imag / np.pi, 0.0)
    inside = x[density > _EMPTY * density.max()]
    top = float(jnp.max(jnp.square(given[1].mu0) @ given[1].weight))
    return FeatureSpectrum(x, density, max(0.0, 1 - alpha / model.width), float(inside[-1]), top)


@jax.jit
def _resolvents(given: Ingredients, alpha: Any, x: Any) -> tuple[Any, Any]:
    """g just above the real axis at each x, and by how much the equations are missed."""
    bulk, grid, setting, _ = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), given)
    phi, weight, start = squares(grid), alpha * grid.weight, bulk.start()

    def image(unknown: Any, z: Any) -> Any:
        state, X = unknown
        kappa = effective_penalty(phi, bulk.fractions, -z, state[: len(X)], X)
        C, D = parts(phi @ (weight / kappa), len(X))
        return bulk.image(state, C, D, setting.narrow), bulk.traces(state, C)[1]

    step = newton_map(image, jax.tree.map(lambda part: part.astype(complex), start), holomorphic=True)

    def descend(x: Any) -> tuple[Any, Any]:
        first = jax.tree.map(lambda part: part.astype(complex), start)

        def sweep(_: Any, unknown: Any) -> Any:
            moved = image(unknown, x + 1j * _HEIGHTS[0])
            return jax.tree.map(lambda old, new: (old + new) / 2, unknown, moved)

        def lower(unknown: Any, height: Any) -> tuple[Any, None]:
            z = x + 1j * height
            return jax.lax.fori_loop(0, _NEWTON, lambda _, unknown: step(unknown, z), unknown), None

        unknown, _ = jax.lax.scan(lower, jax.lax.fori_loop(0, _SWEEPS, sweep, first), jnp.asarray(_HEIGHTS))
        z = x + 1j * _HEIGHTS[-1]
        state, X = unknown
        missed = [jnp.max(jnp.abs(a - b)) for a, b in zip(unknown, image(unknown, z), strict=True)]
        return -bulk.fractions @ state[: len(X)] / z, jnp.maximum(*missed) / jnp.max(jnp.abs(state[: len(X)]))

    return jax.vmap(descend)(x)
