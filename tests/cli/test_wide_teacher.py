"""The command line on wide teachers and networks: their fields as parameters, curves over them, thresholds."""

from __future__ import annotations

import json

import pytest

import solvable as sv
from solvable.cli.app import run

TEACHER = ["--model", "wide-teacher", "--param", "width=100", "--param", "noise=0.1"]


@pytest.fixture
def solvable(capsys):
    """Run a command in this process and return what it printed."""

    def call(*arguments):
        assert run(list(arguments)) == 0
        return capsys.readouterr().out

    return call


def test_predict_and_thresholds(solvable):
    found = json.loads(solvable("predict", *TEACHER, "--learner", "bayes-student:width=4", "--alpha", "50", "--json"))
    expected = sv.predict(sv.WideTeacher(1.0, 100, noise=0.1), sv.BayesStudent(4), alpha=50.0)
    assert found["metrics"]["generalization_error"] == expected["generalization_error"]
    network = ["--model", "wide-network", "--param", "rho=0.5", "--param", "activation=relu", "--param", "noise=0.1"]
    assert json.loads(solvable("thresholds", *network, "--json"))["specialization"] == pytest.approx(0.632416, abs=1e-6)


def test_a_field_is_the_axis_of_a_curve(solvable):
    said = solvable(
        "curve", *TEACHER, "--param", "exponent=0.8:1.2:3", "--alpha", "50", "--metric", "generalization_error",
        "--learner", "bayes-optimal",
    )  # fmt: skip
    rows = [line.split() for line in said.splitlines() if line.strip().startswith("bayes")]
    assert [float(row[1]) for row in rows] == [0.8, 1.0, 1.2]
    assert float(rows[0][2]) > float(rows[1][2]) > float(rows[2][2])
