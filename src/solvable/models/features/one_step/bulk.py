r"""The rows beside their spike, as the resolvent of their Gram matrix sees them.

Ridge regression needs $G = (1 + D + C\circ W W^T)^{-1}$ for rows of a bulk W, C a matrix and D a vector over the values
of the second layer (in units of the penalty, $n/p$ taken out: `narrow` = d/p multiplies both in the equations). A bulk
knows three things of it:

- `state`: unknowns y of its own equations y = `image`(y, C, D, narrow), whose first entries are $G_a$, the normalised
  traces of the blocks of the resolvent;
- X, the matrix of traces $X_{ab} = \frac1d \mathrm{Tr}\,(W_a^T G_{ab} W_b)$ up to fractions;
- H (2K x 2K), the response of the overlaps with the spike v and with the direction $\theta_\perp$ of the target
  beside it.

`Isotropic`: rows with independent entries of variance $c_a/d$, fractions $\pi_a$, $\Gamma = \mathrm{diag}(c\pi G)$,

    1/G_a = 1 + narrow (D_a + c_a [(1 + C Gamma)^-1 C]_aa),     X = Gamma (1 + C Gamma)^-1,    H = diag(X, X),

the blockwise Wishart matrix of [dandi2024random]. `Exact`: one value, rows of covariance $\Lambda/d$ as the step makes
them (`step`), s = C G and $L = \frac1d\mathrm{Tr}\,\Lambda(1 + s\Lambda)^{-1}$,

    1/G = 1 + narrow (D + C L),     X = G L,     H = G [Lambda (1 + s Lambda)^-1] on (v, theta_perp).

$(1 + s\Lambda)^{-1}$ with $\Lambda = (1 + mM)^2 + \tau A$ is a block of the inverse of a matrix that is linear in
$x_i x_i^T$, whose 2 x 2 trace n solves a matrix Dyson equation: with e = n/alpha0 (entries scaled by s as below),
$\omega = \tau y^2 - e_{11} m^2 y^2$ and $\Delta = (1 + e_{12} m y)^2 + e_{22}\omega$,

    xi_11 = -m^2 e_22 E[y^2/Delta],    xi_12 = m E[y (1 + e_12 m y)/Delta],    xi_22 = E[omega/Delta],
    det = (xi_11 - 1)(1 + s xi_22) - s (1 + xi_12)^2,
    n_11 = (1 + s xi_22)/det,   n_12 = -(1 + xi_12)/det,   n_22 = (xi_11 - 1)/det,
    L = ((xi_11 - 1) xi_22 - (1 + xi_12)^2)/det;      e_11 = n_11/alpha0,  e_12 = s n_12/alpha0,  e_22 = s n_22/alpha0.

The entries on v and $\theta$ are the same forms with averages weighted by $z^2$, $y z$ and $y^2$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.models.features.one_step.grid import filled
from solvable.models.features.one_step.step import Step
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import rounded_up
from solvable.numerics.gaussian import normal_density, normal_trapezoid, panels, standard_edges

_LABEL_NODES = 14
_NOISE_STEP, _NOISE_REACH = (0.6, 0.72), (8.0, 7.0)
_LENGTH = 128
_APART = 1e-12
"""Where gamma^2 is closer to 1 than this the spike is the target's direction, and nothing lies beside it."""


class Isotropic(eqx.Module):
    """Rows of independent entries, one block for each value of the second layer."""

    fractions: Any
    norms: Any

    def start(self) -> tuple[Any, Any]:
        """State and X for no samples, above any solution."""
        return jnp.ones(len(self.fractions)), jnp.diag(self.fractions * self.norms)

    def image(self, state: Any, C: Any, D: Any, narrow: Any) -> Any:
        Gamma = self.norms * self.fractions * state
        pull = jnp.linalg.solve(jnp.eye(len(Gamma)) + C * Gamma, C)
        return 1 / (1 + narrow * (D + self.norms * jnp.diag(pull)))

    def traces(self, state: Any, C: Any) -> tuple[Any, Any, Any]:
        Gamma = self.norms * self.fractions * state
        X = Gamma[:, None] * jnp.linalg.inv(jnp.eye(len(Gamma)) + C * Gamma)
        X = (X + X.T) / 2
        nothing = jnp.zeros_like(X)
        return state, X, jnp.block([[X, nothing], [nothing, X]])


class Labels(NamedTuple):
    """Nodes of (z, residual) with their weights."""

    z: Any
    y: Any
    weight: Any


class Exact(eqx.Module):
    """Rows with the covariance that the step leaves."""

    labels: Labels
    linear: Any
    spread: Any
    inverse_batch: Any
    slope: Any
    alignment: Any
    size: Any
    norm: Any

    @property
    def fractions(self) -> Any:
        return jnp.ones(1)

    def start(self) -> tuple[Any, Any]:
        """State and X for no samples; the entries of n are those of rows that no step has moved."""
        return jnp.array([1.0, -1.0, 1.0, 1.0]), jnp.reshape(self.norm, (1, 1))

    def image(self, state: Any, C: Any, D: Any, narrow: Any) -> Any:
        (G, *n), C, D = state, C[0, 0], D[0]
        s = C * G
        xi = self._xi(n, s, 1.0)
        det, L = _solved(xi, s)
        return jnp.stack([1 / (1 + narrow * (D + C * L)), (1 + s * xi[2]) / det, -(1 + xi[1]) / det, (xi[0] - 1) / det])

    def traces(self, state: Any, C: Any) -> tuple[Any, Any, Any]:
        G, *n = state
        s = C[0, 0] * G
        L = _solved(self._xi(n, s, 1.0), s)[1]
        return jnp.array([G]), jnp.array([[G * L]]), G * self._block(n, s, L)

    def rows(self, s: Any, n: Any) -> tuple[Any, Any]:
        """L, and the block of Lambda (1 + s Lambda)^-1, at a solution n of the Dyson equation."""
        L = _solved(self._xi(n, s, 1.0), s)[1]
        return L, self._block(n, s, L)

    def _xi(self, n: Any, s: Any, factor: Any) -> tuple[Any, Any, Any]:
        """xi_11, xi_12, xi_22 with averages weighted by a factor."""
        m, tau, y = self.linear, self.spread, self.labels.y
        e11, e12, e22 = (self.inverse_batch * part for part in (n[0], s * n[1], s * n[2]))
        tilted = 1 + e12 * m * y
        omega = (tau - e11 * m**2) * y**2
        weight = self.labels.weight * factor / (tilted**2 + e22 * omega)
        return -(m**2) * e22 * jnp.sum(weight * y**2), m * jnp.sum(weight * y * tilted), jnp.sum(weight * omega)

    def _block(self, n: Any, s: Any, L: Any) -> Any:
        z, y, weight = self.labels
        inverse, g1, gamma = self.inverse_batch, self.slope, self.alignment
        xi = self._xi(n, s, z**2)
        det, tt = _solved(xi, s)
        t11, t12, t22 = (1 + s * xi[2]) / det, -(1 + xi[1]) / det, (xi[0] - 1) / det
        x11, x12, x22 = self._xi(n, s, y * z)
        b22, b12 = inverse * (x12 * n[1] + x22 * n[2]), inverse * (x11 * n[1] + x12 * n[2])
        # <v, theta> and <v, v> for the vector v of length N before it is normalised.
        vt = g1 * tt + t22 * b22 + t12 * b12
        x11, x12, x22 = self._xi(n, s, y**2)
        own = n[1] ** 2 * x11 + 2 * n[1] * n[2] * x12 + n[2] ** 2 * x22
        vv = jnp.sum(weight * y**2) * L * inverse + inverse**2 * own + g1**2 * tt
        vv = vv + t22 * (2 * g1 * b22 - s * b22**2) + 2 * t12 * b12 * (g1 - s * b22) - t11 * b12**2
        vt, vv = vt / self.size, vv / self.size**2
        beside = 1 - gamma**2
        apart = beside > _APART
        beside = jnp.where(apart, beside, 1.0)
        vp = jnp.where(apart, (vt - gamma * vv) / jnp.sqrt(beside), 0.0)
        pp = jnp.where(apart, (tt - 2 * gamma * vt + gamma**2 * vv) / beside, L)
        return jnp.array([[vv, vp], [vp, pp]])


def _solved(xi: tuple[Any, Any, Any], s: Any) -> tuple[Any, Any]:
    """The determinant, and the entry of Lambda (1 + s Lambda)^-1, that belong to a self-energy xi."""
    det = (xi[0] - 1) * (1 + s * xi[2]) - s * (1 + xi[1]) ** 2
    return det, ((xi[0] - 1) * xi[2] - (1 + xi[1]) ** 2) / det


def exact_bulk(model: TwoLayer, step: Step, fine: bool = True) -> Exact:
    """The bulk of a first layer with one value of the second."""
    labels = _labels(model, step.shift, fine)
    slope = model.target_moments.slope
    linear, spread, norm = step.linear[0], step.spread[0], step.norms[0]
    return Exact(labels, linear, spread, step.inverse_batch, slope, step.alignment, step.size, norm)


def _labels(model: TwoLayer, shift: Any, fine: bool) -> Labels:
    z, weight = panels(standard_edges(model.target.breaks), _LABEL_NODES if fine else _LABEL_NODES - 2, graded=False)
    weight = weight * normal_density(z)
    length = len(z) if fine else len(z) // (_LABEL_NODES - 2) * _LABEL_NODES
    y = model.target.numpy(z[:, None]) - shift
    if is_traced(model.noise) or model.noise > 0:
        rules = [normal_trapezoid(*rule) for rule in zip(_NOISE_STEP, _NOISE_REACH, strict=True)]
        xi, chance = rules[0 if fine else 1]
        length *= len(rules[0][0])
        z, weight = np.repeat(z, len(xi)), (weight[:, None] * chance).ravel()
        y = (y[:, None] + jnp.sqrt(model.noise) * xi).ravel()
    z, weight, y = filled(rounded_up(length, _LENGTH), z, weight, y)
    return Labels(z, y, weight)
