"""The directions that a label's second moments mix, and those they keep apart.

A spectral method sees a label y only through G(y) = E[z z^T|y] - I, an r x r matrix. In a suitable orthonormal basis
all G(y) have the same blocks on their diagonal and nothing beside them, and some blocks may be copies of one another:

    sign(z1 z2)     G = (2/pi) y [[0, 1], [1, 0]]       two blocks, (z1 + z2)/sqrt2 and (z1 - z2)/sqrt2
    z1^2 + z2^2     G = (y/2 - 1) I                     one block, in two copies

The matrices that commute with every G(y) tell: they are block-diagonal themselves, with one number for each pair of
copies. The operators of the spectral methods commute with them too, exactly and at any size, so each kind of block is
a problem of its own; and an eigenvector says nothing of the rotation among the copies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.base import LabelLaw

NOTHING = 1e-11
"""E[G^2] below this is rounding: the second moments of z say nothing, at any alpha."""

_COMMUTES = 1e-8
_GAP = 0.03
_DRAWS = 8


class Block(NamedTuple):
    """One kind of block: `bases` (copies, r, s) holds orthonormal columns for each copy, `G` (L, s, s) what each label
    says there: bases[a]^T G(y) bases[a] for every copy a."""

    bases: np.ndarray
    G: np.ndarray

    @property
    def copies(self) -> int:
        """How many blocks of this kind there are."""
        return len(self.bases)

    @property
    def size(self) -> int:
        """The number of directions s of one copy."""
        return self.bases.shape[2]

    def lift(self, matrix: np.ndarray) -> np.ndarray:
        """The r x r matrices that are `matrix` (..., s, s) on each copy, and zero elsewhere."""
        return np.einsum("ais,...st,ajt->...ij", self.bases, matrix, self.bases)

    def lift_between(self, i: int, j: int) -> np.ndarray:
        """The r x r matrix that maps copy j onto copy i, and is zero elsewhere."""
        return self.bases[i] @ self.bases[j].T


def label_blocks(law: LabelLaw) -> list[Block]:
    """The blocks of a label's second moments, one entry for each kind.

    Laws are known to a few digits, so a matrix counts as commuting with G when the commutator's mean square is below
    1e-8 of that of G. Where G is zero all directions are copies of one block, and one projection is one block.
    """
    if law.G.shape[1] == 1:
        return [Block(np.ones((1, 1, 1)), law.G)]
    commuting = _commuting(law)
    kinds: list[list[np.ndarray]] = []
    for basis in _irreducible(commuting):
        for kind in kinds:
            between = kind[0].T @ commuting @ basis
            weights = np.linalg.norm(between, axis=(1, 2))
            # Between copies a commuting matrix is a number times the rotation from one basis to the other.
            if kind[0].shape == basis.shape and np.sum(weights**2) > 0.5:
                left, _, right = np.linalg.svd(between[np.argmax(weights)])
                kind.append(basis @ (left @ right).T)
                break
        else:
            kinds.append([basis])
    return [_block(law, np.stack(kind)) for kind in kinds]


def _block(law: LabelLaw, bases: np.ndarray) -> Block:
    return Block(bases, np.einsum("ais,lij,ajt->lst", bases, law.G, bases) / len(bases))


def _commuting(law: LabelLaw) -> np.ndarray:
    """An orthonormal basis (k, r, r) of the matrices that commute with G(y) for every label y.

    They are the null space of E |G U - U G|^2 as a quadratic form in U.
    """
    r = law.G.shape[1]
    square, identity = np.einsum("l,lij,ljk->ik", law.weight, law.G, law.G), np.eye(r)
    form = np.kron(square, identity) + np.kron(identity, square)
    form -= 2 * np.einsum("l,lij,lkm->ikjm", law.weight, law.G, law.G).reshape(r * r, r * r)
    values, vectors = np.linalg.eigh(form)
    return vectors[:, values <= max(_COMMUTES * np.trace(square), NOTHING)].T.reshape(-1, r, r)


def _irreducible(commuting: np.ndarray) -> list[np.ndarray]:
    """Orthonormal columns for each block, each copy apart: the eigenspaces of a typical symmetric commuting matrix.

    Two blocks can come too close in one draw to be told apart, so the draw with most blocks counts.
    """
    rng = np.random.default_rng(0)
    best: list[np.ndarray] = []
    for _ in range(_DRAWS):
        draw = np.einsum("kij,k->ij", commuting, rng.standard_normal(len(commuting)))
        values, vectors = np.linalg.eigh(draw + draw.T)
        ends = np.flatnonzero(np.diff(values) > _GAP * np.abs(values).max()) + 1
        best = max(best, np.split(vectors, ends, axis=1), key=len)
    return best
