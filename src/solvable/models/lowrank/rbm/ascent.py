r"""Gradient ascent on the likelihood of a Boltzmann machine: its dynamical mean-field theory, and runs.

The engine's theory of one batch seen at every step (`engine/dynamics/dmft.py`) with a sample that holds a spike:

    h_t = om_t + sqrt(theta) u M_t + eta sum_{s<t} Rth(t,s) g_s,   g_t = eta1'(h_t),   x* = z + sqrt(theta) u,

and the decay $\Lambda_t = 2\alpha\,\nabla\eta_2(Q_t)$ of the machine's normalisation. Small weights follow
$(X^T X - \alpha) w$, so that the direction of an isolated eigenvalue grows fastest. [xu2025learning]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from solvable.core.errors import bad_parameter
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.dynamics.dmft import descend
from solvable.engine.dynamics.full import weights_with
from solvable.engine.dynamics.scatter import judged
from solvable.models.lowrank.rbm.learners import RBMAscent
from solvable.models.lowrank.rbm.run import gradient, overlaps_of
from solvable.models.lowrank.rbm.units import Units
from solvable.models.lowrank.spiked import SampleData, SpikedCovariance

Mixture = tuple[tuple[float, float, float], ...]


class HiddenSpike(NamedTuple):
    """Samples with a spike of strength `snr` and a latent variable of law `mixture`, seen by hidden `units`."""

    units: Units
    snr: float
    mixture: Mixture

    directions, kinked = 1, False

    @property
    def width(self) -> int:
        return self.units.count

    @property
    def extra(self) -> int:
        return int(len(self.mixture) > 1) + int(any(variance > 0 for _, _, variance in self.mixture))

    def context(self, z: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """The latent variable: the first extra variable chooses the component, the last is the place in it."""
        weight, mean, variance = np.array(self.mixture).T
        if len(weight) == 1:
            return mean[0] + np.sqrt(variance[0]) * extra[-1]
        which = np.minimum(np.searchsorted(np.cumsum(weight), ndtr(extra[0])), len(weight) - 1)
        return mean[which] + np.sqrt(variance[which]) * extra[-1]

    def force(self, h: Any, context: Any) -> Any:
        return self.units.force(h)

    def direction(self, z: np.ndarray, context: np.ndarray) -> np.ndarray:
        return z + np.sqrt(self.snr) * context

    def shift(self, M: np.ndarray, context: np.ndarray) -> np.ndarray:
        return np.sqrt(self.snr) * M * context

    def decay(self, Q: np.ndarray, alpha: float) -> np.ndarray:
        return alpha * self.units.ridge(Q)


@theory(SpikedCovariance, RBMAscent, vectorized=False, references=("xu2025learning",))
def ascent_theory(model: SpikedCovariance, learner: RBMAscent, alpha: float) -> Prediction:
    """The overlaps after `learner.steps` steps, and all before them."""
    signal = HiddenSpike(learner.layer, float(model.snr), model.latent.mixture())
    M, Q = learner.first_overlaps()
    found, other = descend(signal, float(alpha), float(learner.learning_rate), int(learner.steps), M, Q)
    path = {"M_path": found.M.mean(axis=0), "Q_path": found.Q.mean(axis=0)}
    last = {"M": path["M_path"][-1], "Q": path["Q_path"][-1]}
    status = Status.CONVERGED if all(np.all(np.isfinite(part)) for part in path.values()) else Status.NONFINITE
    metrics, uncertainty = judged(_metrics, found, other)
    order = last | path | {"held_against_derivatives": float(not other.stein)}
    return Prediction(metrics, order, status, iterations=int(learner.steps), uncertainty=uncertainty)


def _metrics(M: np.ndarray, Q: np.ndarray) -> dict[str, np.ndarray]:
    lost = dict.fromkeys(("cosine", "squared_overlap", "squared_norm"), np.nan)
    finite = [bool(np.all(np.isfinite(m)) and np.all(np.isfinite(q))) for m, q in zip(M, Q, strict=True)]
    rows = [overlaps_of(M[i], Q[i]) if good else lost for i, good in enumerate(finite)]
    return {name: np.array([row[name] for row in rows]) for name in lost}


@simulation(SpikedCovariance, RBMAscent, references=("xu2025learning",))
def run_ascent(model: SpikedCovariance, learner: RBMAscent, data: SampleData, rng: np.random.Generator) -> Outcome:
    """Ascent from weights with exactly the overlaps of the start."""
    units, X, d, rate = learner.layer, data.X, len(data.truth), float(learner.learning_rate)
    if d <= units.count:
        raise bad_parameter("d", d, f"above {units.count}, the number of hidden units")
    direction = data.truth / np.sqrt(d)
    W = np.sqrt(d) * weights_with(*learner.first_overlaps(), direction, rng).T
    path = [(W.T @ data.truth / d, W.T @ W / d)]
    with np.errstate(over="ignore", invalid="ignore"):  # ascent that runs away is not finite, and says so
        for _ in range(int(learner.steps)):
            W = W + rate * gradient(units, X, W)
            path.append((W.T @ data.truth / d, W.T @ W / d))
    M, Q = (np.stack(part) for part in zip(*path, strict=True))
    metrics = {name: float(value[0]) for name, value in _metrics(M[-1:], Q[-1:]).items()}
    return Outcome(metrics, W, details={"M": M[-1], "Q": Q[-1], "M_path": M, "Q_path": Q})
