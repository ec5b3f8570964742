"""Tree targets and kernels on the command line and in sweeps."""

from __future__ import annotations

import json
import math

import pytest

import solvable as sv
from solvable.cli.app import run
from solvable.lab.sweep.configuration import read_plan


def answer(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_thresholds_of_a_tree(capsys):
    found = answer(capsys, "thresholds", "--model", "tree-target", "--param", "exponent=0.8")
    assert found == pytest.approx({"first_layer": 1.8, "second_layer": 2.4, "kernel": 2.0})


def test_predictions_along_kappa(capsys):
    found = answer(
        capsys, "predict", "--model", "tree-target", "--param", "kappa=1.2,1.7", "--learner", "layerwise:layers=2"
    )
    assert "0.9" in json.dumps(found) and "first_layer" in json.dumps(found)


def test_a_curve_of_theory_and_runs(capsys):
    learners = [
        "--learner",
        "kernel:degree=inf",
        "--learner",
        "layerwise:layers=1",
        "--learner",
        "joint-training:epochs=2",
    ]
    sizes = ["--param", "kappa=1.3,1.8", "--param", "branches=2", "--d", "20", "--seeds", "2"]
    found = json.dumps(answer(capsys, "curve", "--model", "tree-target", *learners, *sizes))
    assert "joint-training" in found and "generalization_error" in found


def test_a_kernel_on_an_index_model(capsys):
    found = answer(capsys, "thresholds", "sign(z1*z2)", "--learner", "kernel:degree=2")
    assert found["plateau_2"] == pytest.approx(1 - 4 / math.pi**2)


def test_a_sweep_over_fields_of_model_and_learner(tmp_path):
    plan = read_plan(
        {
            "model": {"name": "tree-target", "exponent": [0.4, 0.6], "inner": "he2(z)"},
            "learner": [{"name": "layerwise", "layers": 2, "degree": [2, 3]}, {"name": "kernel", "degree": 2}],
            "axes": {"kappa": [1.3, 1.7]},
            "simulation": {"d": [16], "seeds": 2},
        }
    )
    assert len(plan.layout().points) >= 2 * 3 * 2


def test_a_diagram_over_the_exponent():
    found = sv.phase_diagram(
        sv.TreeTarget(), sv.Layerwise(2), x=("kappa", [1.1, 1.7]), y=("exponent", [0.3, 0.9]), progress=False
    )
    assert found.theory("generalization_error").size == 4


def test_bad_words_are_bad_input(capsys):
    assert run(["predict", "--model", "tree-target", "--learner", "layerwise:layers=5", "--param", "kappa=2.1"]) == 2
    assert "layers = 5" in capsys.readouterr().err
