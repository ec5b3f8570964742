r"""A rectangular matrix of known singular values and uniformly random singular vectors.

The unknown w holds the N = d L entries of S*, of unit variance. Seen at precision qhat it is $S^* + \sqrt\kappa Z$ with
$\kappa = 1/\hat q$ and Z of independent N(0, 1) entries. The best estimate keeps the singular vectors and shrinks the
singular values [troiani2022optimal].
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.engine.operators import OnMatrices
from solvable.engine.sides import SignalStep
from solvable.engine.signals.separable import precision_from_norm
from solvable.engine.signals.spectral import SpectralSignal
from solvable.numerics.batches import in_batches, rounded_up_to_power
from solvable.spectra import ProductWishart
from solvable.spectra.rectangular import RectangularSum, rectangular_sums
from solvable.spectra.rectangular_denoising import optimal_singular_values_of, rectangular_mmse_forms

_LEAST_PRECISION = 1e-9
_SHORTEST = 64
_GAUSSIAN = 1e-10
"""The relative distance from the error of Gaussian entries below which it is taken for theirs: the quadrature loses its
digits where a large rank meets little noise."""
_LARGE = 0.1
"""The larger side over the rank, below which a rank is large."""
_LARGEST = 1e4
"""The rank over the dimension up to which the cubic equation of the law keeps its digits; its distance from the limit
is then below 1e-8."""


@dataclasses.dataclass(frozen=True)
class SingularValueSignal(SpectralSignal):
    """A d x L product of Gaussian matrices of rank r, for r = `rho` d and L = `beta` d."""

    rho: float
    beta: float

    @functools.cached_property
    def upright(self) -> tuple[ProductWishart, float]:
        """The law of the eigenvalues of S S^T / L and the aspect, of S or of its transpose."""
        return upright(self.rho, self.beta)

    @functools.cached_property
    def dimension(self) -> float:
        """Unknowns of a d x L matrix of rank min(r, d, L), over d L: r (d + L - r) / (d L)."""
        rho = min(self.rho, 1.0, self.beta)
        return 1.0 if rho in (1.0, self.beta) else rho * (1 + self.beta - rho) / self.beta

    @property
    def _bend(self) -> float:
        """Odd cumulants of singular values vanish: up to this order the entries are Gaussian."""
        return -1.0

    def _denoised(self, qhat: np.ndarray) -> tuple[np.ndarray, ...]:
        """The numerical error is the difference of the two formulas, or the mass that the quadrature misses where one
        of them suffers from cancellation."""
        kappa = 1 / qhat
        found = _sums(*self.upright, kappa)
        by_score, by_square = rectangular_mmse_forms(1.0, found)
        learned = (found.weight * (found.x - kappa[:, None] * found.score) ** 2).sum(-1)
        lost = kappa * np.abs(1 - found.weight.sum(-1))
        error = np.minimum(np.abs(by_score - by_square), lost)
        away, limit = _from_gaussian(*self.upright, kappa), kappa / (1 + kappa)
        near = away < _GAUSSIAN
        V = np.where(kappa < 1, by_score, by_square), np.where(kappa < 1, 1 - by_score, learned)
        return np.where(near, limit, V[0]), np.where(near, 1 - limit, V[1]), np.where(near, away * limit, error)

    def denoiser(self, operator: OnMatrices) -> SingularValueDenoiser:
        return SingularValueDenoiser(self, operator.shape)


class SingularValueDenoiser:
    r"""The denoiser of a matrix of a given shape (d, L).

    $B/A = S^* + \sqrt\kappa Z$ with $\kappa = 1/A$. Its singular values are shrunk, and the response is mmse(kappa),
    the mean posterior variance of an entry.
    """

    def __init__(self, signal: SingularValueSignal, shape: tuple[int, int]):
        self._shape, self._upright = shape, signal.upright

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        A = max(float(precision_from_norm(B)[0][0]), _LEAST_PRECISION)
        left, values, right = np.linalg.svd(B.reshape(self._shape) / A, full_matrices=False)
        unit = np.sqrt(max(self._shape))
        shrunk, mmse = self._shrunk(1 / A, values / unit)
        estimate = (left * (shrunk * unit)) @ right
        return SignalStep(estimate.reshape(-1, 1), np.full((1, 1), mmse), np.full((1, 1), A))

    @float64
    def _shrunk(self, kappa: float, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The shrunk singular values and mmse(kappa)."""
        if _from_gaussian(*self._upright, kappa) < _GAUSSIAN:
            return x / (1 + kappa), kappa / (1 + kappa)
        found = RectangularSum(*(part[0] for part in _sums(*self._upright, np.array([kappa]))))
        # Filled up to a power of two, so that few sizes are ever compiled.
        shrunk = in_batches(
            lambda x: optimal_singular_values_of(*self._upright, found, x),
            x,
            batch=rounded_up_to_power(len(x), _SHORTEST),
            alone=False,
        )
        # One that fluctuates far out of the bulk is not mapped outside the support of the law: runs would go astray.
        largest = np.sqrt(float(self._upright[0].ends[1]))
        by_score, by_square = rectangular_mmse_forms(1.0, found)
        return np.minimum(shrunk, largest), float(by_score if kappa < 1 else by_square)


def upright(rho: float, beta: float) -> tuple[ProductWishart, float]:
    """The law of the eigenvalues of S S^T / L and beta, for S or its transpose, whichever is not taller than wide."""
    most = _LARGEST * min(1.0, beta)
    if rho > most:
        raise bad_parameter("rho", rho, f"at most {most:g}: beyond, entries are as good as Gaussian")
    rho, beta = (rho, beta) if beta >= 1 else (rho / beta, 1 / beta)
    return ProductWishart(rho, beta), beta


def _from_gaussian(law: ProductWishart, aspect: float, kappa: Any) -> Any:
    """A bound on the relative distance of mmse(kappa) from that of Gaussian entries, kappa / (1 + kappa).

    It falls like the square of a large rank, and like kappa: S of full rank is smooth at the scale of weak noise.
    """
    ratio = aspect / float(law.rho)
    return ratio**2 * kappa if ratio < _LARGE else np.full(np.shape(kappa), np.inf)


def _sums(law: ProductWishart, aspect: float, kappa: np.ndarray) -> RectangularSum:
    return RectangularSum(*(np.asarray(part) for part in rectangular_sums(law, aspect, kappa)))
