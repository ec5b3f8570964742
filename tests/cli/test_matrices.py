"""The command line on a model whose overlap is a matrix: tables show diagonals, JSON shows everything."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toys import two_ridges as toy_pair

import solvable as sv
from solvable.cli.app import run
from solvable.cli.tables import _entry

PAIR = ["--model", "two-regressions", "--learner", "two-ridges"]


@pytest.fixture
def solvable(capsys, monkeypatch):
    """Run a command in this process and return what it printed."""
    monkeypatch.setattr("solvable.lab.named.register_all", lambda: None)

    def call(*arguments):
        assert run(list(arguments)) == 0
        return capsys.readouterr().out

    return call


def expected(alpha):
    return sv.predict(toy_pair.TwoRegressions(), toy_pair.TwoRidges(), alpha=alpha)


def test_predict_a_point(solvable):
    first, second = np.diag(expected(1.3)["overlap"])
    assert f"diag({first:.6g}, {second:.6g})" in solvable("predict", *PAIR, "--alpha", "1.3")
    found = json.loads(solvable("predict", *PAIR, "--alpha", "1.3", "--json"))
    np.testing.assert_allclose(found["metrics"]["overlap"], expected(1.3)["overlap"])


@pytest.mark.slow
def test_predict_a_grid(solvable):
    first, second = np.diag(expected(2.0)["overlap"])
    assert f"diag({first:.6g}, {second:.6g})" in solvable("predict", *PAIR, "--alpha", "1,2")


def test_curve(solvable):
    command = ["curve", *PAIR, "--alpha", "1,2", "--d", "20", "--seeds", "3"]
    out = solvable(*command, "--metric", "overlap")
    first, second = np.diag(expected(2.0)["overlap"])
    assert f"{first:.6g}, {second:.6g}" in out and " of 4 points" in out
    assert "estimation_error" in solvable(*command).splitlines()[1]
    (learner,) = json.loads(solvable(*command, "--json"))["learners"]
    assert np.shape(learner["theory"]["overlap"]) == np.shape(learner["simulation"]["overlap"]["mean"]) == (2, 2, 2)


def test_entries():
    assert _entry(np.float64(0.5)) == 0.5
    assert _entry(np.array([0.5, 0.25])) == "0.5, 0.25"
    assert _entry(np.diag([0.5, 0.25])) == "diag(0.5, 0.25)"
    assert _entry(np.array([[0.5, 0.1], [0.1, 0.25]])) == "[0.5, 0.1; 0.1, 0.25]"
    assert _entry(np.zeros((2, 2))) == "diag(0, 0)"
