"""The command line on a model without an axis: its own numbers are fields, and the axis of a curve."""

from __future__ import annotations

import json

import pytest

import solvable as sv
from solvable.cli.app import run

MODEL = ["--model", "matrix-tensor", "--param", "tensor_noise=0.1"]


@pytest.fixture
def solvable(capsys):
    """Run a command in this process and return what it printed."""

    def call(*arguments, code=0):
        assert run(list(arguments)) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    return call


def test_predict_and_thresholds(solvable):
    found = json.loads(solvable("predict", *MODEL, "--param", "matrix_noise=0.5", "--learner", "amp", "--json"))
    assert found["metrics"] == dict(sv.predict(sv.MatrixTensor(0.5, 0.1), sv.AMP()))
    sizes = ["--param", "ratios=1,2,0.5,1.5", "--param", "matrix_noise=inf"]
    found = json.loads(solvable("predict", *MODEL, *sizes, "--learner", "curriculum", "--json"))
    assert found["metrics"]["squared_overlap_u"] == 0
    joint = ["--param", "matrix_noise=1", "--learner", "maximum-likelihood"]
    found = json.loads(solvable("thresholds", *MODEL, *joint, "--json"))
    assert found == sv.thresholds(sv.MatrixTensor(1.0, 0.1), sv.MaximumLikelihood())


def test_a_number_of_the_model_is_the_axis_of_a_curve(solvable):
    said = solvable("curve", *MODEL, "--param", "matrix_noise=0.2:0.8:3", "--learner", "amp", "--metric", "overlap_u")
    rows = [line.split() for line in said.splitlines() if line.strip().startswith("amp")]
    assert [float(row[1]) for row in rows] == [0.2, 0.5, 0.8]
    assert float(rows[1][2]) == pytest.approx(0.901884, abs=1e-6)
    assert "matrix_noise" in solvable("predict", *MODEL, "--param", "matrix_noise=0.2,0.5", code=2)
