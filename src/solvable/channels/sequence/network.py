"""Deep attention as a function of the projections of its tokens: the projections that the last layer sees, its label.

A layer sees `width` directions in a row: those of its tied keys and queries, or its query and its key.
"""

from __future__ import annotations

import numpy as np


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def log_attention(u: np.ndarray, tied: bool = True) -> np.ndarray:
    """The logarithms of softmax(u u^T), or of softmax(u_Q u_K^T), (n, T, T), of u (n, T, width)."""
    queries, keys = (u, u) if tied else (u[..., :1], u[..., 1:])
    return log_softmax(queries @ keys.swapaxes(-1, -2))


def last_projections(z: np.ndarray, residual: float, width: int = 1, tied: bool = True) -> np.ndarray:
    """u_L (n, T, width) of projections z (n, T, L width)."""
    while z.shape[-1] > width:
        own, rest = z[..., :width], z[..., width:]
        z = residual * rest + np.exp(log_attention(own, tied)) @ rest
    return z
