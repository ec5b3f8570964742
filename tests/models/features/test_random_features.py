"""Random features of a two-layer network: known values, limits, independent equations, runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from reference.features_equations import marchenko_pastur, random_feature_ridge

import solvable as sv
from solvable.models.features.two_layer.averages import moments
from solvable.targets.target import Target

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[2] / "reference" / "features_values.json").read_text())
}
RIDGE = sv.RandomFeatures(0.05)
MODEL = sv.TwoLayer("sin(z)", "tanh", 0.83, noise=0.1)


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "relu", "sign"])
def test_gaussian_equivalents_of_activations(name):
    entry = VALUES[f"ge_{name}"]
    found = moments(Target(f"{name}(z)"))
    assert (found.mean, found.slope, math.sqrt(found.rest)) == pytest.approx(entry["value"], abs=entry["tol"])


@pytest.mark.parametrize("id", [id for id in VALUES if id.startswith("rf_ridge") and not id.endswith("relu")])
def test_ridge_values(id):
    entry = VALUES[id]
    p = entry["params"]
    model = sv.TwoLayer("sin(z)", "tanh", p["beta_p_over_d"], p["noise"])
    found = sv.predict(model, sv.RandomFeatures(p["lam"]), alpha=p["alpha_n_over_d"])
    values = found["generalization_error"] + p["noise"], found["training_error"]
    assert values == pytest.approx(entry["value"], abs=entry["tol"])


def test_the_mean_is_fitted_through_the_mean_of_the_activation():
    entry = VALUES["rf_ridge_relu"]
    p = entry["params"]
    for target in ("z", "z + 3"):
        found = sv.predict(sv.TwoLayer(target, "relu", p["beta"], 0.25), sv.RandomFeatures(p["lam"]), alpha=p["alpha"])
        assert found["generalization_error"] + 0.25 == pytest.approx(entry["value"][0], abs=1e-9)
        assert found["training_error"] == pytest.approx(entry["value"][1], abs=1e-9)
    odd = [sv.predict(sv.TwoLayer(target, "tanh", 1.0), RIDGE, alpha=1.0) for target in ("z", "z + 0.5")]
    assert odd[1]["generalization_error"] > odd[0]["generalization_error"] + 0.25


def test_the_must_meet_point():
    found = sv.predict(MODEL, RIDGE, alpha=1.37)
    assert found["generalization_error"] + 0.1 == pytest.approx(0.4791437878, abs=1e-9)
    assert found["training_error"] == pytest.approx(0.1357633623, abs=1e-9)


@pytest.mark.parametrize(("alpha", "width", "penalty"), [(0.4, 2.1, 0.3), (2.7, 0.6, 1e-3), (1.0, 1.1, 1e-5)])
def test_ridge_against_equations_written_independently(alpha, width, penalty):
    found = sv.predict(sv.TwoLayer("sin(z)", "tanh", width, 0.2), sv.RandomFeatures(penalty), alpha=alpha)
    test, train = random_feature_ridge(np.tanh, np.sin, alpha, width, penalty, 0.2)
    assert found["generalization_error"] + 0.2 == pytest.approx(test, rel=1e-8)
    assert found["training_error"] == pytest.approx(train, rel=1e-8)


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0, 30.0])
def test_much_data_leaves_the_noise_of_the_features(width):
    """s2 + t1^2 (1/d) Tr (1 + (mu1/mu*)^2 W^T W)^-1 as n -> infinity."""
    sigma = moments(Target("tanh(z)"))
    x, weight = marchenko_pastur(1 / width, width)  # of W^T W: d x d
    floor = weight @ (1 / (1 + sigma.slope**2 / sigma.rest * x))
    found = sv.predict(sv.TwoLayer("z", "tanh", width, 0.3), sv.RandomFeatures(0.1), alpha=1e9)
    assert found["generalization_error"] == pytest.approx(floor, abs=2e-7)


def test_limits_of_width_and_penalty():
    alpha = np.array([0.3, 0.9, 2.0])
    kernel = sv.predict(sv.TwoLayer("sin(z)", "tanh", math.inf, 0.1), RIDGE, alpha=alpha)
    wide = sv.predict(sv.TwoLayer("sin(z)", "tanh", 1e8, 0.1), RIDGE, alpha=alpha)
    assert kernel["generalization_error"] == pytest.approx(wide["generalization_error"], abs=1e-6)
    zero, small = (sv.predict(MODEL, sv.RandomFeatures(p), alpha=alpha) for p in (0.0, 1e-12))
    assert zero["generalization_error"] == pytest.approx(small["generalization_error"], rel=1e-6)
    assert zero["training_error"][0] == 0 and zero["training_error"][2] == pytest.approx(small["training_error"][2])


def test_the_peak_at_interpolation():
    """It grows as the inverse root of the penalty, and without penalty it is refused."""
    model = sv.TwoLayer("sin(z)", "tanh", 1.0)
    heights = [sv.predict(model, sv.RandomFeatures(p), alpha=1.0)["generalization_error"] for p in (1e-4, 1e-6, 1e-8)]
    assert heights == pytest.approx([2.763, 25.98, 258.2], rel=1e-3)
    assert sv.thresholds(model)["interpolation"] == 1.0
    with pytest.raises(sv.ConvergenceError):
        sv.predict(model, sv.RandomFeatures(0.0), alpha=1.0)


def test_linear_features_are_ridge_regression_in_disguise():
    """With sigma(z) = z and more units than dimensions there are d features only: least squares beyond n = d."""
    found = sv.predict(sv.TwoLayer("z", "z", 2.0, 0.1), sv.RandomFeatures(0.0), alpha=2.0)
    assert found["generalization_error"] == pytest.approx(0.1 / (2.0 - 1.0), abs=1e-12)
    assert sv.thresholds(sv.TwoLayer("z", "z", 2.0))["interpolation"] == 1.0


def test_several_projections_count_by_their_linear_part():
    turned = sv.TwoLayer("0.6*z1 + 0.8*z2", "tanh", 1.0, 0.2)
    found, one = (sv.predict(model, RIDGE, alpha=1.4) for model in (turned, sv.TwoLayer("z", "tanh", 1.0, 0.2)))
    assert found["generalization_error"] == pytest.approx(one["generalization_error"], abs=1e-8)


def test_errors_do_not_grow_with_samples_at_the_best_penalty():
    best = [sv.optimize(MODEL, RIDGE, alpha=alpha) for alpha in (0.5, 1.5)]
    assert best[0].method == "gradient"
    assert best[1].prediction["generalization_error"] < best[0].prediction["generalization_error"]


@pytest.mark.parametrize("id", ["rf_logistic_0", "rf_logistic_1", "rf_logistic_2"])
def test_logistic_values(id):
    entry = VALUES[id]
    p = entry["params"]
    found = sv.predict(
        sv.TwoLayer("sign(z)", "tanh", p["beta"]), sv.RandomFeatures(p["lam"], "logistic"), alpha=p["alpha"]
    )
    values = found["classification_error"], found["training_loss"], found.order_parameters["Q2"]
    assert values == pytest.approx(entry["value"], abs=entry["tol"])
    # The sign of a Gaussian output at this cosine of both projections.
    mu, q = moments(Target("tanh(z)")), found.order_parameters
    angle = mu.slope * q["psi"] / math.sqrt(mu.slope**2 * q["Q1"] + mu.rest * q["Q2"])
    assert found["classification_error"] == pytest.approx(math.acos(angle) / math.pi, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.TwoLayer("sin(z)", "tanh", 0.0), "width = 0.0 is not allowed"),
        (lambda: sv.TwoLayer("sin(z)", "tanh", -math.inf), "width = -inf is not allowed"),
        (lambda: sv.TwoLayer("sin(z)", "1 + 0*z", 1.0), "activation"),
        (lambda: sv.TwoLayer("sin(z)", "tanh", 1.0, -1.0), "noise = -1.0 is not allowed"),
        (lambda: sv.RandomFeatures(-1.0), "penalty = -1.0 is not allowed"),
        (lambda: sv.RandomFeatures(1.0, "hinge"), "loss = 'hinge' is not allowed"),
        (lambda: sv.predict(MODEL, sv.RandomFeatures(0.1, "logistic"), alpha=1.0), "noise = 0.1 is not allowed"),
        (
            lambda: sv.predict(sv.TwoLayer("sin(z)", "tanh", 1.0), sv.RandomFeatures(0.1, "logistic"), alpha=1.0),
            "target = 'sin",
        ),
        (
            lambda: sv.simulate(sv.TwoLayer("sin(z)", "tanh", math.inf), RIDGE, alpha=1.0, d=20),
            "width = inf is not allowed",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_derivative_in_the_penalty():
    def error(penalty):
        return sv.predict(MODEL, sv.RandomFeatures(penalty), alpha=1.1)["generalization_error"]

    from solvable.models.features.two_layer.random_features import random_features

    with jax.enable_x64(True):
        slope = jax.jvp(
            lambda p: random_features(MODEL, sv.RandomFeatures(p), np.array([1.1])).metrics["generalization_error"][0],
            (0.2,),
            (1.0,),
        )[1]
    assert float(slope) == pytest.approx((error(0.2 + 1e-5) - error(0.2 - 1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "learner", "metrics"),
    [
        (MODEL, RIDGE, ("generalization_error", "training_error", "cosine")),
        (
            sv.TwoLayer("sign(z)", "tanh", 1.2),
            sv.RandomFeatures(0.05, "logistic"),
            ("classification_error", "training_loss", "cosine"),
        ),
        (
            sv.TwoLayer("sign(z - 0.7)", "relu", 1.2),
            sv.RandomFeatures(0.05, "logistic"),
            ("classification_error", "training_loss"),
        ),
    ],
)
def test_runs_agree_at_two_sizes(model, learner, metrics):
    found = sv.predict(model, learner, alpha=1.37)
    for d, seeds in ((100, 24), (300, 16)):
        runs = [sv.simulate(model, learner, alpha=1.37, d=d, seed=seed) for seed in range(seeds)]
        for name in metrics:
            values = np.array([run[name] for run in runs])
            assert abs(values.mean() - found[name]) < 4 * values.std(ddof=1) / math.sqrt(seeds) + 1.5 / d, (name, d)


def test_the_uncertainty_covers_the_tails_of_a_steep_target():
    """E exp(z^2/5)^2 = 1/sqrt(1 - 4/5), of which what lies beyond the last node is 1e-9."""
    found = sv.predict(sv.TwoLayer("exp(z**2/5)", "tanh", 1.0), sv.RandomFeatures(0.1), alpha=0.0)
    error = abs(found["generalization_error"] - 5**0.5)
    assert 1e-10 < error <= found.uncertainty["generalization_error"] < 1e-4
