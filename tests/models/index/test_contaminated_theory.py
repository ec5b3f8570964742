"""Contaminated index models: known values, limits, thresholds, and what is refused in which words."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.cli.parse import build
from solvable.core.learners import AMP, BayesOptimal
from solvable.lab.grid.points import dumped, identity

VALUES = json.loads((Path(__file__).parents[2] / "reference" / "contaminated_values.json").read_text())
LINEAR = sv.MultiIndex("z", noise=0.1)


def error(model, alpha, learner=None):
    return float(sv.predict(model, learner or BayesOptimal(), alpha=alpha)["estimation_error"])


@pytest.mark.parametrize("entry", VALUES, ids=[entry["id"] for entry in VALUES])
def test_known_value(entry):
    model = sv.MultiIndex("z", noise=entry["noise"], contamination=entry["contamination"])
    found = sv.predict(model, BayesOptimal(), alpha=entry["alpha"])
    assert found["estimation_error"] == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)
    assert found.converged and found.uncertainty["estimation_error"] < 1e-6
    for learner in ("huber", "tukey"):
        assert found["estimation_error"] < entry.get(learner, np.inf)


def test_every_value_says_where_it_comes_from():
    for entry in VALUES:
        assert {"id", "what", "alpha", "noise", "contamination", "value", "tolerance", "source"} <= set(entry)


@pytest.mark.parametrize("contamination", [None, "none", "0:0:5", "0.3:1:0.1", "0.2:1:0.1+0.1:1:0.1+0:2:7"])
def test_no_contamination_in_effect_is_the_clean_model(contamination):
    model = LINEAR.with_field("contamination", contamination)
    assert model.channel is LINEAR.channel
    assert error(model, 3.0) == error(LINEAR, 3.0)


def test_components_list_every_part():
    model = LINEAR.with_field("contamination", "0.3:0:5+0:2:1")
    assert model.components == ((0.7, 1.0, 0.1), (0.3, 0.0, 5.0), (0.0, 2.0, 1.0))
    assert LINEAR.components == ((1.0, 1.0, 0.1),)
    assert dataclasses.replace(model, noise=0.2).components[0] == (0.7, 1.0, 0.2)
    assert dataclasses.replace(model, contamination=None) == LINEAR


@pytest.mark.slow
def test_contamination_hurts_and_more_of_it_more():
    errors = [error(LINEAR.with_field("contamination", f"{f}:0:5"), 3.0) for f in (0.0, 0.01, 0.3, 0.9)]
    assert np.all(np.diff(errors) > 0) and errors[-1] < 1


def test_outliers_far_away_are_known_and_lost():
    """Labels of huge noise are told from clean ones: what is left are (1 - fraction) alpha clean labels."""
    far = error(LINEAR.with_field("contamination", "0.3:0:1e12"), 3.0)
    assert far == pytest.approx(error(LINEAR, 0.7 * 3.0), abs=1e-5)
    assert error(LINEAR.with_field("contamination", "0.3:0:0"), 3.0) == pytest.approx(error(LINEAR, 2.1), abs=1e-7)


def test_exact_labels_among_outliers_recover_the_weights():
    """alpha (1 - fraction) > 1 exact labels determine w*, whatever the others are."""
    thresholds = sv.thresholds(sv.MultiIndex("z", contamination="0.3:0:5"))
    assert thresholds["information_theoretic"] == pytest.approx(1 / 0.7, abs=1e-6)
    assert thresholds["algorithmic"] > thresholds["information_theoretic"]
    model = sv.MultiIndex("z", contamination="0.3:0:5")
    assert error(model, 1.45) == 0 and error(model, 1.45, AMP()) > 0.2 and error(model, 1.7, AMP()) == 0


def test_balanced_signs_leave_a_weak_recovery_threshold():
    """y = +-z + noise: E[z|y] = 0, E[z^2|y] - 1 = (y^2 / (1 + D) - 1) / (1 + D), so alpha_weak = (1 + D)^2 / 2."""
    model = LINEAR.with_field("contamination", "0.5:-1:0.1")
    threshold = sv.thresholds(model)["weak_recovery"]
    assert threshold == pytest.approx(1.1**2 / 2, abs=1e-9)
    assert error(model, 0.99 * threshold, AMP()) == 1 and error(model, 1.02 * threshold, AMP()) < 1
    assert model.hides_sign() and not LINEAR.hides_sign() and sv.MultiIndex("abs(z)").hides_sign()
    assert not LINEAR.with_field("contamination", "0.4:-1:0.1").hides_sign()
    assert sv.thresholds(LINEAR.with_field("contamination", "0.4:-1:0.1"))["weak_recovery"] == 0


def test_labels_without_content_are_never_learned():
    for model in (sv.MultiIndex("sign(z)", contamination="0.5:-1:0"), LINEAR.with_field("contamination", "1:0:1")):
        assert all(np.isinf(value) for value in sv.thresholds(model).values())
        assert error(model, 5.0) == 1


def test_flipped_signs_two_ways():
    one = sv.MultiIndex("sign(z)", contamination="0.2:-1:0")
    other = sv.MultiIndex(sv.channels.Sign(), contamination="0.2:-1:0")
    assert error(one, 2.0) == pytest.approx(error(other, 2.0), abs=1e-9)


@pytest.mark.slow
def test_binary_weights_from_flipped_signs_keep_a_hard_phase():
    """The free entropy of w* itself is -log 2 + alpha (log 2 - h(f)), h the entropy of a flip."""
    found = sv.thresholds(sv.MultiIndex("sign(z)", prior="rademacher", contamination="0.001:-1:0"))
    clean = sv.thresholds(sv.MultiIndex("sign(z)", prior="rademacher"))
    for name in ("information_theoretic", "algorithmic"):
        assert clean[name] < found[name] < 1.02 * clean[name]
    assert found["information_theoretic"] < 0.9 * found["algorithmic"]


def test_spectral_methods_follow_the_label_law():
    model = LINEAR.with_field("contamination", "0.5:-1:0.1")
    weak = sv.thresholds(model)["weak_recovery"]
    for kind in ("symmetric", "asymmetric"):
        below, above = (sv.predict(model, sv.Spectral(kind), alpha=f * weak)["cosine"] for f in (0.98, 1.1))
        assert below == 0 < above


def refusal(make):
    with pytest.raises((ValueError, sv.NotSolvable)) as found:
        make()
    return type(found.value), str(found.value)


def test_what_is_refused_says_what_to_change():
    exact = (
        "contaminated labels of {} without noise (the component of slope {}) have no posterior here: give the model "
        "and each contamination noise > 0. Without noise, contamination is solved for the target 'z', and for targets "
        "with finitely many values if no component has noise."
    )
    for model, words in (
        (sv.MultiIndex("abs(z)", contamination="0.3:0:5"), exact.format("'abs(z)'", "1")),
        (sv.MultiIndex("sign(z)", contamination="0.3:0:5"), exact.format("'sign(z)'", "1")),
        (sv.MultiIndex("sign(z)", noise=0.1, contamination="0.3:-1:0"), exact.format("'sign(z)'", "-1")),
        (
            sv.MultiIndex("z", contamination="1:0:0"),
            "every label is 0 with this contamination: there is nothing to learn from.",
        ),
    ):
        for learner in (BayesOptimal(), AMP()):
            assert refusal(lambda m=model, k=learner: sv.predict(m, k, alpha=1.0)) == (sv.NotSolvable, words)
        # The labels themselves can be drawn, for learners that need no posterior.
        assert len(model.sample(np.random.default_rng(0), 20, alpha=2.0).y) == 40


def test_what_cannot_be_contaminated():
    assert refusal(lambda: sv.MultiIndex("z1*z2", contamination="0.3:0:5")) == (
        ValueError,
        "contamination = '0.3:0.0:5.0' is not allowed: contamination must be left out for a target of 2 projections "
        "(contaminated labels take one).",
    )
    assert refusal(lambda: sv.MultiIndex(sv.channels.Logit(2.0), contamination="0.3:0:5")) == (
        ValueError,
        "contamination = '0.3:0.0:5.0' is not allowed: contamination must be of slope -1 and noise 0, which flips "
        "labels, with the binary channel Logit(gain=2).",
    )
    with pytest.raises(ValueError, match="write its target as text, such as 'abs"):
        sv.MultiIndex(sv.channels.Absolute(), contamination="0.3:0:5")


def test_the_command_line_reads_it():
    request = build("multi-index", "z", {"noise": 0.1}, ["contamination=0.3:0:5"], ["amp"], "3")
    assert request.model == LINEAR.with_field("contamination", sv.Contamination(0.3, 0, 5))


def test_identities_of_clean_models_stay_as_they_were():
    assert dumped(identity(LINEAR, "model")) == (
        '{"name":"multi-index","named_channel":null,"noise":0.1,"prior":{"class":"Gaussian"},"target":"z"}'
    )
    assert "contamination" not in LINEAR.describe()
    probit = identity(sv.MultiIndex(sv.channels.Probit(0.5)), "model")["named_channel"]
    assert probit == {"channel": "Probit", "target": "sign(z)", "noise": 0.0, "label_noise": 0.5}


def test_contamination_and_gain_are_part_of_the_identity():
    models = [
        LINEAR.with_field("contamination", c) for c in (None, "0.3:0:5", "0.3:0:5.1", "0.3:1:5", "0.2:0:5+0.1:0:5")
    ]
    models += [sv.MultiIndex(sv.channels.Logit(gain)) for gain in (1.0, np.nextafter(1.0, 2))]
    assert len({dumped(identity(model, "model")) for model in models}) == len(models)
    text = LINEAR.with_field("contamination", "0.3:0:5")
    assert dumped(identity(text, "m")) == dumped(
        identity(LINEAR.with_field("contamination", [sv.Contamination(0.3, 0, 5)]), "m")
    )
    assert text.describe()["contamination"] == "0.3:0.0:5.0"


@pytest.mark.slow
def test_a_sweep_runs_over_contaminations(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[model]\nname = "multi-index"\ntarget = "z"\nnoise = 0.1\ncontamination = ["none", "0.3:0:5"]\n'
        '[[learner]]\nname = "amp"\n[axes]\nalpha = [3.0]\n'
    )
    found = sv.sweep(file, store=tmp_path / "store")
    errors = found.dataset["estimation_error_theory"].values.ravel()
    assert errors == pytest.approx([error(LINEAR, 3.0), 0.1376365360978138], abs=1e-7)
