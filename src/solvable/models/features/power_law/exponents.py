r"""How the errors of random-feature ridge regression fall with the number of samples: the plane of exponents.

With $p = n^q$ features and the penalty $\lambda = n^{1-l}$ (of a loss that is a sum over samples; $n^{-l}$ if it is
their mean) the equation for nu gives $\nu \sim n^{-\alpha\kappa}$ and $T \sim n^\kappa$, where

    kappa = min(l/alpha, q, 1):      penalty, features or samples limit what is learned, and the errors are

    bias         n^-min(2 alpha kappa min(r, 1), (2 alpha min(r, 1/2) - 1) kappa + q)
    variance     n^-(1 - kappa)

[defilippis2024dimension]. The first term of the bias is the part of the target beyond what is learned, the second comes
from there being finitely many features. With noise the sum falls fastest for $\kappa^* = 1/(2\alpha\min(r,1) + 1)$, at
the rate $\gamma^* = 1 - \kappa^*$, which needs $l^* = \alpha\kappa^*$ and at least $n^{q^*}$ features,

    q* = kappa* (1 + 2 alpha min(r, 1) - 2 alpha min(r, 1/2));

without noise the same holds with $\kappa^* = 1$, $\gamma^* = 2\alpha\min(r, 1)$, for any $l \ge l^*$.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_array
from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.models.features.power_law.model import MOST, PowerLawFeatures
from solvable.models.features.power_law.theory import problem_of, solved

LIMITS = ("penalty", "features", "samples")
PARTS = ("target", "features", "noise")


class ScalingExponents(NamedTuple):
    """The exponents gamma of errors that fall like n^-gamma: of the bias, the variance and the generalization error.

    `cutoff` is kappa: n^kappa eigenfunctions are learned; `limited_by` says what limits them, `"penalty"`, `"features"`
    or `"samples"`, and `dominated_by` what most of the error is: the part of the `"target"` beyond, the fluctuation of
    finitely many `"features"`, or the `"noise"`. Of local exponents at finite n the last two are those of the limit.
    """

    bias: Any
    variance: Any
    generalization_error: Any
    cutoff: Any
    limited_by: Any
    dominated_by: Any


class OptimalExponents(NamedTuple):
    """The fastest `rate` gamma*, the penalty n^(1 - l*) and the least number n^q* of features that reach it."""

    rate: float
    ell: float
    q: float
    cutoff: float


def scaling_exponents(model: PowerLawFeatures, ell: Any, q: Any, n: Any = math.inf) -> ScalingExponents:
    r"""The exponents at the penalty $n^{1-l}$ and $n^q$ features, in closed form, or measured at a finite `n`.

    **Arguments:** `ell` (l) and `q`, numbers or arrays that broadcast, not negative; q is infinite for the kernel
    itself, and at q = 1 p/n is a constant other than one. With `n`, the exponents are the local slopes
    $-d \log(\text{error})/d \log n$ of the theory along the same path.

    **Returns:** `ScalingExponents`. Without noise there is no variance: its exponent is infinite.
    """
    ell, q, n = np.broadcast_arrays(
        _checked("ell", ell, 0.0, math.nextafter(math.inf, 0)), _checked("q", q, 0.0, math.inf), _samples(n)
    )
    alpha, r, noise = float(model.capacity), float(model.source), float(model.noise)
    limits = np.stack(np.broadcast_arrays(ell / alpha, q, 1.0))
    kappa = limits.min(axis=0)
    missed = 2 * alpha * kappa * min(r, 1.0)
    fluctuation = (2 * alpha * min(r, 0.5) - 1) * kappa + q
    bias, variance = np.minimum(missed, fluctuation), 1 - kappa if noise > 0 else np.full(kappa.shape, math.inf)
    parts = np.stack([missed, fluctuation, variance])
    names = (np.array(LIMITS)[limits.argmin(axis=0)], np.array(PARTS)[parts.argmin(axis=0)])
    total = np.minimum(bias, variance)
    if np.any(np.isfinite(n)):
        local = _slopes(model, *(part.ravel() for part in (ell, q, n)))
        known = (bias, variance, total, kappa)
        bias, variance, total, kappa = (
            np.where(np.isfinite(n), slope.reshape(n.shape), limit) for slope, limit in zip(local, known, strict=True)
        )
    return ScalingExponents(*(_plain(part) for part in (bias, variance, total, kappa, *names)))


def optimal_exponents(model: PowerLawFeatures) -> OptimalExponents:
    """The fastest rate that any penalty and number of features reach, and the least l and q that do."""
    alpha, r = float(model.capacity), float(model.source)
    smooth = 2 * alpha * min(r, 1.0)
    kappa = 1 / (smooth + 1) if model.noise > 0 else 1.0
    return OptimalExponents(smooth * kappa, alpha * kappa, kappa * (1 + smooth - 2 * alpha * min(r, 0.5)), kappa)


@float64
def _slopes(model: PowerLawFeatures, ell: np.ndarray, q: np.ndarray, n: np.ndarray) -> list[np.ndarray]:
    """Minus the slopes of the logarithms of bias, variance and their sum, and that of T; in log n."""
    problem = problem_of(model, 1.0)

    def logs(x: Any, ell: Any, q: Any) -> Any:
        features = jnp.where(jnp.isfinite(q), jnp.exp(jnp.where(jnp.isfinite(q), q, 0.0) * x), jnp.inf)
        metrics, order, *_ = solved(problem._replace(penalty=jnp.exp((1 - ell) * x)), jnp.exp(x)[None], features[None])
        names = ("bias", "variance", "generalization_error")
        return -jnp.log(jnp.stack([*(metrics[name][0] for name in names), 1 / order["degrees_of_freedom"][0]]))

    @jax.jit
    @jax.vmap
    def slopes(x: Any, ell: Any, q: Any) -> Any:
        return jax.jvp(lambda x: logs(x, ell, q), (x,), (jnp.ones_like(x),))[1]

    found = np.array(slopes(jnp.log(jnp.where(jnp.isfinite(n), n, 1e3)), jnp.asarray(ell), jnp.asarray(q)))
    if model.noise == 0:
        found[:, 1] = math.inf
    return list(found.T)


def _checked(name: str, value: Any, least: float, most: float) -> np.ndarray:
    array = real_array(name, value)
    bad = ~((array >= least) & (array <= most))
    if np.any(bad):
        infinite = "not negative, or infinite" if most == math.inf else "finite and not negative"
        raise bad_parameter(name, float(array[bad].flat[0]), infinite)
    return array


def _samples(n: Any) -> np.ndarray:
    array = real_array("n", n)
    bad = ~((array > 1) & ((array <= MOST) | (array == math.inf)))
    if np.any(bad):
        raise bad_parameter("n", float(array[bad].flat[0]), f"above 1 and at most {MOST:g}, or infinite for the limit")
    return array


def _plain(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array
