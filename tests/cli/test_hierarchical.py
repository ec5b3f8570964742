"""The command line on hierarchical targets: prediction, a curve over a field, thresholds."""

from __future__ import annotations

import json

import pytest

import solvable as sv
from solvable.cli.app import run

TARGET = ["--model", "hierarchical-target", "--param", "features=8", "--learner", "layerwise-spectral:scale=2"]


@pytest.fixture
def solvable(capsys):
    """Run a command in this process and return what it printed."""

    def call(*arguments):
        assert run(list(arguments)) == 0
        return capsys.readouterr().out

    return call


def test_predict_thresholds_and_a_grid(solvable):
    model, learner = sv.HierarchicalTarget(1.0, features=8), sv.LayerwiseSpectral(scale=2.0)
    found = json.loads(solvable("predict", *TARGET, "--alpha", "8", "--json"))
    expected = sv.predict(model, learner, alpha=8.0)
    assert found["metrics"]["generalization_error"] == expected["generalization_error"]
    told = json.loads(solvable("thresholds", *TARGET, "--json"))
    assert f"{sv.thresholds(model, learner)['feature_1']:.6g}"[:6] in json.dumps(told)


def test_bad_fields_are_named(capsys):
    arguments = ["--model", "hierarchical-target", "--param", "decay=0.3", "--learner", "layerwise-spectral"]
    assert run(["predict", *arguments, "--alpha", "1"]) != 0
    assert "decay" in capsys.readouterr().err
