r"""What the second step sees of the first: the mean slope of a unit after it, by powers of the unit's second layer.

The first step shifts the field of unit i on a sample by $\tau h$, $\tau = p^{a_1} a_i$. With u = w_i . x the field
before, $\kappa_0 = g_1 z + b\xi$ and $c_j = E[\sigma^{(j)}(u)]$, the shift on a sample is

    h = c_1 kappa_0 + c_2 E[y] u + nu  (+ sigma'(u) y / alpha  if the sample was in the batch of the first step):

the spike of the step that all units share; the rest of it, which is the unit's own and to any sample Gaussian noise nu
of variance $\mathrm{Var}(\sigma') E[y^2]/\alpha$; and the sample's own share. The mean of the slope over u and nu is

    E[sigma'(u + tau h)] = sum_k tau^k m_k,        m_k = E[sigma^(k+1)(u) h^k] / k! .

If sigma'(u) is replaced by its mean, and nu by zero, then $m_k = c_{k+1} c_1^k \kappa^k/k!$ with
$\kappa = \kappa_0 + y/\alpha$: the closed formula. It is right for labels of mean zero, k = 1 and a fresh batch or
an activation of degree two. For others it is not: the label is seen with the weight $E[\sigma''\sigma']$, not with
$c_2 c_1$, and the noise mixes what one step finds into k = 2.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.models.features.two_layer.averages import NODES
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_steps.directions import Sample
from solvable.models.features.two_steps.learner import MOST, TwoSteps
from solvable.numerics.gaussian import gaussian_panels
from solvable.targets.target import Target

_ZERO = 1e-10


class Expansion(NamedTuple):
    """The averages of an activation that the powers need.

    `means` are c_1, c_2, ...; `variance` is that of sigma'; `mixed[k, j, m]` is E[sigma^(k+1)(u) sigma'(u)^j u^m].
    `signs` are those of c_{k+1} c_1^k, or of a later average where that is zero; 0 where the term vanishes.
    """

    means: np.ndarray
    variance: float
    mixed: np.ndarray
    signs: np.ndarray

    def powers(self) -> list[int]:
        """The k whose term does not vanish for every label."""
        return [k for k, sign in enumerate(self.signs) if sign != 0]


@functools.lru_cache(maxsize=256)
def mean_derivatives(activation: Target) -> np.ndarray:
    """c_1, c_2, ...: E[sigma^(j)(z)] = E[sigma(z) He_j(z)], zero where rounding is all that is left."""
    z, weight = gaussian_panels(activation.breaks, NODES, 14.0)
    s = activation.numpy(z[:, None])
    small = _ZERO * math.sqrt(weight @ s**2)
    found = [weight @ (s * np.polynomial.hermite_e.hermeval(z, np.eye(j + 1)[j])) for j in range(1, MOST + 2)]
    return np.array([0.0 if abs(c) < small * math.sqrt(math.factorial(j)) else c for j, c in enumerate(found, 1)])


def expansion(model: TwoLayer, learner: TwoSteps) -> Expansion:
    """The averages for the powers that do not vanish with the width."""
    if model.target.projections != 1:
        raise bad_parameter("target", str(model.target), "of one projection for a first layer that is trained")
    return _averages(model.activation, learner.order(), learner.reuse and learner.shift == "exact")


@functools.lru_cache(maxsize=64)
def _averages(activation: Target, order: int, own: bool) -> Expansion:
    means = mean_derivatives(activation)
    u, weight = gaussian_panels(activation.breaks, NODES)
    slope = activation.value_and_slope(u)[1]
    variance = float(weight @ slope**2 - (weight @ slope) ** 2)
    mixed = np.zeros((order + 1, order + 1, order + 1))
    for k in range(order + 1):
        for m in range(k + 1):
            mixed[k, 0, m] = _moment(activation, k + 1, m)
    if own and order > 0:
        if len(activation.breaks):
            raise bad_parameter("activation", str(activation), "smooth, without kinks, for a batch that is reused")
        derivatives = _derivatives(activation, order + 1, u)
        for k, j, m in itertools.product(range(1, order + 1), range(1, order + 1), range(order + 1)):
            if j + m <= k:
                values = derivatives[k] * slope**j * u**m
                mixed[k, j, m] = _tidied(weight @ values, math.sqrt(weight @ values**2))
    factors = [[mixed[k, j, 0] * means[0] ** (k - j) for j in range(k + 1)] for k in range(order + 1)]
    signs = [next((np.sign(part) for part in parts if part != 0), 0.0) for parts in factors]
    return Expansion(means, variance, mixed, np.array(signs))


def _moment(activation: Target, j: int, m: int) -> float:
    """E[sigma^(j)(u) u^m], by parts: the derivative of u^m times the density, j times."""
    z, weight = gaussian_panels(activation.breaks, NODES, 14.0)
    s = activation.numpy(z[:, None])
    power = np.polynomial.Polynomial([0] * m + [1])
    for _ in range(j):
        power = np.polynomial.Polynomial([0, 1]) * power - power.deriv()
    values = s * power(z)
    return _tidied(weight @ values, math.sqrt(weight @ values**2))


def _tidied(value: Any, size: float) -> float:
    return 0.0 if abs(value) < _ZERO * size else float(value)


@float64
def _derivatives(activation: Target, order: int, u: np.ndarray) -> np.ndarray:
    """sigma', sigma'', ... at u."""

    def derivative(function: Any) -> Any:
        return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]

    functions = [derivative(lambda x: activation(x[:, None]))]
    for _ in range(order - 1):
        functions.append(derivative(functions[-1]))
    return np.array(jax.jit(lambda x: [function(x) for function in functions])(jnp.asarray(u)))


def slopes_by_power(xp: Any, sample: Sample, found: Expansion, alpha: Any, learner: TwoSteps) -> Any:
    """y m_k at the nodes of a sample, one row for each k; `xp` is numpy or jax.numpy."""
    z, y, xi, weight = sample
    g1, square, mean = (weight @ part for part in (y * z, y * y, y))
    field, share = g1 * z + xp.sqrt(square / alpha) * xi, y / alpha if learner.reuse else 0.0
    c, mixed, order = found.means, found.mixed, len(found.mixed) - 1
    if learner.shift == "mean":
        return xp.stack([y * c[k] * (c[0] * (field + share)) ** k / math.factorial(k) for k in range(order + 1)])
    noise = found.variance * square / alpha
    rows = []
    for k in range(order + 1):
        total = xp.zeros_like(y)
        for j, m, half in itertools.product(range(k + 1), range(k + 1), range(k // 2 + 1)):
            h = k - j - m - 2 * half
            if h >= 0 and mixed[k, j, m] != 0:
                # E[nu^(2 half)]/(2 half)! is (noise/2)^half / half!
                counted = math.factorial(h) * math.factorial(j) * math.factorial(m) * math.factorial(half)
                own = (c[1] * mean) ** m * (noise / 2) ** half * mixed[k, j, m] / counted
                total = total + own * (c[0] * field) ** h * share**j
        rows.append(y * total)
    return xp.stack(rows)
