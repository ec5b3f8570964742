r"""Pairs of tokens as features of a matrix: what an attention layer sees of its weights.

A sample is T tokens $x_a$ of dimension d. The scores of a symmetric S are

    h_ab = Tr[Z_ab S],    Z_ab = (x_a x_b^T + x_b x_a^T) / (2 sqrt d) - delta_ab I / sqrt d,    a <= b,

of variance $(1 + \delta_{ab})|S|_F^2/d$. The features here are $Z_{ab}/\sqrt{1 + \delta_{ab}}$, or orthonormal
combinations of these, so that all measurements of a sample have one variance. Nothing of size n d^2 is stored: both
products are a product of all tokens with a d x d matrix. [boncoraglio2025bayes]

Where keys and queries differ S is not symmetric, and every ordered pair is a feature (`OrderedPairs`).
"""

from __future__ import annotations

import functools

import numpy as np


def pairs(T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The indices a <= b of the T (T + 1)/2 pairs of tokens, and sqrt(1 + delta_ab) of each."""
    first, second = np.triu_indices(T)
    return first, second, np.where(first == second, np.sqrt(2.0), 1.0)


class TokenPairs:
    """The features of n samples of T tokens, `X` (n, T, d); `basis` (k x T (T + 1)/2) holds orthonormal rows.

    Measurements are counted sample by sample, k each. With `varying` false the norms of the features are said to be
    those of large d, for labels that are not linear in the measurements and so have no scale of their own.
    """

    def __init__(self, X: np.ndarray, basis: np.ndarray | None = None, varying: bool = True):
        self.X, self._varying = X, varying
        T = X.shape[1]
        self._first, self._second, self._scale = pairs(T)
        self.basis = np.eye(len(self._first)) if basis is None else basis
        # What each of the T^2 scores counts in the measurements, half of it for either order of two tokens.
        shares = np.zeros((T, T, len(self.basis)))
        shares[self._first, self._second] = (self.basis / self._scale).T / 2
        self._shares = (shares + shares.transpose(1, 0, 2)).reshape(T * T, -1) / np.sqrt(self.size)
        self._traces = self._shares[:: T + 1].sum(axis=0)

    @property
    def samples(self) -> int:
        return len(self.X) * len(self.basis)

    @property
    def size(self) -> int:
        return self.X.shape[2]

    def forward(self, S: np.ndarray) -> np.ndarray:
        """The measurements of a symmetric S (d x d), all samples one after the other."""
        n, T, d = self.X.shape
        products = (self.X.reshape(n * T, d) @ S).reshape(n, T, d)
        scores = np.matmul(products, self.X.transpose(0, 2, 1)).reshape(n, T * T)
        return (scores @ self._shares - np.trace(S) * self._traces).ravel()

    def adjoint(self, g: np.ndarray) -> np.ndarray:
        """The sum of all features times g, d x d: that of $X^T G X$ over samples, G (T x T) made of g."""
        n, T, d = self.X.shape
        weights = g.reshape(n, -1)
        G = (weights @ self._shares.T).reshape(n, T, T)
        total = self.X.reshape(n * T, d).T @ np.matmul(G, self.X).reshape(n * T, d)
        total.flat[:: d + 1] -= weights.sum(axis=0) @ self._traces
        return (total + total.T) / 2

    @functools.cached_property
    def _norms(self) -> np.ndarray:
        r"""By the scalar products of the features of a sample, from those of its tokens, $K = X X^T$:

        $\langle Z_{ab}, Z_{cd}\rangle = [(K_{ac}K_{bd} + K_{ad}K_{bc})/2 - \delta_{cd}K_{ab} - \delta_{ab}K_{cd}
        + d\,\delta_{ab}\delta_{cd}]/d$.
        """
        d, a, b = self.size, self._first, self._second
        K = np.matmul(self.X, self.X.transpose(0, 2, 1))
        own = (a == b).astype(float)
        products = (
            K[:, a[:, None], a] * K[:, b[:, None], b] + K[:, a[:, None], b] * K[:, b[:, None], a]
        ) / 2 + d * np.outer(own, own)
        diagonal = K[:, a, b]
        products -= diagonal[:, :, None] * own + diagonal[:, None, :] * own[:, None]
        products /= d * np.outer(self._scale, self._scale)
        return np.sqrt(np.einsum("ka,nab,kb->nk", self.basis, products, self.basis, optimize=True)).ravel()

    def norms(self) -> np.ndarray:
        """The Frobenius norm of each feature, about sqrt(d/2)."""
        return self._norms if self._varying else np.full(self.samples, np.sqrt((self.size + 1) / 2))


class OrderedPairs:
    r"""An operator on the entries of a d x d matrix S: the scores of each token a of `X` (n, T, d),

    $\sum_b P_{kb} (x_a^T S x_b - \delta_{ab} \mathrm{Tr}\, S)$ with orthonormal rows P (`basis`, k x T), divided by the
    norms of their features. The trace is taken off because a mean feature would stand out of the noise. With `varying`
    false the norms are said to be d, those of large d, for labels that are not linear in the measurements.
    """

    def __init__(self, X: np.ndarray, basis: np.ndarray, varying: bool = True):
        self.X, self.basis, self._keys = X, basis, np.matmul(basis, X)
        if not varying:
            self.norms = np.full((*X.shape[:2], len(basis)), float(X.shape[2]))
            return
        squares = np.einsum("nad,nad->na", X, X), np.einsum("nkd,nkd->nk", self._keys, self._keys)
        products = np.matmul(X, self._keys.transpose(0, 2, 1))
        share = basis.T
        self.norms = np.sqrt(
            squares[0][:, :, None] * squares[1][:, None, :] + share * (X.shape[2] * share - 2 * products)
        )

    @property
    def samples(self) -> int:
        return self.norms.size

    @property
    def dimension(self) -> int:
        return self.X.shape[2] ** 2

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix."""
        return self.X.shape[2], self.X.shape[2]

    def forward(self, signal: np.ndarray) -> np.ndarray:
        n, T, d = self.X.shape
        S = signal.reshape(d, d)
        products = (self.X.reshape(n * T, d) @ S).reshape(n, T, d)
        scores = np.matmul(products, self._keys.transpose(0, 2, 1)) - self.basis.T * np.trace(S)
        return (scores / self.norms).reshape(-1, 1)

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        n, T, d = self.X.shape
        weights = residual.reshape(self.norms.shape) / self.norms
        total = self.X.reshape(n * T, d).T @ np.matmul(weights, self._keys).reshape(n * T, d)
        total.flat[:: d + 1] -= np.sum(weights * self.basis.T)
        return total.reshape(-1, 1)
