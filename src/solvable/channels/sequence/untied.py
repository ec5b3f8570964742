r"""One attention layer of one direction of keys and one of queries: what its label shows of both, in one integral.

With $z_t = x_t\cdot w_Q/\sqrt d$ and $u_t = x_t\cdot w_K/\sqrt d$ the label is $softmax(z u^T)$, row by row. It shows
the rank-one matrix $Y = z v^T$, $v = u - \bar u$: the directions of z and v up to a common sign, and the product P of
their lengths. What is left is the sign, how P is split, $z = \pm s \sqrt P \hat z$ and $v = \pm \sqrt P \hat v / s$,
and the mean $\bar u$, which is Gaussian given the rest. So with r = (query, key), rows of precision $\Lambda = V^{-1}$,

    Z ~ sum_+- int ds/s  s^T s^-(T-1)  int d(mean u)  exp(-1/2 sum_t (r_t - omega_t)^T Lambda (r_t - omega_t)) .

Where nothing is known $E|z|^2 = 1 + P$ and $E|v|^2 = P$ given Y, and a small overlap of (query, key) grows by

    (T - 1) [[T + 1, T], [T, T - 1]] :    alpha_weak = 1 / ((T - 1)(T + sqrt(T^2 + 1))) .
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from solvable.channels.base import Linearisation
from solvable.channels.sequence.base import Moments, SequenceChannel

_NODES, _TRIALS, _REACH = 161, 9, 9.0
_ROWS = 512


class Product(NamedTuple):
    """Y = z v^T of each sample: unit vectors `query`, `key` (n, T), of a common sign, and `size` P (n,)."""

    query: np.ndarray
    key: np.ndarray
    size: np.ndarray


class UntiedChannel(SequenceChannel):
    """The label of a layer of untied keys and queries on `tokens` tokens: projections (query, key)."""

    shared, mirrored = 2, True

    def __init__(self, tokens: int):
        self.tokens = tokens

    @property
    def projections(self) -> int:
        return 2

    @property
    def definition(self) -> dict[str, Any]:
        return {"tokens": self.tokens}

    def __repr__(self) -> str:
        return f"UntiedChannel({self.tokens})"

    @property
    def growth(self) -> np.ndarray:
        """The map of small overlaps (query, key)."""
        T = self.tokens
        return (T - 1.0) * np.array([[T + 1.0, T], [T, T - 1.0]])

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """In closed form where nothing is known of either."""
        if np.any(M) or basis.shape[1] < 2:
            return super().linearisation(M, basis)
        T = self.tokens
        # E G_ab G_cd summed over pairs of tokens at [a, c, b, d].
        easy = np.zeros((2, 2, 2, 2))
        for a, b in np.ndindex(2, 2):
            easy[a, a, b, b] = self.growth[a, b]
        easy[0, 1, 0, 1] = easy[1, 0, 1, 0] = (T - 1.0) / T
        easy[0, 1, 1, 0] = easy[1, 0, 0, 1] = T - 1.0
        both = np.kron(basis, basis)
        return Linearisation(basis, np.zeros((2, 2)), both.T @ easy.reshape(4, 4) @ both, 1e-12)

    def pinned_mass(self, directions: np.ndarray) -> float:
        """A label is a matrix of rank one, T + (T - 1) - 1 numbers: without noise they pin both directions, or none."""
        return 2.0 * self.tokens - 2 if directions.shape[1] == 2 else 0.0

    def most_growth(self, directions: np.ndarray) -> float:
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> Product:
        return product_of(split_matrix(z))

    def observe(self, y: np.ndarray) -> Product:
        """From the logarithms of labels (n, T, T)."""
        return product_of(y - y.mean(axis=-1, keepdims=True))

    def moments(
        self, shown: Product, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        parts = [
            _moments(Product(*(part[i : i + _ROWS] for part in shown)), Omega[i : i + _ROWS], V, fineness)
            for i in range(0, len(Omega), _ROWS)
        ]
        return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def split_matrix(u: np.ndarray) -> np.ndarray:
    """Y = u_Q v^T (n, T, T), v the keys without their mean, of u (n, T, 2)."""
    return u[:, :, :1] * (u[:, :, 1] - u[:, :, 1].mean(axis=1, keepdims=True))[:, None, :]


def product_of(Y: np.ndarray) -> Product:
    """The parts of matrices Y of rank one."""
    left, size, right = np.linalg.svd(Y)
    return Product(left[..., 0], right[..., 0, :], size[..., 0])


def _moments(shown: Product, Omega: np.ndarray, V: np.ndarray, fineness: float) -> Moments:
    n, T, _ = Omega.shape
    c = np.linalg.inv(V)[1, 1]
    count = round(_NODES * fineness)
    low, high = _bounds(shown, Omega, V)
    log_s = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, count)
    distance, x = _distance(shown, Omega, V, log_s)
    log_p = np.tile(log_s, 2) - 0.5 * distance
    top = log_p.max(axis=1, keepdims=True)
    p = np.exp(log_p - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    # z_t = Z query_t and u_t = U key_t + m: all moments are those of (Z, U, m).
    mean = np.einsum("nj,nja->na", p, x)
    x = x - mean[:, None]
    spread = np.einsum("nj,nja,njb->nab", p, x, x, optimize=True)
    spread[:, 2, 2] += 1 / (c * T)
    turn = np.zeros((n, T, 2, 3))
    turn[:, :, 0, 0], turn[:, :, 1, 1], turn[:, :, 1, 2] = shown.query, shown.key, 1.0
    turn = turn.reshape(n, 2 * T, 3)
    covariance = turn @ spread @ turn.transpose(0, 2, 1)
    step = (high - low) / (count - 1)
    log_norm = -T / 2 * np.linalg.slogdet(2 * np.pi * V)[1] + 0.5 * np.log(2 * np.pi / (c * T))
    # dz dv = P^(T-1) dP d(log s) and directions, of z s^T and of v s^-(T-1): what is the same for all s is left out.
    log_Z = top[:, 0] + np.log(total[:, 0] * step) + log_norm + (T - 1.5) * np.log(shown.size)
    return Moments(log_Z, np.einsum("nka,na->nk", turn, mean), covariance)


def _distance(shown: Product, Omega: np.ndarray, V: np.ndarray, log_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sum_t (r_t - omega_t)^T Lambda (r_t - omega_t) at the best mean of u, and (Z, U, m), at s of both signs."""
    T = Omega.shape[1]
    inverse = np.linalg.inv(V)
    a, b, c = inverse[0, 0], inverse[0, 1], inverse[1, 1]
    root, s = np.sqrt(shown.size)[:, None], np.exp(log_s)
    w, k = Omega[..., 0], Omega[..., 1]
    zw, zk = np.sum(shown.query * w, 1)[:, None], np.sum(shown.query * k, 1)[:, None]
    vw, vk = np.sum(shown.key * w, 1)[:, None], np.sum(shown.key * k, 1)[:, None]
    zv = np.sum(shown.query * shown.key, 1)[:, None]
    z_mean, w_mean, k_mean = shown.query.mean(1)[:, None], w.mean(1)[:, None], k.mean(1)[:, None]
    Z, U = (np.concatenate([length, -length], 1) for length in (s * root, root / s))
    # With the mean m of u at its best, m = mean(k) - (b/c)(mean(z) - mean(w)); then its variance is 1/(c T).
    m = k_mean - b / c * (Z * z_mean - w_mean)
    zz = Z**2 - 2 * Z * zw + np.sum(w**2, 1)[:, None]
    # u - k = U v + m - k
    uu = U**2 - 2 * U * vk + np.sum(k**2, 1)[:, None] + T * m**2 - 2 * m * T * k_mean
    zu = Z * U * zv + m * T * Z * z_mean - Z * zk - U * vw - m * T * w_mean + np.sum(w * k, 1)[:, None]
    return a * zz + 2 * b * zu + c * uu, np.stack([Z, U, m], -1)


def _bounds(shown: Product, Omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log s beyond which |z| = s sqrt(P), or |v| = sqrt(P) / s, is too far from its Gaussian to count.

    The distance is at least that of z alone, |z - w|^2 / V_00, and that of v alone from what is centred of k. What
    counts is within `_REACH`^2 of the least distance: message passing may come by fields that no s is near to.
    """
    half = np.log(shown.size) / 2
    centred = Omega - Omega.mean(axis=1, keepdims=True) * np.array([0.0, 1.0])
    along = [np.abs(np.sum(part * centred[..., k], 1)) for k, part in enumerate((shown.query, shown.key))]
    across = [np.sum(centred[..., k] ** 2, 1) - along[k] ** 2 for k in range(2)]

    def within(least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius = [np.sqrt(V[k, k] * _REACH**2 + np.maximum(V[k, k] * least - across[k], 0.0)) for k in range(2)]
        (z_low, z_high), (v_low, v_high) = (
            (np.log(np.maximum(along[k] - radius[k], 1e-300)), np.log(along[k] + radius[k])) for k in range(2)
        )
        return np.maximum(z_low - half, half - v_high), np.minimum(z_high - half, half - v_low)

    # If the two intervals do not meet, the least distance is between them.
    low, high = within(np.zeros(len(Omega)))
    trial = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _TRIALS)
    return within(_distance(shown, Omega, V, trial)[0].min(axis=1))
