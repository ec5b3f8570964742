"""The library against known values: closed forms, independent quadrature, and independent finite-size simulations.

`reference/index_values.json` holds single numbers with their tolerance and source; `reference/independent_values.json`
what code written from the model's definition alone, without the library, gave.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.channels import ScalarChannel

FOLDER = Path(__file__).parent / "reference"
VALUES = json.loads((FOLDER / "index_values.json").read_text())
INDEPENDENT = json.loads((FOLDER / "independent_values.json").read_text())

SLOW_TO_TABULATE = {
    ("tanh(2*z)", 0.01): "saturation cut by small noise takes many nodes",
    ("abs(z)", 0.0001): "noisy channel used nowhere else",
    ("abs(z)", 0.1): "noisy channel used nowhere else",
    ("he3(z)", 0.0): "used nowhere else",
    ("exp(z/2)", 0.3): "noisy channel used nowhere else",
    ("relu(z)", 0.05): "noisy channel used nowhere else",
    ("z**2", 0.25): "noisy channel used nowhere else",
    ("sign(z)", 0.5): "noisy channel used nowhere else",
    ("z + 0.5*sin(5*z)", 0.0): "many branches",
    ("cos(2*z)", 0.0): "many branches",
    ("he4(z)", 0.0): "used nowhere else",
    ("step(z - 1) + 2*step(z + 0.3)", 0.0): "used nowhere else",
    ("relu(z)", 0.0): "used nowhere else",
    ("abs(z) < 1", 0.0): "used nowhere else",
    ("max(z, -0.5)", 0.0): "used nowhere else",
}
"""Channels checked by the slow tests only, save the information at little noise and of many branches."""


def name(entry: dict) -> str:
    model = entry["model"]
    words = [
        model["target"],
        *(f"{k} {model[k]}" for k in ("noise", "prior") if model.get(k) not in (None, 0.0, "gaussian")),
    ]
    words += [f"{k} {entry[k]}" for k in ("kind", "alpha", "q", "d") if isinstance(entry.get(k), (str, float, int))]
    return ", ".join(words).replace("gauss-bernoulli", "sparse")


def cases(entries: list[dict], slow=()) -> list:
    """Parameters named after the entry, those of channels in `slow` marked slow."""
    return [pytest.param(e, id=name(e), marks=[pytest.mark.slow] if _channel_key(e) in slow else []) for e in entries]


def _channel_key(entry: dict) -> tuple[str, float]:
    return entry["model"]["target"], entry["model"]["noise"]


def channel(entry: dict) -> ScalarChannel:
    return sv.MultiIndex(**entry["model"]).channel


@functools.cache
def thresholds(**model) -> dict[str, float]:
    return sv.thresholds(sv.MultiIndex(**model))


def measure(entry: dict) -> float:
    """What the library says for an entry of `index_values.json`."""
    model, quantity, at = sv.MultiIndex(**entry["model"]), entry["quantity"], entry.get("at", {})
    if quantity in ("algorithmic", "information_theoretic"):
        return thresholds(**entry["model"])[quantity]
    if quantity in ("weak_recovery", "inverse_weak_recovery"):
        threshold = sv.diagnose(model).alpha_weak
        return 1 / threshold if quantity.startswith("inverse") else threshold
    if quantity == "trivial_mass":
        law = model.channel.label_law()
        return float(law.weight @ law.mean[:, 0] ** 2)
    if quantity.startswith("amp_"):
        return sv.predict(model, sv.AMP(), **at)[quantity.removeprefix("amp_")]
    if quantity.startswith("hermite"):
        coefficients = sv.diagnose(model).hermite
        return float(np.prod([coefficients[k,] for k in at.get("degrees", [at.get("degree")])]))
    kind, _, what = quantity.partition("_")
    found = sv.predict(model, sv.Spectral(kind), **at)
    return found.order_parameters[what] if what == "bulk_edge" else found[what]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(e, id=e["id"], marks=[pytest.mark.slow] * e["id"].startswith(("gb_", "rad_alg", "rad_it")))
        for e in VALUES
    ],
)
def test_known_value(entry):
    assert measure(entry) == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)


def test_every_entry_says_where_it_comes_from():
    assert len({entry["id"] for entry in VALUES}) == len(VALUES)
    for entry in VALUES:
        assert set(entry) - {"at"} == {"id", "what", "quantity", "model", "value", "tolerance", "source"}
        assert entry["source"].startswith(("closed form", "computed by independent"))
    assert INDEPENDENT["source"]
    assert set(INDEPENDENT["what"]) == set(INDEPENDENT) - {"source", "what"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "entry", cases(INDEPENDENT["information"], slow=set(SLOW_TO_TABULATE) - {("abs(z)", 0.0001), ("cos(2*z)", 0.0)})
)
def test_information_against_dense_grids(entry):
    """Relative 5e-5 at worst (a wide exponential with noise), beside three times the grids' own error."""
    found = channel(entry).scalar_information(1 - np.array(entry["q"])).information
    value, error = np.array(entry["value"]), np.array(entry["error"])
    assert np.all(np.abs(found - value) < 5e-5 * value + 3 * error)
    sampled = [e for e in INDEPENDENT["information_monte_carlo"] if e["model"] == entry["model"]]
    assert len(sampled) >= len(value)
    for e in sampled:
        here = found[entry["q"].index(e["q"])]
        assert abs(here - e["mean"]) < 4 * e["standard_error"]


def test_sampled_information_scatters_as_its_standard_errors_say():
    """Over all batches the mean square of the deviations from the grids, in standard errors, is 1 +- 4 sqrt(2/n)."""
    exact = {
        (name({"model": e["model"]}), q): value
        for e in INDEPENDENT["information"]
        for q, value in zip(e["q"], e["value"], strict=True)
    }
    batches = INDEPENDENT["information_monte_carlo"]
    z = [(e["mean"] - exact[name({"model": e["model"]}), e["q"]]) / e["standard_error"] for e in batches]
    assert abs(np.mean(np.square(z)) - 1) < 4 * np.sqrt(2 / len(z))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("entry", cases(INDEPENDENT["weak_recovery"]))
def test_weak_recovery_against_dense_grids(entry):
    """As 1 / alpha_weak = E[G^2], which is zero for hard targets.

    The absolute 1e-8 is the grids' floor. sin(3 z)^2 has 6e-13 in truth: nothing can be learned from it in practice,
    and the library calls it hard.
    """
    found = 1 / sv.diagnose(sv.MultiIndex(**entry["model"])).alpha_weak
    assert abs(found - entry["inverse"]) < 2e-6 * entry["inverse"] + 3 * entry["error"] + 1e-8
    law = channel(entry).label_law()
    assert abs(law.weight @ law.mean[:, 0] ** 2 - entry["trivial_mass"]) < 2e-8


@pytest.mark.parametrize("entry", cases(INDEPENDENT["overlap"], slow=SLOW_TO_TABULATE))
def test_overlap_against_dense_grids(entry):
    """Within five times the reported uncertainty, and in any case 5e-6: the report is honest, and not an excuse."""
    model = sv.MultiIndex(**entry["model"])
    found = sv.predict(model, sv.AMP(), alpha=entry["alpha"])
    assert found.converged
    if entry["stable"] is None:
        assert entry["beyond"] and found["overlap"] > 0.998
        return
    off = abs(found["overlap"] - entry["stable"])
    assert off < 5 * found.uncertainty["overlap"] + 1e-8 + 2 * entry["error"]
    assert off < 5e-6 + 2 * entry["error"]


@pytest.mark.parametrize("entry", cases(INDEPENDENT["generalization_error"], slow=SLOW_TO_TABULATE))
def test_generalization_error_against_dense_grids(entry):
    """The grids' nodes miss the jumps of discontinuous targets by up to h/2 = 0.004, and the error by a few 1e-4."""
    found = sv.predict(sv.MultiIndex(**entry["model"]), sv.AMP(), alpha=entry["alpha"])
    discontinuous = "classification_error" in found.metrics
    assert found["generalization_error"] == pytest.approx(entry["value"], rel=1e-3 if discontinuous else 5e-5)


def allowance(sample: dict, expected: float, d: int) -> float:
    """How far the mean over runs at finite d may lie from the limit: four standard errors, and an order 1/d.

    Expanding a run's result to second order in the fluctuations of its instance, which have a variance of order 1/d,
    shifts the mean over runs by half a curvature of order one times their variance: sd^2, itself of order 1/d, stands
    for it. 1/d covers what does not come from fluctuations. Means are over all runs, converged or not: the converged
    ones are a selected sample (a large overlap converges more easily). At weak overlap, where some runs are not
    converged, the mean over all runs is therefore biased low and sd is large; both shrink with d.
    Quantities larger than one are measured in units of their expected value.
    """
    scale = max(1.0, abs(expected))
    return 4 * sample["standard_error"] + sample["deviation"] ** 2 / scale + scale / d


@pytest.mark.parametrize("entry", cases(INDEPENDENT["amp"], slow=SLOW_TO_TABULATE))
def test_theory_against_independent_message_passing(entry):
    found = sv.predict(sv.MultiIndex(**entry["model"]), sv.AMP(), alpha=entry["alpha"])
    assert entry["runs"] == 48 and entry["converged"] >= 0.75 * entry["runs"]
    for metric in ("overlap", "generalization_error"):
        sample = entry[metric]
        assert abs(found[metric] - sample["mean"]) < allowance(sample, found[metric], entry["d"]), metric
    # Nishimori: the estimate overlaps with itself as with the truth.
    sample = entry["self_overlap"]
    assert abs(found["overlap"] - sample["mean"]) < allowance(sample, found["overlap"], entry["d"])


@pytest.mark.slow
def test_independent_message_passing_has_no_common_bias():
    """Where the runs converge the normalised deviations from theory average to zero over the settings.

    Overlaps only: the other metrics follow from them. Settings with more than one run in ten not converged are the
    weak overlaps, whose bias the allowance covers.
    """
    z = []
    for entry in INDEPENDENT["amp"]:
        if entry["converged"] >= 0.9 * entry["runs"]:
            theory = sv.predict(sv.MultiIndex(**entry["model"]), sv.AMP(), alpha=entry["alpha"])["overlap"]
            z.append((entry["overlap"]["mean"] - theory) / entry["overlap"]["standard_error"])
    assert len(z) >= 20
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))
    assert np.mean(np.square(z)) < 1 + 4 * np.sqrt(2 / len(z))


@pytest.mark.parametrize("entry", cases(INDEPENDENT["spectral"]))
def test_theory_against_independent_spectral_methods(entry):
    found = sv.predict(sv.MultiIndex(**entry["model"]), sv.Spectral(entry["kind"]), alpha=entry["alpha"])
    sample, expected = entry["squared_overlap"], found["squared_overlap"]
    assert abs(expected - sample["mean"]) < allowance(sample, expected, entry["d"])
    if "outlier" in entry:
        sample, expected = entry["outlier"], found.order_parameters["outlier"]
        sample = sample | {"standard_error": sample["deviation"] / np.sqrt(entry["runs"])}
        assert abs(expected - sample["mean"]) < allowance(sample, expected, entry["d"])
