r"""How far the overlap of message passing scatters between instances of one size, from the estimates of a single run.

Under the true law a step takes the overlap Q to the precision $A = \frac1d \sum_i g_i g_i^T$ and back,
$Q' = I - (I + A)^{-1}$ for Gaussian weights. Two numbers of order one follow from the labels' posteriors:

- the slope of a step. $dE[g g^T] = E[G\, dQ\, G]$ with $G_i = \partial g_i / \partial\omega_i$ (the heat equation), so
  a small change of the overlap becomes $L(dQ) = V \frac1d \sum_i G_i\, dQ\, G_i\, V$;
- the noise of a step, $V \Xi V$. The precision along the truth is $\frac1d \sum_i g_i\, e_i^T$ with
  $e_i = V^{-1}(z_i - \omega_i)$, of mean $g_i$ and covariance $V^{-1} + G_i$ given the label: its variance is that of
  $g_i g_i^T$ between samples, and that of $e_i$ given its label.

At a fixed point the noise of all steps is the same, and adds up to $\delta Q = (1 - L)^{-1} V \Xi V$: of order
$1/\sqrt d$, and large where L is close to one. The samples are taken as independent, which they are only at the first
step: for labels y = z without noise the result is $1/\sqrt{1-\alpha}$ too large. An estimate to a factor of two.
"""

from __future__ import annotations

import numpy as np

_MOST = 0.5
"""A number between zero and one does not scatter by more."""


def overlap_covariance(g: np.ndarray, G: np.ndarray, V: np.ndarray, d: int) -> np.ndarray | None:
    """The covariance (p, p, p, p) of the entries of the overlap at a fixed point of `d` unknowns a direction.

    `g` (n, p) and its derivatives `G` (n, p, p) are those of each label, V (p, p) the covariance that is left. None
    where a small change of the overlap grows, so that the fixed point is none, or where there is more scatter than
    an overlap can have: linear response says nothing there.
    """
    n, p = g.shape
    both = np.kron(V, V)

    def pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The mean over unknowns of first_ab second_cd as a matrix on pairs: (a c), (b d)."""
        product = first.reshape(n, -1).T @ second.reshape(n, -1) / d
        return product.reshape(p, p, p, p).transpose(0, 2, 1, 3).reshape(p * p, p * p)

    slope = both @ pairs(G, G)
    outer = g[:, :, None] * g[:, None, :]
    scatter = (outer - outer.mean(axis=0)).reshape(n, -1)
    swap = np.eye(p * p).reshape(p, p, p, p).transpose(1, 0, 2, 3).reshape(p * p, p * p)
    symmetric = 0.5 * (np.eye(p * p) + swap)
    noise = scatter.T @ scatter / d + symmetric @ pairs(outer, np.linalg.inv(V) + G) @ symmetric
    if not np.isfinite(slope).all() or np.max(np.linalg.eigvals(slope).real) >= 1:
        return None
    response = np.linalg.solve(np.eye(p * p) - slope, both)
    found = response @ (noise / d) @ response.T
    return found.reshape(p, p, p, p) if np.max(np.diag(found)) < _MOST**2 else None


def deviations(covariance: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The standard deviation (p x p) of each entry of turn^T Q turn, for the covariance of the entries of Q."""
    turned = np.einsum("abcd,ai,bj,ck,dl->ijkl", covariance, turn, turn, turn, turn, optimize=True)
    return np.sqrt(np.maximum(np.einsum("ijij->ij", turned), 0.0))
