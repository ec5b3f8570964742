r"""Several layers of several directions each, by weighted draws of what the earlier layers see.

With z_l (T x w) the projections of layer l on its w directions, $B_0 = I$, $u_l = B_{l-1} z_l$ and
$B_l = [c I + softmax(s(u_l))] B_{l-1}$, the label shows $s(u_L)$ row by row, up to a mean: $s(u) = u u^T$ of tied keys
and queries, $s(u) = u_Q u_K^T$ of untied ones. Given the earlier layers $z_L = B^{-1} u_L$, B = B_{L-1}, is known but
for what a single layer would hide of it, h: a turn (`turned_layers`), or a split and a mean (`untied_layers`). So

    Z = int dz_1 .. dz_{L-1} dh prod_{l<L} N(z_l; omega_l, V) N(B^-1 u_L(h); omega_L, V) / det(B)^w .

A draw is one of the earlier layers from N(omega, V), and one of h from a law that is a member's own, close to that of h
given the earlier layers; the weight is what is left. [troiani2025fundamental]
"""

from __future__ import annotations

import abc
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.sequence.base import Moments, SequenceChannel
from solvable.channels.sequence.tables import softmax, solved
from solvable.numerics.batches import in_batches
from solvable.numerics.sobol import normal_points

_ROWS = 64
_DRAWS = 10
"""The logarithm of the number of draws, to base 2."""

Columns = list[list[Any]]
"""A number of each token, for each direction of a layer: arrays over the draws."""


class DrawnLayersChannel(SequenceChannel):
    """The label of `layers` layers of `width` directions on `tokens` tokens, residual strength `residual`."""

    weighted = True
    tied: bool = True

    def __init__(self, layers: int, tokens: int, residual: float, width: int = 2):
        self.layers, self.tokens, self.residual, self.width = layers, tokens, float(residual), width

    @property
    def projections(self) -> int:
        return self.layers * self.width

    @property
    def definition(self) -> dict[str, Any]:
        return {"layers": self.layers, "tokens": self.tokens, "residual": self.residual, "width": self.width}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.layers}, {self.tokens}, {self.residual:g})"

    @property
    @abc.abstractmethod
    def numbers(self) -> int:
        """Those that a label shows."""

    @abc.abstractmethod
    def completed(
        self, shown: Any, inverse: Any, centre: Columns, covariance: Any, precision: Any, draws: Any
    ) -> list[tuple[Columns, Any]]:
        """The last layer's projections, and the log of their weight, for each way (two sheets of turns, or one).

        `inverse` turns T rows into B^-1 times them; given the earlier layers the last is N(`centre`, `covariance`),
        with the inverse `precision`; `draws` are N(0, 1) numbers, one for each draw.
        """

    def common(self, precision: np.ndarray) -> np.ndarray:
        """The covariance (w, w) of what all tokens of the last layer share and is integrated in closed form."""
        return np.zeros((self.width, self.width))

    def pinned_mass(self, directions: np.ndarray) -> float:
        """A label depends on every layer: without noise it pins all layers, or none."""
        return float(self.numbers) if directions.shape[1] == self.projections else 0.0

    def moments(self, shown: Any, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0) -> Moments:
        T, early = self.tokens, (self.layers - 1) * self.width
        V_early, cross = V[:early, :early], V[:early, early:]
        slope = np.linalg.solve(V_early, cross)
        left = V[early:, early:] - cross.T @ slope
        power = _DRAWS + round(np.log2(fineness))
        points = normal_points(T * early + 1, power, 2000 + draw)
        nodes = np.ascontiguousarray(points[:, 1:].T.reshape(T, early, -1))
        v, a = np.linalg.eigh(V_early)
        log_norm = -T / 2 * np.linalg.slogdet(2 * np.pi * left)[1] - power * np.log(2)
        constants = (a * np.sqrt(v)) @ a.T, slope, left, np.linalg.inv(left), nodes, points[:, 0].copy()
        program = _program(self)
        with jax.enable_x64(True):
            fixed = [jnp.asarray(part) for part in constants]
            found = in_batches(lambda *rows: program(*fixed, *rows), shown, Omega, batch=_ROWS, alone=False)
        log_Z, mean, second = found
        # What is open of the last layer whatever is drawn, of all tokens alike.
        second = second.reshape(-1, T, early + self.width, T, early + self.width)
        second[:, :, early:, :, early:] += self.common(constants[3])[:, None, :]
        second = second.reshape(len(second), T * (early + self.width), -1)
        return Moments(log_Z + log_norm, mean, second - mean[:, :, None] * mean[:, None, :])


@functools.lru_cache(maxsize=32)
def _program(channel: DrawnLayersChannel) -> Any:
    """The compiled posterior of rows (what a label shows, Omega): log Z, and the means and mean products of all
    projections, token by token. Arrays over the draws of a row are innermost, for speed."""
    T, w, layers, residual = channel.tokens, channel.width, channel.layers, channel.residual
    early = (layers - 1) * w

    def attended(own: Columns) -> Any:
        queries, keys = (own, own) if channel.tied else (own[:1], own[1:])
        pairs = list(zip(queries, keys, strict=True))
        return softmax([[sum(q[t] * k[s] for q, k in pairs) for s in range(T)] for t in range(T)])

    def of_one(root: Any, slope: Any, left: Any, precision: Any, nodes: Any, draws: Any, shown: Any, omega: Any):
        shift = jnp.einsum("tbk,ab->tak", nodes, root)
        z: Columns = [[omega[t, a] + shift[t, a] for t in range(T)] for a in range(early)]
        scores, factors = list(z), []
        for number in range(layers - 1):
            A = attended(scores[number * w : (number + 1) * w])
            factors.append(A)
            for later in range((number + 1) * w, early):
                own = scores[later]
                scores[later] = [residual * own[t] + sum(A[t][s] * own[s] for s in range(T)) for t in range(T)]
        log_determinant: Any = 0.0

        def inverse(rows: list[Any]) -> list[Any]:
            nonlocal log_determinant
            for A in reversed(factors):
                rows, determinant = solved(A, residual, rows, T)
                log_determinant = log_determinant + jnp.log(determinant)
            return rows

        centre: Columns = [
            [omega[t, early + k] + sum(shift[t, a] * slope[a, k] for a in range(early)) for t in range(T)]
            for k in range(w)
        ]
        ways = channel.completed(shown, inverse, centre, left, precision, draws)
        log_p = jnp.concatenate([log_w for _, log_w in ways]) - w * jnp.tile(log_determinant, len(ways))
        last = [[jnp.concatenate([columns[k][t] for columns, _ in ways]) for t in range(T)] for k in range(w)]
        hidden = [[jnp.tile(part, len(ways)) for part in column] for column in z]
        parts = jnp.stack([column[t] for t in range(T) for column in [*hidden, *last]])
        top = jnp.max(log_p)
        p = jnp.exp(log_p - top)
        total = jnp.sum(p)
        p = p / total
        return top + jnp.log(total), parts @ p, (parts * p) @ parts.T

    def program(*arguments: Any):
        constants, rows = arguments[:6], arguments[6:]
        return jax.lax.map(lambda row: of_one(*constants, *row), rows)

    return jax.jit(program)
