r"""The mean loss of a student on the sphere, and the noise of its steps, as functions of its overlaps.

Fields of teacher and student are Gaussian. For functions A of $z$ and B of q that have correlation m token by token,
with orthonormal Hermite coefficients a and b, Mehler's formula is

    E[A(z) B(q)] = sum_kappa m^|kappa| a_kappa b_kappa .

With the overlaps u of the weights with fixed directions, $\delta_t = \partial\,loss/\partial q_t$,

    R(u) = E |y - f|^2 / 2,        N(u) = E sum_t delta_t^2

are sums of such averages, since the loss is a polynomial in the label. Descent with rate gamma/d follows, with time
gamma n/d, the spherical gradient less what normalisation takes away,

    du/dtau = -(grad R - u (u . grad R)) - (gamma/2) u N .

A series that ends loses its tail; where the average is known at m = 1 the tail is given to the next degree.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from solvable.core.errors import NotSolvable
from solvable.core.precision import float64
from solvable.models.attention.online.learner import ATTENTION, PLAIN, SequenceSGD
from solvable.models.attention.online.model import MOST_TOKENS, SIGNS, SequenceSingleIndex
from solvable.numerics.gaussian import gaussian_panels, hermite_functions, normal_trapezoid
from solvable.targets.target import Target

_DEGREE, _COARSER = 120, 0.75
_GRIDS = {1: (0.15, 60), 2: (0.25, 40), 3: (0.45, 20)}
"""Steps of the grid in each token, and the largest degree in each."""
_REACH = 9.0


class Landscape(eqx.Module):
    """R and N of a student, as functions of its overlaps `u`, differentiable by JAX."""

    directions: int = eqx.field(static=True)

    @abc.abstractmethod
    def loss(self, u: Any) -> Any:
        """E |y - f|^2 / 2, without the noise of the label."""

    @abc.abstractmethod
    def noise(self, u: Any) -> Any:
        """E sum_t delta_t^2, with it."""


def horner(coefficients: Any, x: Any) -> Any:
    """sum_k c_k x^k along the first axis."""
    return jax.lax.scan(lambda s, c: (s * x + c, None), jnp.zeros_like(coefficients[0]), coefficients[::-1])[0]


class SumLandscape(Landscape):
    r"""A student that knows $f = T^{-1/2}\sum_t\varphi$: R is that of one token, N = N_1/T + (1 - 1/T) 2R E[phi'^2]."""

    overlap: Any
    square_slope: Any
    cross: Any
    moments: Any
    tokens: float
    label_noise: Any

    @classmethod
    def of(cls, model: SequenceSingleIndex, degree: int) -> SumLandscape:
        z, weight, value, slope, basis = _one(model.target, degree)
        parts = [value, value**2, slope**2, value * slope**2]
        c, c2, s2, cs2 = (basis @ (weight * part) for part in parts)
        square, fourth = (float(weight @ part) for part in (value**2, value**2 * slope**2))
        # At m = 1 the label is the student's value: each series has to sum to what it is there.
        pairs = [(c * c, square), (c2 * s2, fourth), (c * cs2, fourth)]
        overlap, squares, cross = (jnp.asarray(np.append(terms, total - terms.sum())) for terms, total in pairs)
        moments = jnp.asarray([square, float(weight @ slope**2), fourth])
        return cls(1, overlap, squares, cross, moments, float(model.tokens), jnp.asarray(float(model.noise)))

    def loss(self, u: Any) -> Any:
        return self.moments[0] - horner(self.overlap, u[0])

    def noise(self, u: Any) -> Any:
        m, T = u[0], self.tokens
        _, slope, fourth = self.moments
        own = horner(self.square_slope, m) - 2 * horner(self.cross, m) + fourth
        return own / T + (1 - 1 / T) * 2 * self.loss(u) * slope + self.label_noise * slope


class NeuronLandscape(Landscape):
    r"""A neuron of field $h = u\cdot v + \sqrt{1 - |u|^2}\,\xi$, v the directions that it can learn.

    `label` and `square` are the coefficients of y and y^2 in the Hermite polynomials of v, those of a degree weighted
    such that $E[y\,\sigma(h)] = \sum_\kappa \sigma_{|\kappa|} y_\kappa u^\kappa$.
    """

    label: Any
    square: Any
    activation: Any
    slope: Any
    cross: Any
    moments: Any
    label_noise: Any

    @classmethod
    def of(cls, model: SequenceSingleIndex, learner: SequenceSGD, degree: int) -> NeuronLandscape:
        label, square, mean_square = label_series(model, degree, learner.student == PLAIN and model.joint)
        _, weight, value, slope, basis = _one(learner.activation, label.shape[0] - 1)
        own, slopes, cross = (jnp.asarray(basis @ (weight * part)) for part in (value, slope**2, value * slope**2))
        moments = [mean_square, *(float(weight @ part) for part in (value**2, slope**2, value**2 * slope**2))]
        noise = jnp.asarray(float(model.noise))
        return cls(label.ndim, jnp.asarray(label), jnp.asarray(square), own, slopes, cross, jnp.asarray(moments), noise)

    def _paired(self, series: Any, own: Any, u: Any) -> Any:
        degrees = np.sum(np.meshgrid(*[np.arange(n) for n in series.shape], indexing="ij"), axis=0)
        terms = series * jnp.where(degrees < len(own), own[np.minimum(degrees, len(own) - 1)], 0.0)
        for k in range(self.directions):
            terms = horner(terms, u[k])
        return terms

    def loss(self, u: Any) -> Any:
        return (self.moments[0] + self.moments[1]) / 2 - self._paired(self.label, self.activation, u)

    def noise(self, u: Any) -> Any:
        _, _, slope, fourth = self.moments
        return (
            self._paired(self.square, self.slope, u)
            - 2 * self._paired(self.label, self.cross, u)
            + fourth
            + self.label_noise * slope
        )


class TokenLandscape(Landscape):
    """A student that knows a function of a few tokens, with places for two of them: u = (m, e), or m alone."""

    function: Callable[[Any], Any] = eqx.field(static=True)
    positions: bool = eqx.field(static=True)
    z: Any
    weight: Any
    basis: Any
    teacher: Any
    label_noise: Any

    @classmethod
    def of(cls, model: SequenceSingleIndex, learner: SequenceSGD, fineness: float) -> TokenLandscape:
        T = int(model.tokens)
        step, degree = _GRIDS[T]
        x, w = normal_trapezoid(step / fineness, _REACH)
        z = np.stack([part.ravel() for part in np.meshgrid(*[x] * T, indexing="ij")], axis=-1)
        weight = functools.reduce(np.multiply.outer, [w] * T).ravel()
        basis = w * hermite_functions(x, round(degree * fineness))
        nodes, weights, functions, labels = (jnp.asarray(part) for part in (z, weight, basis, model.labels(z)))
        noise = jnp.asarray(float(model.noise))
        return cls(1 + learner.positions, model.function, learner.positions, nodes, weights, functions, labels, noise)

    def _student(self, u: Any) -> tuple[Any, Any]:
        """Values (n, k) and slopes (n, k, T) of the student at the nodes."""
        q = self.z + (u[1] * jnp.asarray(SIGNS) if self.positions else 0.0)
        return jax.vmap(self.function)(q), jax.vmap(jax.jacfwd(self.function))(q)

    def _paired(self, A: Any, B: Any, m: Any) -> Any:
        """E[A(z) . B(q)] from the values (n, c) of both at the nodes."""
        T, nodes = self.z.shape[1], self.basis.shape[1]

        def coefficients(values: Any) -> Any:
            found = values.reshape(*[nodes] * T, -1)
            for _ in range(T):  # each contraction puts its axis last, so that T of them restore the order
                found = jnp.tensordot(found, self.basis, axes=([0], [1]))
            return found  # (c, K, .., K)

        terms = jnp.sum(coefficients(A) * coefficients(B), axis=0)
        degrees = np.sum(np.meshgrid(*[np.arange(n) for n in terms.shape], indexing="ij"), axis=0)
        series = jax.ops.segment_sum(terms.ravel(), degrees.ravel(), num_segments=int(degrees.max()) + 1)
        known = self.weight @ jnp.sum(A * B, axis=1)
        return horner(jnp.append(series, known - series.sum()), m)

    def loss(self, u: Any) -> Any:
        value, _ = self._student(u)
        squares = self.weight @ (jnp.sum(self.teacher**2, axis=1) + jnp.sum(value**2, axis=1))
        return squares / 2 - self._paired(self.teacher, value, u[0])

    def noise(self, u: Any) -> Any:
        value, slope = self._student(u)
        n, m = len(self.z), u[0]
        own = jnp.einsum("nk,nkt->nt", value, slope)
        cross = jnp.einsum("nt,nkt->nk", own, slope)
        slopes = jnp.einsum("nkt,nlt->nkl", slope, slope)
        labels = self.teacher[:, :, None] * self.teacher[:, None, :]
        squared = self._paired(labels.reshape(n, -1), slopes.reshape(n, -1), m)
        trace = self.label_noise * (self.weight @ jnp.sum(slope**2, axis=(1, 2)))
        return self.weight @ jnp.sum(own**2, axis=1) - 2 * self._paired(self.teacher, cross, m) + squared + trace


@float64
def landscapes(model: SequenceSingleIndex, learner: SequenceSGD) -> list[Landscape]:
    """That of the pair, and a coarser one that shows its error."""
    if learner.student != ATTENTION and model.function(np.zeros(model.tokens)).shape != (1,):
        raise NotSolvable("a neuron has one output and softmax labels are a matrix: use student='attention'.")
    if learner.positions and model.tokens != 2:
        raise NotSolvable("positions are known for two tokens: use tokens=2, or positions=False.")
    if learner.student != ATTENTION:
        if model.positional > 0:
            raise NotSolvable("a neuron does not see positions: use student='attention', or positional=0.")
        return _of_one_shape(*(NeuronLandscape.of(model, learner, round(_DEGREE * f)) for f in (1.0, _COARSER)))
    if model.tokens <= MOST_TOKENS and (model.joint or learner.positions or model.positional > 0):
        return [TokenLandscape.of(model, learner, fineness) for fineness in (1.0, _COARSER)]
    return _of_one_shape(*(SumLandscape.of(model, round(_DEGREE * f)) for f in (1.0, _COARSER)))


def _of_one_shape(fine: Landscape, coarse: Landscape) -> list[Landscape]:
    """Both, the shorter series filled up with zeros: one program follows the flow of both."""

    def filled(short: Any, long: Any) -> Any:
        more = np.subtract(np.shape(long), np.shape(short))
        return jnp.pad(short, [(0, n) for n in more]) if np.any(more) else short

    return [fine, jax.tree.map(filled, coarse, fine)]


def label_series(model: SequenceSingleIndex, degree: int, by_token: bool) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Coefficients of y and y^2 in the Hermite polynomials of what a neuron can learn, and E y^2.

    `by_token` it is every z_t, weighted by $\sqrt{|\kappa|!/\kappa!}$. Otherwise it is $s = T^{-1/2}\sum_t z_t$, where
    $E[He_k(s)|z]$ is a sum over the multi-indices of degree k. For a sum over tokens, of coefficients c,

        E[y h_k(s)] = T^((1-k)/2) c_k
        E[y^2 h_k(s)] = T^(-k/2) (c_k[phi^2] + (T - 1) sum_{i+j=k} sqrt(k!/(i! j!)) c_i c_j) .
    """
    T = int(model.tokens)
    if not model.joint:
        _, weight, value, _, basis = _one(model.target, degree)
        k = np.arange(degree + 1)
        c, c2 = basis @ (weight * value), basis @ (weight * value**2)
        scaled = c * np.exp(-gammaln(k + 1) / 2)
        both = np.convolve(scaled, scaled)[: degree + 1] * np.exp(gammaln(k + 1) / 2)
        mean, square = c[0], float(weight @ value**2)
        return T ** ((1 - k) / 2) * c, T ** (-k / 2) * (c2 + (T - 1) * both), square + (T - 1) * float(mean) ** 2
    step, most = _GRIDS[T]
    fineness = degree / _DEGREE
    x, w = normal_trapezoid(step / fineness, _REACH)
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * T, indexing="ij")], axis=-1)
    y = model.labels(z)[:, 0].reshape([len(x)] * T)
    basis = w * hermite_functions(x, round(most * fineness))
    found = []
    for values in (y, y**2):
        for _ in range(T):
            values = np.tensordot(values, basis, axes=([0], [1]))
        found.append(values)
    indices = np.meshgrid(*[np.arange(n) for n in found[0].shape], indexing="ij")
    total = np.sum(indices, axis=0)
    share = np.exp((gammaln(total + 1) - sum(gammaln(index + 1) for index in indices)) / 2)
    inside = total <= round(most * fineness)  # the degrees that are complete
    found = [np.where(inside, values * share, 0.0) for values in found]
    mean_square = float(functools.reduce(np.multiply.outer, [w] * T).ravel() @ (y**2).ravel())
    if by_token:
        return found[0], found[1], mean_square
    diagonal = [
        np.bincount(total.ravel(), (v * T ** (-total / 2)).ravel())[: round(most * fineness) + 1] for v in found
    ]
    return diagonal[0], diagonal[1], mean_square


@float64
def exponent(model: SequenceSingleIndex, learner: SequenceSGD, e: float = 0.0) -> float:
    """The first degree in m of the loss at m = 0, with tokens at +-e: what decides how soon descent escapes.

    Infinite if there is none up to degree 6. The loss is a power series in m: a polynomial through its values tells.
    """
    landscape = landscapes(model, learner)[0]
    m = _NEAR * np.cos(np.pi * (np.arange(_PLACES) + 0.5) / _PLACES)
    u = np.zeros((_PLACES, landscape.directions))
    u[:, 0] = m
    if learner.positions:
        u[:, 1] = e
    values = np.asarray(losses(landscape, jnp.asarray(u)))
    series = np.polynomial.Polynomial.fit(m, values, _PLACES - 1, domain=[-_NEAR, _NEAR])
    terms = series.convert().coef[1 : _MOST_EXPONENT + 1]
    seen = np.flatnonzero(np.abs(terms) > _ZERO * max(1.0, float(np.abs(values).max())))
    return float(seen[0] + 1) if seen.size else math.inf


_NEAR, _PLACES, _MOST_EXPONENT, _ZERO = 0.4, 24, 6, 1e-6


@jax.jit
def losses(landscape: Landscape, u: Any) -> Any:
    """The loss at overlaps (k, directions)."""
    return jax.lax.map(landscape.loss, u)


@functools.lru_cache(maxsize=32)
def _one(target: Target, degree: int) -> tuple[np.ndarray, ...]:
    """Nodes, weights, values, slopes and Hermite polynomials of a function of one number."""
    with jax.enable_x64(True):
        z, weight = gaussian_panels(target.breaks, 48)
        value, slope = target.value_and_slope(z)
    return z, weight, value, slope, hermite_functions(z, degree)
