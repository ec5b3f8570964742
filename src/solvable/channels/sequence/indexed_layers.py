r"""Deep attention of extensive rank: the attention matrix of the last of L layers, as a function of their scores.

With the symmetric T x T scores $h_l$ of the layers, $B_0 = I$, $u_l = B_{l-1} h_l B_{l-1}^T$ and

    B_l = [c I + softmax(beta u_l)] B_{l-1}        (rows of the softmax sum to one; c is the residual strength)

the label is $softmax(\beta u_L)$. Every B maps 1 to a multiple of 1, so that a multiple of $11^T$ in any of the scores
changes nothing: a layer is seen through the k = T (T + 1)/2 - 1 other coordinates $z_l$ of $h_{ab}/\sqrt{1 +
\delta_{ab}}$, all of one variance, in the place of tokens. The label shows those of $u_L$. Given the earlier layers
$h_L = B^{-1} u_L B^{-T}$ is known, with B = B_{L-1}, and

    Z = (1 + c)^{2(L-1)} int dz_1 .. dz_{L-1} prod_l N(z_l; omega_l, V) / det(B)^{T+1}.

For $c \ge 1$ each factor of B has a positive determinant. The law of labels is that of $-h_L$ with labels -u_L: with
two layers, averages that mix them are odd, and vanish. [boncoraglio2025bayes]
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.sequence.base import Moments, SequenceChannel
from solvable.channels.sequence.hidden import drawn, nodes_of
from solvable.channels.sequence.tables import Table, softmax, solved, upper
from solvable.numerics.batches import in_batches
from solvable.numerics.subspaces import complement

_ROWS = 64
_DRAWN, _FINEST = 1e-3, 1e-6
"""The smallest V that weighted draws, and runs, resolve, and that of the trapezoidal rule."""


@functools.cache
def entries(T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""The indices a <= b of scores, and orthonormal rows (k, T (T + 1)/2) of $h_{ab}/\sqrt{1 + \delta_{ab}}$ that
    labels show: all but $1/\sqrt{1 + \delta_{ab}}$."""
    first, second = np.triu_indices(T)
    hidden = np.where(first == second, np.sqrt(0.5), 1.0)
    return first, second, complement((hidden / np.linalg.norm(hidden))[:, None]).T


def scores_of(z: np.ndarray, tokens: int) -> np.ndarray:
    """Scores (n, T, T, L), up to a multiple of 11^T, of coordinates z (n, k, L)."""
    first, second, rows = entries(tokens)
    scale = np.where(first == second, np.sqrt(2.0), 1.0)
    h = np.empty((len(z), tokens, tokens, z.shape[2]))
    h[:, first, second] = np.einsum("nkl,km->nml", z, rows * scale)
    h[:, second, first] = h[:, first, second]
    return h


def coordinates(u: np.ndarray) -> np.ndarray:
    """Those that labels show, (n, k), of symmetric u (n, T, T)."""
    first, second, rows = entries(u.shape[-1])
    scale = np.where(first == second, np.sqrt(0.5), 1.0)
    return (u[:, first, second] * scale) @ rows.T


def last_scores(h: np.ndarray, residual: float, beta: float) -> np.ndarray:
    """u_L (n, T, T) of scores h (n, T, T, L)."""
    *early, last = np.moveaxis(h, -1, 0)
    B = np.eye(h.shape[1])
    for own in early:
        u = beta * (B @ own @ np.swapaxes(B, -1, -2))
        A = np.exp(u - u.max(axis=-1, keepdims=True))
        A /= A.sum(axis=-1, keepdims=True)
        B = residual * B + A @ B
    return B @ last @ np.swapaxes(B, -1, -2)


class IndexedLayersChannel(SequenceChannel):
    """The label of `layers` layers, two or more, on samples of `sample_tokens` tokens."""

    def __init__(self, layers: int, sample_tokens: int, residual: float, beta: float):
        self.layers, self.sample_tokens = layers, sample_tokens
        self.residual, self.beta = float(residual), float(beta)
        self.tokens = sample_tokens * (sample_tokens + 1) // 2 - 1

    @property
    def projections(self) -> int:
        return self.layers

    @property
    def definition(self) -> dict[str, Any]:
        return {
            "layers": self.layers,
            "tokens": self.sample_tokens,
            "residual": self.residual,
            "beta": self.beta,
            "extensive": True,
        }

    def __repr__(self) -> str:
        return f"IndexedLayersChannel({self.layers}, {self.sample_tokens}, {self.residual:g}, {self.beta:g})"

    @property
    def weighted(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return drawn((self.layers - 1) * self.tokens)

    @property
    def resolution(self) -> float:
        """Where labels pin all layers the trapezoidal rule is as good at any scale; weighted draws are not."""
        return _DRAWN if self.weighted else _FINEST

    @property
    def row_resolution(self) -> float:
        return _DRAWN

    @property
    def mirrored(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """With two layers, by the sign of the last."""
        return self.layers == 2

    def pinned_mass(self, directions: np.ndarray) -> float:
        """A label is k numbers that depend on every layer: without noise they pin all layers, or none."""
        return float(self.tokens) if directions.shape[1] == self.layers else 0.0

    def most_growth(self, directions: np.ndarray) -> float:
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """The coordinates (n, k) of u_L."""
        return coordinates(last_scores(scores_of(z, self.sample_tokens), self.residual, self.beta))

    def observe(self, y: np.ndarray) -> np.ndarray:
        """The coordinates of u_L, (n, k)."""
        return np.asarray(y, float)

    def moments(
        self, shown: np.ndarray, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        k, early = self.tokens, self.layers - 1
        V_early, cross = V[:early, :early], V[:early, early]
        slope = np.linalg.solve(V_early, cross)
        V_left = float(V[early, early] - cross @ slope)
        ratio = float(np.sqrt(V_left / np.linalg.eigvalsh(V_early)[-1]))
        nodes, log_weights = nodes_of((k, early), ratio, draw, fineness)
        v, a = np.linalg.eigh(V_early)
        log_norm = -k / 2 * np.log(2 * np.pi * V_left) + 2 * early * np.log1p(self.residual)
        constants = (a * np.sqrt(v)) @ a.T, slope, 1 / V_left, nodes, log_weights, log_norm
        program = _program(self.layers, self.sample_tokens, self.residual, self.beta)
        with jax.enable_x64(True):
            fixed = [jnp.asarray(part) for part in constants]
            found = in_batches(lambda *rows: program(*fixed, *rows), shown, Omega, batch=_ROWS, alone=False)
        log_Z, sums = found
        size = k * self.layers
        mean, second = sums[:, :size], np.empty((len(sums), size, size))
        row, column = np.triu_indices(size)
        second[:, row, column] = second[:, column, row] = sums[:, size:]
        return Moments(log_Z, mean, second - mean[:, :, None] * mean[:, None, :])


def _table(z: list[Any], T: int) -> Table:
    """The scores of k coordinates."""
    first, second, rows = entries(T)
    table: Table = [[None] * T for _ in range(T)]
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        scale = np.sqrt(2.0) if a == b else 1.0
        table[a][b] = table[b][a] = sum(scale * rows[t, number] * z[t] for t in range(len(z)))
    return table


def _coordinates(H: Table, T: int) -> list[Any]:
    """The k coordinates of scores."""
    first, second, rows = entries(T)
    parts = [H[a][b] * (np.sqrt(0.5) if a == b else 1.0) for a, b in zip(first, second, strict=True)]
    return [sum(rows[t, e] * parts[e] for e in range(len(parts))) for t in range(len(rows))]


def _through(F: Table, H: Table, T: int) -> Table:
    """F H F^T."""
    half = [[sum(F[a][c] * H[c][b] for c in range(T)) for b in range(T)] for a in range(T)]
    return [[sum(half[a][c] * F[b][c] for c in range(T)) for b in range(T)] for a in range(T)]


@functools.lru_cache(maxsize=32)
def _program(layers: int, T: int, residual: float, beta: float) -> Any:
    """The compiled posterior of rows (u, Omega): log Z, and the means and mean products of all coordinates, those of a
    sample's coordinate together. Arrays over the nodes of a row are innermost, for speed."""

    def of_one(root: Any, slope: Any, precision: Any, nodes: Any, log_w: Any, log_norm: Any, u: Any, w: Any):
        k, early = len(u), layers - 1
        shift = jnp.einsum("tbk,ab->tak", nodes, root)
        z = [[w[t, a] + shift[t, a] for t in range(k)] for a in range(early)]
        scores, factors = [_table(own, T) for own in z], []
        for number in range(early):
            A = softmax([[beta * entry for entry in row] for row in scores[number]])
            factors.append(A)
            F = [[A[a][b] + residual if a == b else A[a][b] for b in range(T)] for a in range(T)]
            for later in range(number + 1, early):
                scores[later] = _through(F, scores[later], T)
        last, log_determinant = _table([u[t] for t in range(k)], T), 0.0
        H = [jnp.stack([jnp.broadcast_to(entry, log_w.shape) for entry in row]) for row in last]
        for A in reversed(factors):
            half, determinant = solved(A, residual, H, T)
            H, _ = solved(A, residual, [jnp.stack([half[b][a] for b in range(T)]) for a in range(T)], T)
            log_determinant = log_determinant + jnp.log(determinant)
        end = _coordinates([[H[a][b] for b in range(T)] for a in range(T)], T)
        centre = [w[t, early] + sum((shift[t, a] * slope[a] for a in range(early)), 0.0) for t in range(k)]
        squares = sum((end[t] - centre[t]) ** 2 for t in range(k))
        log_p = log_w - 0.5 * precision * squares - (T + 1) * log_determinant
        top = jnp.max(log_p)
        p = jnp.exp(log_p - top)
        total = jnp.sum(p)
        parts = [part for t in range(k) for part in [*(z[a][t] for a in range(early)), end[t]]]
        return top + jnp.log(total) + log_norm, jnp.stack([*parts, *upper(parts)]) @ p / total

    def program(*arguments: Any):
        constants, rows = arguments[:-2], arguments[-2:]
        return jax.lax.map(lambda row: of_one(*constants, *row), rows)

    return jax.jit(program)
