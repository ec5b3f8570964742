"""Descent on batches: what theory and runs owe each other, limits, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference.linear_descent import linear_descent

import solvable as sv

VALUES = {row["id"]: row for row in json.loads((Path(__file__).parents[3] / "reference/batch_values.json").read_text())}
HE3 = sv.MultiIndex("he3(z)/sqrt(6)")
PEERS = sv.MultiIndex("tanh(z1+he3(z2))")


def runs(model, learner, alpha: float, d: int, seeds: int) -> list[sv.Outcome]:
    return [sv.simulate(model, learner, alpha=alpha, d=d, seed=seed) for seed in range(seeds)]


def distances(model, learner, alpha: float, d: int, seeds: int) -> dict[str, float]:
    """How far the means of runs are from theory, in standard errors."""
    theory, found = sv.predict(model, learner, alpha=alpha), runs(model, learner, alpha, d, seeds)
    values = {name: np.array([run[name] for run in found]) for name in theory}
    return {
        name: (value.mean() - theory[name]) / np.hypot(value.std(ddof=1) / np.sqrt(seeds), theory.uncertainty[name])
        for name, value in values.items()
    }


def test_after_one_step_the_same_batch_and_fresh_ones_are_the_same():
    model = sv.MultiIndex("tanh(z)")
    same, fresh = (sv.predict(model, sv.BatchGD(1, 0.5, reuse, "erf", start=0.2), alpha=2.0) for reuse in (True, False))
    for name in same:
        assert abs(same[name] - fresh[name]) < 1e-8


@pytest.mark.slow
def test_after_one_step_several_neurons_do_not_know_either():
    same, fresh = (sv.predict(PEERS, sv.BatchGD(1, 0.5, reuse, "relu", 2), alpha=2.0) for reuse in (True, False))
    for name in same:
        assert abs(same[name] - fresh[name]) <= same.uncertainty[name] + fresh.uncertainty[name]


def test_two_steps_on_one_batch_find_what_fresh_ones_do_not():
    same, fresh = (sv.predict(HE3, sv.BatchGD(2, 1.0, reuse, "erf"), alpha=3.0) for reuse in (True, False))
    assert same.order_parameters["M"][0, 0] == pytest.approx(
        VALUES["d.two_step.He3/sqrt6.3.0.1.0"]["value"][3], abs=2e-4
    )
    assert same["cosine"] == pytest.approx(VALUES["d.dmft.cos"]["value"][0], abs=VALUES["d.dmft.cos"]["tol"])
    assert abs(fresh["cosine"]) < 1e-9


def test_more_steps_meet_the_known_values_and_say_how_they_were_found():
    found = sv.predict(HE3, sv.BatchGD(4, 1.0, activation="erf"), alpha=3.0)
    order = found.order_parameters
    cosine = order["M_path"][:, 0, 0] / np.sqrt(order["Q_path"][:, 0, 0])
    np.testing.assert_allclose(cosine[2:], VALUES["d.dmft.cos"]["value"], atol=VALUES["d.dmft.cos"]["tol"])
    assert cosine[4] == pytest.approx(found["cosine"], rel=1e-9)
    assert order["held_against_derivatives"] == 1 and 1 < order["condition"] < 1e3
    assert set(found.uncertainty) == set(found.metrics) and found.uncertainty["cosine"] < 3e-3


def test_a_linear_neuron_on_one_batch_is_exact_within_its_uncertainty():
    learner = sv.BatchGD(8, 0.2, activation="z", start=0.3, decay=0.3)
    found = sv.predict(sv.MultiIndex("z", noise=0.5), learner, alpha=3.0)
    M, Q = (part[-1] for part in linear_descent(3.0, 0.2, 8, 0.5, 0.3, 0.3))
    exact = {"cosine": M / np.sqrt(Q), "norm": np.sqrt(Q), "generalization_error": 1 - 2 * M + Q}
    for name, value in exact.items():
        assert abs(found[name] - value) <= found.uncertainty[name] < 1e-2


def test_a_linear_neuron_on_fresh_batches_follows_its_recursion():
    alpha, eta, lam, noise = 2.0, 0.3, 0.2, 0.5
    learner = sv.BatchGD(5, eta, False, "z", start=0.3, decay=lam)
    found = sv.predict(sv.MultiIndex("z", noise=noise), learner, alpha=alpha).order_parameters
    m, q, A, step = 0.3, 1.0, 1 - eta * lam, eta * alpha
    for t in range(1, 6):
        error = 1 - 2 * m + q  # |w* - w|^2, the square of the mean gradient too
        m, q = (
            A * m + step * (1 - m),
            A**2 * q + 2 * A * step * (m - q) + eta * step * (error + noise) + step**2 * error,
        )
        assert found["M_path"][t, 0, 0] == pytest.approx(m, abs=1e-9)
        assert found["Q_path"][t, 0, 0] == pytest.approx(q, abs=1e-9)


def test_without_samples_or_steps_nothing_is_learned():
    model = sv.MultiIndex("tanh(z)")
    for reuse in (True, False):
        nothing = sv.predict(model, sv.BatchGD(2, 1.0, reuse, "erf", start=0.4), alpha=0.0)
        assert nothing["cosine"] == pytest.approx(0.4, abs=1e-12) and nothing["norm"] == pytest.approx(1.0)
        still = sv.predict(model, sv.BatchGD(0, 1.0, reuse, "erf", start=0.4), alpha=2.0)
        assert still["cosine"] == pytest.approx(0.4, abs=1e-12)


def test_small_steps_add_up():
    # To first order in eta neither the noise of the gradient nor the memory of the batch matters.
    eta, steps = 1e-4, 2
    for reuse in (True, False):
        found = sv.predict(sv.MultiIndex("z"), sv.BatchGD(steps, eta, reuse, "erf"), alpha=3.0)
        slope = np.sqrt(2 / np.pi) / np.sqrt(2)  # E sigma'(h)
        assert found.order_parameters["M"][0, 0] / (eta * steps * 3.0 * slope) == pytest.approx(1, abs=1e-3)


def test_a_run_starts_where_it_was_told_and_is_reproducible():
    start, overlap = [[0.3, 0.1], [-0.2, 0.4]], [[1.0, 0.2], [0.2, 0.8]]
    learner = sv.BatchGD(2, 0.2, False, "relu", 2, start=start, self_overlap=overlap)
    first, second = (sv.simulate(PEERS, learner, alpha=1.0, d=40, seed=3) for _ in range(2))
    np.testing.assert_allclose(first.details["M_path"][0], start, atol=1e-12)
    np.testing.assert_allclose(first.details["Q_path"][0], overlap, atol=1e-12)
    assert first.metrics == second.metrics
    assert first.estimate.shape == (40, 2)
    other = sv.simulate(PEERS, learner, alpha=1.0, d=40, seed=4)
    assert other["cosine"] != first["cosine"]


def test_theory_and_runs_have_the_same_metrics():
    learner = sv.BatchGD(1, 0.2, False, "relu", 2)
    assert set(sv.predict(PEERS, learner, alpha=1.0)) == set(sv.simulate(PEERS, learner, alpha=1.0, d=30))


def test_other_labels_are_refused_in_words():
    probit = sv.MultiIndex(sv.channels.Probit(noise=0.5))
    contaminated = sv.MultiIndex("z", contamination=sv.Contamination(0.3, 0.0, 1.0))
    for model, words in ((probit, "named channel"), (contaminated, "contaminated")):
        with pytest.raises(sv.NotSolvable, match=words):
            sv.predict(model, sv.BatchGD(), alpha=1.0)
        with pytest.raises(sv.NotSimulable, match=words):
            sv.simulate(model, sv.BatchGD(), alpha=1.0, d=20)


@pytest.mark.parametrize("reuse", [True, False])
def test_descent_that_runs_away_is_never_converged(reuse):
    learner = sv.BatchGD(8, 1e9, reuse, "z**3")
    assert not sv.predict(sv.MultiIndex("z"), learner, alpha=2.0, throw=False).converged
    assert not sv.simulate(sv.MultiIndex("z"), learner, alpha=2.0, d=20).converged


def test_the_sign_of_the_target_does_not_matter_to_an_odd_neuron():
    learner = sv.BatchGD(2, 0.7, activation="erf", start=0.2)
    mirrored = sv.BatchGD(2, 0.7, activation="erf", start=-0.2)
    up, down = (sv.predict(sv.MultiIndex(t), s, alpha=1.5) for t, s in (("tanh(z)", learner), ("tanh(-z)", mirrored)))
    assert up["cosine"] == pytest.approx(-down["cosine"], abs=1e-9) and up["norm"] == pytest.approx(down["norm"])


CASES = {
    "one batch, erf": (HE3, sv.BatchGD(3, 1.0, activation="erf"), 3.0),
    "fresh, erf": (HE3, sv.BatchGD(3, 1.0, False, "erf", start=0.3), 3.0),
    "one batch, noise and decay": (sv.MultiIndex("tanh(z)", 0.2), sv.BatchGD(4, 0.5, start=0.2, decay=0.1), 2.0),
    "fresh, noise and decay": (sv.MultiIndex("tanh(z)", 0.2), sv.BatchGD(4, 0.5, False, start=0.2, decay=0.1), 2.0),
    "one batch, two neurons": (PEERS, sv.BatchGD(4, 0.2, width=2, start=[[0.3, 0.0], [0.0, 0.2]]), 3.0),
    "fresh, two neurons": (PEERS, sv.BatchGD(4, 0.2, False, width=2, start=[[0.3, 0.0], [0.0, 0.2]]), 3.0),
    "one batch, correlation": (
        sv.MultiIndex("z1*z2+z1"),
        sv.BatchGD(3, 0.3, activation="tanh(z+0.5)", loss="correlation", start=[[0.3, 0.2]]),
        2.0,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_runs_at_two_sizes_follow_the_theory(name):
    # A share that theory has near zero is of order 1/d in runs, and not held against theory.
    small, large = distances(*CASES[name], d=300, seeds=24), distances(*CASES[name], d=1200, seeds=24)
    assert max(abs(z) for key, z in large.items() if key != "share_2") < 4, large
    assert max(abs(z) for key, z in small.items() if key not in ("share_2", "squared_overlap")) < 5, small


@pytest.mark.slow
def test_the_stored_runs_of_other_authors_are_met():
    found = sv.predict(PEERS, sv.BatchGD(6, 0.2, width=2, start=np.zeros((2, 2))), alpha=3.0).order_parameters
    for step, id in ((4, "d.peer.sim.4"), (6, "d.peer.sim")):
        row = VALUES[id]
        np.testing.assert_allclose(found["M_path"][step, 0], row["value"], atol=max(row["tol"], 3.5e-3))


@pytest.mark.parametrize(("steps", "noise", "decay"), [(1, 0.015, 0.0), (2, 0.0, 0.135)])
def test_the_uncertainty_on_a_grid_covers_what_its_tails_leave_out(steps, noise, decay):
    """A linear neuron is known exactly, and its averages are of polynomials, which weigh the tails."""
    alpha, rate, start = 0.965, 0.28, 0.46
    learner = sv.BatchGD(steps, rate, activation="z", start=start, decay=decay)
    found = sv.predict(sv.MultiIndex("z", noise=noise), learner, alpha=alpha)
    M, Q = linear_descent(alpha, rate, steps, noise, decay, start)
    exact = {"cosine": M[-1] / np.sqrt(Q[-1]), "generalization_error": 1 - 2 * M[-1] + Q[-1]}
    for name, value in exact.items():
        assert abs(found[name] - value) <= found.uncertainty[name] + 1e-14, name
