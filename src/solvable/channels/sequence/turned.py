r"""One attention layer of rank r: the projections of the tokens, up to a turn that they share.

The label softmax(z z^T) of z (T x r) shows the rows of $K = z z^T$ up to their means, K P with $P = I - 11^T/T$. With
$z_c$ a root of P K P, of rank r for more than r tokens, $z = K P z_c (z_c^T z_c)^{-1}$ up to a common turn or
reflection O. So with rows of precision $\Lambda = V^{-1}$ and u one such z,

    Z ~ int dO exp(Tr[O^T u^T omega Lambda] - Tr[Lambda O^T u^T u O] / 2 - Tr[Lambda omega^T omega] / 2),

an integral over O(r): over an angle for r = 2, `angles`, by weighted draws for more, `turns`. Where nothing is known
E[z_k z_k^T | y] = K/r for each direction, and a small overlap grows by $E|K/r - I|^2 = T(T + 1)/r$.
[troiani2025fundamental]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import Linearisation
from solvable.channels.sequence.angles import average_over_angles
from solvable.channels.sequence.base import Moments, SequenceChannel
from solvable.channels.sequence.turns import average_over_turns

MOST_RANK = 5
_DRAWS = 8
"""The logarithm of the number of weighted draws of a sheet of O(3), to base 2; for each rank more twice as many."""


class TurnedChannel(SequenceChannel):
    """The label of a layer of `rank` directions, two or more, on more `tokens` than these."""

    shared, mirrored, steady = 1, True, True

    def __init__(self, tokens: int, rank: int = 2):
        self.tokens, self.rank = tokens, rank

    @property
    def turned(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.rank

    @property
    def weighted(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.rank > 2

    @property
    def fineness_on_data(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 8.0 if self.weighted else 1.0

    @property
    def projections(self) -> int:
        return self.rank

    @property
    def definition(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "rank": self.rank}

    def __repr__(self) -> str:
        return f"TurnedChannel({self.tokens}, {self.rank})"

    @property
    def numbers(self) -> int:
        """Those that a label shows: T r but for the turn."""
        return self.tokens * self.rank - self.rank * (self.rank - 1) // 2

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """In closed form where nothing is known."""
        r, T = self.rank, self.tokens
        if np.any(M) or basis.shape[1] < r:
            return super().linearisation(M, basis)
        return Linearisation(basis, np.zeros((r, r)), T * (T + 1) / r * np.eye(r**2), 1e-12)

    def pinned_mass(self, directions: np.ndarray) -> float:
        """Without noise labels pin all directions, or none."""
        return float(self.numbers) if directions.shape[1] == self.rank else 0.0

    def most_growth(self, directions: np.ndarray) -> float:
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """z itself stands for all that are turned."""
        return z

    def observe(self, y: np.ndarray) -> np.ndarray:
        """One z (n, T, r) that has the label, from the logarithms of labels (n, T, T)."""
        return root_of(y - y.mean(axis=-1, keepdims=True), self.rank)

    def moments(
        self, shown: np.ndarray, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        n, T, r = Omega.shape
        precision = np.linalg.inv(V)
        A = np.einsum("nti,nta,ab->nib", shown, Omega, precision, optimize=True)
        G = np.einsum("nti,ntj->nij", shown, shown)
        if r == 2:
            # The narrowest width of the weight.
            width = float(np.sqrt(np.linalg.eigvalsh(V)[0] / T / 4))
            found = average_over_angles(A, G, precision, width / fineness)
        else:
            found = average_over_turns(A, G, precision, _DRAWS + r - 3 + round(np.log2(fineness)), draw)
        mean = (shown @ found.first).reshape(n, -1)
        products = np.einsum("nti,niajb,nsj->ntasb", shown, found.second, shown, optimize=True)
        known = np.einsum("nta,ab,ntb->n", Omega, precision, Omega, optimize=True)
        log_Z = found.log_Z - known / 2 - T / 2 * np.linalg.slogdet(2 * np.pi * V)[1]
        return Moments(log_Z, mean, products.reshape(n, T * r, T * r) - mean[:, :, None] * mean[:, None, :])


def root_of(centred: np.ndarray, rank: int) -> np.ndarray:
    """z (n, T, r), up to a turn, of K P (n, T, T)."""
    both = centred - centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((both + both.swapaxes(1, 2)) / 2)
    sizes = np.sqrt(np.maximum(values[:, -rank:], np.finfo(float).tiny))
    return centred @ (vectors[:, :, -rank:] / sizes[:, None, :])
