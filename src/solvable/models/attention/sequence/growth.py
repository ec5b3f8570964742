r"""How fast small overlaps grow on data: the largest eigenvalue of message passing linearised where nothing is known.

With $G_\mu$ the second moments of the projections of a sample given its label, less the identity, a step of the linear
iteration on g (n, T, r) is $g \to G (X X^T g - g)$. Its largest eigenvalue is $\alpha/\alpha_{weak}$ for large d, above
a bulk of radius $\sqrt{\alpha/\alpha_{weak}}$: no overlap with the truth is looked at.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.sequence.base import second_moments
from solvable.models.attention.sequence.model import DeepAttention

_STEPS, _LAST = 120, 20


def measured_growth(model: DeepAttention, alpha: float, d: int, seed: int) -> float:
    """The factor by which a step multiplies small overlaps, on one data set of dimension d."""
    rng = np.random.default_rng(seed)
    data, channel = model.sample(rng, d, alpha=alpha), model.channel
    n, T, r = len(data.X), model.tokens, model.directions
    nothing, one = np.zeros((n, T, r)), np.eye(r)
    G = second_moments(channel.moments(channel.observe(data.y), nothing, one), one, T, r)
    rows = data.X.reshape(n * T, d)
    g, factors = rng.standard_normal((n, T * r)), []
    for _ in range(_STEPS):
        field = rows @ (rows.T @ g.reshape(n * T, r))
        new = np.einsum("nij,nj->ni", G, field.reshape(n, T * r) - g)
        factors.append(float(np.vdot(g, new) / np.vdot(g, g)))
        g = new / np.linalg.norm(new)
    return float(np.mean(factors[-_LAST:]))
