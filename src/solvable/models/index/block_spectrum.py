r"""The spectrum of the spectral operators of one block: their outlier, the shape of its eigenvector, and the bulk.

Everything follows from the matrices G(y) of the block (s x s, with $\Sigma = I + G = E[z z^T|y]$).

**Symmetric**, $S = \sum_i x_i x_i^T \otimes T(y_i)$ with $T = G \Sigma^{-1}$. Its resolvent is I (x) m with

$$m^{-1} = \lambda I - \alpha E[R], \qquad R = T (I - m T)^{-1} = G (\Sigma - m G)^{-1},$$

and an eigenvector B (d x s) with $C = W^{*T} B/d$, $P = B^T B/d$ obeys

$$\lambda C = \alpha E[\Sigma C R], \qquad
  m^{-1} P m^{-1} - \alpha E[R P R] = m^{-1} C^T C m^{-1} + \alpha E[R C^T G C R].$$

At $\lambda = 1$, $C = P = Q := I - m$ solves both, because $G Q R = G - R$ and $E[G] = 0$: the outlier sits at 1, and
an eigenvector scaled to $B^T B/d = Q$ has the overlap Q. The equation at $\lambda = 1$ has the solution m = I as well;
the physical one is the smallest m. It is I up to the threshold $\alpha \lambda_{max}(E[G \otimes G]) = 1$.

**Asymmetric**, $L = (X X^T - I) G$, and $B = X^T G\, \Omega$ for its eigenvector: C is the top eigenvector of
$C \to \alpha E[G C G]$, its eigenvalue $\gamma$ the outlier, $\sqrt\gamma$ the radius of the bulk, and
$\gamma^2 P - \alpha E[G P G] = \gamma^2 C^T C + \alpha E[G C^T G C G]$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.models.index.label_blocks import NOTHING, Block

_NEWTON_STEPS = 200
_CURVE_STEPS = 30
_EDGE_STEPS = 80
_NEARLY_EQUAL = 1e-3


class BlockSpectrum(NamedTuple):
    """What the spectral method makes of one copy of a block.

    `overlap` C = W*^T B/d and `self_overlap` P = B^T B/d (s x s) of the eigenvector B at `outlier`, in a common scale;
    both zero below the threshold. `bulk_edge` is the right end of the bulk. `larger` eigenvalues lie above the
    outlier: they belong to directions outside the block, seen through its labels.
    """

    overlap: np.ndarray
    self_overlap: np.ndarray
    outlier: float
    bulk_edge: float
    larger: int

    @property
    def posterior_map(self) -> np.ndarray:
        """The matrix A for which B A is the posterior mean of the weights given B: P^-1 C^T."""
        return np.linalg.solve(self.self_overlap, self.overlap.T) if self.learned else np.zeros_like(self.overlap)

    @property
    def posterior_overlap(self) -> np.ndarray:
        """Q = C P^-1 C^T: the overlap of B A with the truth and with itself."""
        Q = self.overlap @ self.posterior_map
        return (Q + Q.T) / 2

    @property
    def squared_overlap(self) -> float:
        """|W*^T B|^2 / (d |B|^2): the squared cosine between the eigenvector and the truth."""
        return float(np.sum(self.overlap**2) / np.trace(self.self_overlap)) if self.learned else 0.0

    @property
    def learned(self) -> bool:
        """Whether there is an outlier."""
        return bool(np.trace(self.self_overlap) > 0)


def block_spectrum(weight: np.ndarray, G: np.ndarray, block: Block, kind: str, alpha: float) -> BlockSpectrum:
    """The spectrum of the operator `kind` in `block`; `weight` (L,) and `G` (L, r, r) are those of the whole law."""
    F = _pairs(weight, block.G, block.G)
    values, vectors = np.linalg.eigh(F)
    gamma, r, s = float(alpha * values[-1]), G.shape[1], block.size
    learned = gamma > 1 and values[-1] > NOTHING
    if kind == "asymmetric":
        edge = float(np.sqrt(max(gamma, 0.0)))
        if not learned:
            return _unlearned(s, edge)
        # The top eigenvector is a positive matrix, up to its sign.
        C = vectors[:, -1].reshape(s, s) * np.sign(np.trace(vectors[:, -1].reshape(s, s)))
        source = gamma**2 * C.T @ C + alpha * np.tensordot(weight, block.G @ C.T @ block.G @ C @ block.G, 1)
        P = np.linalg.solve(gamma**2 * np.eye(s * s) - alpha * F, source.ravel()).reshape(s, s)
        others = alpha * np.linalg.eigvalsh(_pairs(weight, G, block.G))
        return BlockSpectrum(C, P, gamma, edge, int(np.sum(others > gamma * (1 + _NEARLY_EQUAL))))
    bulk = _Bulk(weight, block.G, alpha)
    k = bulk.at_one() if learned else np.eye(s)
    edge = bulk.edge(k)
    if not learned:
        return _unlearned(s, edge)
    Q = np.eye(s) - np.linalg.inv(k)
    # The eigenvalues of C -> lambda C - alpha E[Sigma C R] rise with lambda: a negative one at 1 has yet to cross zero.
    # There it is the same as C m^-1 - alpha E[G C R], which vanishes at Q even where the law has E[G] = 0 roughly only.
    rising = np.kron(np.eye(r), k) - alpha * _pairs(weight, G, bulk.response(k))
    return BlockSpectrum(Q, Q, 1.0, edge, int(np.sum(np.linalg.eigvalsh(rising) < -_NEARLY_EQUAL)))


def _unlearned(size: int, edge: float) -> BlockSpectrum:
    return BlockSpectrum(np.zeros((size, size)), np.zeros((size, size)), edge, edge, 0)


def _pairs(weight: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The matrix of C -> E[A C B] for symmetric A (L, r, r) and B (L, s, s), acting on C (r x s) written row by row."""
    size = A.shape[1] * B.shape[1]
    return np.einsum("l,lij,lkm->ikjm", weight, A, B).reshape(size, size)


class _Bulk:
    r"""The equation of the symmetric bulk in $k = m^{-1}$: $f(k) = k + \alpha E[R] = \lambda I$.

    f is operator convex where k > T for every label, since $R = T + T (k - T)^{-1} T$, and its derivative
    $A\,dk = dk - \alpha E[R m\, dk\, m R]$ has a positive inverse down to the largest solution. So Newton's method from
    above descends to that solution. Followed to smaller lambda it ends where A is singular: the edge of the bulk.
    """

    def __init__(self, weight: np.ndarray, G: np.ndarray, alpha: float):
        self._weight, self._G, self._alpha = weight, G, alpha
        self._identity = np.eye(G.shape[1])
        self._second = G + self._identity
        values, vectors = np.linalg.eigh(self._second)
        self._root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None]) @ np.swapaxes(vectors, 1, 2)
        self._top = self._largest_T(values[:, -1])
        # Zero, but for the quadrature behind the law: without it k = I would not solve the equation at 1.
        self._offset = np.tensordot(weight, G, 1)

    def _largest_T(self, second: np.ndarray) -> float:
        T = 1 - 1 / np.maximum(second, 1e-300)
        top = T.max()
        # A largest value that has no weight lies in the far tail, where T goes on towards 1.
        return float(top) if self._weight[top - 1e-9 < T].sum() > 1e-10 else 1.0

    def response(self, k: np.ndarray) -> np.ndarray:
        """R of each label (L, s, s)."""
        R = np.linalg.solve(self._second - self._G @ np.linalg.inv(k), self._G)
        return (R + np.swapaxes(R, 1, 2)) / 2

    def _linearised(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(k), and the matrix of its derivative A (s^2 x s^2)."""
        R = self.response(k)
        f = k + self._alpha * (np.tensordot(self._weight, R, 1) - self._offset)
        Rm = R @ np.linalg.inv(k)
        return f, np.eye(k.size) - self._alpha * _pairs(self._weight, Rm, Rm)

    def _inside(self, k: np.ndarray) -> bool:
        """Whether k is above T for every label, and above zero."""
        low = np.linalg.eigvalsh(k)[0]
        if low >= 1 or low <= 0:
            return bool(low >= 1)
        return bool(np.linalg.eigvalsh(self._identity + self._root @ (k - self._identity) @ self._root).min() > 0)

    def at_one(self) -> np.ndarray:
        """The largest solution at lambda = 1."""
        k = 2 * self._identity
        for _ in range(_NEWTON_STEPS):
            f, A = self._linearised(k)
            # f(k) > 1 with a contracting derivative: k is above the largest solution, and Newton descends from it.
            if np.linalg.eigvalsh(f)[0] > 1 and np.linalg.eigvals(A).real.min() > 0:
                break
            k = 2 * k
        for _ in range(_NEWTON_STEPS):
            dk = np.linalg.solve(A, (self._identity - f).ravel()).reshape(k.shape)
            k = k + (dk + dk.T) / 2
            if np.abs(dk).max() < 1e-13 * np.abs(k).max():
                break
            f, A = self._linearised(k)
        return k

    def edge(self, k: np.ndarray) -> float:
        """The right end of the bulk; k is the solution at lambda = 1.

        Along the solutions lambda is a convex function of Tr k, and smooth through its minimum, which is the edge.
        """
        if self._alpha == 0 or self._top <= 0:
            return 0.0
        slope, tangent = self._tangent(k)
        if not self._physical(k) or (self._top >= 1 and np.linalg.eigvalsh(k)[0] < 1 + 1e-12):
            return 1.0
        high, low, step = float(np.trace(k)), 0.0, 1e-3 * float(np.trace(k))
        for _ in range(_EDGE_STEPS):
            trial = max(high - step, (low + high) / 2)
            found = self._on_curve(trial, k + (trial - high) * tangent)
            if found is None or not self._physical(found):
                low, step = trial, (high - trial) / 2
            else:
                new_slope, tangent = self._tangent(found)
                # The slope is nearly linear in the trace close to its zero; go just short of it.
                step = 0.98 * (high - trial) * new_slope / max(slope - new_slope, 1e-300)
                high, k, slope = trial, found, new_slope
            if slope < 1e-9 or high - low < 1e-12 * high:
                break
        return float(np.trace(self._linearised(k)[0]) / len(k))

    def _physical(self, k: np.ndarray) -> bool:
        """Whether k is on the branch that comes from large lambda, where A has a positive inverse."""
        return bool(np.linalg.eigvals(self._linearised(k)[1]).real.min() > 0)

    def _bordered(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(k), and the matrix of (dk, dlambda) -> (A dk - dlambda I, Tr dk): regular where A is not."""
        f, A = self._linearised(k)
        unit = self._identity.reshape(-1, 1)
        return f, np.block([[A, -unit], [unit.T, np.zeros((1, 1))]])

    def _tangent(self, k: np.ndarray) -> tuple[float, np.ndarray]:
        """d lambda and dk for each unit of Tr k, along the solutions."""
        found = np.linalg.solve(self._bordered(k)[1], np.eye(k.size + 1)[-1])
        return float(found[-1]), found[:-1].reshape(k.shape)

    def _on_curve(self, trace: float, k: np.ndarray) -> np.ndarray | None:
        """The k of this trace with f(k) a multiple of I, from a guess; None if there is none above T."""
        for _ in range(_CURVE_STEPS):
            if not self._inside(k):
                return None
            f, bordered = self._bordered(k)
            value = np.trace(f) / len(k)
            change = np.linalg.solve(bordered, np.append((value * self._identity - f).ravel(), trace - np.trace(k)))
            dk = change[:-1].reshape(k.shape)
            k = k + (dk + dk.T) / 2
            if np.abs(dk).max() < 1e-11 * np.abs(k).max():
                return k if self._inside(k) else None
        return None
