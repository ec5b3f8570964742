r"""Ridge regression on random features, by its dimension-free deterministic equivalent [defilippis2024dimension].

Features $\varphi_j(x) = \sum_k \sqrt{\lambda_k}\, \psi_k(x)\, \phi_k(w_j)$, j = 1..p, of a kernel with eigenvalues
$\lambda_k$ and orthonormal eigenfunctions $\psi_k$; labels $y = \sum_k \beta_k \psi_k(x)$ + noise of variance $\Delta$;
$\sum_i (y_i - a\cdot\varphi(x_i)/\sqrt p)^2 + \lambda |a|^2$ over n samples. All that enters of the problem are five
sums over its eigenvalues, functions of one number $\nu$, with $s_k = \lambda_k/(\lambda_k + \nu)$:

    T2 = sum s^2,   D = sum s (1 - s),   A = sum beta^2 s^2,   C = sum beta^2 s (1 - s),   B = sum beta^2 (1 - s)^2.

With $T = T_2 + D$ (the degrees of freedom) and $u = 1/p$, nu solves

    (n - T) (1 - u T) = lambda / nu,        T < min(n, p),

which is $1 + n/p - \sqrt{(1 - n/p)^2 + 4\lambda/(p\nu)} = 2T/p$ without the root, $\nu = \nu_2$ and
$\nu (1 - uT) = \nu_1$ of the publication. With $g = n - T$ and $w = 1 - u T$

    n (1 - Y) = g + w D / (w + u D),        n Y = u T^2 + w^2 T2 / (w + u D),
    bias = (B + C u D / (w + u D)) / (1 - Y),        variance = Delta Y / (1 - Y),

Y the publication's Upsilon. Written like this nothing cancels, close to interpolation (n = p, lambda to 0) neither. The
bias is the error for labels without noise, the variance what noise adds, their sum the error on the noiseless label.
The inner product of estimate and target is A + C, the squared norm of the estimate A + bias - B + variance, and the
training error is $(g/n)^2$ times the test error with its noise: the factor of generalized cross validation. For p to
infinity, u = 0, this is kernel ridge regression.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Sums(NamedTuple):
    """The five sums at one nu, or at many: T2, D, A, C and B."""

    squared: Any
    mixed: Any
    learned: Any
    crossed: Any
    missed: Any

    @property
    def freedom(self) -> Any:
        """T, the degrees of freedom."""
        return self.squared + self.mixed


class Gaps(NamedTuple):
    """What is left of the samples, g = n - T, and of the features, w = 1 - T/p."""

    samples: Any
    features: Any


class Risk(NamedTuple):
    """What ridge regression comes to; for an unseen label with noise add its variance to bias and variance."""

    bias: Any
    variance: Any
    inner: Any
    norm: Any
    shrinkage: Any
    """g/n: the root of the training error over the test error."""


def gaps(xp: Any, n: Any, p: Any, ratio: Any) -> Gaps:
    """g and w from (n - T) (1 - T/p) = ratio, ratio = lambda/nu, with T the smaller root; each from a sum.

    `xp` is numpy or jax.numpy.
    """
    kernel = p == xp.inf
    p = xp.where(kernel, 1.0, p)
    excess, u = xp.where(kernel, -1.0, (n - p) / p), xp.where(kernel, 0.0, 1 / p)
    root = xp.sqrt(excess**2 + 4 * u * ratio)
    few = excess <= 0  # not more samples than features
    larger = (root + xp.abs(excess)) / 2  # w of few samples, u g of many
    quotient = ratio / xp.where(larger > 0, larger, 1.0)  # g of few samples, w/u of many
    return Gaps(xp.where(few, quotient, larger * p), xp.where(few, larger, u * quotient))


def risk(n: Any, p: Any, noise: Any, gap: Gaps, sums: Sums) -> Risk:
    """The equations above, for NumPy and JAX; infinite at the interpolation threshold without penalty."""
    (g, w), u = gap, 1 / p
    T2, D, A, C, B = sums
    ahead = w + u * D
    share = u * D / ahead
    clear = g + w * D / ahead
    blurred = u * sums.freedom**2 + w**2 * T2 / ahead
    variance = noise * blurred / clear
    more = (B * blurred + C * share * n) / clear
    return Risk(B + more, variance, A + C, A + more + variance, g / n)
