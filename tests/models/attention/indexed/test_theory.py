"""Attention-indexed models in theory: known values, identities with other models, limits, and the hardmax channel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import solvable as sv
from solvable.models.attention.indexed.hardmax import HardmaxLabels, HardmaxOutput, sample_information

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[3] / "reference" / "attention_values.json").read_text())
}
SOFTMAX = [name for name in VALUES if name.startswith("aim_softmax_mmse")]
HARDMAX = [name for name in VALUES if name.startswith("aim_hardmax2_mmse")]


def error(model, alpha):
    found = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    assert np.all(found.converged)
    return found["estimation_error"]


@pytest.mark.parametrize("name", SOFTMAX)
def test_known_errors_of_softmax(name):
    entry = VALUES[name]
    p = entry["params"]
    assert abs(error(sv.AttentionIndexed(p["rho"], p["T"]), p["alpha"]) - entry["value"]) < entry["tol"]


@pytest.mark.parametrize("name", HARDMAX)
def test_known_errors_of_hardmax(name):
    entry = VALUES[name]
    p = entry["params"]
    assert abs(error(sv.AttentionIndexed(p["rho"], 2, "hardmax"), p["alpha"]) - entry["value"]) < entry["tol"]


def test_errors_collapse_over_the_number_of_tokens():
    """A softmax label of T tokens is T (T + 1)/2 - 1 measurements, whatever the temperature."""
    found = [error(sv.AttentionIndexed(0.5, T, beta=T), 0.4 / (T**2 + T - 2)) for T in (2, 3, 5)]
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


def test_a_softmax_label_is_as_good_as_labels_of_a_quadratic_network():
    assert error(sv.AttentionIndexed(0.5, 3), 0.04) == pytest.approx(error(sv.QuadraticNetwork(0.5), 0.2), rel=1e-12)


def test_untied_layers_are_bilinear_sequences():
    untied = sv.AttentionIndexed(0.5, 3, tied=False)
    assert error(untied, 0.06) == pytest.approx(error(sv.BilinearSequence(0.5), 0.36), rel=1e-12)
    found = sv.thresholds(untied)
    assert found["strong_recovery"] == pytest.approx(0.75 / 6) and found["narrow_weak_recovery"] == pytest.approx(
        0.5 / 6
    )


def test_thresholds_of_tied_layers():
    for rho, T, strong in ((0.5, 2, 0.1875), (0.37, 3, 0.06031), (1.7, 4, 1 / 18)):
        found = sv.thresholds(sv.AttentionIndexed(rho, T))
        assert found["strong_recovery"] == pytest.approx(strong, rel=1e-12)
        assert found["narrow_weak_recovery"] == pytest.approx(rho / (T**2 + T - 2), rel=1e-12)
    at = sv.thresholds(sv.AttentionIndexed(0.5, 2))["strong_recovery"]
    below, above = error(sv.AttentionIndexed(0.5, 2), [at - 1e-4, at + 1e-4])
    assert 0 < below < 1e-3 and above == 0


def test_the_narrow_threshold_of_hardmax_is_its_closed_form():
    same = 0.25 + np.arcsin(1 / 3) / (2 * np.pi)
    closed = (16 / same + 8 / (0.5 - same)) / (24 * np.pi)
    assert sample_information(0.0) == pytest.approx(closed, rel=1e-12)
    found = sv.thresholds(sv.AttentionIndexed(0.02, 2, "hardmax"))
    assert found["narrow_weak_recovery"] / 0.02 == pytest.approx(1 / (2 * closed)) and np.isinf(
        found["strong_recovery"]
    )


def test_information_of_hardmax_is_that_of_drawn_scores():
    """With h = omega + noise drawn in pairs of one label, E[d d'] over pairs is the square of the posterior mean."""
    rng, ratio, scale = np.random.default_rng(0), 3.0, np.array([np.sqrt(2), 1.0, np.sqrt(2)])
    omega = np.sqrt(ratio) * rng.standard_normal((4000, 1, 3)) * scale
    noise = rng.standard_normal((4000, 400, 3))
    h = omega + noise * scale
    label = 2 * (h[..., 0] > h[..., 1]) + (h[..., 2] > h[..., 1])
    found = np.zeros(4000)
    for one in range(4):
        inside = (label == one)[..., None]
        count = inside.sum((1, 2))
        total, squares = (inside * noise).sum(1), (inside * noise**2).sum((1, 2))
        found += np.where(count > 1, ((total**2).sum(1) - squares) / np.maximum(count - 1, 1), 0.0) / 400
    standard_error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - sample_information(ratio)) < 4 * standard_error and standard_error < 0.01


def test_a_finer_rule_stays_within_the_stated_error():
    output, V = HardmaxOutput(0.7), np.array([0.8, 0.2, 1e-3, 1e-6])
    finer = np.array([sample_information((1.7 - v) / v, 1.5) / v for v in V])
    stated = output.information_error(V)
    assert np.all(np.abs(output.information(V) / finer - 1) < stated) and np.all(stated < 1e-5)


def test_the_denoiser_of_hardmax_is_the_slope_of_its_evidence():
    rng, V = np.random.default_rng(1), 0.4
    Omega, y = rng.standard_normal((12, 1)), np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    step = HardmaxLabels(y)(Omega, np.full((1, 1), V))
    scale = np.array([np.sqrt(2), 1.0, np.sqrt(2)])

    def log_Z(omega, signs):
        h = omega * scale
        covariance = V * np.array([[3.0, signs[0] * signs[1]], [signs[0] * signs[1], 3.0]])
        mean = signs * np.array([h[0] - h[1], h[2] - h[1]])
        return float(multivariate_normal(cov=covariance).logcdf(mean))

    shift = 1e-3 * np.eye(3)
    rows = Omega.reshape(-1, 3)
    slopes = [[(log_Z(w + e, s) - log_Z(w - e, s)) / 2e-3 for e in shift] for w, s in zip(rows, y, strict=True)]
    bends = [
        [(log_Z(w + e, s) - 2 * log_Z(w, s) + log_Z(w - e, s)) / 1e-6 for e in shift]
        for w, s in zip(rows, y, strict=True)
    ]
    np.testing.assert_allclose(step.g.reshape(-1, 3), slopes, atol=1e-5)
    assert step.minus_derivative[0, 0] == pytest.approx(-np.mean(bends), abs=1e-3)


def test_edges():
    model = sv.AttentionIndexed(0.5, 2, "hardmax")
    found = error(model, [0.0, 1e-9, 0.2, 2.0, 100.0])
    assert found[0] == 1 and found[1] == pytest.approx(1, abs=1e-8) and np.all(np.diff(found) < 0)
    assert np.all(sv.predict(model, sv.AMP(), alpha=0.3)["estimation_error"] == error(model, 0.3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rho": -0.5, "tokens": 2}, "rho = -0.5"),
        ({"rho": 0.5, "tokens": 1}, "tokens = 1"),
        (
            {"rho": 0.5, "tokens": 5, "output": "hardmax"},
            "tokens = 5 .* must be 2 to 4 for hardmax",
        ),
        ({"rho": 0.5, "tokens": 2, "output": "max"}, "output = 'max'"),
        ({"rho": 0.5, "tokens": 2, "output": "hardmax", "tied": 1}, "tied = 1"),
        ({"rho": 0.5, "tokens": 2, "beta": 0.0}, "beta = 0.0"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sv.AttentionIndexed(**arguments)


def test_descent_is_conjectured_to_end_at_samples_of_the_posterior():
    model, alpha = sv.AttentionIndexed(0.5, 2), 0.1
    best, one, many = (
        sv.predict(model, learner, alpha=alpha)
        for learner in (sv.BayesOptimal(), sv.GradientDescent(), sv.GradientDescent(runs=4))
    )
    assert one["estimation_error"] == pytest.approx(2 * best["estimation_error"])
    assert many["estimation_error"] == pytest.approx(1.25 * best["estimation_error"])
    assert one["squared_overlap"] < many["squared_overlap"] < best["squared_overlap"]
    with pytest.raises(sv.NotSolvable, match="softmax"):
        sv.predict(sv.AttentionIndexed(0.5, 2, "hardmax"), sv.GradientDescent(), alpha=alpha)
