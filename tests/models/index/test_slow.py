"""Simulations of the library against its theory, right only on average: many seeds, two sizes, honest error bars."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import solvable as sv

pytestmark = pytest.mark.slow

SEEDS = 16
SIZES = (500, 1000)

# Targets with and without noise, continuous and discrete, and the three priors; overlaps from 0.3 to 0.98, away from
# weak overlaps, where instances differ so much that a mean over runs says little (tests/test_reference.py).
AMP_SETTINGS = {
    "sign": (sv.MultiIndex("sign(z)"), 1.5),
    "he3": (sv.MultiIndex("he3(z)"), 0.5),
    "noisy relu": (sv.MultiIndex("relu(z)", noise=0.05), 1.5),
    "noisy square": (sv.MultiIndex("z**2", noise=0.25), 2.0),
    "window": (sv.MultiIndex("abs(z) < 1"), 3.0),
    "probit": (sv.MultiIndex(sv.channels.Probit(noise=0.5)), 2.0),
    "binary sign": (sv.MultiIndex("sign(z)", prior="rademacher"), 1.2),
    "sparse linear": (sv.MultiIndex("z", noise=0.01, prior="gauss-bernoulli:0.2"), 0.5),
}
# The asymmetric overlap of abs(z) averages G^3, which is heavy-tailed: at alpha = 2 the mean of all the runs ever made
# is 0.388(4), 0.388(2), 0.376(2), 0.376(3) at d = 500, 1000, 2000, 4000, against 0.375 in theory.
SPECTRAL_SETTINGS = {
    "abs": (sv.MultiIndex("abs(z)"), 1.5, "symmetric"),
    "noisy square": (sv.MultiIndex("z**2", noise=0.25), 2.0, "symmetric"),
    "window": (sv.MultiIndex("abs(z) < 1"), 2.0, "symmetric"),
    "he4": (sv.MultiIndex("he4(z)"), 2.0, "symmetric"),
    "binary abs": (sv.MultiIndex("abs(z)", prior="rademacher"), 1.5, "symmetric"),
    "abs, asymmetric": (sv.MultiIndex("abs(z)"), 2.0, "asymmetric"),
    "window, asymmetric": (sv.MultiIndex("abs(z) < 1"), 3.0, "asymmetric"),
}


@functools.cache
def amp_runs(setting: str, d: int) -> list[sv.Outcome]:
    model, alpha = AMP_SETTINGS[setting]
    return [sv.simulate(model, sv.AMP(), alpha=alpha, d=d, seed=seed) for seed in range(SEEDS)]


@functools.cache
def spectral_runs(setting: str, d: int) -> list[sv.Outcome]:
    model, alpha, kind = SPECTRAL_SETTINGS[setting]
    return [sv.simulate(model, sv.Spectral(kind), alpha=alpha, d=d, seed=seed) for seed in range(SEEDS)]


def check_mean(values, expected: float, d: int) -> None:
    """Four standard errors, and an order 1/d: the variance over runs (a curvature of order one times it) plus 1/d.

    Both in units of the quantity where it is larger than one.
    """
    values, scale = np.asarray(values), max(1.0, abs(expected))
    error, spread = values.std(ddof=1) / np.sqrt(len(values)), values.std(ddof=1)
    assert abs(values.mean() - expected) < 4 * error + spread**2 / scale + scale / d


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("setting", AMP_SETTINGS)
def test_message_passing_reaches_its_state_evolution(setting, d):
    model, alpha = AMP_SETTINGS[setting]
    theory, runs = sv.predict(model, sv.AMP(), alpha=alpha), amp_runs(setting, d)
    assert sum(run.converged for run in runs) >= SEEDS - 1
    assert set(runs[0].metrics) == set(theory.metrics)
    for metric in theory.metrics:
        check_mean([run[metric] for run in runs], theory[metric], d)
    # Nishimori: in each run the estimate overlaps with itself as with the truth, within a few times 1/sqrt(d).
    difference = np.array([run["overlap"] - run.details["self_overlap"] for run in runs])
    assert np.all(np.abs(difference) < 3 / np.sqrt(d))
    check_mean(difference, 0.0, d)


def test_message_passing_comes_closer_as_d_grows():
    """Root mean square deviation of single runs from theory, over all the settings: expected to fall by sqrt(2).

    One setting's ratio has a relative scatter of 1/sqrt(16), eight of them together one of 9 %.
    """
    logs = []
    for setting, (model, alpha) in AMP_SETTINGS.items():
        expected = sv.predict(model, sv.AMP(), alpha=alpha)["overlap"]
        small, large = (
            np.sqrt(np.mean([(run["overlap"] - expected) ** 2 for run in amp_runs(setting, d)])) for d in SIZES
        )
        logs.append(np.log(large / small))
    assert np.exp(np.mean(logs)) < 0.95
    assert np.exp(np.mean(logs)) > 0.5


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("setting", SPECTRAL_SETTINGS)
def test_spectral_methods_reach_their_prediction(setting, d):
    model, alpha, kind = SPECTRAL_SETTINGS[setting]
    theory, runs = sv.predict(model, sv.Spectral(kind), alpha=alpha), spectral_runs(setting, d)
    assert all(run.converged for run in runs)
    assert set(runs[0].metrics) == set(theory.metrics)
    for metric in theory.metrics:
        check_mean([run[metric] for run in runs], theory[metric], d)
    check_mean([run.details["eigenvalue"] for run in runs], theory.order_parameters["outlier"], d)


def test_spectral_methods_come_closer_as_d_grows():
    logs = []
    for setting, (model, alpha, kind) in SPECTRAL_SETTINGS.items():
        expected = sv.predict(model, sv.Spectral(kind), alpha=alpha)["squared_overlap"]
        small, large = (
            np.sqrt(np.mean([(run["squared_overlap"] - expected) ** 2 for run in spectral_runs(setting, d)]))
            for d in SIZES
        )
        logs.append(np.log(large / small))
    assert 0.5 < np.exp(np.mean(logs)) < 0.95


def test_phase_retrieval_is_solved_above_its_algorithmic_threshold():
    """At least 95 % of 40 runs within 0.1 of perfect recovery at alpha = 1.25, d = 1000."""
    runs = [sv.simulate(sv.MultiIndex("abs(z)"), sv.AMP(), alpha=1.25, d=1000, seed=seed) for seed in range(40)]
    assert sv.predict(sv.MultiIndex("abs(z)"), sv.AMP(), alpha=1.25)["overlap"] == 1
    assert sum(abs(run["overlap"] - 1) < 0.1 for run in runs) >= 38


def test_bayes_optimal_simulation_sees_the_hard_phase():
    """Binary weights and signs at alpha = 1.37: perfect recovery dominates, message passing stays below."""
    model = sv.MultiIndex("sign(z)", prior="rademacher")
    bayes = [sv.simulate(model, sv.BayesOptimal(), alpha=1.37, d=600, seed=seed)["overlap"] for seed in range(6)]
    amp = [sv.simulate(model, sv.AMP(), alpha=1.37, d=600, seed=seed)["overlap"] for seed in range(6)]
    assert sv.predict(model, sv.BayesOptimal(), alpha=1.37)["overlap"] == 1
    assert min(bayes) > 0.999
    check_mean(amp, sv.predict(model, sv.AMP(), alpha=1.37)["overlap"], 600)


def test_nothing_is_found_below_weak_recovery():
    """Below its threshold the overlap is of order 1/sqrt(d): squared, 1/d."""
    runs = [sv.simulate(sv.MultiIndex("abs(z)"), sv.AMP(), alpha=0.3, d=1000, seed=seed) for seed in range(SEEDS)]
    assert np.mean([run["squared_overlap"] for run in runs]) < 30 / 1000


@pytest.mark.parametrize(
    "model",
    [
        sv.MultiIndex("relu(z)", noise=0.05),
        sv.MultiIndex("z**2", noise=0.25),
        sv.MultiIndex("abs(z)", noise=0.1),
        sv.MultiIndex("exp(z/2)", noise=0.3),
        sv.MultiIndex("he4(z)"),
        sv.MultiIndex("abs(z) < 1"),
    ],
    ids=lambda model: f"{model.target.name}, {model.noise:g}",
)
def test_doubled_nodes_agree_within_the_uncertainty(model):
    """Fixed points computed anew from a rule with twice the nodes, at the alpha where the table has them."""
    alpha = np.array([1.0, 1.2, 3.0])
    found = sv.predict(model, sv.AMP(), alpha=alpha)
    q = found["overlap"]
    inner = (q > 1e-3) & (q < 1 - 1e-6)
    finer = model.channel.scalar_information(1 - q[inner], fineness=2.0).information
    # A relative change of I acts like one of alpha: q moves by the uncertainty's own slope times it.
    table_error = np.abs(q[inner] / (1 - q[inner]) / finer / alpha[inner] - 1)
    around = sv.predict(model, sv.AMP(), alpha=np.array([0.99, 1.01]) * alpha[inner, None])["overlap"]
    slope = (around[:, 1] - around[:, 0]) / 0.02
    assert np.all(table_error * slope < 3 * found.uncertainty["overlap"][inner] + 1e-8)
