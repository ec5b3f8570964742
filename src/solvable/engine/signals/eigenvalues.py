r"""A symmetric matrix of known eigenvalues and uniformly random eigenvectors.

The unknown w holds the N = d(d+1)/2 entries of $A^* - m I$ (those off the diagonal times $\sqrt 2$) scaled to $|w|^2 =
N$, m and $\sigma^2$ being the mean and the variance of the law of eigenvalues: the trace is known from the law. Seen at
precision qhat it is $A^* + \sqrt D Z$ with $D = \sigma^2/\hat q$ and Z a Gaussian symmetric matrix. The best estimate
keeps the eigenvectors and shrinks the eigenvalues [bun2016rotational, biane1997free].
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.precision import float64
from solvable.engine.operators import PackedFeatures
from solvable.engine.sides import SignalStep
from solvable.engine.signals.separable import precision_from_norm
from solvable.engine.signals.spectral import SpectralSignal
from solvable.spectra import Law
from solvable.spectra.convolution import free_sum
from solvable.spectra.denoising import mmse_forms
from solvable.spectra.shrinkage import shrink

_EDGE = 0.7
"""Width over which the denoiser is smoothed, in units of that of an edge and of its slope inside the bulk."""
_LEAST_PRECISION = 1e-9
_KNOWN = 1e-14
_TURNS = 64


class EigenvalueSignal(SpectralSignal):
    r"""A matrix whose eigenvalues have the given law: mmse(qhat) = mmse(D)/$\sigma^2$ at $D = \sigma^2/\hat q$.

    It is not known in advance unless all eigenvalues are one; then nothing is left to learn, and D is 1/qhat.
    As qhat grows mmse falls like $(1 - \sum_i w_i^2)/\hat q$ over the weights w of the atoms of the law.
    """

    def __init__(self, law: Law):
        self.law = law

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EigenvalueSignal) and bool(self.law == other.law)

    def __hash__(self) -> int:
        return hash((EigenvalueSignal, str(self.law)))

    def __repr__(self) -> str:
        return f"EigenvalueSignal({self.law})"

    @functools.cached_property
    @float64
    def _moments(self) -> tuple[float, float, float]:
        """The mean of the law, its variance (0 where all eigenvalues are one), and its information dimension."""
        variance, second = float(self.law.variance), float(self.law.second_moment)
        if variance <= _KNOWN * second:
            return float(self.law.mean), 0.0, 0.0
        return float(self.law.mean), variance, 1 - float(np.sum(np.asarray(self.law.atoms[1]) ** 2))

    @property
    def known(self) -> bool:
        """Whether all eigenvalues are one."""
        return self._moments[1] == 0

    @property
    def mean(self) -> float:
        """The mean of the law."""
        return self._moments[0]

    @property
    def variance(self) -> float:
        """The variance of the law, the unit of D; 1 where there is none."""
        return self._moments[1] or 1.0

    @property
    def dimension(self) -> float:
        return self._moments[2]

    @functools.cached_property
    @float64
    def _bend(self) -> float:
        r"""The third free cumulant squared, for unit variance, less one: the free Fisher information of Y over
        $\sqrt D$ is $1/(1 + \hat q) + \kappa_3^2 \hat q^3$ to that order. The cumulant is the third central moment,
        here a contour integral.
        """
        low, high = (float(end) for end in self.law.ends)
        radius = 2 * max(high - self.mean, self.mean - low)
        turn = radius * np.exp(1j * np.pi * (np.arange(_TURNS) + 0.5) / _TURNS)
        third = np.mean(np.real(turn**4 * np.asarray(self.law.stieltjes(self.mean + turn))))
        return float(third**2 / self.variance**3) - 1

    def measured(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (np.zeros(len(qhat)), np.zeros(len(qhat))) if self.known else super().measured(qhat)

    def _denoised(self, qhat: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(part) / self.variance for part in _denoised(self.law, self.variance / qhat))

    def denoiser(self, operator: PackedFeatures) -> EigenvalueDenoiser:
        return EigenvalueDenoiser(self, operator)


@jax.jit
def _denoised(law: Law, D: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """mmse(D) for an array of D, what is learned (the variance without it), and the numerical error.

    The latter is estimated by the difference of the two formulas, or by the mass that the quadrature misses where one
    of the formulas suffers from cancellation.
    """

    def at(D: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        found = free_sum(law, D)
        by_cube, by_square = mmse_forms(law, found)
        learned = jnp.sum(found.weight * (2 * found.u - found.x - law.mean) ** 2)
        small = law.variance > D
        lost = D * jnp.abs(1 - jnp.sum(found.weight))
        error = jnp.minimum(jnp.abs(by_cube - by_square), lost)
        return jnp.where(small, by_cube, by_square), jnp.where(small, law.variance - by_cube, learned), error

    return jax.vmap(at)(D)


class EigenvalueDenoiser:
    r"""The denoiser of a matrix that these features measure.

    B/A is, as a matrix, $A^* - m I + \sqrt D Z$ with $D = \sigma^2 d^2/(2 N A)$. Its eigenvalues are shrunk, and the
    response is the divergence of that map over N A. A is read off the norm of B, or with `by_norm` false is what the
    derivatives of the output show: more reliable where the output measures V.
    """

    def __init__(self, signal: EigenvalueSignal, operator: PackedFeatures, by_norm: bool = True):
        self._law, self._operator, self._by_norm = signal.law, operator, by_norm
        self._mean, self._variance = signal.mean, signal.variance
        self._scale = np.sqrt(operator.dimension / (operator.size * self._variance))

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        d, N = self._operator.size, self._operator.dimension
        A = max(float(precision_from_norm(B)[0][0]), _LEAST_PRECISION) if self._by_norm else float(precision[0, 0])
        D = self.effective_noise(A)
        eigenvalues, vectors = np.linalg.eigh(self._operator.matrix(B / (A * self._scale)))
        # An edge is sqrt(D) d^(-2/3) wide. Inside the bulk the slope is about variance / (variance + D), to which
        # smoothing adds width / sqrt(D): it must stay a small part of it.
        width = _EDGE * d ** (-2 / 3) * np.sqrt(D) * self._variance / (self._variance + D)
        found = float64(shrink)(self._law, D, eigenvalues + self._mean, width)
        shrunk = np.asarray(found.values) - self._mean
        estimate = self._scale * self._operator.vector((vectors * shrunk) @ vectors.T)
        return SignalStep(estimate, np.full((1, 1), float(found.divergence) / (N * A)), np.full((1, 1), A))

    def effective_noise(self, A: float) -> float:
        """D, the variance of the noise on A* at precision A."""
        return self._variance * self._operator.size**2 / (2 * self._operator.dimension * A)

    def matrix(self, signal: np.ndarray) -> np.ndarray:
        """A_hat (d x d) from the loop's w_hat."""
        return self._operator.matrix(signal / self._scale) + self._mean * np.eye(self._operator.size)
