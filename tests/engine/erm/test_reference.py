"""Empirical risk minimisation against known values: closed forms and an independent program's numbers.

`reference/erm_values.json` holds them with tolerance and source. There rho is |w*|^2/d; here it is always 1, and a
teacher of another norm is a steeper target: m is then smaller by sqrt(rho), and q, V and the losses are the same.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from reference import erm_equations as equations

import solvable as sv
from solvable.core.learners import BayesOptimal
from solvable.engine.erm.thresholds import lasso_recovery, separability

ENTRIES = json.loads((Path(__file__).parents[2] / "reference" / "erm_values.json").read_text())
VALUES = {entry["id"]: entry for entry in ENTRIES}
LOSSES = {
    "erm_ridge_1": sv.losses.Square(),
    "erm_square": sv.losses.Square(),
    "erm_huber1": sv.losses.Huber(1.0),
    "erm_huber_awk": sv.losses.Huber(0.73),
    "erm_abs": sv.losses.Absolute(),
    "erm_tukey3": sv.losses.Tukey(3.0),
    "erm_tukey_awk": sv.losses.Tukey(2.7),
    "erm_negridge_tukey": sv.losses.Tukey(4.0),
    "erm_cosine": sv.losses.Cosine(1.2),
    "class_logistic": sv.losses.Logistic(),
    "class_log_awk": sv.losses.Logistic(),
    "class_log_logit": sv.losses.Logistic(),
    "class_hinge": sv.losses.Hinge(),
    "class_square_margin": sv.losses.Square(),
    "lasso": sv.losses.Square(),
}
QUANTITIES = {
    "egen": "generalization_error",
    "train": "training_loss",
    "replicon": "replicon",
    "eg": "classification_error",
}


def model_of(setting: str, params: dict) -> sv.MultiIndex:
    rho = params.get("rho", 1)
    if setting == "lasso":
        return sv.MultiIndex("z", noise=params["Delta"], prior=f"gauss-bernoulli:{params['rs']}")
    if setting == "class_log_logit":
        return sv.MultiIndex(sv.channels.Logit(1.0))
    if setting == "class_log_awk":
        return sv.MultiIndex(sv.channels.Probit(noise=params["Delta"] / rho))
    if setting.startswith("class"):
        return sv.MultiIndex("sign(z)")
    (clean, *others) = params.get("comps", [{"p": 1, "beta": 1, "Delta": params.get("Delta")}])
    assert clean["beta"] == 1
    parts = [sv.Contamination(part["p"], part["beta"], part["Delta"]) for part in others]
    return sv.MultiIndex("z" if rho == 1 else f"sqrt({rho})*z", noise=clean["Delta"], contamination=parts or None)


@functools.cache
def solved(setting: str) -> sv.Prediction:
    params = next(entry["params"] for entry in ENTRIES if entry["id"].startswith(setting))
    penalty = (sv.Lasso if setting == "lasso" else sv.Ridge)(params["lam"])
    return sv.predict(model_of(setting, params), sv.ERM(LOSSES[setting], penalty), alpha=params["alpha"])


def split(name: str) -> tuple[str, str]:
    """The setting of an entry, and the quantity; the error where the name has none."""
    setting = max((key for key in LOSSES if name.startswith(key)), key=len)
    return setting, name.removeprefix(setting).removeprefix("_") or "egen"


SOLVED = [entry["id"] for entry in ENTRIES if entry["id"].startswith(tuple(LOSSES))]
SLOW = (
    "erm_cosine",
    "erm_abs",
    "erm_tukey_awk",
    "erm_huber_awk",
    "class_log_awk",
    "class_square_margin",
    "class_log_logit",
    "lasso",
)
"""Settings whose programs take longest to compile; their equations are checked by `test_erm_equations.py`."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * n.startswith(SLOW)) for n in SOLVED])
def test_known_value(name):
    entry, (setting, quantity) = VALUES[name], split(name)
    found = solved(setting)
    value = found[QUANTITIES[quantity]] if quantity in QUANTITIES else found.order_parameters[quantity]
    if quantity == "m":
        value *= np.sqrt(entry["params"].get("rho", 1))
    assert found.converged
    assert value == pytest.approx(entry.get("right", entry["value"]), abs=entry["tolerance"], rel=0)
    if "known_wrong" in entry:
        assert abs(value - entry["value"]) > 1000 * entry["tolerance"]


@pytest.mark.slow
@pytest.mark.parametrize("setting, profile", [("huber", equations.huber(0.73)), ("tukey", equations.tukey(2.7))])
def test_values_known_wrong_left_the_teachers_norm_out(setting, profile):
    """Plain damped iteration: with rho = 1 in the weights' equations it gives the wrong numbers, with rho the right."""
    entries = {name.rpartition("_")[2]: VALUES[name] for name in SOLVED if name.startswith(f"erm_{setting}_awk")}
    params = entries["q"]["params"]
    components = [(part["p"], part["beta"], part["Delta"]) for part in params["comps"]]
    alpha, rho = params["alpha"], params["rho"]

    def labels(m, q, V):
        return equations.linear_labels(profile, components, m, q, V, rho)

    for key, rho_of_weights in (("value", 1.0), ("right", rho)):
        m, q, V = equations.damped_fixed_point(labels, equations.ridge(params["lam"], rho_of_weights), alpha)
        here = {"m": m, "q": q, "egen": rho - 2 * m + q, "replicon": alpha * V**2 * labels(m, q, V).stiffness}
        for quantity, entry in entries.items():
            assert here[quantity] == pytest.approx(entry[key], abs=1e-8, rel=0), (key, quantity)


@pytest.mark.parametrize("name", ["bo_mix_b0", "bo_mix_b1", "bo_lin"])
def test_bayes_optimal_value(name):
    entry = VALUES[name]
    found = sv.predict(model_of(name, entry["params"]), BayesOptimal(), alpha=entry["params"]["alpha"])
    assert found["estimation_error"] == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)


@pytest.mark.parametrize("name", ["opt_lam_square_a5", "opt_lam_square_a20"])
def test_error_at_the_best_ridge_of_least_squares(name):
    """The value there, and that a ridge on either side is worse."""
    entry = VALUES[name]
    model, (best, error) = model_of(name, entry["params"]), entry["value"]
    strengths = (best, best - 0.01, best + 0.01)
    here, *beside = (
        sv.predict(model, sv.ERM(penalty=s), alpha=entry["params"]["alpha"])["estimation_error"] for s in strengths
    )
    assert here == pytest.approx(error, abs=entry["tolerance"], rel=0)
    assert min(beside) > here


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opt_a10_b1", "opt_a10_b0_D5", "opt_a10_b0_D1", "opt_a3_b0_D5"])
def test_error_at_the_best_scale_and_ridge_of_robust_losses(name):
    """Scale and ridge are given to four decimals, which changes the error, flat there, by less than its six."""
    entry = VALUES[name]
    alpha = 10.0 if "a10" in name else 3.0
    outliers = sv.Contamination(0.1, 1.0, 5.0) if "b1" in name else sv.Contamination(0.3, 0.0, float(name[-1]))
    model = sv.MultiIndex("z", noise=0.1, contamination=outliers)
    a, ridge_a, huber, c, ridge_c, tukey, bayes = entry["value"]
    for loss, ridge, error in ((sv.losses.Huber(a), ridge_a, huber), (sv.losses.Tukey(c), ridge_c, tukey)):
        found = sv.predict(model, sv.ERM(loss, ridge), alpha=alpha)
        assert found["estimation_error"] == pytest.approx(error, abs=1e-6, rel=0)
        assert found["replicon"] < 1 and found["estimation_error"] > bayes


def test_most_negative_ridge_of_least_squares():
    entry = VALUES["lam_min_square"]
    edge, alpha = entry["value"], entry["params"]["alpha"]
    model = sv.MultiIndex("z", noise=0.1)
    inside = sv.predict(model, sv.ERM(penalty=edge + 1e-7), alpha=alpha)
    assert inside.converged and inside["replicon"] == pytest.approx(1, abs=1e-3)
    outside = sv.predict(model, sv.ERM(penalty=edge - 1e-9), alpha=alpha, throw=False)
    assert outside.status == sv.Status.OUT_OF_DOMAIN and not outside.converged


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith("sep_")])
def test_separability_of_logistic_labels(name):
    entry = VALUES[name]
    gain = entry["params"]["gamma"]
    model = sv.MultiIndex(sv.channels.Logit(gain)) if gain else coins()
    assert separability(model.likelihood()) == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)


def coins() -> sv.MultiIndex:
    """Labels that are a fair coin whatever z is."""
    return sv.MultiIndex("sign(z)", contamination=sv.Contamination(0.5, slope=-1))


def test_separability_of_random_and_of_noiseless_labels():
    assert separability(coins().likelihood()) == pytest.approx(2, abs=1e-10)
    assert separability(sv.MultiIndex("sign(z)").likelihood()) == np.inf
    assert separability(sv.MultiIndex(sv.channels.Probit(noise=0.0)).likelihood()) == np.inf
    assert np.isnan(separability(sv.MultiIndex("z", noise=0.1).likelihood()))


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith("DT_")])
def test_recovery_by_the_l1_norm(name):
    entry = VALUES[name]
    assert lasso_recovery(entry["params"]["rs"]) == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)


def test_recovery_by_the_l1_norm_at_the_ends():
    """No weight: no sample is needed; all of them: one sample each. Between, more than there are weights."""
    assert lasso_recovery(1e-9) < 1e-7
    assert lasso_recovery(1.0) == pytest.approx(1, abs=1e-12)
    densities = np.linspace(0.01, 0.99, 25)
    thresholds = np.array([lasso_recovery(density) for density in densities])
    assert np.all(thresholds > densities) and np.all(np.diff(thresholds) > 0)


def test_every_value_says_where_it_comes_from():
    assert len(VALUES) == len(ENTRIES)
    for entry in ENTRIES:
        extra = {"known_wrong", "right"} if "known_wrong" in entry else set()
        assert set(entry) == {"id", "what", "params", "value", "tolerance", "source"} | extra
        assert entry["source"].startswith(("closed form", "computed by an independent"))
