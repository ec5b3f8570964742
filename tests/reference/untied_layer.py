r"""The posterior of an untied attention layer of large rank given hardmax labels, sampled from the definition alone.

S has independent N(0, 1) entries, and a label says that $x_a^T S (x_y - x_b) > 0$ for the token y that token a names
and every other token b: a Gaussian in a polytope. The teacher is itself a sample of the posterior, so that a chain of
Gibbs moves of single entries starts in equilibrium, and the mean overlap of its later states with the teacher is that
of the posterior mean. Nothing of the package is used.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri


def error_of_posterior_mean(tokens: int, alpha: float, d: int, seed: int, sweeps: int, burn: int) -> float:
    """One minus the overlap of the teacher with the mean of the states after the first `burn` sweeps."""
    rng = np.random.default_rng(seed)
    S, X = rng.standard_normal((d, d)), rng.standard_normal((round(alpha * d**2), tokens, d))
    walls = []
    for sample in X:
        named = (sample @ S @ sample.T).argmax(axis=1)
        walls += [
            np.outer(sample[a], sample[named[a]] - sample[b]).ravel()
            for a in range(tokens)
            for b in range(tokens)
            if b != named[a]
        ]
    A = np.ascontiguousarray(np.array(walls).T)  # an entry's part in all walls, one row each
    s, total = S.ravel().copy(), np.zeros(d**2)
    slack = s @ A
    upwards = A > 0
    for sweep in range(sweeps):
        for k in rng.permutation(d**2):
            ends = s[k] - slack / A[k]
            low = ends[upwards[k]].max(initial=-np.inf)
            high = ends[~upwards[k]].min(initial=np.inf)
            sign = -1.0 if low > 0 else 1.0  # in the lower tail, where the distribution function keeps its digits
            first, last = np.sort(ndtr([sign * low, sign * high]))
            new = sign * ndtri(first + rng.random() * (last - first))
            slack += (new - s[k]) * A[k]
            s[k] = new
        if sweep >= burn:
            total += s
    return 1 - float(total @ S.ravel()) / ((sweeps - burn) * d**2)
