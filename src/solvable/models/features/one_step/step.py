r"""What one giant gradient step does to the rows of the first layer: a spike, longer rows, a covariance.

With the residual $\rho = y - \bar u\mu_0$ ($\mu_0 = E\sigma$, $\bar u$ the mean of the second layer) and $\eta_u$ the
step times the value u of a unit, a row becomes, in high dimension,

    w  ->  w_bulk + r u v,     v ~ (1/n_B) sum_i rho_i x_i,  |v| = 1,      r = eta E[sigma'] N,
    N^2 = E[rho^2]/alpha0 + g1^2,   gamma = <v, theta> = g1 / N,   g1 = E[g(z) z],   alpha0 = n_B/d,

and the rows of the bulk are Gaussian with covariance $\Lambda_u/d$,

    Lambda_u = (1 + m M)^2 + tau A,   M = (1/n_B) sum rho_i x_i x_i^T,   A = (1/n_B) sum rho_i^2 x_i x_i^T,
    m = eta_u E[sigma' z],  tau = eta_u^2 E[(sigma' - E sigma' - z E[sigma' z])^2] / alpha0,
    c_u = Tr Lambda_u / d = 1 + 2 m E rho + m^2 ((E rho)^2 + E[rho^2]/alpha0) + tau E[rho^2].

For an odd activation m = 0. These are the formulas of [ba2022high, cui2024asymptotics] with the term in m, which every
activation with $E[\sigma''] \ne 0$, such as relu, has.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.models.features.one_step.learner import Atoms, OneStep
from solvable.models.features.two_layer.averages import NODES
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.gaussian import gaussian_panels
from solvable.targets.target import Target

_ENDLESS = 1e15
"""The batch that stands for an infinite one where the target has no linear part, so that the spike has a direction."""


class Slopes(NamedTuple):
    """Of the derivative of the activation: `mean` = E[s'], `tilt` = E[s' z], `rest` what is left of E[s'^2]."""

    mean: float
    tilt: float
    rest: float


class Step(NamedTuple):
    """The rows after the step, one entry for each value of the second layer.

    `spikes` are r u, `norms` the c_u, `fractions` the shares of the units; `alignment` is gamma. `linear` and `spread`
    are m and tau, `shift` the mean output before the step, `inverse_batch` 1/alpha0, `size` N.
    """

    spikes: Any
    norms: Any
    fractions: np.ndarray
    alignment: Any
    linear: Any
    spread: Any
    shift: Any
    inverse_batch: Any
    size: Any


@functools.lru_cache(maxsize=256)
def slopes(activation: Target) -> Slopes:
    """The averages of sigma' over N(0, 1), by the derivative that a gradient step sees."""
    z, weight = gaussian_panels(activation.breaks, NODES)
    slope = activation.value_and_slope(z)[1]
    mean, tilt, square = (float(weight @ part) for part in (slope, slope * z, slope**2))
    if not np.isfinite(square) or square == 0:
        raise bad_parameter("activation", str(activation), "a function with a finite slope that does not vanish")
    small = 1e-10 * np.sqrt(square)
    mean, tilt = (0.0 if abs(part) < small else part for part in (mean, tilt))
    return Slopes(mean, tilt, max(square - mean**2 - tilt**2, 0.0))


def values_of(model: TwoLayer, learner: OneStep) -> Atoms:
    """The values of the second layer with their fractions.

    A unit of an odd activation may be turned around, sigma(-w.x) = -sigma(w.x): only |u| matters, and none is told from
    another if all |u| are equal.
    """
    atoms = learner.second_layer
    if not model.activation.is_odd():
        return atoms
    merged: dict[float, float] = {}
    for u, share in atoms:
        merged[abs(u)] = merged.get(abs(u), 0.0) + share
    return tuple(sorted(merged.items()))


def first_step(model: TwoLayer, learner: OneStep) -> Step:
    """The rows after the step; differentiable in the numbers of model and learner."""
    if model.target.projections != 1:
        raise bad_parameter("target", str(model.target), "of one projection for a first layer that is trained")
    u, fractions = np.array(values_of(model, learner)).T
    slope, target = slopes(model.activation), model.target_moments
    shift = model.activation_moments.mean * float(np.dot(*np.array(learner.second_layer).T))
    mean = target.mean - shift
    square = target.square + model.noise + shift**2 - 2 * shift * target.mean
    batch = learner.batch if target.slope != 0 else jnp.minimum(learner.batch, _ENDLESS)
    inverse = 1 / batch
    size = jnp.sqrt(square * inverse + target.slope**2)
    linear = learner.step * u * slope.tilt
    spread = (learner.step * u) ** 2 * slope.rest * inverse
    norms = 1 + 2 * linear * mean + linear**2 * (mean**2 + square * inverse) + spread * square
    spikes = learner.step * u * slope.mean * size
    return Step(spikes, norms, fractions, target.slope / size, linear, spread, shift, inverse, size)
