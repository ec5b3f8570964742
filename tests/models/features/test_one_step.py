"""One giant step: known values, limits, independent equations, runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.features_equations import sampled_rows, spiked_ridge

import solvable as sv
from solvable.models.features.one_step.bulk import Isotropic
from solvable.models.features.one_step.grid import spiked_grid
from solvable.models.features.one_step.ridge import Setting, ridge_on_spikes
from solvable.models.features.one_step.run import layer_values, stepped_rows
from solvable.models.features.one_step.step import first_step
from solvable.numerics.fixed_point import solve_fixed_point
from solvable.targets.target import Target

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[2] / "reference" / "features_values.json").read_text())
}
TARGETS = {"sin": "sin(z)", "tanh": "tanh(z)", "tanh(x)+.3(x^2-1)": "tanh(z) + 0.3*(z**2 - 1)"}
MODEL = sv.TwoLayer("sin(z)", "tanh", 1.0)
RELU = sv.TwoLayer("sin(z)", "relu", 1.2)
_solved = jax.jit(ridge_on_spikes)


def spiked(p: dict, units: float = math.inf):
    """Ridge regression on features of a given spike, norm and alignment."""
    u, fractions = np.array(p.get("u", [1.0])), np.array(p.get("pi", [1.0]))
    with jax.enable_x64(True):
        norms = np.full(len(u), p["c"])
        activation, target = Target(f"{p['sigma']}(z)"), Target(TARGETS[p["g"]])
        grid = spiked_grid(activation, target, p["r"] * u, norms, p["gamma"])
        setting = Setting(*(jnp.asarray(x) for x in (p["lam"], 1 / p["beta"], p["noise"], 1 / units)))
        bulk = Isotropic(jnp.asarray(fractions), jnp.asarray(norms))
        return _solved(bulk, grid, jnp.asarray(p["alpha"]), setting, jnp.asarray(p["gamma"]))


@pytest.mark.parametrize("id", ["spike_1", "spike_2", "spike_3", "spike_relu_true"])
def test_the_spike(id):
    entry = VALUES[id]
    p = entry["params"] | ({"sigma": "relu", "g": "sin"} if id.endswith("true") else {})
    learner = sv.OneStep(0.1, p["eta"], p["alpha0"])
    step = first_step(sv.TwoLayer(f"{p['g']}(z)", f"{p['sigma']}(z)", 1.0), learner)
    found = float(step.spikes[0]), float(step.norms[0]), float(step.alignment)
    assert found == pytest.approx(entry["value"], abs=1e-6)


def test_the_published_spike():
    step = first_step(MODEL, sv.OneStep(0.1, 3.0, 20.0))
    found = float(step.spikes[0]), float(step.norms[0]), float(step.alignment)
    assert found == pytest.approx((1.134056, 1.018973, 0.971854), abs=1e-6)


@pytest.mark.parametrize(
    "id",
    [id for id in VALUES if id.startswith("srf") and "sigma" in VALUES[id]["params"] and "g" in VALUES[id]["params"]],
)
def test_ridge_on_spiked_features(id):
    entry = VALUES[id]
    found = spiked(entry["params"])
    assert (float(found.test), float(found.train)) == pytest.approx(entry["value"], abs=entry["tol"])
    if f"{id}_ov" in VALUES:
        overlaps = [float(x) for part in (found.m, found.zeta, found.psi) for x in part]
        assert overlaps == pytest.approx(VALUES[f"{id}_ov"]["value"], abs=1e-5)


def test_ridge_on_spiked_features_against_equations_written_independently():
    p = {"sigma": "tanh", "g": "sin", "r": 0.7, "c": 1.3, "gamma": 0.6, "alpha": 0.9, "beta": 1.6, "lam": 0.3}
    found = spiked(p | {"noise": 0.15})
    values = (p[name] for name in ("r", "c", "gamma", "alpha", "beta", "lam"))
    assert (float(found.test), float(found.train)) == pytest.approx(
        spiked_ridge(np.tanh, np.sin, *values, 0.15), rel=1e-9
    )


@pytest.mark.parametrize("id", ["onestep_0", "onestep_2", "onestep_3"])
def test_exact_and_isotropic_bulk(id):
    entry = VALUES[id]
    p = entry["params"]
    model = sv.TwoLayer(f"{p['g']}(z)", "tanh", p["beta"], p["noise"])
    exact, published = (
        sv.predict(model, sv.OneStep(p["lam"], p["eta"], p["alpha0"], bulk=bulk), alpha=p["alpha"])
        for bulk in ("exact", "isotropic")
    )
    found = exact["generalization_error"], exact["training_error"], published["generalization_error"]
    noise = p["noise"] * np.array([1, 0, 1])
    assert np.array(found) + noise == pytest.approx(entry["value"], abs=entry["tol"])


def test_the_exact_bulk_of_relu():
    found = [sv.predict(RELU, sv.OneStep(0.1, 2.0, 2.0), alpha=alpha) for alpha in (0.6, 1.7, 3.0)]
    assert [one["generalization_error"] for one in found] == pytest.approx([0.3555, 0.3230, 0.2972], abs=1e-4)
    assert found[1]["training_error"] == pytest.approx(VALUES["onestep_relu"]["value"][1], abs=1e-5)


def rows_at(model, learner, s):
    """L and the block of Lambda (1 + s Lambda)^-1."""
    from solvable.models.features.one_step.theory import ingredients

    with jax.enable_x64(True):
        bulk = ingredients(model, learner)[1][0]

        def dyson(n, _):
            return bulk.image(jnp.array([s, *n]), jnp.ones((1, 1)), jnp.zeros(1), 0.0)[1:]

        n = solve_fixed_point(dyson, jnp.array([-1.0, 1.0, 1.0]), None, damping=0.5).value
        return [float(x) for part in bulk.rows(s, n) for x in jnp.ravel(part)]


def test_the_covariance_of_the_rows():
    trace, vv, vp, _, pp = rows_at(RELU, sv.OneStep(0.1, 2.0, 2.0), 0.3)
    assert (trace, vv, vp, pp) == pytest.approx(VALUES["Lam_relu"]["value"], abs=1e-6)
    trace, vv, vp, _, pp = rows_at(MODEL, sv.OneStep(0.1, 3.0, 0.5), 1e-9)
    assert (vv, vp, pp, trace) == pytest.approx(VALUES["Lam_aniso"]["value"], abs=1e-4)


@pytest.mark.slow
def test_the_covariance_of_the_rows_is_that_of_a_sample():
    d, s = 1200, 0.4
    Lambda = sampled_rows(3.0, 0.5, d, np.random.default_rng(0))
    sampled = np.trace(Lambda @ np.linalg.inv(np.eye(d) + s * Lambda)) / d
    assert rows_at(MODEL, sv.OneStep(0.1, 3.0, 0.5), s)[0] == pytest.approx(sampled, rel=0.01)


def test_an_even_activation_has_no_linear_part():
    """abs leaves no spike, and what rounding leaves of its slope has no direction."""
    model, learner = sv.TwoLayer("z + (z**2 - 1)/2", "abs(z)", 1.0, noise=0.1), sv.OneStep(0.2, 1.0, 3.0)
    found = sv.predict(model, learner, alpha=1.5)
    frozen = sv.predict(model, sv.RandomFeatures(0.2), alpha=1.5)
    assert found["cosine"] == found["squared_overlap"] == frozen["cosine"] == 0
    assert 0.8 < found["generalization_error"] / frozen["generalization_error"] < 1.2
    assert sv.simulate(model, learner, alpha=1.5, d=20, seed=0)["cosine"] == 0


def test_no_step_leaves_random_features():
    for model in (MODEL, RELU):
        stepped = sv.predict(model, sv.OneStep(0.1, 0.0, 0.5), alpha=0.6)
        frozen = sv.predict(model, sv.RandomFeatures(0.1), alpha=0.6)
        for name in ("generalization_error", "training_error", "cosine"):
            assert stepped[name] == pytest.approx(frozen[name], abs=1e-9)


def test_the_bulk_is_isotropic_for_large_batches_of_an_odd_activation():
    exact, published = (
        sv.predict(MODEL, sv.OneStep(0.1, 3.0, math.inf, bulk=bulk), alpha=0.6) for bulk in ("exact", "isotropic")
    )
    assert exact["generalization_error"] == pytest.approx(published["generalization_error"], abs=1e-10)
    near = sv.predict(MODEL, sv.OneStep(0.1, 3.0, 1e7), alpha=0.6)
    assert near["generalization_error"] == pytest.approx(exact["generalization_error"], abs=1e-6)


def test_the_published_configuration():
    learner = sv.OneStep(0.1, 3.0, 20.0, bulk="isotropic")
    found = [sv.predict(MODEL, learner, alpha=alpha)["generalization_error"] for alpha in (0.2, 0.9, 1.6, 2.3, 3.0)]
    assert found == pytest.approx([0.0484829, 0.0425039, 0.0373113, 0.0343047, 0.0325182], abs=1e-6)


def test_units_that_may_be_turned_around_are_one():
    learners = [sv.OneStep(0.1, 3.0, 2.0, layer) for layer in ("ones", {1: 0.5, -1: 0.5}, "1:0.3 -1:0.7")]
    found = [sv.predict(MODEL, learner, alpha=0.6)["generalization_error"] for learner in learners]
    assert found[1] == found[0] and found[2] == found[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.OneStep(0.0, 1.0, 1.0), "penalty = 0.0 is not allowed"),
        (lambda: sv.OneStep(0.1, -1.0, 1.0), "step = -1.0 is not allowed"),
        (lambda: sv.OneStep(0.1, 1.0, 0.0), "batch = 0.0 is not allowed"),
        (lambda: sv.OneStep(0.1, 1.0, 1.0, {1: 0.5, 2: 0.4}), "second_layer = .* is not allowed"),
        (lambda: sv.OneStep(0.1, 1.0, 1.0, bulk="round"), "bulk = 'round' is not allowed"),
        (
            lambda: sv.predict(MODEL, sv.OneStep(0.1, 1.0, 1.0, {1: 0.5, 2: 0.5}), alpha=1.0),
            "bulk = 'exact' is not allowed",
        ),
        (
            lambda: sv.predict(RELU, sv.OneStep(0.1, 1.0, 1.0, "gaussian:32", bulk="isotropic"), alpha=1.0),
            "second_layer = '32 values' is not allowed",
        ),
        (lambda: sv.simulate(MODEL, sv.OneStep(0.1, 1.0, math.inf), alpha=1.0, d=20), "batch = inf is not allowed"),
        (lambda: sv.predict(sv.TwoLayer("z1*z2", "tanh", 1.0), sv.OneStep(0.1, 1.0, 1.0), alpha=1.0), "target = "),
        (lambda: sv.predict(sv.TwoLayer("z", "sign", 1.0), sv.OneStep(0.1, 1.0, 1.0), alpha=1.0), "activation = "),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_run_takes_the_step():
    """The spike, the length and the alignment of its rows are those of theory, to a few root d."""
    learner, d = sv.OneStep(0.1, 3.0, 0.5), 300
    truth = np.zeros((d, 1))
    truth[0] = 1
    W = stepped_rows(MODEL, learner, truth, np.random.default_rng(0))
    step = first_step(MODEL, learner)
    spike = W.mean(axis=0)
    assert np.linalg.norm(spike) == pytest.approx(float(step.spikes[0]), rel=0.15)
    assert spike[0] / np.linalg.norm(spike) == pytest.approx(float(step.alignment), abs=0.15)
    assert np.mean(np.sum((W - spike) ** 2, axis=1)) == pytest.approx(float(step.norms[0]), rel=0.15)
    assert sorted(layer_values(((-1.0, 0.4), (2.0, 0.6)), 5)) == [-1, -1, 2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "learner", "metrics"),
    [
        (MODEL, sv.OneStep(0.1, 3.0, 0.5), ("generalization_error", "training_error", "cosine")),
        (RELU, sv.OneStep(0.1, 2.0, 2.0), ("generalization_error", "training_error")),
        (sv.TwoLayer("sign(z)", "tanh", 1.0), sv.OneStep(0.05, 3.0, 0.5, loss="logistic"), ("classification_error",)),
    ],
)
def test_runs_agree_at_two_sizes(model, learner, metrics):
    found = sv.predict(model, learner, alpha=1.3)
    for d, seeds in ((100, 24), (300, 16)):
        runs = [sv.simulate(model, learner, alpha=1.3, d=d, seed=seed) for seed in range(seeds)]
        for name in metrics:
            values = np.array([run[name] for run in runs])
            assert abs(values.mean() - found[name]) < 4 * values.std(ddof=1) / math.sqrt(seeds) + 1.5 / d, (name, d)


THREE = sv.TwoLayer("sin(z) + 0.3*(z**2 - 1)", "tanh", 1.0)


def of_values(units: int | None) -> sv.OneStep:
    return sv.OneStep(0.1, 1.5, 12.0, {1: 0.4, -1: 0.35, 2: 0.25}, bulk="isotropic", units=units)


def test_several_values_at_a_finite_number_of_units():
    found = [sv.predict(THREE, of_values(units), alpha=0.7)["generalization_error"] for units in (None, 300, 800)]
    assert found == pytest.approx([0.3068, 0.3224, 0.3151], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "layer", "alpha"),
    [
        (THREE, {1: 0.4, -1: 0.35, 2: 0.25}, 0.7),
        (sv.TwoLayer("sin(z)", "relu", 1.2), {1: 0.5, -1: 0.5}, 1.3),
        (sv.TwoLayer("sin(z)", "erf(z)", 1.0), "gaussian:8", 1.0),
    ],
)
def test_several_values_agree_with_runs_at_two_sizes(model, layer, alpha):
    """The bulk is isotropic for a large batch; theory counts the units of the runs."""
    for d, seeds in ((100, 24), (250, 16)):
        learner = sv.OneStep(0.1, 1.5, 12.0, layer, bulk="isotropic", units=model.units(d))
        found = sv.predict(model, learner, alpha=alpha)
        runs = [sv.simulate(model, learner, alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
        for name in ("generalization_error", "training_error"):
            values = np.array([run[name] for run in runs])
            assert abs(values.mean() - found[name]) < 4 * values.std(ddof=1) / math.sqrt(seeds) + 1.5 / d, (name, d)
