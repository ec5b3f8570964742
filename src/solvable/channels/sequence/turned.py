r"""One attention layer of rank two: the projections of the tokens, up to a turn of the plane that they share.

The label softmax(z z^T) of z (T x 2) shows the rows of $K = z z^T$ up to their means, K P with $P = I - 11^T/T$. With
$z_c$ a root of P K P, of rank two for three tokens and more, $z = K P z_c (z_c^T z_c)^{-1}$ up to a common turn or
reflection O. So with rows of precision $\Lambda = V^{-1}$ and u one such z,

    Z ~ int dO exp(Tr[O^T u^T omega Lambda] - Tr[Lambda O^T u^T u O] / 2 - Tr[Lambda omega^T omega] / 2),

an integral over an angle, for turns and for reflections, by the trapezoidal rule. Where nothing is known E[z z^T | y] =
K/2 for each direction, and a small overlap grows by $E|K/2 - I|^2 = T(T + 1)/2$. [troiani2025fundamental]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import Linearisation
from solvable.channels.sequence.base import Moments, SequenceChannel

RANK = 2
_SPACING = 0.6
"""Of angles, in units of the narrowest width of the weight."""
_LEAST, _MOST, _ROWS = 24, 4096, 2**21


class TurnedChannel(SequenceChannel):
    """The label of a layer of rank two on `tokens` tokens, at least three."""

    even = mirrored = True

    def __init__(self, tokens: int):
        self.tokens = tokens

    @property
    def projections(self) -> int:
        return RANK

    @property
    def definition(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "rank": RANK}

    def __repr__(self) -> str:
        return f"TurnedChannel({self.tokens})"

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """In closed form where nothing is known."""
        if np.any(M) or basis.shape[1] < RANK:
            return super().linearisation(M, basis)
        T = self.tokens
        return Linearisation(basis, np.zeros((RANK, RANK)), T * (T + 1) / RANK * np.eye(RANK**2), 1e-12)

    def pinned_mass(self, directions: np.ndarray) -> float:
        """A label is 2 T numbers but for the turn: without noise they pin both directions, or none."""
        return 2.0 * self.tokens - 1 if directions.shape[1] == RANK else 0.0

    def most_growth(self, directions: np.ndarray) -> float:
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """z itself stands for all that are turned."""
        return z

    def observe(self, y: np.ndarray) -> np.ndarray:
        """One z (n, T, 2) that has the label, from the logarithms of labels (n, T, T)."""
        return root_of(y - y.mean(axis=-1, keepdims=True))

    def moments(
        self, shown: np.ndarray, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        narrowest = np.sqrt(np.linalg.eigvalsh(V)[0] / self.tokens / 4)
        count = int(np.clip(np.ceil(2 * np.pi * fineness / (_SPACING * narrowest)), _LEAST, _MOST))
        rows = max(1, _ROWS // (8 * count))
        parts = [_moments(shown[i : i + rows], Omega[i : i + rows], V, count) for i in range(0, len(Omega), rows)]
        return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def root_of(centred: np.ndarray) -> np.ndarray:
    """z (n, T, 2), up to a turn, of K P (n, T, T)."""
    both = centred - centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((both + both.swapaxes(1, 2)) / 2)
    sizes = np.sqrt(np.maximum(values[:, -RANK:], np.finfo(float).tiny))
    return centred @ (vectors[:, :, -RANK:] / sizes[:, None, :])


def _moments(u: np.ndarray, Omega: np.ndarray, V: np.ndarray, count: int) -> Moments:
    n, T, _ = Omega.shape
    angle = 2 * np.pi * np.arange(count) / count
    c, s = np.cos(angle), np.sin(angle)
    turns = np.stack([c, -s, s, c], 1).reshape(-1, RANK, RANK)
    turns = np.concatenate([turns, turns * np.array([1.0, -1.0])])
    inverse = np.linalg.inv(V)
    gram = np.einsum("nti,ntj->nij", u, u)
    along = np.einsum("nti,nta,ab->nib", u, Omega, inverse, optimize=True)
    flat = turns.reshape(len(turns), -1)
    squares = np.einsum("kia,ab,kjb->kij", turns, inverse, turns).reshape(len(turns), -1)
    log_p = along.reshape(n, -1) @ flat.T - gram.reshape(n, -1) @ squares.T / 2
    top = log_p.max(axis=1, keepdims=True)
    p = np.exp(log_p - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    first = (p @ flat).reshape(n, RANK, RANK)
    second = (p @ (flat[:, :, None] * flat[:, None, :]).reshape(len(turns), -1)).reshape(n, *[RANK] * 4)
    mean = (u @ first).reshape(n, -1)
    products = np.einsum("nti,niajb,nsj->ntasb", u, second, u, optimize=True).reshape(n, T * RANK, T * RANK)
    known = np.einsum("nta,ab,ntb->n", Omega, inverse, Omega, optimize=True)
    log_norm = -T / 2 * np.linalg.slogdet(2 * np.pi * V)[1]
    log_Z = top[:, 0] + np.log(total[:, 0] / len(turns)) - known / 2 + log_norm
    return Moments(log_Z, mean, products - mean[:, :, None] * mean[:, None, :])
