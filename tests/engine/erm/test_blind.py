"""The theory of empirical risk minimisation against simulations written from the definitions alone.

`tests/reference/erm_blind.py` made the values, without this package, at two sizes, and `erm_limits_blind.py` those of a
vanishing penalty; the theory must lie within 4 standard errors of each.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import pytest

import solvable as sv

FOLDER = Path(__file__).parents[2] / "reference"
ENTRIES = json.loads((FOLDER / "erm_blind.json").read_text())
LIMITS = [e | {"id": f"limit {e['id']}"} for e in json.loads((FOLDER / "erm_limits_blind.json").read_text())]
IDS = list(dict.fromkeys(entry["id"] for entry in ENTRIES + LIMITS))
LOSSES = {
    "square": sv.losses.Square,
    "huber": sv.losses.Huber,
    "absolute": sv.losses.Absolute,
    "tukey": sv.losses.Tukey,
    "cosine": sv.losses.Cosine,
    "logistic": sv.losses.Logistic,
    "hinge": sv.losses.Hinge,
    "log(cosh(y - z))": lambda: lambda y, z: jnp.log(jnp.cosh(y - z)),
    "(y - z)^4 / 4 + (y - z)^2 / 2": lambda: lambda y, z: (y - z) ** 4 / 4 + (y - z) ** 2 / 2,
    "exponential": lambda: lambda y, z: jnp.exp(-y * z),
    "exp(z) - y z": lambda: lambda y, z: jnp.exp(z) - y * z,
    "max(|y - z| - width, 0)": lambda width: lambda y, z: jnp.maximum(jnp.abs(y - z) - width, 0.0),
    "max(1 - y z, 0)^2": lambda: lambda y, z: jnp.maximum(1 - y * z, 0.0) ** 2,
}
TARGETS = {"tanh(2z)": "tanh(2*z)", "z + 0.3 z^3 - 0.5 |z|": "z + 0.3*z**3 - 0.5*abs(z)", "max(z, 0)": "max(z, 0)"}


def model_of(settings: dict) -> sv.MultiIndex:
    labels, density = settings["labels"], settings["density"]
    prior = settings["teacher"] if density == 1 else f"gauss-bernoulli:{density}"
    if labels["kind"] == "probit":
        return sv.MultiIndex(sv.channels.Probit(labels["variance"]), prior=prior)
    if labels["kind"] == "logistic":
        return sv.MultiIndex(sv.channels.Logit(labels["slope"]), prior=prior)
    if labels["kind"] == "sign":
        flips = [sv.Contamination(labels["flip"], slope=-1.0)] if labels["flip"] else None
        return sv.MultiIndex("sign(z)", prior=prior, contamination=flips)
    (_, slope, noise), *others = labels["components"]
    assert slope == 1
    contamination = [sv.Contamination(p, beta, delta) for p, beta, delta in others]
    return sv.MultiIndex(TARGETS.get(labels["target"], labels["target"]), noise, prior, contamination=contamination)


def learner_of(settings: dict) -> sv.ERM:
    penalty = {"ridge": sv.Ridge, "l1": sv.Lasso}[settings["penalty"]](settings["lam"])
    return sv.ERM(LOSSES[settings["loss"]](*settings["loss_parameters"]), penalty)


@pytest.mark.slow  # statistics of losses whose equations are tested beside
@pytest.mark.parametrize("name", IDS)
def test_theory_agrees_with_independent_runs(name):
    entries = [entry for entry in ENTRIES + LIMITS if entry["id"] == name]
    settings = entries[0]["settings"]
    learner = learner_of(settings)
    found = sv.predict(model_of(settings), learner, alpha=settings["alpha"])
    values = found.metrics | {key: found.order_parameters[key] for key in ("m", "q")}
    if learner.loss.margin:
        del values["generalization_error"]  # the runs score the output itself, not its sign
    assert len(entries) == 2
    for entry in entries:
        for metric in values.keys() & entry["metrics"].keys():
            run = entry["metrics"][metric]
            deviation = abs(values[metric] - run["mean"])
            assert deviation < 4 * run["standard_error"] + 1e-9, (entry["d"], metric, values[metric], run)
