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

A block of one direction, the only one that a target of one projection has, is the textbook's scalar problem
[lu2020phase, mondelli2017fundamental]: $q = 1 - m$ is the root in (0, 1) of
$\alpha (1 - q) E[G^2 / (1 + q G)] = 1$, the bulk ends at the minimum of $k + \alpha E[R]$ over $k = 1/m$, and the
asymmetric method has $q = (\gamma^2 - \gamma)/(\gamma^2 + \alpha E[G^3])$. It is solved as such, at all alphas
together: a hundred times faster than the equation in matrices, which has the same solution. The matrix equations are
those of [kovacevic2025spectral] and [defilippis2025optimal].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.base import LabelLaw
from solvable.models.index.spectral.blocks import NOTHING, Block
from solvable.numerics.roots import golden_section, regula_falsi

_NEWTON_STEPS = 200
_CURVE_STEPS = 30
_EDGE_STEPS = 80
_EDGE_SECTIONS = 40
_NEARLY_EQUAL = 1e-3
_BELOW_ONE = 1 - 2.0**-53


class BlockSpectrum(NamedTuple):
    """What the spectral method makes of one copy of a block, at each alpha.

    `overlap` C = W*^T B/d and `self_overlap` P = B^T B/d (..., s, s) of the eigenvector B at `outlier`, in a common
    scale; both zero below the threshold. `bulk_edge` is the right end of the bulk. `larger` eigenvalues lie above the
    outlier: they belong to directions outside the block, seen through its labels.
    """

    overlap: np.ndarray
    self_overlap: np.ndarray
    outlier: np.ndarray
    bulk_edge: np.ndarray
    larger: np.ndarray

    @property
    def learned(self) -> np.ndarray:
        """Whether there is an outlier."""
        return np.trace(self.self_overlap, axis1=-2, axis2=-1) > 0

    @property
    def posterior_map(self) -> np.ndarray:
        """The matrix A for which B A is the posterior mean of the weights given B: P^-1 C^T."""
        P = np.where(self.learned[..., None, None], self.self_overlap, np.eye(self.overlap.shape[-1]))
        return np.linalg.solve(P, np.swapaxes(self.overlap, -1, -2))

    @property
    def posterior_overlap(self) -> np.ndarray:
        """Q = C P^-1 C^T: the overlap of B A with the truth and with itself."""
        Q = self.overlap @ self.posterior_map
        return (Q + np.swapaxes(Q, -1, -2)) / 2


def block_spectrum(law: LabelLaw, block: Block, kind: str, alpha: np.ndarray, edge: bool = True) -> BlockSpectrum:
    """The spectrum of the operator `kind` in `block` of `law`, at every alpha; `bulk_edge` is NaN unless asked for."""
    alpha = np.asarray(alpha, float)
    solve = _in_one_direction if block.size == 1 else _in_several_directions
    found = solve(law, block, kind, np.ravel(alpha), edge)
    return BlockSpectrum(*(np.reshape(part, alpha.shape + part.shape[1:]) for part in found))


def _in_one_direction(law: LabelLaw, block: Block, kind: str, alpha: np.ndarray, edge: bool) -> BlockSpectrum:
    """The spectrum at each alpha (A,) by scalar equations."""
    weight, G = law.weight, block.G[:, 0, 0]
    square = weight * G**2
    strength = square.sum()
    gamma = alpha * strength
    learned = (gamma > 1) & (strength > NOTHING)
    there = alpha[learned]
    C, P, larger = np.zeros_like(alpha), np.zeros_like(alpha), np.zeros(len(alpha), int)
    if kind == "asymmetric":
        C[learned] = 1.0
        P[learned] = (gamma[learned] ** 2 + there * (square @ G)) / (gamma[learned] * (gamma[learned] - 1))
        bulk_edge = np.sqrt(gamma)
        outlier = np.where(learned, gamma, bulk_edge)
        R = weight * G
    else:
        q = regula_falsi(
            lambda q, alpha: 1 - alpha * (1 - q) * ((1 / (1 + q[:, None] * G)) @ square),
            np.zeros_like(there),
            _BELOW_ONE,
            there,
            tolerance=5e-16,
            precision=3e-16,
        ).x
        C[learned] = P[learned] = q
        bulk_edge = _edge_in_one_direction(weight, G, alpha, C) if edge else np.full(len(alpha), np.nan)
        outlier = np.where(learned, 1.0, bulk_edge)
        R = weight * G / (1 + q[:, None] * G)
    if law.G.shape[1] > 1:
        # Of all directions seen through this block's labels, with strengths E[G R], these are stronger than its own.
        others = np.linalg.eigvalsh(np.tensordot(R, law.G, 1))
        larger[learned] = np.sum(others > (R @ G)[..., None] * (1 + _NEARLY_EQUAL), -1)
    return BlockSpectrum(C[:, None, None], P[:, None, None], outlier, bulk_edge, larger)


def _edge_in_one_direction(weight: np.ndarray, G: np.ndarray, alpha: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The minimum of 1/m + alpha E[T / (1 - m T)], a convex function of 1/m, at each alpha.

    It lies between m = 1 - q, where the function is 1, and 1/T_max, where it has a pole.
    """
    second = np.maximum(1 + G, 1e-300)
    top = _largest_T(weight, second)
    if top <= 0:
        return np.zeros(len(alpha))
    # Zero, but for the quadrature behind the law: without it the function is not 1 at m = 1.
    offset = weight @ G

    def bulk(log_m: np.ndarray) -> np.ndarray:
        m = np.exp(log_m)
        return 1 / m + alpha * ((G / (second - m[:, None] * G)) @ weight - offset)

    edge = bulk(golden_section(bulk, np.log1p(-q), np.full(len(alpha), -np.log(top)), _EDGE_SECTIONS).middle)
    return np.where(alpha == 0, 0.0, edge)


def _in_several_directions(law: LabelLaw, block: Block, kind: str, alpha: np.ndarray, edge: bool) -> BlockSpectrum:
    """The spectrum at each alpha (A,) by equations of s x s matrices."""
    s = block.size
    F = _pairs(law.weight, block.G, block.G)
    values, vectors = np.linalg.eigh(F)
    gamma = alpha * values[-1]
    learned = (gamma > 1) & (values[-1] > NOTHING)
    if kind == "symmetric":
        points = [_symmetric(law, block, float(a), bool(there), edge) for a, there in zip(alpha, learned, strict=True)]
        columns = zip(*points, strict=True) if points else (np.empty((0, s, s)), *np.empty((3, 0)))
        Q, outlier, bulk_edge, larger = (np.array(column) for column in columns)
        return BlockSpectrum(Q, Q, outlier, bulk_edge, larger)
    # The top eigenvector is a positive matrix, up to its sign.
    C = vectors[:, -1].reshape(s, s) * np.sign(np.trace(vectors[:, -1].reshape(s, s)))
    P, larger, there = np.zeros((len(alpha), s, s)), np.zeros(len(alpha), int), alpha[learned][:, None, None]
    cubic = np.tensordot(law.weight, block.G @ C.T @ block.G @ C @ block.G, 1)
    source = (there * values[-1]) ** 2 * (C.T @ C) + there * cubic
    operator = (there * values[-1]) ** 2 * np.eye(s * s) - there * F
    P[learned] = np.linalg.solve(operator, source.reshape(-1, s * s, 1)).reshape(-1, s, s)
    # Eigenvalues grow with alpha in proportion, so those above the outlier are the same at every alpha.
    others = np.linalg.eigvalsh(_pairs(law.weight, law.G, block.G))
    larger[learned] = np.sum(others > values[-1] * (1 + _NEARLY_EQUAL))
    bulk_edge = np.sqrt(np.maximum(gamma, 0.0))
    return BlockSpectrum(learned[:, None, None] * C, P, np.where(learned, gamma, bulk_edge), bulk_edge, larger)


def _symmetric(
    law: LabelLaw, block: Block, alpha: float, learned: bool, edge: bool
) -> tuple[np.ndarray, float, float, int]:
    """Q, the outlier, the edge of the bulk and the number of larger eigenvalues at one alpha."""
    bulk = _Bulk(law.weight, block.G, alpha)
    k = bulk.at_one() if learned else np.eye(block.size)
    bulk_edge = bulk.edge(k) if edge else np.nan
    if not learned:
        return np.zeros_like(k), bulk_edge, bulk_edge, 0
    # The eigenvalues of C -> lambda C - alpha E[Sigma C R] rise with lambda: a negative one at 1 has yet to cross zero.
    # There it is the same as C m^-1 - alpha E[G C R], which vanishes at Q even where the law has E[G] = 0 roughly only.
    rising = np.kron(np.eye(law.G.shape[1]), k) - alpha * _pairs(law.weight, law.G, bulk.response(k))
    larger = int(np.sum(np.linalg.eigvalsh(rising) < -_NEARLY_EQUAL))
    return np.eye(block.size) - np.linalg.inv(k), 1.0, bulk_edge, larger


def _largest_T(weight: np.ndarray, second: np.ndarray) -> float:
    """The largest value of T = 1 - 1/second over the labels."""
    T = 1 - 1 / np.maximum(second, 1e-300)
    top = T.max()
    # A largest value that has no weight lies in the far tail, where T goes on towards 1.
    return float(top) if weight[top - 1e-9 < T].sum() > 1e-10 else 1.0


def _pairs(weight: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The matrix of C -> E[A C B] for symmetric A (L, r, r) and B (L, s, s), acting on C (r x s) written row by row."""
    r, s = A.shape[1], B.shape[1]
    means = A.reshape(len(A), -1).T @ (weight[:, None] * B.reshape(len(B), -1))
    return means.reshape(r, r, s, s).transpose(0, 2, 1, 3).reshape(r * s, r * s)


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
        self._top = _largest_T(weight, values[:, -1])
        # Zero, but for the quadrature behind the law: without it k = I would not solve the equation at 1.
        self._offset = np.tensordot(weight, G, 1)

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
