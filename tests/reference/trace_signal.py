"""A penalty on the trace as a signal side, by the eigenvalues above a cut: another way to the theory of its learner."""

from __future__ import annotations

import numpy as np

from solvable.engine.operators import PackedFeatures
from solvable.engine.sides import Field, Overlap, Signal, SignalStep
from solvable.numerics.roots import crossing
from solvable.spectra import Law
from solvable.spectra.upper_part import UpperPart


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
