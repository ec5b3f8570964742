"""The command line on networks trained by descent: formulas with commas, matrices as text, sweeps of one run a seed."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest

import solvable as sv
from solvable.cli.app import run
from solvable.cli.parse import build, split_outside
from solvable.engine.dynamics.chain import chain
from solvable.models.index.dynamics import sgd

LEAKY = "where(z > 0, z, 0.2*z)"
ONLINE = "online-sgd:learning_rate=0.5,activation=erf,start=0.05"


@pytest.fixture
def solvable(capsys):
    """Run a command in this process and return what it printed."""

    def call(*arguments):
        assert run(list(arguments)) == 0
        return capsys.readouterr().out

    return call


def learner(text: str, target: str = "z1*z2") -> sv.Learner:
    return build("multi-index", target, {}, [], [text]).learners[0]


def test_commas_within_parentheses_belong_to_the_formula():
    assert split_outside(f"a=1,b={LEAKY},c=max(z, max(0, -z))") == ["a=1", f"b={LEAKY}", "c=max(z, max(0, -z))"]
    assert split_outside("a=1") == ["a=1"] and split_outside("a=(1,b=2") == ["a=(1,b=2"]


def test_a_learner_is_read_as_python_reads_it():
    text = f"online-sgd:learning_rate=0.3,activation={LEAKY},width=2,second_layer=1 -0.5,start=0.2 0.1; -0.1 0.3"
    start = [[0.2, 0.1], [-0.1, 0.3]]
    assert learner(text) == sv.OnlineSGD(0.3, LEAKY, 2, [1.0, -0.5], start=start)
    text = "extragradient:learning_rate=0.3,extrapolation=-1,loss=correlation,start=0,similarity=0.5,spherical=false"
    ahead = sv.Extragradient(0.3, loss="correlation", start=0.0, spherical=False, extrapolation=-1.0, similarity=0.5)
    assert learner(text) == ahead
    assert learner("repeated-sgd:learning_rate=1,start=random,reduced=false") == sv.RepeatedSGD(1, reduced=False)
    batch = learner("batch-gd:steps=3,learning_rate=0.5,reuse=false,self_overlap=2")
    assert batch == sv.BatchGD(3, 0.5, False, self_overlap=[[2.0]])


def test_bad_words_are_told(capsys):
    assert run(["predict", "z", "--learner", "online-sgd", "--alpha", "1"]) == 2
    assert "online-sgd needs learning_rate" in capsys.readouterr().err
    assert run(["predict", "z", "--learner", "online-sgd:learning_rate=1,start=1 b", "--alpha", "1"]) == 2
    assert "start must be numbers, with spaces between them" in capsys.readouterr().err


def test_predict_and_curve(solvable):
    model, alpha = sv.MultiIndex("tanh(z)"), np.array([1.0, 4.0, 12.0])
    theory = sv.predict(model, sv.OnlineSGD(0.5, "erf", start=0.05), alpha=alpha)
    found = json.loads(solvable("predict", "tanh(z)", "--learner", ONLINE, "--alpha", "1,4,12", "--json"))
    np.testing.assert_allclose(found["metrics"]["cosine"], theory["cosine"])
    command = ["curve", "tanh(z)", "--learner", ONLINE, "--alpha", "1,4,12", "--d", "40", "--seeds", "4", "--json"]
    (found,) = json.loads(solvable(*command))["learners"]
    np.testing.assert_allclose(found["theory"]["cosine"], theory["cosine"])
    runs = [sv.simulate(model, sv.OnlineSGD(0.5, "erf", start=0.05), alpha=alpha, d=40, seed=s) for s in range(4)]
    np.testing.assert_allclose(found["simulation"]["cosine"]["mean"], np.mean([one["cosine"] for one in runs], axis=0))


def test_thresholds(solvable):
    text = "online-sgd:learning_rate=0.1,activation=he2(z)/sqrt(2)"
    found = json.loads(solvable("thresholds", "he2(z)/sqrt(2)", "--learner", text, "--json"))
    assert found["escapes"] == 1 and found["critical_learning_rate"] == pytest.approx(1 / 3)


SWEEP = """
[model]
name = "multi-index"
target = "tanh(z)"
[[learner]]
name = "online-sgd"
learning_rate = [0.3, 0.5]
activation = "erf"
start = "0.05"
[axes]
alpha = [1.0, 4.0, 12.0]
[simulation]
d = 20
seeds = 3
"""


def test_a_sweep_that_was_stopped_makes_one_run_a_seed(tmp_path, monkeypatch, capsys):
    made, told = collections.Counter(), {"stop": True}

    def counted(*args):
        rate, counts, rngs = args[3].learning_rate, args[6], args[7]
        if told["stop"] and rate == 0.5:
            raise KeyboardInterrupt
        made[rate] += len(rngs)
        assert counts.tolist() == [20, 80, 240]
        return chain(*args)

    monkeypatch.setattr(sgd, "chain", counted)
    file, store = tmp_path / "sweep.toml", str(tmp_path / "store")
    file.write_text(SWEEP)
    assert run(["sweep", str(file), "--store", store]) != 0
    told["stop"] = False
    assert run(["sweep", str(file), "--store", store]) == 0
    assert made == {0.3: 3, 0.5: 3}
    capsys.readouterr()
    curve = sv.open(store)
    assert curve.axes == ("learning_rate", "alpha") and curve["cosine"].shape == (1, 2, 3)
