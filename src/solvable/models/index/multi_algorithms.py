r"""Message passing on one instance of a multi-index model, all projections at once.

The engine's loop is given the posterior of the vector z under the channel, with V the covariance of z before its label,
$g = V^{-1}(E[z|y,\omega,V] - \omega)$ and $-\partial_\omega g = V^{-1} - V^{-1}\mathrm{Cov}[z|y,\omega,V]V^{-1}$, and
the posterior of a row of weights under the prior N(0, I). Weights are found in the coordinates of the target, up to
its symmetries; no projection is singled out.

With several projections a run can end where one direction is found and another is a random one that fits the labels a
little: a false fixed point of finite sizes. It shows without the truth, since the run does not converge or its three
estimates of the precision disagree; then other starts are tried, and the end under which the labels are likeliest is
kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import Channel
from solvable.core.learners import AMP
from solvable.core.model import Data
from solvable.core.results import Outcome
from solvable.engine.amp import AMPReport, amp, gaussian_signal, uninformed_start
from solvable.engine.operators import Dense
from solvable.engine.sides import OutputStep
from solvable.models.index.instance import smallest_variance, truthful_start
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.multi_scores import aligned, scores
from solvable.numerics.subspaces import tidy

_TRUTH_START = 1 - 1e-4
_RECOVERED = 0.999
_SPAN_ERROR = 5e-3
_RESTARTS = 2
_RESTART_NORM = 0.8


class MultiChannelOutput:
    """The output denoiser of a channel of several projections: the posterior of z given each label."""

    def __init__(self, channel: Channel, y: np.ndarray):
        self._channel, self._labels = channel, channel.observe(y)

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        found = self._channel.posterior(self._labels, Omega, V, evidence=False)
        inverse = np.linalg.inv(V)
        covariance = found.covariance.mean(axis=0)
        minus_derivative = inverse - inverse @ covariance @ inverse
        symmetric = 0.5 * (minus_derivative + minus_derivative.T)
        return OutputStep((found.mean - Omega) @ inverse, symmetric, log_Z=lambda: self.log_Z(Omega, V))

    def log_Z(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The log evidence of each label, (n,)."""
        return self._channel.posterior(self._labels, Omega, V).log_Z


def run_amp(
    model: MultiIndex,
    learner: AMP,
    data: Data,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
    memory: np.ndarray | None = None,
) -> Outcome:
    """Approximate message passing from pure noise, or from `start` (d x r) with its Onsager term `memory` (n x r).

    The truth is used for scoring only.
    """
    if start is None:
        return _outcome(model, data, rng, *_uninformed(model, data, rng, learner))
    return _outcome(model, data, rng, _run(model, data, start, rng, learner, memory))


def run_bayes_optimal(model: MultiIndex, data: Data, rng: np.random.Generator) -> Outcome:
    """A finite-size check of the Bayes-optimal theory. It looks at the truth: it is not an algorithm.

    Message passing is run twice, from noise and from close to the truth, and the end with the larger Bethe free
    entropy is kept: the dominant fixed point, whether or not noise leads to it. Perfect recovery of k directions
    without noise counts as infinite entropy where it is: with c the share of labels that depend on z through these
    directions only, $\\phi \\to (k - \\alpha c)/2 \\cdot \\log v$ as their variance v -> 0. Of two infinite entropies
    the one that grows faster is larger.
    """
    informed = _run(model, data, truthful_start(rng, data.truth, _TRUTH_START), rng, AMP())
    uninformed, starts = _uninformed(model, data, rng, AMP())
    reports = {"uninformed": uninformed, "informed": informed}
    entropies = {name: _limiting_entropy(model.multi_channel, data, report) for name, report in reports.items()}
    branch = max(reports, key=lambda name: entropies[name])
    values = {f"free_entropy_{name}": np.inf if rate > 0 else value for name, (rate, value) in entropies.items()}
    return _outcome(model, data, rng, reports[branch], starts, branch=branch, **values)


def _uninformed(model: MultiIndex, data: Data, rng: np.random.Generator, learner: AMP) -> tuple[AMPReport, int]:
    """The end of message passing from noise, and how many starts it took.

    If the first end is not consistent, noise of norm close to that of the truth is tried: it settles before the
    directions that grow fastest have taken over. Such runs are short, and get half the steps.
    """
    best = _run(model, data, uninformed_start(rng, *data.truth.shape), rng, learner)
    again = learner.with_field("max_steps", max(1, int(learner.max_steps) // 2))
    for tried in range(_RESTARTS):
        if best.consistent:
            return best, 1 + tried
        start = np.sqrt(_RESTART_NORM) * rng.standard_normal(data.truth.shape)
        best = max(best, _run(model, data, start, rng, again), key=_likelihood)
    return best, 1 + _RESTARTS


def _likelihood(report: AMPReport) -> float:
    found = report.log_likelihood
    return -np.inf if found is None or not np.isfinite(found) else found


def _run(
    model: MultiIndex,
    data: Data,
    start: np.ndarray,
    rng: np.random.Generator,
    learner: AMP,
    memory: np.ndarray | None = None,
) -> AMPReport:
    channel = model.multi_channel
    return amp(
        Dense(data.X),
        MultiChannelOutput(channel, data.y),
        gaussian_signal,
        start,
        rng,
        memory=memory,
        damping=float(learner.damping),
        max_steps=int(learner.max_steps),
        tolerance=float(learner.tolerance),
        vmin=smallest_variance(channel.discrete and channel.deterministic, len(data.y), channel.row_resolution),
    )


def _limiting_entropy(channel: Channel, data: Data, report: AMPReport) -> tuple[float, float]:
    """How fast the free entropy grows as V -> 0 in the recovered directions (0 where it does not), and its value."""
    if report.free_entropy is None or not np.isfinite(report.free_entropy):
        return 0.0, -np.inf
    n, d = data.X.shape
    q, u = np.linalg.eigh(report.estimate.T @ report.estimate / d)
    # The recovered span is that of the target's own directions, up to the small error of the estimate.
    recovered = tidy(u[:, q > _RECOVERED], tolerance=_SPAN_ERROR)
    k = recovered.shape[1]
    rate = n / d * channel.pinned_mass(recovered) - k if k and channel.deterministic else 0.0
    return max(rate, 0.0), report.free_entropy


def _outcome(
    model: MultiIndex, data: Data, rng: np.random.Generator, report: AMPReport, starts: int = 1, **more: Any
) -> Outcome:
    estimate = aligned(model, report.estimate, data.truth)
    details = {
        "self_overlap": estimate.T @ estimate / len(estimate),
        "iterations": report.iterations,
        "status": report.status,
        "starts": starts,
        "residual_ratios": report.residual_ratios,
        "derivative_ratios": report.derivative_ratios,
        "consistent": report.consistent,
        "log_likelihood": report.log_likelihood,
        "free_entropy": report.free_entropy,
    }
    metrics = scores(model, report.estimate, data.truth, rng)
    return Outcome(metrics, report.estimate, report.converged, details=details | more)
