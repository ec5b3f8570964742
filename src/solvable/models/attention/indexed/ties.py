r"""What labels that name the largest of several scores tell where little is left unknown: ties of two scores.

With x = omega/sqrt(V) of variance q/V the information of a sample is J(q/V)/V. As $t = (1 + q/V)^{-1/2}$ falls to 0
only samples inform whose two largest scores of a row are tied, a share of order t of them: J/t has a limit, and is a
smooth function of t, kept as a polynomial with the error of its sampling.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from solvable.numerics.gaussian import expectation

_LOG_ROOT = float(np.log(2 * np.pi) / 2)
DEVIATIONS = 3.0
"""The stated error in standard deviations, which themselves are told by few replicas."""
_ROUNDING = 1e-12


class Ties(NamedTuple):
    """J/t = limit + sum_k coefficients_k t^k, and the covariance of the coefficients."""

    limit: float
    coefficients: np.ndarray
    covariance: np.ndarray

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """J."""
        return t * (self.limit + self._powers(t) @ self.coefficients)

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        """That of J."""
        powers = self._powers(t)
        spread = np.sqrt(np.einsum("...a,ab,...b->...", powers, self.covariance, powers))
        return DEVIATIONS * spread / (self.limit + powers @ self.coefficients) + _ROUNDING

    def _powers(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(t)[..., None] ** np.arange(1, len(self.coefficients) + 1)


def fitted(limit: float, t: np.ndarray, mean: np.ndarray, error: np.ndarray, degree: int) -> Ties:
    """The polynomial through J/t, `mean` with its standard `error` at each t; a misfit beyond these widens errors."""
    powers = t[:, None] ** np.arange(1, degree + 1) / error[:, None]
    q, r = np.linalg.qr(powers)
    inverse = np.linalg.inv(r)
    covariance = inverse @ inverse.T
    coefficients = inverse @ (q.T @ ((mean - limit) / error))
    misfit = np.sum((powers @ coefficients - (mean - limit) / error) ** 2) / (len(t) - degree)
    return Ties(limit, coefficients, covariance * max(1.0, misfit))


def tied_pair(variance: float, edges: int, own: int) -> float:
    r"""What one pair of scores of a row adds to lim J/t: they are one sign channel where they are tied and largest,

    $\frac{1}{\sqrt{2\pi}} \int \frac{\varphi(k)^2}{\Phi(k)\Phi(-k)} dk \; P(\text{the others are below})$,

    the tied scores, of variances a and b, being at N(0, ab/(a + b)) = N(0, `variance`), and the others `edges` scores
    of variance 1 and `own` of variance 2.
    """
    root = np.sqrt(variance)
    below = expectation(lambda x: np.exp(edges * log_ndtr(root * x) + own * log_ndtr(root * x / np.sqrt(2))))
    return _sign_information() / np.sqrt(2 * np.pi) * below


@functools.cache
def _sign_information() -> float:
    """The integral over k."""
    return expectation(lambda k: np.exp(-(k**2) / 2 - _LOG_ROOT - log_ndtr(k) - log_ndtr(-k)))
