r"""Empirical risk minimisation on one data set: message passing, or a method of optimisation.

Message passing is the engine's loop with the proximal step of the loss as output denoiser and the penalty's as signal
denoiser; V is the mean response of the weights and A that of the samples,

    omega = X w - V g_old,  g = (prox_V(omega) - omega)/V,  A = (1/d) sum_i h_i,  w = f(X^T g + A w, A),  V = mean f'.

A fixed point is a stationary point of the risk. At any estimate V and A follow from one equation, and with them the
replicon of the run, $R = \frac1d\sum_i h_i^2 \cdot \frac1d\sum_k f_k'^2$.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.losses.samples import SampleLoss
from solvable.core.model import Data
from solvable.core.precision import float64
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import amp
from solvable.engine.cosines import cosines_of
from solvable.engine.erm import ERM
from solvable.engine.erm.direct import Minimum, minimise
from solvable.engine.erm.metrics import METRICS, estimate_metrics, facts
from solvable.engine.operators import Dense
from solvable.engine.outputs.proximal import ProximalDenoiser
from solvable.engine.sides import OutputDenoiser, SignalDenoiser
from solvable.engine.signals.separable import PenalisedDenoiser
from solvable.engine.two_sided import TwoSided
from solvable.numerics.roots import crossing, first_beyond
from solvable.priors.penalties import Lasso, Penalty, Ridge

_TOLERANCE = 1e-9
_DAMPINGS = {0.7: 1000, 0.3: 2000}
"""The weights of a new step that are tried in turn, with the most steps of each."""
_WIDEST = 1e9
_GRID = 150


@simulation(TwoSided, ERM, references=("rangan2011generalized", "vilucchio2023asymptotic"))
def run_erm(model: TwoSided, learner: ERM, data: Data, rng: np.random.Generator) -> Outcome:
    """Minimise the risk from w = 0; the truth is used for scoring only."""
    labels = model.likelihood()
    labels.check(learner.loss)
    learner.check_start()
    if learner.solver == "gamp":
        output, signal = ProximalDenoiser(SampleLoss(learner.loss, data.y)), PenalisedDenoiser(learner.penalty)
        found = message_passing(data.X, output, signal, np.zeros((data.X.shape[1], 1)), rng)
    else:
        found = minimise(data.X, data.y, learner.loss, learner.penalty)
    w, truth = found.estimate, data.truth[:, 0]
    q, m = float(np.mean(w**2)), float(np.mean(w * truth))
    c = np.float64(cosines_of(w, truth)["cosine"])
    values = float64(estimate_metrics)(facts(labels), learner.loss.margin, c, np.float64(q))
    samples = SampleLoss(learner.loss, data.y)
    outputs = data.X @ w
    metrics = {name: float(values[name]) for name in METRICS if name in values}
    metrics["training_loss"] = float(np.mean(samples.value(outputs)))
    metrics["replicon"] = replicon(samples, outputs, learner.penalty, w)
    if isinstance(learner.penalty, Lasso):
        metrics["active_fraction"] = np.count_nonzero(w) / len(w)
    details = {"iterations": found.iterations, "m": m, "q": q}
    return Outcome(metrics, w[:, None], found.converged, details=details)


def replicon(samples: SampleLoss, outputs: np.ndarray, penalty: Penalty, w: np.ndarray) -> float:
    """R at an estimate with the given outputs on its training samples: its V solves V (strength + A(V)) = 1."""
    d = len(w)
    ridge, share = (float(penalty.strength), 1.0) if isinstance(penalty, Ridge) else (0.0, np.count_nonzero(w) / d)

    def excess(log_V: float) -> float:
        V = np.exp(log_V)
        return V * (ridge + np.sum(samples.responses(outputs, V)) / d) - share

    # The first root from below is the one that message passing has; beyond it the proximal step may be multivalued.
    lowest = samples.lowest_curvature(outputs)
    largest = min(_WIDEST, (1 - 1e-9) / max(-lowest, 1e-300))
    grid = np.linspace(-np.log(_WIDEST), np.log(largest), _GRID)
    bracket = first_beyond(lambda log_V: excess(log_V) >= 0, grid)
    # Without a penalty and with few samples V is infinite; if all of them sit at kinks, any V gives the same R.
    V = float(np.exp(crossing(excess, *bracket, 1e-10) if bracket else grid[-1]))
    h = samples.responses(outputs, V)
    stiffness = V**2 if share == 1.0 else V**2 / max(share, 1e-300)
    return float(np.sum(h**2) / d * stiffness)


def message_passing(
    X: np.ndarray, output: OutputDenoiser, signal: SignalDenoiser, start: np.ndarray, rng: np.random.Generator
) -> Minimum:
    """The loop on inputs X from `start` (d, 1), with smaller steps where the first do not settle."""
    done = 0
    for damping, steps in _DAMPINGS.items():
        report = amp(Dense(X), output, signal, start, rng, damping=damping, max_steps=steps, tolerance=_TOLERANCE)
        done += report.iterations
        if report.converged:
            break
    estimate = report.proposal if report.converged else report.estimate
    return Minimum(estimate[:, 0], report.converged, done)
