"""Empirical risk minimisation from the command line and in sweep files."""

from __future__ import annotations

import json

import pytest

import solvable as sv
from solvable.cli.app import run

OUTLIERS = ["z", "--noise", "0.1", "--param", "contamination=0.3:0:5"]
HUBER = ["--learner", "erm:loss=huber:1,penalty=0.1"]


@pytest.fixture
def solvable(capsys):
    """Run a command in this process and return its exit code and what it printed."""

    def call(*arguments):
        code = run(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_predict(solvable):
    code, out, _ = solvable("predict", *OUTLIERS, "--alpha", "3", *HUBER, "--json")
    found = json.loads(out)
    assert code == 0 and found["metrics"]["estimation_error"] == pytest.approx(0.421196309, abs=1e-8)
    assert found["metrics"]["replicon"] == pytest.approx(0.354889160, abs=1e-8)
    assert found["learner"]["loss"] == "Huber(scale=1.0)" and found["learner"]["penalty"] == "Ridge(strength=0.1)"


@pytest.mark.slow
def test_an_unstable_point_is_refused(solvable):
    code, out, err = solvable("predict", *OUTLIERS, "--alpha", "3", "--learner", "erm:loss=tukey:3,penalty=-0.1")
    assert code == 1 and out == "" and "the fixed point found is not stable" in err


def test_thresholds_of_a_learner(solvable):
    code, out, _ = solvable(
        "thresholds", "z", "--prior", "gauss-bernoulli:0.2", "--learner", "erm:penalty=lasso:0.1", "--json"
    )
    assert code == 0 and json.loads(out)["recovery"] == pytest.approx(0.511129610, abs=1e-8)
    code, out, _ = solvable("thresholds", "sign(z)", "--param", "contamination=0.5:-1:0", "--learner", "erm:loss=hinge")
    assert code == 0 and "separability   2" in out


@pytest.mark.slow
def test_optimize(solvable):
    command = ["optimize", "z", "--noise", "0.1", "--param", "contamination=0.3:0:0.1", "--alpha", "5"]
    code, out, _ = solvable(*command, "--json")
    found = json.loads(out)
    assert code == 0 and found["best"]["penalty"] == pytest.approx(-0.43016, abs=2e-5)
    assert found["metrics"]["estimation_error"] > found["bayes_optimal"] and not found["at_bound"]
    code, out, _ = solvable(*command)
    assert "best penalty" in out and "Bayes-optimal generalization_error" in out


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("erm:loss=huber:-1", "loss = 'huber:-1' is not allowed"),
        ("erm:loss=cubic", "loss = 'cubic' is not allowed"),
        ("erm:penalty=ridge:x", "penalty = 'ridge:x' is not allowed"),
        ("erm:loss=hinge", "loss = 'Hinge()' is not allowed"),
        ("erm:solver=magic", "solver = 'magic' is not allowed"),
    ],
)
def test_bad_learners_are_refused(solvable, learner, message):
    code, _, err = solvable("predict", "z", "--alpha", "1", "--learner", learner)
    assert code == 2 and message in err


def test_a_curve_of_all_learners_leaves_out_what_must_be_chosen(solvable):
    code, out, _ = solvable("curve", "abs(z)", "--alpha", "0.4,0.8", "--json")
    assert code == 0 and "amp" in out and "erm" not in out


@pytest.mark.slow
def test_a_sweep_over_penalties_and_contamination(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
[model]
name = "multi-index"
target = "z"
noise = 0.1
contamination = ["0.1:0:5", "0.3:0:5"]
[[learner]]
name = "erm"
loss = "huber:1.0"
penalty = [0.1, 1.0]
[axes]
alpha = [1.0, 3.0]
[simulation]
d = 40
seeds = 2
"""
    )
    curve = sv.sweep(file, store=tmp_path / "store", progress=False)
    theory = curve.theory("estimation_error")
    assert theory.sel(contamination="0.3:0:5", penalty=0.1, alpha=3.0).item() == pytest.approx(0.421196309, abs=1e-8)
    assert curve.simulation("estimation_error").notnull().all()


def test_a_function_has_no_place_in_a_sweep(tmp_path):
    learner = sv.ERM(lambda y, z: (y - z) ** 2, 0.1)
    with pytest.raises(ValueError, match="is not allowed in a sweep"):
        sv.sweep(sv.MultiIndex("z", noise=0.1), learner, alpha=[1.0, 2.0], store=tmp_path / "store", progress=False)
