r"""The minimiser of the loss and a penalty on the trace for a vanishing number of samples.

$D = Q'/(2\alpha)$ with $Q' = E A^2 + \Delta/2$ then grows beyond all eigenvalues of A*, and R is noise: a semicircle of
radius $2\delta$. With b' in [0, 1] the share of a label that is not fitted, $2b' = \lambda/(2\sqrt{2\alpha Q'})$ up to
1, what is left above theta is the edge, of width $\epsilon\delta$:

    Df = 8/(15 pi) eps^(5/2) = 2 alpha (1 - b'),       rank = 2/(3 pi) eps^(3/2),       K = alpha (1 - b') delta,
    mse = E A^2 + 16/(105 pi) eps^(7/2) D - 2 E[A] K,  to relative order eps of the last two terms.

The equations of `spectra.thresholded` hold here too, but lose all digits: mse is a difference of numbers of size D.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.spectra import Law

FEW = 1e-7
"""The alpha below which rounding in the equations exceeds the corrections to these limits."""


class FewSamples(NamedTuple):
    """D, theta, b = 2 alpha - Df, rank, K, mse, <S, A*>/d and |S|^2/d at each alpha.

    `error` is that of mse, `relative_error` that of the others over them, to which `tilt` adds in the overlap: A* tilts
    the eigenvectors of the noise towards its own by 1/delta.
    """

    D: np.ndarray
    theta: np.ndarray
    b: np.ndarray
    rank: np.ndarray
    K: np.ndarray
    mse: np.ndarray
    overlap: np.ndarray
    square: np.ndarray
    error: np.ndarray
    relative_error: np.ndarray
    tilt: np.ndarray


def few_samples(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> FewSamples:
    """The limit of small alpha > 0, for labels that are not all zero."""
    second, mean = float(law.second_moment), float(law.mean)
    power = second + noise / 2
    left = np.minimum(penalty / (4 * np.sqrt(2 * alpha * power)), 1.0)
    width = (15 * np.pi * alpha * (1 - left) / 4) ** 0.4
    K = (1 - left) * np.sqrt(alpha * power / 2)
    square = 2 / 7 * power * (1 - left) * width
    mse = second + square - 2 * mean * K
    D = (mse + noise / 2) / (2 * alpha)
    delta = np.sqrt(D)
    with np.errstate(over="ignore"):
        theta = np.where(left < 1, delta * (2 - width), penalty / (4 * alpha))
    # Without eigenvalues above theta S = 0, exactly.
    relative_error = np.where(left < 1, abs(mean) * np.sqrt(2 * alpha / power) + width, 0.0) + 1e-15
    return FewSamples(
        D=D,
        theta=theta,
        b=2 * alpha * left,
        rank=2 / (3 * np.pi) * width**1.5,
        K=K,
        mse=mse,
        overlap=mean * K,
        square=square,
        error=(2 * abs(mean) * K + power * (1 - left) * width) * width + 1e-15 * power,
        relative_error=relative_error,
        tilt=2 * second * K / delta,
    )
