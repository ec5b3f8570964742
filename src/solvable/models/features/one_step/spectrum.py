r"""The spectrum of features before and after a step: of $K = \Phi^T\Phi$ (p x p), $\Phi = \sigma(X W^T)/\sqrt p$.

Its resolvent is that of ridge regression (`ridge`) at a complex penalty: with $\lambda = -z$, $g(z) = G/\lambda$ is the
normalised trace $\frac1p\mathrm{Tr}(K - z)^{-1}$, averaged over the values of the second layer, and the density is
$\mathrm{Im}\, g(x + i0)/\pi$. The equations are followed from a large imaginary part down to a small one. Outside the
bulk are

- eigenvalues that grow as n, one for each value of the second layer whose mean mu0(kappa) does not vanish: n times
  those of the matrix $\sqrt{\pi_a\pi_b}\,E[\mu_{0a}\mu_{0b}]$, for one value $n E[\mu_0^2]$ [dandi2024random];
- finite ones, at which the linear system of the overlaps m and zeta (`ridge.fitted_means`) is singular,

      det(1 + H_vv (A11 - A01^T A00^-1 A01 - C)) = 0,    A_ij = alpha E[phi_i phi_j / kappa_eff],
      phi_0 = mu0_a,  phi_1 = kappa mu1_a:

  features that vary more along the spike than along other directions, when that is not the variation of their means.

A share 1 - n/p of the eigenvalues is zero where samples are fewer than units. At the height of the last step its trace
is spread over x, and taken away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_array, real_number
from solvable.core.errors import ConvergenceError, bad_parameter
from solvable.core.precision import float64
from solvable.models.features.learners import RandomFeatures
from solvable.models.features.one_step.bulk import Isotropic
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.ridge import Setting, effective_penalty, newton_map, parts, squares
from solvable.models.features.one_step.theory import Ingredients, ingredients
from solvable.models.features.two_layer.logistic import frozen_features
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import in_batches

_POINTS = 300
_HEIGHTS = np.geomspace(3.0, 1e-5, 12)
_SWEEPS = 20
_NEWTON = 5
_SOLVED = 1e-8
_LOOKS = 3
_INSIDE = 1e-3
"""The bulk is where x times the density exceeds this share of its maximum."""
_FLAT = 1e-20


class FeatureSpectrum(NamedTuple):
    """The `density` of the bulk at `x` and the share `zero` of vanishing eigenvalues; the upper `edge` of the bulk;
    the finite `outliers`; and the eigenvalues that grow as n, divided by n, as `diverging`, the largest first."""

    x: np.ndarray
    density: np.ndarray
    zero: float
    edge: float
    outliers: np.ndarray
    diverging: np.ndarray


@float64
def feature_spectrum(
    model: TwoLayer, learner: OneStep | RandomFeatures, alpha: float, x: Any = None
) -> FeatureSpectrum:
    """The spectrum at one alpha; the density at `x`, positive numbers, or on a grid over the bulk that is chosen.

    The penalty and the loss of the learner do not matter.

    **Raises:** `ValueError` for a width that is infinite; `ConvergenceError` where the equations were not solved.
    """
    alpha = real_number("alpha", alpha, "a positive number", lambda value: value > 0)
    if np.isinf(model.width):
        raise bad_parameter("width", model.width, "finite: the spectrum is that of a number of units")
    if x is not None:
        x = np.atleast_1d(real_array("x", x))
        if not (x.ndim == 1 and np.all(x > 0)):
            raise bad_parameter("x", x, "positive numbers")
    if isinstance(learner, OneStep):
        given = ingredients(model, learner)[1]
    else:
        frozen = Isotropic(jnp.ones(1), jnp.ones(1))
        given = frozen, frozen_features(model), Setting(1.0, 1 / model.width, 0.0, 0.0), 0.0
    return spectrum_of(given, alpha, x)


def spectrum_of(given: Ingredients, alpha: float, x: np.ndarray | None = None) -> FeatureSpectrum:
    """The spectrum of features that are given by their bulk and their averages."""
    bulk, grid, setting, _ = given
    width = 1 / float(setting.narrow)
    # No feature varies more than this, and no random matrix of these shapes and independent entries stretches more.
    strongest = float(jnp.max(squares(grid).sum(0)))
    reach = strongest * (np.sqrt(alpha / width) + max(1.0, 1 / np.sqrt(width))) ** 2 * (1 + np.sqrt(width)) ** 2
    edge, outliers = reach, np.zeros(0)
    places = reach * (np.arange(_POINTS) + 0.5) ** 2 / _POINTS**2  # denser towards zero
    for _ in range(_LOOKS):
        imaginary, determinant = _solved(given, alpha, places)
        inside = np.flatnonzero(places * imaginary > _INSIDE * np.max(places * imaginary))
        beyond = slice(int(inside[-1]) + 1, None)
        edge, outliers = float(places[inside[-1]]), _turns(places[beyond], determinant[beyond])
        # Further if the bulk does not end, as that of rows with a covariance may, and closer if it does.
        reach = 2 * reach if edge >= places[-2] else 1.2 * max(edge, *outliers, 0.0)
        places = reach * np.arange(1, _POINTS + 1) / _POINTS
    edge = _refined(given, alpha, edge, places[1] - places[0])
    if x is None:
        x = 1.05 * edge * (np.arange(_POINTS) + 0.5) ** 2 / _POINTS**2
    ranks = width if float(jnp.max(grid.mu2)) > _FLAT else min(width, 1.0)  # linear features: d of them differ
    zero = max(0.0, 1 - min(alpha, ranks) / width)
    smeared = zero * _HEIGHTS[-1] / (x**2 + _HEIGHTS[-1] ** 2)
    density = np.maximum((_solved(given, alpha, x)[0] - smeared) / np.pi, 0.0)
    fractions, mu0 = np.asarray(bulk.fractions), np.asarray(grid.mu0)
    scaled = np.sqrt(fractions)[:, None] * mu0
    diverging = np.linalg.eigvalsh((scaled * np.asarray(grid.weight)) @ scaled.T)[::-1]
    diverging = diverging[diverging > _FLAT]
    return FeatureSpectrum(x, density, zero, edge, outliers[::-1], diverging)


def _turns(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where values change their sign, by linear interpolation."""
    k = np.flatnonzero(values[:-1] * values[1:] < 0)
    return x[k] - values[k] * (x[k + 1] - x[k]) / (values[k + 1] - values[k])


def _refined(given: Ingredients, alpha: float, edge: float, spacing: float) -> float:
    """The last place inside the bulk, on a finer grid around it."""
    places = np.linspace(edge - spacing, edge + spacing, _POINTS)
    inside = np.flatnonzero(places * _solved(given, alpha, places)[0] > np.sqrt(_HEIGHTS[-1]))
    return float(places[inside[-1]]) if len(inside) else edge


def _solved(given: Ingredients, alpha: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The imaginary part of g, and the real one of the determinant."""
    numbers = jax.tree.map(lambda leaf: np.asarray(leaf, float), given)
    solved = in_batches(lambda x: _resolvents(numbers, alpha, x), x, batch=_POINTS, alone=False)
    g, determinant, residual = solved
    if not np.all(residual < _SOLVED):
        raise ConvergenceError(f"no spectrum of features at alpha = {alpha:g}: the equations were not solved.")
    return np.imag(g), np.real(determinant)


@jax.jit
def _resolvents(given: Ingredients, alpha: Any, x: Any) -> tuple[Any, Any, Any]:
    """g just above the real axis at each x, the determinant of the overlaps, and what the equations are missed by."""
    bulk, grid, setting, _ = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), given)
    phi, weight = squares(grid), alpha * grid.weight
    start = jax.tree.map(lambda part: part.astype(complex), bulk.start())

    def pulled(unknown: Any, z: Any) -> tuple[Any, Any, Any]:
        state, X = unknown
        kappa = effective_penalty(phi, bulk.fractions, -z, state[: len(X)], X)
        return kappa, *parts(phi @ (weight / kappa), len(X))

    def image(unknown: Any, z: Any) -> Any:
        _, C, D = pulled(unknown, z)
        return bulk.image(unknown[0], C, D, setting.narrow), bulk.traces(unknown[0], C)[1]

    step = newton_map(image, start, holomorphic=True)

    def determinant(unknown: Any, z: Any) -> Any:
        kappa, C, _ = pulled(unknown, z)
        K, per, tilted = len(C), weight / kappa, grid.kappa * grid.mu1
        A00, A01, A11 = ((a * per) @ b.T for a, b in ((grid.mu0, grid.mu0), (grid.mu0, tilted), (tilted, tilted)))
        flat = jnp.square(grid.mu0) @ grid.weight <= _FLAT
        A00 = A00 + jnp.diag(jnp.where(flat, 1.0, 0.0))
        own = A11 - A01.T @ jnp.linalg.solve(A00, A01) - C
        return jnp.linalg.det(jnp.eye(K) + bulk.traces(unknown[0], C)[2][:K, :K] @ own)

    def descend(x: Any) -> tuple[Any, Any, Any]:
        def sweep(_: Any, unknown: Any) -> Any:
            moved = image(unknown, x + 1j * _HEIGHTS[0])
            return jax.tree.map(lambda old, new: (old + new) / 2, unknown, moved)

        def lower(unknown: Any, height: Any) -> tuple[Any, None]:
            z = x + 1j * height
            return jax.lax.fori_loop(0, _NEWTON, lambda _, unknown: step(unknown, z), unknown), None

        unknown, _ = jax.lax.scan(lower, jax.lax.fori_loop(0, _SWEEPS, sweep, start), jnp.asarray(_HEIGHTS))
        z = x + 1j * _HEIGHTS[-1]
        state, X = unknown
        missed = [jnp.max(jnp.abs(a - b)) for a, b in zip(unknown, image(unknown, z), strict=True)]
        g = -bulk.fractions @ state[: len(X)] / z
        return g, determinant(unknown, z), jnp.maximum(*missed) / jnp.max(jnp.abs(state[: len(X)]))

    return jax.vmap(descend)(x)
