r"""Deep attention: the attention matrix of the last of L layers, each of one direction of tied keys and queries.

With $z_l = X w_l/\sqrt d$ in $R^T$, $B_0 = I$, $u_l = B_{l-1} z_l$ and

    B_l = [c I + softmax(u_l u_l^T)] B_{l-1}        (rows of the softmax sum to one; c is the residual strength)

the label is $softmax(u_L u_L^T)$, which shows $\pm u_L$. Given the projections of the earlier layers
$z_L = \pm B_{L-1}^{-1} u_L$ is known up to the sign, so that

    Z = int dz_1 .. dz_{L-1} sum_+- prod_l N(z_l; omega_l, V) / det B_{L-1},

an integral over (L - 1) T numbers: a trapezoidal rule in two dimensions, weighted draws of $N(\omega, V)$ in more. Each
factor of B is a positive diagonal matrix times a positive definite one, $c D + e^{u u^T}$, so that its determinant is
positive and elimination needs no pivots. [troiani2025fundamental]
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import Linearisation
from solvable.channels.sequence.base import Moments, SequenceChannel, even_part, pairs, second_moments
from solvable.channels.sequence.hidden import drawn, nodes_of
from solvable.channels.sequence.network import last_projections
from solvable.channels.sequence.tables import softmax, solved, upper
from solvable.numerics.batches import in_batches

_REACH_LABELS = 7.0
_ROWS = 64


class LayersChannel(SequenceChannel):
    """The label of `layers` layers on `tokens` tokens, with a residual connection of strength `residual`."""

    shared, mirrored = 1, True

    def __init__(self, layers: int, tokens: int, residual: float):
        self.layers, self.tokens, self.residual = layers, tokens, float(residual)

    @property
    def projections(self) -> int:
        return self.layers

    @property
    def definition(self) -> dict[str, Any]:
        return {"layers": self.layers, "tokens": self.tokens, "residual": self.residual}

    def __repr__(self) -> str:
        return f"LayersChannel({self.layers}, {self.tokens}, {self.residual:g})"

    @property
    def hidden(self) -> int:
        """The number of projections of a sample that are integrated over."""
        return (self.layers - 1) * self.tokens

    @property
    def weighted(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return drawn(self.hidden)

    def pinned_mass(self, directions: np.ndarray) -> float:
        """A label is T numbers that depend on every layer: without noise they pin all layers, or none."""
        return float(self.tokens) if directions.shape[1] == self.layers else 0.0

    def most_growth(self, directions: np.ndarray) -> float:
        r"""$E|E[z z^T|y] - I|^2 \le E|z z^T - I|^2 = T(T+1)$ for a direction, whatever is known of others."""
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """u_L (n, T) of projections z (n, T, L)."""
        return last_projections(z, self.residual)[..., 0]

    def observe(self, y: np.ndarray) -> np.ndarray:
        """u_L up to its sign, from the logarithms of labels (n, T, T)."""
        return signless(y)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """Two tokens and two layers of which nothing is known have labels of two numbers: a rule without scatter."""
        if self.weighted or self.tokens > 2 or np.any(M) or basis.shape[1] < self.layers:
            return super().linearisation(M, basis)
        fine, coarse = self._at_rest(28, 1.5), self._at_rest(20, 1.0)
        error = float(np.abs(fine - coarse).max())
        both = np.kron(basis, basis)
        return Linearisation(basis, np.zeros((self.layers,) * 2), both.T @ fine @ both, error)

    def _at_rest(self, points: int, fineness: float) -> np.ndarray:
        """E[G (x) G] over the plane of u, in coordinates s along (1, 1) and t along (1, -1): s, t > 0 by symmetry.

        The density of u has the width 1 + c along the first, and features as narrow as c along the second.
        """
        c = self.residual
        reach, width = _REACH_LABELS * (1 + c), min(1 + c, 2 * c + 0.2)
        x = (np.arange(points) + 0.5) / points
        s, t = reach * x, width * np.sinh(x * np.arcsinh(reach / width))
        weight = np.outer(np.full(points, reach), np.sqrt(width**2 + t**2) * np.arcsinh(reach / width)) / points**2
        S, D = (part.ravel() / np.sqrt(2) for part in np.meshgrid(s, t, indexing="ij"))
        labels, nothing = np.stack([S + D, S - D], 1), np.zeros((len(S), 2, self.layers))
        found = self.moments(labels, nothing, np.eye(self.layers), fineness=fineness)
        weight = weight.ravel() * np.exp(found.log_Z)
        G = second_moments(found, np.eye(self.layers), 2, self.layers)
        easy = np.einsum("n,nij->ij", weight / weight.sum(), pairs(G, G, 2, self.layers))
        return even_part(easy, np.eye(self.layers), self.mirrors)

    def moments(
        self, shown: np.ndarray, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        T, early = self.tokens, self.layers - 1
        V_early, cross = V[:early, :early], V[:early, early]
        slope = np.linalg.solve(V_early, cross)
        V_left = float(V[early, early] - cross @ slope)
        ratio = float(np.sqrt(V_left / np.linalg.eigvalsh(V_early)[-1]))
        nodes, log_weights = nodes_of((T, early), ratio, draw, fineness)
        v, a = np.linalg.eigh(V_early)
        log_norm = -T / 2 * np.log(2 * np.pi * V_left)
        constants = (a * np.sqrt(v)) @ a.T, slope, 1 / V_left, nodes, log_weights, log_norm
        program = _program(self.layers, self.residual)
        with jax.enable_x64(True):
            fixed = [jnp.asarray(part) for part in constants]
            found = in_batches(lambda *rows: program(*fixed, *rows), shown, Omega, batch=_ROWS, alone=False)
        top, even, odd = found
        return _assembled(top, even, odd, T, early)


def _assembled(top: np.ndarray, even: np.ndarray, odd: np.ndarray, T: int, early: int) -> Moments:
    """The moments of all projections of a sample, token by token, from the sums over nodes."""
    n, k = len(top), T * early
    total, even, odd = even[:, 0], even[:, 1:] / even[:, :1], odd / even[:, :1]
    mean, second = np.empty((n, T, early + 1)), np.empty((n, T, early + 1, T, early + 1))
    mean[:, :, :early], mean[:, :, early] = even[:, :k].reshape(n, T, early), odd[:, :T]
    pairs_of = k * (k + 1) // 2
    second[:, :, :early, :, :early] = _square(even[:, k : k + pairs_of], k).reshape(n, T, early, T, early)
    second[:, :, early, :, early] = _square(even[:, k + pairs_of :], T)
    mixed = odd[:, T:].reshape(n, T, early, T)
    second[:, :, :early, :, early], second[:, :, early, :, :early] = mixed, mixed.transpose(0, 3, 1, 2)
    size = T * (early + 1)
    mean, second = mean.reshape(n, size), second.reshape(n, size, size)
    return Moments(top + np.log(total), mean, second - mean[:, :, None] * mean[:, None, :])


def _square(upper: np.ndarray, size: int) -> np.ndarray:
    """Symmetric matrices (n, size, size) from their upper entries."""
    found = np.empty((len(upper), size, size))
    row, column = np.triu_indices(size)
    found[:, row, column] = found[:, column, row] = upper
    return found


def signless(log_y: np.ndarray) -> np.ndarray:
    r"""$\pm u$ (n, T) from the logarithms of $softmax(u u^T)$, (n, T, T).

    Rows without their means are $u v^T$ with $v = u - \bar u$: a rank-one matrix of size $\sigma = |u||v|$, which fixes
    the length of u, given its direction, by $\sigma = |u|^2 |\hat u - mean|$.
    """
    centred = log_y - log_y.mean(axis=-1, keepdims=True)
    left, sizes, _ = np.linalg.svd(centred)
    direction = left[..., 0]
    spread = np.linalg.norm(direction - direction.mean(axis=-1, keepdims=True), axis=-1)
    length = np.sqrt(sizes[..., 0] / np.maximum(spread, np.finfo(float).tiny))
    return direction * length[:, None]


@functools.lru_cache(maxsize=32)
def _program(layers: int, residual: float) -> Any:
    """The compiled posterior of rows (u, Omega); arrays over the nodes of a row are innermost, for speed."""

    def of_one(root: Any, slope: Any, precision: Any, nodes: Any, log_w: Any, log_norm: Any, u: Any, w: Any):
        T, early = len(u), layers - 1
        shift = jnp.einsum("tbk,ab->tak", nodes, root)
        z = [[w[t, a] + shift[t, a] for t in range(T)] for a in range(early)]
        scores, factors = list(z), []
        for number in range(early):
            own = scores[number]
            A = softmax([[one * other for other in own] for one in own])
            factors.append(A)
            for later in range(number + 1, early):
                scores[later] = [
                    residual * scores[later][t] + sum(A[t][s] * scores[later][s] for s in range(T)) for t in range(T)
                ]
        last, determinant = [jnp.broadcast_to(u[t], log_w.shape) for t in range(T)], 1.0
        for A in reversed(factors):
            last, own = solved(A, residual, last, T)
            determinant = determinant * own
        centre = [w[t, early] + sum((shift[t, a] * slope[a] for a in range(early)), 0.0) for t in range(T)]
        product = precision * sum(last[t] * centre[t] for t in range(T))
        squares = precision * sum(last[t] ** 2 + centre[t] ** 2 for t in range(T))
        log_p = log_w - 0.5 * squares + jnp.abs(product)
        top = jnp.max(log_p)
        # Both signs at once: the sum of their weights, and the difference.
        likelier, rest = jnp.exp(log_p - top) / determinant, jnp.exp(-2 * jnp.abs(product))
        both, odd = likelier * (1 + rest), likelier * (1 - rest) * jnp.sign(product)
        hidden = [z[a][t] for t in range(T) for a in range(early)]
        even_terms = [jnp.ones_like(product), *hidden, *upper(hidden), *upper(last)]
        even = jnp.stack(even_terms) @ both
        return top + log_norm, even, jnp.stack([*last, *(h * y for h in hidden for y in last)]) @ odd

    def program(*arguments: Any):
        constants, rows = arguments[:-2], arguments[-2:]
        return jax.lax.map(lambda row: of_one(*constants, *row), rows)

    return jax.jit(program)
