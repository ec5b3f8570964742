"""Message passing on contaminated and logistic labels, against theory and the Nishimori identity."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import solvable as sv

CASES = {
    "outliers": (sv.MultiIndex("z", noise=0.1, contamination="0.3:0:5"), 3.0),
    "outliers of slope 1": (sv.MultiIndex("z", noise=0.1, contamination="0.3:1:5"), 3.0),
    "both signs": (sv.MultiIndex("z", noise=0.1, contamination="0.5:-1:0.1"), 2.0),
    "exact among outliers": (sv.MultiIndex("z", contamination="0.3:0:5"), 1.3),
    "tanh": (sv.MultiIndex("tanh(z)", noise=0.1, contamination="0.3:-1:0.5"), 3.0),
    "absolute value": (sv.MultiIndex("abs(z)", noise=0.1, contamination="0.3:0:5"), 4.0),
    "flipped signs": (sv.MultiIndex("sign(z)", contamination="0.2:-1:0"), 3.0),
    "flipped logit": (sv.MultiIndex(sv.channels.Logit(2.0), contamination="0.1:-1:0"), 3.0),
    "logit": (sv.MultiIndex(sv.channels.Logit(2.0)), 3.0),
}


@functools.cache
def runs(model, alpha, d, seeds, learner=None):
    return [sv.simulate(model, learner or sv.AMP(), alpha=alpha, d=d, seed=seed) for seed in range(seeds)]


def deviation(values, expected=0.0):
    """The mean's distance from `expected` in standard errors."""
    return (np.mean(values) - expected) / (np.std(values, ddof=1) / np.sqrt(len(values)))


def check(model, alpha, d, seeds):
    theory, found = sv.predict(model, sv.AMP(), alpha=alpha), runs(model, alpha, d, seeds)
    for metric in theory.metrics:
        assert abs(deviation([run[metric] for run in found], float(theory[metric]))) < 4, metric
    assert abs(deviation([run["overlap"] - run.details["self_overlap"] for run in found])) < 4


@pytest.mark.slow
def test_outliers_at_d_300():
    check(sv.MultiIndex("z", noise=0.1, contamination="0.3:0:5"), 3.0, 300, 8)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_theory_and_nishimori_at_d_500(case):
    check(*CASES[case], 500, 16)


@pytest.mark.slow
def test_the_spectral_method_at_d_500():
    model, alpha = sv.MultiIndex("abs(z)", noise=0.1, contamination="0.3:0:5"), 4.0
    for kind in ("symmetric", "asymmetric"):
        found = [sv.simulate(model, sv.Spectral(kind), alpha=alpha, d=500, seed=seed) for seed in range(16)]
        theory = sv.predict(model, sv.Spectral(kind), alpha=alpha)
        assert abs(deviation([run["squared_overlap"] for run in found], float(theory["squared_overlap"]))) < 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", ["both signs", pytest.param("tanh", marks=pytest.mark.slow), "flipped logit"])
def test_runs_are_reproducible_and_finite(case):
    model, alpha = CASES[case]
    one, other = (sv.simulate(model, sv.AMP(), alpha=alpha, d=60, seed=3) for _ in range(2))
    assert one.metrics == other.metrics and all(np.isfinite(value) for value in one.metrics.values())


def test_bayes_optimal_runs_find_the_better_end():
    """Exact labels among outliers, between the two thresholds: only the start at the truth recovers it."""
    model = sv.MultiIndex("z", contamination="0.3:0:5")
    found = sv.simulate(model, sv.BayesOptimal(), alpha=1.55, d=300, seed=0)
    assert found.details["branch"] == "informed" and found["overlap"] > 0.99
