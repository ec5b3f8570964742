r"""How far each layer of a network in training is from its end.

$S_l(t) = \langle A_l(t), A_l(end)\rangle / (|A_l(t)||A_l(end)|)$ with $A_l = W_l^T W_l$ of the weights $W_l$ (d x k) of
an attention layer, so that a rotation of its rows does not count. Layers that are learned one after another reach one
at different times. [troiani2025fundamental]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.core.errors import bad_parameter


def similarity_to_end(weights: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """S at each time, of the weights (times, d, k) of one layer; copies must have been kept, not views that move on."""
    weights = np.asarray(weights, float)
    if weights.ndim != 3 or not len(weights):
        raise bad_parameter("weights", f"array of shape {weights.shape}", "of shape (times, d, k)")
    A = np.einsum("tdk,tdl->tkl", weights, weights)
    sizes = np.linalg.norm(A, axis=(1, 2))
    if not np.all(sizes > 0):
        raise bad_parameter("weights", "zero at some time", "not all zero at any time")
    return np.einsum("tkl,kl->t", A, A[-1]) / (sizes * sizes[-1])


def settled_at(similarity: np.ndarray, level: float) -> int:
    """The first time from which on S stays at or above `level`."""
    below = np.flatnonzero(np.asarray(similarity) < level)
    return int(below[-1]) + 1 if len(below) else 0
