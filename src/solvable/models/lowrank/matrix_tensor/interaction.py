r"""A matrix and a tensor as the map from four factors to the field of each, and what is made of the fields.

The factors u, v, x, y are four directions of one array W: column k holds factor k in its own rows, scaled so that
W^T W / d is the diagonal matrix of the squared norms |w_k|^2 / N_k. With $N_1$ the size of u and the precisions
$1/\Delta_m$, $1/\Delta_t$ in front the fields are

    B_u = Y v / (sqrt(N1) Dm) + T(., x, y) / (N1 Dt)       B_v = Y^T u / (sqrt(N1) Dm)
    B_x = T(u, ., y) / (N1 Dt)                              B_y = T(u, x, .) / (N1 Dt)

less the part that an earlier estimate with the responses r_k caused (`feedback`),

    u: [a_v r_v / Dm + a_x a_y (r_x <y,y'> + r_y <x,x'>) / Dt] u'       v: r_u v' / Dm
    x: a_y (r_u <y,y'> + r_y <u,u'>) x' / Dt                            y: a_x (r_u <x,x'> + r_x <u,u'>) y' / Dt

with a prime for the earlier and <.,.> for the mean product. [tabanelli2025computational, lesieur2017statistical]
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np

from solvable.engine.interactions import Interaction, Past
from solvable.engine.sides import SignalStep
from solvable.models.lowrank.matrix_tensor.equations import Couplings

_MOST = 1e12
"""The precision that stands for an infinite one on data."""
_OPPOSITE = 0.5
"""Minus the cosine beyond which a factor has turned round."""
_BLOCK_BYTES = 2**21
"""The part of the tensor that both of its contractions go through at once."""
_FORGOTTEN = 1e-12
"""The weight below which an earlier estimate is left out of the Onsager term."""


class Factors(NamedTuple):
    """The four factors, each a vector."""

    u: np.ndarray
    v: np.ndarray
    x: np.ndarray
    y: np.ndarray


class Blocks:
    """Where each factor is in the d x 4 array of all: its rows, and the scale of its column."""

    def __init__(self, sizes: tuple[int, ...]):
        ends = np.cumsum((0, *sizes))
        self.sizes, self.dimension = sizes, int(ends[-1])
        self._places = [(slice(int(ends[k]), int(ends[k + 1])), k) for k in range(4)]
        self._scales = [math.sqrt(self.dimension / size) for size in sizes]

    def pack(self, parts: tuple[np.ndarray, ...]) -> np.ndarray:
        """Four vectors as columns, each in its own rows, not scaled."""
        whole = np.zeros((self.dimension, 4))
        for place, part in zip(self._places, parts, strict=True):
            whole[place] = part
        return whole

    def unpack(self, whole: np.ndarray) -> list[np.ndarray]:
        """The four vectors of `pack`."""
        return [whole[place] for place in self._places]

    def estimate(self, factors: tuple[np.ndarray, ...]) -> np.ndarray:
        """Four factors as the array W of the loop."""
        return self.pack(tuple(scale * part for scale, part in zip(self._scales, factors, strict=True)))

    def factors(self, W: np.ndarray) -> Factors:
        """The four factors of an array W; what noise has put into the rows of other factors is left out."""
        return Factors(*(W[place] / scale for scale, place in zip(self._scales, self._places, strict=True)))


@dataclasses.dataclass(frozen=True, eq=False)
class MatrixAndTensor(Interaction):
    """The fields of four factors, from the matrix (N1 x N2) and the tensor (N1 x N3 x N4) of one data set."""

    matrix: np.ndarray
    tensor: np.ndarray
    couplings: Couplings

    @functools.cached_property
    def blocks(self) -> Blocks:
        return Blocks((*self.matrix.shape, *self.tensor.shape[1:]))

    @functools.cached_property
    def precisions(self) -> tuple[float, float]:
        """1/Dm and 1/Dt."""
        return min(self.couplings.matrix, _MOST), min(self.couplings.tensor, _MOST)

    @property
    def dimension(self) -> int:
        return self.blocks.dimension

    def forward(self, signal: np.ndarray) -> np.ndarray:
        return self.blocks.pack(self.fields(self.blocks.factors(signal)))

    def fields(self, factors: Factors) -> Factors:
        """The fields of given factors, from one pass over the tensor."""
        contracted, field_of_y = self._both(factors)
        return Factors(
            self._from_matrix(factors.v) + contracted @ factors.x,
            self._from_matrix(factors.u, transposed=True),
            factors.u @ contracted,
            field_of_y,
        )

    def field(self, name: str, factors: Factors) -> np.ndarray:
        """The field of one factor."""
        if name == "u":
            return self._from_matrix(factors.v) + self._contracted(factors.y) @ factors.x
        if name == "v":
            return self._from_matrix(factors.u, transposed=True)
        return factors.u @ self._contracted(factors.y) if name == "x" else self._field_of_y(factors)

    def _from_matrix(self, vector: np.ndarray, transposed: bool = False) -> np.ndarray:
        g, seen = self.precisions[0], self.matrix.T if transposed else self.matrix
        return seen @ (g / math.sqrt(len(self.matrix)) * vector) if g > 0 else np.zeros(len(seen))

    def _contracted(self, y: np.ndarray) -> np.ndarray:
        """T(., ., y) / (N1 Dt)."""
        h, shape = self.precisions[1], self.tensor.shape
        flat = self.tensor.reshape(-1, shape[2])
        return (flat @ (h / shape[0] * y)).reshape(shape[:2]) if h > 0 else np.zeros(shape[:2])

    def _both(self, factors: Factors) -> tuple[np.ndarray, np.ndarray]:
        """T y, of which those of u and x are made, and T(u, x): block by block, while a block is in the cache."""
        h, shape = self.precisions[1], self.tensor.shape
        contracted, field = np.zeros(shape[0] * shape[1]), np.zeros(shape[2])
        if h > 0:
            flat, y = self.tensor.reshape(-1, shape[2]), h / shape[0] * factors.y
            pairs = np.multiply.outer(h / shape[0] * factors.u, factors.x).ravel()
            rows = max(1, _BLOCK_BYTES // (flat.itemsize * shape[2]))
            for start in range(0, len(flat), rows):
                block = slice(start, start + rows)
                contracted[block] = flat[block] @ y
                field += pairs[block] @ flat[block]
        return contracted.reshape(shape[:2]), field

    def _field_of_y(self, factors: Factors) -> np.ndarray:
        h, shape = self.precisions[1], self.tensor.shape
        pairs = np.multiply.outer(h / shape[0] * factors.u, factors.x).ravel()
        return pairs @ self.tensor.reshape(-1, shape[2]) if h > 0 else np.zeros(shape[2])

    def feedback(self, signal: np.ndarray, earlier: np.ndarray, response: np.ndarray) -> np.ndarray:
        past = Recollection(self)
        past.follow(earlier, signal, response, 1.0)
        return past.onsager(signal)

    def memory(self) -> Recollection:
        return Recollection(self)

    def strength(self, V: np.ndarray) -> np.ndarray:
        g, h = self.precisions
        return Couplings(g, h, self.couplings.sizes).information(V)


class Recollection(Past):
    """The Onsager term of all earlier estimates at once: for each the weights of its four responses.

    A factor that was not renewed in a step has a response of zero there, and keeps the memory of its last renewal.
    """

    def __init__(self, interaction: MatrixAndTensor):
        super().__init__(interaction)
        self._blocks, self._precisions = interaction.blocks, interaction.precisions
        self._earlier = [np.empty((0, size)) for size in self._blocks.sizes]
        self._weights = np.empty((0, 4))

    def onsager(self, W: np.ndarray) -> np.ndarray:
        n_u, n_v, n_x, n_y = self._blocks.sizes
        a_v, a_x, a_y = n_v / n_u, n_x / n_u, n_y / n_u
        g, h = self._precisions
        r_u, r_v, r_x, r_y = self._weights.T
        now = self._blocks.factors(W)
        u, x, y = (self._earlier[k] @ now[k] / len(now[k]) for k in (0, 2, 3))
        caused = (
            g * a_v * r_v + h * a_x * a_y * (r_x * y + r_y * x),
            g * r_u,
            h * a_y * (r_u * y + r_y * u),
            h * a_x * (r_u * x + r_x * u),
        )
        return self._blocks.pack(tuple(share @ past for share, past in zip(caused, self._earlier, strict=True)))

    def follow(self, W: np.ndarray, g: np.ndarray, response: np.ndarray, damping: float) -> None:
        new = damping * np.diagonal(response)
        weights = np.concatenate([self._weights * np.where(new > 0, 1 - damping, 1.0), new[None]])
        kept = (weights > _FORGOTTEN).any(axis=1)
        self._weights = weights[kept]
        stacks = zip(self._earlier, self._blocks.factors(W), strict=True)
        self._earlier = [np.concatenate([past, now[None]])[kept] for past, now in stacks]


class GaussianFactors:
    r"""The posterior mean of each factor, B / (1 + A), under a Gaussian prior.

    The precision solves $A^2 + A = |B|^2/N$, since $B = A w^* + \sqrt A z$. With A from the norms of the other factors
    instead, the norms run into a cycle where the noise is weak.

    Where it is weak another cycle is stable even with damping: two factors whose signs do not fit turn each other
    round at every step. A pair that turns has one of the two turned back, after which their signs fit.
    """

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        self._last: Factors | None = None

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        fields = self.blocks.unpack(B)
        A = np.array([0.5 * (math.sqrt(1 + 4 * float(field @ field) / len(field)) - 1) for field in fields])
        means = self._with_fitting_signs(Factors(*(field / (1 + a) for field, a in zip(fields, A, strict=True))))
        return SignalStep(self.blocks.estimate(means), np.diag(1 / (1 + A)), np.diag(A))

    def _with_fitting_signs(self, means: Factors) -> Factors:
        """The means, with v or y turned where its whole pair turned since the last step."""
        last, self._last = self._last, means
        if last is None:
            return means
        u, v, x, y = (_turned(now, before) for now, before in zip(means, last, strict=True))
        if u and v:
            means = means._replace(v=-means.v)
        elif x and y:
            means = means._replace(y=-means.y)
        self._last = means
        return means


def _turned(now: np.ndarray, before: np.ndarray) -> bool:
    """Whether a vector points the other way than before."""
    return float(now @ before) < -_OPPOSITE * float(np.linalg.norm(now) * np.linalg.norm(before))
