"""Gradient ascent on the likelihood of a Boltzmann machine: known runs, a unit that is solved exactly, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference.machine_equations import gaussian_ascent

import solvable as sv

VALUES = {
    row["id"]: row for row in json.loads((Path(__file__).parents[3] / "reference/machine_values.json").read_text())
}


def course(row, steps):
    given = row["params"]
    learner = sv.RBMAscent(
        steps=steps, learning_rate=given["rate"], start=given["start"], self_overlap=given["self_overlap"]
    )
    return sv.predict(sv.SpikedCovariance(given["snr"]), learner, alpha=given["alpha"])


@pytest.mark.parametrize("id", [pytest.param("rbm_ascent_1.5", marks=pytest.mark.slow), "rbm_ascent_1.0"])
def test_known_runs(id):
    row = VALUES[id]
    found = course(row, 10).order_parameters
    for t, (M, M_error, Q, Q_error) in row["value"].items():
        assert abs(found["M_path"][int(t), 0, 0] - M) < row["tol"] * M_error
        assert abs(found["Q_path"][int(t), 0, 0] - Q) < row["tol"] * Q_error


def test_a_gaussian_unit_follows_the_spectrum_of_the_samples():
    alpha, snr, rate, steps = 2.0, 1.5, 0.02, 6
    learner = sv.RBMAscent("gaussian", steps=steps, learning_rate=rate, start=0.1, self_overlap=0.2)
    found = sv.predict(sv.SpikedCovariance(snr), learner, alpha=alpha)
    M, Q = gaussian_ascent(alpha, snr, rate, steps, 0.1, 0.2)
    assert abs(found["squared_norm"] - Q[-1]) < found.uncertainty["squared_norm"] + 1e-6
    assert abs(found["squared_overlap"] - M[-1] ** 2 / Q[-1]) < found.uncertainty["squared_overlap"] + 1e-6


@pytest.mark.parametrize("learner", [
    {"steps": 3, "learning_rate": 0.3, "start": 0.2, "self_overlap": 1.0},
    pytest.param({"units": 2, "steps": 4, "start": (0.3, -0.1), "self_overlap": 0.6}, marks=pytest.mark.slow),
])  # fmt: skip
def test_runs_follow_it(learner):
    model, learner = sv.SpikedCovariance(1.5), sv.RBMAscent(**learner)
    theory = sv.predict(model, learner, alpha=2.0)
    runs = [sv.simulate(model, learner, alpha=2.0, d=400, seed=seed) for seed in range(8)]
    for metric in ("squared_overlap", "squared_norm"):
        found = np.array([run[metric] for run in runs])
        error = np.hypot(found.std(ddof=1) / np.sqrt(len(runs)), theory.uncertainty[metric])
        assert abs(found.mean() - theory[metric]) < 4 * error + 2 / 400


def test_without_steps_nothing_moves():
    found = sv.predict(sv.SpikedCovariance(1.5), sv.RBMAscent(steps=0, start=0.2, self_overlap=0.5), alpha=2.0)
    assert found["squared_overlap"] == pytest.approx(0.08) and found["squared_norm"] == pytest.approx(0.5)


@pytest.mark.parametrize(("given", "words"), [
    ({"start": 1.0, "self_overlap": 0.5}, "overlaps that fit together"),
    ({"units": 2, "start": (0.1, 0.1, 0.1)}, "2 of them, one for each unit"),
    ({"hidden": "gaussian", "self_overlap": 1.0}, "below 1 for Gaussian units"),
    ({"learning_rate": 0.0}, "a positive number"),
])  # fmt: skip
def test_what_does_not_fit_is_said(given, words):
    with pytest.raises(ValueError, match=words):
        sv.RBMAscent(**given)
