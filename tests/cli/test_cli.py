"""The command line on the toy model, in this process, and its start-up in a fresh one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from toys import ridge as toy

import solvable as sv
from solvable.cli.app import run
from solvable.lab.named import find_model, learners_of

TOY = ["--model", "regression", "--param", "noise=0.25"]


@pytest.fixture
def solvable(capsys, monkeypatch):
    """Run a command in this process; the registry holds what this file imports, not the package's own families."""
    monkeypatch.setattr("solvable.lab.named.register_all", lambda: None)

    def call(*arguments):
        code = run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_help_has_an_example_for_each_command(solvable):
    code, out, err = solvable("--help")
    assert code == 0 and err == ""
    for command in ("models", "diagnose", "predict", "curve", "thresholds"):
        assert command in out
        code, text, _ = solvable(command, "--help")
        assert code == 0 and f"Example: solvable {command}" in text and "--json" in text


def test_version(solvable):
    assert solvable("--version") == (0, f"solvable {sv.__version__}\n", "")


def test_models(solvable):
    code, out, _ = solvable("models", "--json")
    rows = json.loads(out)
    assert code == 0 and {"model": "regression", "learner": "mean", "theory": False, "simulation": True} in rows
    code, out, _ = solvable("models")
    assert code == 0 and any(line.split() == ["regression", "mean", "-", "yes"] for line in out.splitlines())


def test_models_name_the_publications_behind_them(solvable):
    assert sv.MultiIndex  # loading the model registers its pairs
    code, out, _ = solvable("models", "--references")
    assert code == 0 and "\nmulti-index, erm\n  Thrampoulidis, Abbasi, Hassibi, Precise error analysis" in out
    rows = json.loads(solvable("models", "--references", "--json")[1])
    (row,) = [row for row in rows if (row["model"], row["learner"]) == ("multi-index", "spectral")]
    assert row["references"][0].endswith("(2017), arXiv:1708.05932")


def test_the_families_of_the_package_are_found():
    assert find_model("MultiIndex") is find_model("multi-index") is sv.MultiIndex
    assert {"bayes-optimal", "amp", "spectral"} <= {learner.name() for learner in learners_of(sv.MultiIndex)}


def test_predict_a_point(solvable):
    code, out, err = solvable("predict", *TOY, "--learner", "ridge:penalty=0.5", "--alpha", "1.3", "--json")
    found = json.loads(out)
    expected = sv.predict(toy.Regression(noise=0.25), toy.Ridge(penalty=0.5), alpha=1.3)
    assert code == 0 and err == "" and found["metrics"] == expected.metrics
    assert found["model"] == {"name": "regression", "noise": 0.25}
    assert found["learner"] == {"name": "ridge", "penalty": 0.5, "variant": "plain"}
    assert found["axes"] == {"alpha": 1.3} and found["status"] == "converged" and found["converged"] is True
    code, out, _ = solvable("predict", *TOY, "--learner", "Ridge", "--param", "penalty=0.5", "--alpha", "1.3")
    assert code == 0 and f"{expected['overlap']:.6g}" in out


def test_predict_a_grid(solvable):
    code, out, _ = solvable("predict", *TOY, "--learner", "ridge", "--param", "alpha=0.5:1.5:3", "--json")
    found = json.loads(out)
    assert code == 0 and found["axes"]["alpha"] == [0.5, 1.0, 1.5] and len(found["metrics"]["overlap"]) == 3
    assert found["status"] == ["converged"] * 3
    code, out, _ = solvable("predict", *TOY, "--learner", "ridge", "--alpha", "0.5,1")
    assert code == 0 and out.count("converged") == 2


def test_optimize(solvable):
    command = ["optimize", *TOY, "--learner", "ridge", "--metric", "estimation_error", "--alpha", "2"]
    code, out, err = solvable(*command, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "") and found["best"]["penalty"] == pytest.approx(0.25, abs=1e-5)  # the noise
    code, out, _ = solvable(*command)
    assert code == 0 and "best penalty" in out and "0.25" in out


def test_thresholds_encode_infinity(solvable):
    code, out, _ = solvable("thresholds", *TOY, "--json")
    assert code == 0 and json.loads(out) == {"interpolation": 1.0, "never": "inf"}
    code, out, _ = solvable("thresholds", *TOY)
    assert code == 0 and any(line.split() == ["interpolation", "1"] for line in out.splitlines())


def test_curve_prints_writes_and_judges(solvable, tmp_path):
    figure, data = tmp_path / "curve.png", tmp_path / "curve.nc"
    arguments = ["curve", *TOY, "--alpha", "0.5:2:4", "--learner", "ridge", "--learner", "mean", "--d", "20"]
    code, out, err = solvable(*arguments, "--seeds", "3", "--out", str(figure), "--out", str(data))
    assert code == 0 and err == ""
    assert "too few runs to say at " in out and " of 4 points" in out and f"written: {figure}" in out
    assert figure.read_bytes().startswith(b"\x89PNG")
    loaded = sv.Curve.load(data)
    assert loaded.learners == ("ridge", "mean") and loaded.dataset.sizes["seed"] == 3
    code, out, _ = solvable(*arguments, "--seeds", "3", "--json")
    found = json.loads(out)
    assert code == 0 and found["axes"]["alpha"] == [0.5, 1.0, 1.5, 2.0] and found["d"] == 20
    ridge, mean = found["learners"]
    np.testing.assert_allclose(ridge["theory"]["overlap"], loaded["overlap"].values[0])
    assert mean["theory"] == {} and mean["simulation"]["overlap"]["runs"] == [3, 3, 3, 3]
    assert mean["simulation"]["overlap"]["all_runs"] == [3, 3, 3, 3]
    assert found["agreement"]["overlap"]["word"] == "too few runs to say"
    np.testing.assert_allclose(mean["simulation"]["overlap"]["mean"], loaded.summary("overlap")[0].values[1])


def test_curve_of_theory_takes_every_learner_that_has_one(solvable):
    code, out, _ = solvable("curve", *TOY, "--alpha", "0.5,1", "--json", "--learner", "ridge")
    assert code == 0 and json.loads(out)["d"] is None and json.loads(out)["learners"][0]["simulation"] == {}
    code, out, _ = solvable("curve", *TOY, "--alpha", "0.5,1", "--metric", "estimation_error", "--learner", "ridge")
    assert code == 0 and "estimation_error" in out


def test_curve_runs_with_as_many_workers_as_asked(solvable, monkeypatch):
    """Threads stand for the processes here: those compute the same, slowly, in the next test."""
    asked = []

    def pool_of(workers):
        asked.append(workers)
        return ThreadPoolExecutor(workers)

    monkeypatch.setattr("solvable.lab.grid.crews.pool_of", pool_of)
    arguments = ["curve", *TOY, "--alpha", "0.5,2", "--learner", "mean", "--d", "10", "--seeds", "2", "--json"]
    assert solvable(*arguments, "--workers", "2") == solvable(*arguments) and asked == [2, 1]


@pytest.mark.slow
def test_curve_with_workers_gives_the_same(solvable):
    arguments = ["curve", *TOY, "--alpha", "0.5,2", "--learner", "mean", "--d", "10", "--seeds", "2", "--json"]
    assert solvable(*arguments, "--workers", "2") == solvable(*arguments)


def test_diagnose(solvable, monkeypatch):
    class Diagnosis:
        def __init__(self, target, noise, seconds):
            self.target, self.noise = target, noise
            assert seconds in (None, 20.0)

        def __str__(self):
            return f"{self.target} is easy at noise {self.noise}"

        def to_dict(self):
            return {"target": self.target, "alpha_weak": float("inf")}

    monkeypatch.setattr("solvable.models.index.diagnosis.diagnose", Diagnosis)
    given = ("--noise", "0.5", "--seconds", "20")
    assert solvable("diagnose", "abs(z)", *given) == (0, "abs(z) is easy at noise 0.5\n", "")
    code, out, _ = solvable("diagnose", "abs(z)", "--json")
    assert code == 0 and json.loads(out) == {"target": "abs(z)", "alpha_weak": "inf"}

    def refuse(target, noise, seconds):
        raise sv.TargetError("unknown name 'w'", text="z + w", column=5)

    monkeypatch.setattr("solvable.models.index.diagnosis.diagnose", refuse)
    assert solvable("diagnose", "z + w") == (2, "", "solvable: unknown name 'w' at column 5 of 'z + w'\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", *TOY, "--learner", "ridge"], "missing axis alpha: Regression takes alpha (n = alpha d)."),
        (
            ["predict", *TOY, "--learner", "ridge", "--alpha", "x"],
            "--alpha = 'x' is not allowed: --alpha must be a number",
        ),
        (["predict", *TOY, "--learner", "ridge", "--alpha", "1:2"], "--alpha = '1:2' is not allowed"),
        (["predict", *TOY, "--learner", "ridge", "--alpha=-1"], "alpha must be finite and not negative"),
        (
            ["predict", *TOY, "--learner", "oracle", "--alpha", "1"],
            "learner = 'oracle' is not allowed: learner must be one",
        ),
        (["predict", *TOY, "--learner", "mean", "--alpha", "1"], "no theory is registered for Mean on Regression"),
        (
            ["predict", *TOY, "--learner", "ridge:speed=1", "--alpha", "1"],
            "one of the fields of ridge: penalty, variant",
        ),
        (["predict", *TOY, "--learner", "ridge:penalty", "--alpha", "1"], "--learner must be of the form key=value"),
        (["predict", *TOY, "--param", "speed=1", "--learner", "ridge"], "parameter = 'speed' is not allowed"),
        (["predict", *TOY, "--param", "speed", "--learner", "ridge"], "--param must be of the form key=value"),
        (["predict", *TOY, "--prior", "gaussian", "--learner", "ridge"], "parameter = 'prior' is not allowed"),
        (["predict", "abs(z)", *TOY, "--learner", "ridge"], "unexpected target 'abs(z)': regression has no target."),
        (["predict", "--model", "nothing"], "model = 'nothing' is not allowed: model must be one of: "),
        (["predict", *TOY, "--noise", "loud"], "Invalid value for '--noise'"),
        (["predict", "-z**2"], "a target that begins with a minus sign goes last, after --"),
        (["predict", "--nosuch"], "No such option: --nosuch"),
        (["nosuch"], "No such command 'nosuch'"),
        (["diagnose"], "Missing argument 'TARGET'"),
        (["curve", *TOY, "--learner", "ridge", "--alpha", "1"], "exactly one axis must be a grid"),
        (
            ["curve", *TOY, "--learner", "ridge", "--alpha", "1,2", "--out", "a.gif"],
            "--out must be a file name that ends",
        ),
        (
            ["curve", *TOY, "--learner", "ridge", "--alpha", "1,2", "--out", "no/a.png"],
            "--out must be in a folder that",
        ),
        (["curve", *TOY, "--learner", "ridge", "--alpha", "1,2", "--metric", "x"], "metric must be one of: overlap"),
        (["curve", *TOY, "--learner", "ridge", "--alpha", "1,2", "--d", "1"], "d must be an integer of at least 2"),
        (["curve", *TOY, "--learner", "ridge", "--alpha", "1,2", "--workers", "0"], "Invalid value for '--workers'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(solvable, arguments, message):
    code, out, err = solvable(*arguments)
    assert code == 2 and out == ""
    assert message in err and err.startswith("solvable: ") and err.count("\n") == 1


class Stuck(sv.Learner):
    """A theory that never converges."""


@sv.theory(toy.Regression, Stuck)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": alpha}, status=sv.Status.DIVERGED)


class Buggy(sv.Learner):
    """A theory with a mistake in it."""


@sv.theory(toy.Regression, Buggy)
def _(model, learner, alpha):
    raise RuntimeError("a mistake")


def test_failed_computations_are_one_line_and_exit_code_1(solvable, monkeypatch):
    code, out, err = solvable("predict", *TOY, "--learner", "stuck", "--alpha", "1")
    assert (code, out) == (1, "") and "the iteration diverged; the damping is usually too weak" in err
    assert err.count("\n") == 1
    code, out, err = solvable("predict", *TOY, "--learner", "buggy", "--alpha", "1")
    assert (code, out) == (1, "") and "internal error: RuntimeError: a mistake" in err and err.count("\n") == 1
    monkeypatch.setenv("SOLVABLE_DEBUG", "1")
    with pytest.raises(RuntimeError, match="a mistake"):
        run(["predict", *TOY, "--learner", "buggy", "--alpha", "1"])


def test_interruption(solvable, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("solvable.verbs.thresholds.thresholds", interrupt)
    code, out, err = solvable("thresholds", *TOY)
    assert (code, out, err) == (130, "", "solvable: interrupted\n")
