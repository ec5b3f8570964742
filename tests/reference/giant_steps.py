r"""Two giant steps by definition: every average by a plain product rule, over the field of a unit and its noise too.

The slope of a unit after the first step is $\sigma'(u + \tau h)$ with $h = c_1 (g_1 z + b\xi) + c_2 E[y] u + \nu$, and
$\sigma'(u) y/\alpha$ more if the batch is reused; $m_k = E[\sigma^{(k+1)}(u) h^k]$ over u and nu. A direction
$\beta_k = \frac1n\sum_i y_i m_k(i) x_i$ has the component S along the target, A along what the first step adds to it,
and the rest across both. NumPy alone, without a series or closed moments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


def _trapezoid(step: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Of functions that are analytic in a strip about the real axis it has all digits."""
    x = np.arange(-end, end + step / 2, step)
    weight = np.exp(-(x**2) / 2)
    return x, weight / weight.sum()


def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    x, weight = np.polynomial.hermite_e.hermegauss(count)
    return x, weight / weight.sum()


def alignments(
    target: Function, slopes: list[Function], alpha: float, reuse: bool, noise: float
) -> tuple[list[float], float]:
    """The cosine of each direction k with the target, up to sign, and the share of the target in all of them.

    `slopes` are the derivatives of the activation from the first on, one for each k. A fresh batch adds a direction,
    that of the first step.
    """
    order = len(slopes)
    (z, wz), (xi, wx), (u, wu), (nu, wn) = _trapezoid(0.2, 13.0), _gauss(order + 4), _trapezoid(0.25, 9.0), _gauss(6)
    zeta, of_zeta = (xi, wx) if noise else (np.zeros(1), np.ones(1))
    z, xi, zeta = np.meshgrid(z, xi, zeta, indexing="ij")
    weight = np.einsum("i,j,k->ijk", wz, wx, of_zeta)
    y = target(z) + np.sqrt(noise) * zeta
    mean, g1, square = (np.sum(weight * part) for part in (y, y * z, y * y))
    b = np.sqrt(square / alpha)
    first, derivatives = slopes[0](u), [slope(u) for slope in slopes]
    c1, c2 = wu @ first, wu @ (first * u)
    spread = np.sqrt(max(wu @ first**2 - c1**2, 0.0) * square / alpha)
    field = c1 * (g1 * z + b * xi)
    v = np.zeros((order, *z.shape))
    for i, j in np.ndindex(len(u), len(nu)):
        shift = field + c2 * mean * u[i] + spread * nu[j] + (first[i] * y / alpha if reuse else 0.0)
        for k in range(order):
            v[k] += wu[i] * wn[j] * derivatives[k][i] * shift**k
    v *= y
    S, R, P = (np.sum(weight * v * part, axis=(1, 2, 3)) for part in (z, xi, y))
    Q = np.einsum("aijk,bijk,ijk->ab", v, v, weight)
    A, rest = (R + b * P / square, Q - np.outer(P, P) / square) if reuse else (R, Q)
    gram = np.outer(S, S) + np.outer(A, A) + rest / alpha
    signs = [np.sign(wu @ derivatives[k] * c1**k) for k in range(order)]
    cosines = [float(signs[k] * S[k] / np.sqrt(gram[k, k])) for k in range(order)]
    if not reuse:
        gram = np.block([[np.array([[g1**2 + b**2]]), g1 * S + b * A], [(g1 * S + b * A)[:, None], gram]])
        S = np.concatenate([[g1], S])
    return cosines, float(S @ np.linalg.lstsq(gram, S, rcond=1e-13)[0])
