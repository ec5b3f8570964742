r"""Message passing on one instance of an index model: the algorithm, and a finite-size check of Bayes optimality.

With several projections `multi_algorithms` takes over; the rest of this file is about one.

The engine's loop is given the model's two denoisers: the posterior of z under the channel,
$g = (E[z|y,\omega,V] - \omega)/V$ with $-\partial_\omega g = 1/V - \mathrm{Var}[z|y,\omega,V]/V^2$, and the posterior
of a weight under the prior.

Every learner's estimate is scored by `scores`. A fresh input enters only through $z = x\cdot w^*$ and
$\omega = x\cdot\hat w$. Given $(\hat w, w^*)$ these two are exactly jointly Gaussian, with covariances $|w^*|^2/d$,
$m = \hat w\cdot w^*/d$ and $q = |\hat w|^2/d$, so fresh pairs are drawn from that law: equal in law to drawing fresh
inputs, without their d coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels import Channel
from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import AMPReport, amp, precision_from_norm, uninformed_start
from solvable.engine.operators import Dense
from solvable.engine.sides import OutputStep, SignalStep
from solvable.models.index import multi_algorithms
from solvable.models.index.instance import FRESH_PAIRS, SMALLEST_V, smallest_variance, truthful_start
from solvable.models.index.multi_index import MultiIndex
from solvable.priors import Prior

_TRUTH_START = 1 - 1e-4
_RECOVERED = 0.999


class ChannelOutput:
    """The output denoiser of a one-projection channel: the posterior of z given each label."""

    def __init__(self, channel: Channel, y: np.ndarray):
        self._posterior, self._labels = channel.posterior, channel.observe(y)

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        omega, v = Omega[:, 0], V[0, 0]
        _, mean, variance = self._posterior(self._labels, omega, v, evidence=False)
        g = (mean - omega) / v
        minus_derivative = np.full((1, 1), 1 / v - np.add.reduce(variance) / (len(omega) * v**2))
        return OutputStep(g[:, None], minus_derivative, log_Z=lambda: self.log_Z(Omega, V))

    def log_Z(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The log evidence of each label, (n,)."""
        return self._posterior(self._labels, Omega[:, 0], V[0, 0]).log_Z

    def second_moment(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """$E[z^2|y,\\omega,V]$ of each label, (n,)."""
        found = self._posterior(self._labels, Omega[:, 0], V[0, 0])
        return found.variance + found.mean**2


class PriorSignal:
    r"""The signal denoiser of a separable prior of zero mean and unit variance, in one direction.

    The precision solves $A^2 + A = |B|^2/d$, because $B = A w^* + \sqrt A x$ has that norm for every such prior.
    """

    def __init__(self, prior: Prior):
        # Taking a method off a module costs more than the method itself at usual sizes: do it once.
        self._denoise, self._log_partition = prior.denoise, prior.log_partition

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        A = precision_from_norm(B)[0]
        mean, variance = self._denoise(B, A[0])
        response = np.full((1, 1), np.add.reduce(variance, axis=None) / variance.size)
        return SignalStep(mean, response, A[:, None], log_partition=lambda: float(np.sum(self._log_partition(B, A[0]))))


@simulation(MultiIndex, AMP, references=("rangan2011generalized", "aubin2018committee"))
def run_amp(model: MultiIndex, learner: AMP, data: Data, rng: np.random.Generator) -> Outcome:
    """Approximate message passing from pure noise; the truth is used for scoring only."""
    if model.target.projections > 1:
        if learner.start == "noise":
            return multi_algorithms.run_amp(model, learner, data, rng)
        from solvable.models.index.multi_spectral_algorithms import spectral_start

        return multi_algorithms.run_amp(model, learner, data, rng, *spectral_start(model, data, rng))
    if learner.start != "noise":
        raise bad_parameter("start", learner.start, "'noise' with one projection")
    start = uninformed_start(rng, data.X.shape[1], 1)
    return _outcome(model, data, rng, _run(model, data, start, rng, learner))


@simulation(MultiIndex, BayesOptimal, references=("rangan2011generalized", "aubin2018committee"))
def run_bayes_optimal(model: MultiIndex, learner: BayesOptimal, data: Data, rng: np.random.Generator) -> Outcome:
    """A finite-size check of the Bayes-optimal theory. It looks at the truth: it is not an algorithm.

    No efficient algorithm is known to reach the Bayes optimum inside a hard phase. So message passing is run twice,
    from noise and from the truth, $\\hat w = q_0 w^* + \\sqrt{q_0 (1 - q_0)}\\, x$ with $q_0 = 1 - 10^{-4}$, and the
    end with the larger Bethe free entropy is kept: the dominant fixed point, whether or not noise leads to it.
    Perfect recovery without noise counts as infinite entropy where it is: with c the share of labels that pin z down
    and D the prior's information dimension, $\\phi \\to (D - \\alpha c)/2 \\cdot \\log V$ as V -> 0.
    """
    if model.target.projections > 1:
        return multi_algorithms.run_bayes_optimal(model, data, rng)
    starts = {
        "uninformed": uninformed_start(rng, data.X.shape[1], 1),
        "informed": truthful_start(rng, data.truth, _TRUTH_START),
    }
    reports = {name: _run(model, data, start, rng, AMP()) for name, start in starts.items()}
    entropies = {name: _limiting_entropy(model, data, report) for name, report in reports.items()}
    branch = max(reports, key=lambda name: entropies[name])
    more = {"branch": branch} | {f"free_entropy_{name}": value for name, value in entropies.items()}
    return _outcome(model, data, rng, reports[branch], **more)


def _run(model: MultiIndex, data: Data, start: np.ndarray, rng: np.random.Generator, learner: AMP) -> AMPReport:
    return amp(
        Dense(data.X),
        ChannelOutput(model.channel, data.y),
        PriorSignal(model.prior),
        start,
        rng,
        damping=float(learner.damping),
        max_steps=int(learner.max_steps),
        tolerance=float(learner.tolerance),
        vmin=smallest_variance(model.channel.discrete, len(data.y)),
    )


def _limiting_entropy(model: MultiIndex, data: Data, report: AMPReport) -> float:
    """The Bethe free entropy, continued to V = 0 where the run recovered the truth and the labels pin it down."""
    if report.free_entropy is None or not np.isfinite(report.free_entropy):
        return -np.inf
    n, d = data.X.shape
    recovered = np.mean(report.estimate**2) > _RECOVERED
    return (
        np.inf if recovered and model.channel.continuous_mass * n / d > model.prior.dimension else report.free_entropy
    )


def _outcome(model: MultiIndex, data: Data, rng: np.random.Generator, report: AMPReport, **more: Any) -> Outcome:
    q = float(np.mean(report.estimate**2))
    details = {
        "self_overlap": q,
        "iterations": report.iterations,
        "status": report.status,
        "residual_ratio": _scalar(report.residual_ratios),
        "derivative_ratio": _scalar(report.derivative_ratios),
        "consistent": report.consistent,
        "log_likelihood": report.log_likelihood,
        "free_entropy": report.free_entropy,
    }
    metrics = scores(model, report.estimate[:, 0], data.truth[:, 0], rng)
    return Outcome(metrics, report.estimate, report.converged, details=details | more)


def _scalar(ratios: np.ndarray) -> float:
    """The one ratio of a single direction, not a number where there is none (V at its floor, or no step was made)."""
    return float(ratios[0]) if ratios.size else float("nan")


def scores(model: MultiIndex, estimate: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    r"""The metrics of `estimate` (d,): overlap $\hat w\cdot w^*/d$, estimation and generalization errors.

    The overlap is aligned over the target's symmetries: the sign of an even target's weights is arbitrary, so the
    better of $\pm\hat w$ counts; otherwise the sign is part of the problem. `classification_error` is there for
    discrete labels only. Predictions are the posterior mean (or the most probable class) at $V = 1 - q$.
    """
    m, q, scale = (float(np.mean(a * b)) for a, b in ((estimate, truth), (estimate, estimate), (truth, truth)))
    m = abs(m) if model.hides_sign() else m
    z = np.sqrt(scale) * rng.standard_normal(FRESH_PAIRS)
    omega = m / scale * z + np.sqrt(max(q - m**2 / scale, 0.0)) * rng.standard_normal(FRESH_PAIRS)
    squared = m**2 / (q * scale) if q * scale > 0 else 0.0
    metrics = {"overlap": m, "squared_overlap": squared, "estimation_error": q - 2 * m + scale}
    return metrics | _label_errors(model, z, omega, 1 - q)


def _label_errors(model: MultiIndex, z: np.ndarray, omega: np.ndarray, V: float) -> dict[str, float]:
    V = min(max(V, SMALLEST_V), 1.0)
    label = model.target.numpy(z[:, None])
    errors = {"generalization_error": float(np.mean((label - np.asarray(model.channel.predict(omega, V))) ** 2))}
    if model.channel.discrete:
        wrong = np.abs(label - np.asarray(model.channel.classify(omega, V))) > 1e-9 * (1 + np.abs(label))
        errors["classification_error"] = float(np.mean(wrong))
    return errors
