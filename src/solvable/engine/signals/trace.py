r"""A symmetric matrix found by least squares over positive semidefinite matrices under a penalty on the trace.

Seen as $R = A^* + \delta Z$, Z a Gaussian symmetric matrix, A* is estimated by $(R - \theta)_+$: the eigenvalues are
lowered by theta and cut at 0. With mu the law of the eigenvalues of R, h its Hilbert transform, $f(x) = (x - \theta)_+$
and $D = \delta^2$,

    rank = int_{x > theta} mu,    K = int f mu,    Df = 2 int f h mu,
    mse = |S - A*|_F^2 / d = D (2 Df - 1) + int_{x < theta} x^2 mu + theta^2 rank.

The minimiser S of $\frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d}\mathrm{Tr}\,S$ is so
related to A* for d to infinity, with delta and theta that solve

    (E1)  2 theta (2 alpha - Df) = lambda,        (E2)  2 alpha D = mse + Delta / 2,

the sum of squared residuals over d^2 being $D (2\alpha - Df)^2$. These are the fixed points of state evolution with the
square loss: V_hat = 2 alpha - Df, q_hat = D V_hat^2 [erba2025nuclear]. A matrix of limited rank keeps only the largest
eigenvalues [girardin2026width].

Every integral is taken over x < theta, where nothing cancels as D falls: those over x > theta follow, since the
integrals of mu, x mu, h mu, 2 x h mu over the whole line are 1, E A, 0, 1, and that of $(h^2 - \pi^2\mu^2/3)\mu$ is 0.
The cut is given by Biane's u (`solvable.spectra.convolution`), of which theta is an explicit function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.engine.operators import PackedFeatures
from solvable.engine.sides import Field, Overlap, Signal, SignalStep
from solvable.numerics.batches import BATCH, in_batches
from solvable.numerics.roots import crossing
from solvable.spectra import Law
from solvable.spectra.convolution import free_sum, height
from solvable.spectra.reflected import Reflected
from solvable.spectra.upper_part import UpperPart

NODES = 100
"""Quadrature nodes on each interval of the bulk (fewer where there are many intervals)."""

_MANY = 16


class Thresholded(NamedTuple):
    r"""Integrals over the law of $(R - \theta)_+$ at given D and cut u, and how they change.

    `theta` and its derivatives in u and in D (at fixed u); `rank`, `K`, `Df`, `mse`; `H` = int_{x > theta} h mu and
    `G` = int_{x > theta} (h^2 - pi^2 mu^2 / 3) mu, which give the derivatives of the others:

        d Df = 2 G dD - 2 H dtheta,    dK = H dD - rank dtheta,
        d mse = (Df - 2 theta H + 4 D G) dD + (2 theta rank - 4 D H) dtheta.

    They follow from d mu / dD = -(h mu)' and d(h mu)/dD = (pi^2 mu^3 / 3 - h^2 mu)'. `density` is mu(theta).
    """

    theta: Any
    theta_in_u: Any
    theta_in_D: Any
    rank: Any
    K: Any
    Df: Any
    mse: Any
    H: Any
    G: Any
    density: Any


def thresholded(law: Law, D: np.ndarray, u: np.ndarray, nodes: int = NODES) -> Thresholded:
    """The integrals at arrays of D and u."""
    found = _in_batches(law, D, u, nodes)
    beyond = (found.density == 0) & (u >= float(law.ends[1]))  # no eigenvalue lies above the cut
    nothing = {name: np.where(beyond, 0.0, getattr(found, name)) for name in ("rank", "K", "Df", "H", "G")}
    return found._replace(mse=np.where(beyond, float(law.second_moment), found.mse), **nothing)


def quadrature_error(law: Law, D: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The relative error of integrals over the whole spectrum, where they are known: an estimate of that of others.

    They are those of mu, h mu, 2 x h mu and x^2 mu, here taken from the integrals at a cut beyond the spectrum. h is
    large where mu is, so that its own integral may be far off, but it only ever comes with theta, in 2 (x - theta) h.
    """
    square = float(law.second_moment) + D
    found = _in_batches(law, D, float(law.ends[1]) + 3 * np.sqrt(D), NODES)
    cross = found.Df + 2 * found.theta * found.H
    second = found.mse - float(law.second_moment) - found.theta**2 * found.rank - 2 * D * found.Df
    return np.max(np.abs([found.rank, 2 * theta * found.H, cross, second / square]), axis=0)


def overlap_and_square(
    power: float, mse: Any, D: Any, Df: Any, theta: Any, K: Any, rank: Any
) -> tuple[np.ndarray, np.ndarray]:
    r"""$\langle S, A^*\rangle/d = E A^2 - mse + e$ and $|S|_F^2/d = E A^2 - mse + 2 e$, with $e = D\,Df - \theta K$.

    For the eigenvalues of S are f(x) = x - theta or 0, also where its rank is limited, so that
    int x f = int f^2 + theta K, and E[A*|R] = x - 2 D h.
    """
    with np.errstate(invalid="ignore"):
        known, more = power - mse, D * Df - theta * K
        m, q = (np.where(rank > 0, np.maximum(known + part, 0.0), 0.0) for part in (more, 2 * more))
    return m, q


def _in_batches(law: Law, D: np.ndarray, u: np.ndarray, nodes: int) -> Thresholded:
    # A law with many intervals keeps the processor busy alone; a batch would only wait for its slowest member.
    batch = BATCH if len(law.gaps) < _MANY else 1
    return Thresholded(*in_batches(lambda D, u: _thresholded(law, D, u, nodes), D, u, batch=batch))


@jax.jit(static_argnames="nodes")
def _thresholded(law: Law, D: Any, u: Any, nodes: int) -> Thresholded:
    if len(D) == 1:  # compiles faster
        return Thresholded(*(part[None] for part in _at(law, D[0], u[0], nodes)))
    return jax.vmap(lambda D, u: _at(law, D, u, nodes))(D, u)


def _at(law: Law, D: Any, u: Any, nodes: int) -> Thresholded:
    below = free_sum(Reflected(law), D, nodes, above=-u)
    mass = jnp.where((below.weight > 0) & jnp.isfinite(below.weight), below.weight, 0.0)
    inside = D * law.smoothed(u, 1e-14 * D)[0] > 1  # whether there are eigenvalues at the cut
    v = jnp.where(inside, height(law, D, u[None])[0], 0.0)
    w = u + 1j * v
    g, c = law.stieltjes(w), 1 + D * law.stieltjes_slope(w)
    theta = u + D * jnp.real(g)
    x = jnp.where(mass > 0, -below.x, theta)  # nodes without mass lie anywhere
    h = jnp.where(mass > 0, -below.hilbert, 0.0)
    density = jnp.where(mass > 0, below.density, 0.0)
    steep = jnp.where(jnp.real(c) > 0, jnp.real(c), 1.0)  # 0 where two parts of the bulk just meet
    theta_in_u = jnp.where(inside, jnp.abs(c) ** 2 / steep, jnp.real(c))
    # With u fixed, c i dv + g dD is real.
    theta_in_D = jnp.real(g) - jnp.where(inside, jnp.imag(c) * v / (D * steep), 0.0)
    rank = 1 - jnp.sum(mass)
    Df = 1 - 2 * jnp.sum(mass * (x - theta) * h)
    return Thresholded(
        theta=theta,
        theta_in_u=theta_in_u,
        theta_in_D=theta_in_D,
        rank=rank,
        K=law.mean - theta + jnp.sum(mass * (theta - x)),
        Df=Df,
        mse=D * (2 * Df - 1) + jnp.sum(mass * x**2) + theta**2 * rank,
        H=-jnp.sum(mass * h),
        G=-jnp.sum(mass * (h**2 - jnp.pi**2 / 3 * density**2)),
        density=v / (jnp.pi * D),
    )


class TraceSignal(Signal):
    r"""A symmetric matrix sought under the penalty $\lambda\,\mathrm{Tr}\,S/d$ on the mean squared loss, S >= 0 with a
    rank of at most `share` times d.

    Weights are the entries of S scaled to $|w|^2/N = \|S\|_F^2/d$, and the loss is a sum of $r^2/2$ of residuals of
    $\mathrm{Tr}[G S]/\sqrt 2$, of unit variance for unit weights. Then $\theta = \lambda/(2 \hat V)$ is what
    eigenvalues of the field over $\hat V$ are lowered by.
    """

    def __init__(self, law: Law, penalty: float, share: float = 1.0):
        self.law, self.penalty, self.share = law, penalty, share

    def __repr__(self) -> str:
        return f"TraceSignal({self.law}, {self.penalty:g}, {self.share:g})"

    def average(self, field: Field) -> Overlap:
        parts = np.broadcast_arrays(*(np.asarray(part, float) for part in field))
        found = [self._overlap(*(float(part) for part in row)) for row in zip(*map(np.ravel, parts), strict=True)]
        return Overlap(*(np.reshape(column, parts[0].shape) for column in zip(*found, strict=True)))

    def _overlap(self, m_hat: float, q_hat: float, V_hat: float) -> tuple[float, float, float]:
        """m, q and V. The estimate is m_hat / V_hat times that at A* + sqrt(D) Z."""
        theta, scale = self.penalty / (2 * m_hat), m_hat / V_hat
        part = UpperPart(self.law, q_hat / m_hat**2)
        D, top = part.D, float(len(part.edges))
        cut = crossing(lambda cut: part.at(cut)[0] - theta, 0.0, top)
        limit = part.cut_of_mass(self.share) if self.share < 1 else 0.0
        above = part.at(max(cut, limit))[1] if max(cut, limit) < top else part.beyond(len(part.edges))
        if above.mass <= 0:
            return 0.0, 0.0, 0.0
        # E[A*|R] = x - 2 D h, of which the squares above and below the cut and the error add up to E A^2.
        best = float(self.law.second_moment) - part.mmse - above.missed
        second = best + 4 * D * above.cross - 4 * D**2 * above.square
        m = second - 2 * D * above.cross - theta * (above.first - 2 * D * above.hilbert)
        q = second - 2 * theta * above.first + theta**2 * above.mass
        return scale * m, scale**2 * q, 2 * (above.cross - theta * above.hilbert) / V_hat

    def denoiser(self, operator: PackedFeatures) -> TraceDenoiser:
        return TraceDenoiser(self, operator)


class TraceDenoiser:
    """Lowers the eigenvalues of the field and keeps the largest; the mean response is that of this map."""

    def __init__(self, signal: TraceSignal, operator: PackedFeatures):
        self._signal, self._operator = signal, operator
        self._scale = np.sqrt(operator.dimension / operator.size)

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        V_hat, d = float(precision[0, 0]), self._operator.size
        values, vectors = np.linalg.eigh(self._operator.matrix(B / (V_hat * self._scale)))
        # theta is penalty / (2 V_hat) in the limit; with d^2 / (2 N) a fixed point is the minimiser at any size.
        lowered = values - self._signal.penalty * d**2 / (4 * self._operator.dimension * V_hat)
        kept = (lowered > 0) & (np.arange(d) >= d - round(self._signal.share * d))
        f = np.where(kept, lowered, 0.0)
        # The divergence of a function of eigenvalues: a half for each pair of kept ones, f_i/(x_i - x_j) for others.
        count = int(kept.sum())
        mixed = np.sum(f[kept, None] / (values[kept, None] - values[~kept]))
        R = np.full((1, 1), (count * (count + 1) / 2 + mixed) / (self._operator.dimension * V_hat))
        estimate = self._scale * self._operator.vector((vectors * f) @ vectors.T)
        return SignalStep(estimate, R, precision, variance=R)

    def matrix(self, signal: np.ndarray) -> np.ndarray:
        """S (d x d) from the loop's w."""
        return self._operator.matrix(signal / self._scale)
