"""A sweep from a file or from arguments: what it takes, and what it says of what it does not."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy

import solvable as sv
from solvable.lab.grid.request import make_plan
from solvable.lab.sweep.configuration import read_plan

EXAMPLE = """
    thresholds = true
    [model]
    name = "multi-index"
    target = "abs(z)"
    noise = [0.0, 0.1]
    [[learner]]
    name = "bayes-optimal"
    [[learner]]
    name = "amp"
    damping = 0.5
    [axes]
    alpha = {start = 0.1, stop = 1.0, num = 4}
    [simulation]
    d = [60, 120]
    seeds = 3
"""
TOY = {"model": {"name": "regression"}, "learner": [{"name": "ridge"}], "axes": {"alpha": [0.5, 1.0]}}


def read(text, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_plan(path)


def changed(**tables):
    return {key: value for key, value in (TOY | tables).items() if value is not None}


def test_the_example_of_the_documentation(tmp_path):
    plan = read(EXAMPLE, tmp_path)
    assert [(axis.name, axis.home) for axis in plan.grid] == [("noise", "model"), ("alpha", "axis")]
    assert plan.sizes == (60, 120) and plan.seeds == (0, 1, 2) and plan.thresholds
    layout = plan.layout()
    theory, runs, marks = 2 * 2 * 4, 2 * 2 * 4 * 2 * 3, 2
    assert len(layout.theory) == theory and len(layout.marks) == marks and len(layout.runs) == runs
    assert len(layout.points) == theory + sum(map(bool, layout.runs)) + marks
    same = make_plan(
        sv.MultiIndex("abs(z)"),
        [sv.BayesOptimal(), sv.AMP(damping=0.5)],
        [60, 120],
        3,
        True,
        {"noise": [0.0, 0.1], "alpha": np.linspace(0.1, 1.0, 4)},
    )
    assert same.layout().id == layout.id


def test_predictions_come_first_then_the_runs_seed_by_seed(tmp_path):
    points = read(EXAMPLE, tmp_path).layout().points
    order = [(p.learner is None, -1 if p.seed is None else p.seed) for p in points]
    assert order == sorted(order)


def test_axes_of_texts(tmp_path):
    plan = read_plan(changed(model={"name": "multi-index", "target": ["abs(z)", "z**2"]}, learner=[{"name": "amp"}]))
    (target, _) = plan.grid
    assert target.values == ("abs(z)", "z**2") and target.home == "model"
    plan = read_plan(changed(learner=[{"name": "ridge", "variant": ["plain", "fancy"]}, {"name": "mean"}]))
    assert [(a.name, a.values, a.learners) for a in plan.grid][0] == ("variant", ("plain", "fancy"), (0,))


def test_a_learner_without_the_field_is_computed_once():
    tables = changed(
        learner=[{"name": "ridge", "penalty": [0.1, 1.0]}, {"name": "mean"}], simulation={"d": 10, "seeds": 1}
    )
    layout = read_plan(tables).layout()
    assert len(layout.theory) == 8 and len(layout.runs) == 8
    assert len(layout.points) == 4 + 4 + 2, "mean has two runs, for two values of alpha"
    assert layout.runs[4:6] == layout.runs[6:8] and layout.theory[4:] == [""] * 4


def test_a_field_that_several_learners_vary():
    two = [{"name": "ridge", "penalty": [0.1, 1.0]}, {"name": "ridge-by-hand", "penalty": [0.1, 1.0]}]
    plan = read_plan(changed(learner=two))
    assert plan.grid[0].learners == (0, 1)
    two[1]["penalty"] = [0.1, 2.0]
    with pytest.raises(ValueError, match=r"penalty must have the same list of values in every \[\[learner\]\]"):
        read_plan(changed(learner=two))
    two[1]["penalty"] = 3.0
    plan = read_plan(changed(learner=two))
    assert plan.grid[0].learners == (0,) and plan.learners[1].describe()["penalty"] == 3.0


def test_ranges():
    values = lambda given: read_plan(changed(axes={"alpha": given})).grid[0].values  # noqa: E731
    assert values({"start": 0, "stop": 1, "num": 5}) == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert values({"start": 2.0, "stop": 1, "num": 2}) == (2.0, 1.0)
    np.testing.assert_allclose(values({"start": 0.1, "stop": 10, "num": 3, "log": True}), (0.1, 1, 10), rtol=1e-15)
    assert values({"start": 0.3, "stop": 9, "num": 1}) == (0.3,)
    assert values([3, 1, 2]) == (3, 1, 2)


def test_a_single_value_is_no_axis():
    plan = read_plan(changed(axes={"alpha": 2}))
    assert plan.grid == () and plan.fixed == {"alpha": 2.0} and len(plan.layout().theory) == 1


def test_a_model_without_axes():
    plan = read_plan({"model": {"name": "plain", "noise": [0.1, 0.2]}, "learner": {"name": "ridge"}})
    assert [axis.name for axis in plan.grid] == ["noise"] and len(plan.layout().points) == 2
    assert len(make_plan(sweep_toys.Plain(), toy.Ridge(), None, 1, False, {}).layout().points) == 1


HUGE = 10**400
BAD = {
    "unknown key 'modle' in the file: it takes model, learner, axes, simulation, thresholds": {"modle": {}},
    "thresholds = 'yes' is not allowed: thresholds must be true or false": {"thresholds": "yes"},
    "the file needs a table [model]": {"model": None},
    '[model] needs a name, such as name = "multi-index"': {"model": {"noise": 0.1}},
    "model = 'regresion' is not allowed": {"model": {"name": "regresion"}},
    "model.colour = 1 is not allowed: model.colour must be left out: regression has noise": {
        "model": {"name": "regression", "colour": 1}
    },
    "model.alpha = 1.0 is not allowed: model.alpha must be left out: regression has noise; axes of the model belong to "
    "[axes]": {"model": {"name": "regression", "alpha": 1.0}},
    "model.noise = [] is not allowed": {"model": {"name": "regression", "noise": []}},
    "model.noise = [0.1, 0.1] is not allowed: model.noise must be a list of different numbers": {
        "model": {"name": "regression", "noise": [0.1, 0.1]}
    },
    "model.noise = [1, 1.0] is not allowed": {"model": {"name": "regression", "noise": [1, 1.0]}},
    "model.noise = [0.1, 'a'] is not allowed": {"model": {"name": "regression", "noise": [0.1, "a"]}},
    "model.noise = [True, False] is not allowed": {"model": {"name": "regression", "noise": [True, False]}},
    "model.noise = [[0.1], [0.2]] is not allowed": {"model": {"name": "regression", "noise": [[0.1], [0.2]]}},
    "model.noise = [0.1, inf] is not allowed: model.noise must be a list of finite": {
        "model": {"name": "regression", "noise": [0.1, float("inf")]}
    },
    "model.noise = [0.1, nan] is not allowed": {"model": {"name": "regression", "noise": [0.1, float("nan")]}},
    "model.noise = [1, 1000000": {"model": {"name": "regression", "noise": [1, HUGE]}},
    "the file needs at least one learner: a table [[learner]]": {"learner": None},
    "the file needs at least one learner": {"learner": "amp"},
    "[learner] needs a name": {"learner": [{"penalty": 1.0}]},
    "learner = 'amp' is not allowed": {"learner": [{"name": "amp"}]},
    "learner.penalti = 1 is not allowed: learner.penalti must be left out: ridge has penalty, variant": {
        "learner": [{"name": "ridge", "penalti": 1}]
    },
    "axes = 'beta' is not allowed: axes must be one of the axes of regression: alpha (a field belongs to": {
        "axes": {"alpha": 1.0, "beta": [1, 2]}
    },
    "the file needs a table [axes]": {"axes": [1, 2]},
    "missing axis alpha": {"axes": {}},
    "alpha = -1.0 is not allowed": {"axes": {"alpha": [-1.0, 1.0]}},
    "alpha = 'one' is not allowed": {"axes": {"alpha": "one"}},
    "alpha = ['a', 'b'] is not allowed": {"axes": {"alpha": ["a", "b"]}},
    "axes.alpha = {'start': 0, 'stop': 1} is not allowed: axes.alpha must be {start = .., stop = .., num = ..}": {
        "axes": {"alpha": {"start": 0, "stop": 1}}
    },
    "axes.alpha = {'start': 0, 'stop': 1, 'num': 3, 'step': 1} is not allowed": {
        "axes": {"alpha": {"start": 0, "stop": 1, "num": 3, "step": 1}}
    },
    "axes.alpha.num = 2.5 is not allowed": {"axes": {"alpha": {"start": 0, "stop": 1, "num": 2.5}}},
    "axes.alpha.num = 0 is not allowed": {"axes": {"alpha": {"start": 0, "stop": 1, "num": 0}}},
    "axes.alpha = 'a' is not allowed": {"axes": {"alpha": {"start": "a", "stop": 1, "num": 3}}},
    "start and stop then positive": {"axes": {"alpha": {"start": 0, "stop": 1, "num": 3, "log": True}}},
    "start and stop different": {"axes": {"alpha": {"start": 1, "stop": 1, "num": 3}}},
    "unknown key 'n' in [simulation]: it takes d, seeds": {"simulation": {"d": 10, "n": 3}},
    "[simulation] needs d, the dimension of the runs": {"simulation": {"seeds": 3}},
    "simulation.d = 1 is not allowed": {"simulation": {"d": 1}},
    "simulation.d = [10, 10] is not allowed: simulation.d must be a dimension, or a list of different ones": {
        "simulation": {"d": [10, 10]}
    },
    "simulation.d = [] is not allowed": {"simulation": {"d": []}},
    "simulation.d = 10.5 is not allowed": {"simulation": {"d": 10.5}},
    "seeds = 0 is not allowed": {"simulation": {"d": 10, "seeds": 0}},
    "seeds = [] is not allowed": {"simulation": {"d": 10, "seeds": []}},
    "seeds = -1 is not allowed": {"simulation": {"d": 10, "seeds": [0, -1]}},
    "seeds = 'all' is not allowed": {"simulation": {"d": 10, "seeds": "all"}},
    "noise is given twice: it can vary in one place only": {
        "model": {"name": "regression", "noise": [0.1, 0.2]},
        "learner": [{"name": "noisy", "noise": [1.0, 2.0]}],
    },
    "no theory is registered": {"learner": [{"name": "mean"}]},
}


class Noisy(sv.Learner):
    """A learner with a field that the model has too, and one named as a dimension of the results."""

    noise: float = 1.0
    seed: float = 1.0
    status: float = 1.0


@sv.theory(toy.Regression, Noisy, vectorized=False)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": float(model.noise) + 10 * float(learner.noise)})


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_named(message):
    with pytest.raises((ValueError, sv.NotSolvable), match=re.escape(message)):
        read_plan(changed(**BAD[message])).layout()


@pytest.mark.parametrize("name", ["seed", "status"])
def test_axes_that_the_results_have_already(name):
    with pytest.raises(ValueError, match=f"{name} cannot be a grid axis: the results have something of that name"):
        read_plan(changed(learner=[{"name": "noisy", name: [1.0, 2.0]}]))


def test_a_field_of_both_model_and_learner(tmp_path):
    with pytest.raises(ValueError, match="noise belongs to both the model and a learner"):
        sv.sweep(toy.Regression(), Noisy(), store=tmp_path, alpha=1.0, noise=[0.1, 0.2])
    tables = changed(
        model={"name": "regression", "noise": [0.1, 0.2]}, learner={"name": "noisy", "noise": 3.0}, axes={"alpha": 1.0}
    )
    curve = sv.sweep(tables, store=tmp_path)
    np.testing.assert_allclose(curve["overlap"].sel(learner="noisy"), [30.1, 30.2])


@pytest.mark.parametrize("content", ["[model\n", 'name = "a\n', "a = 1\na = 2\n"])
def test_what_is_not_toml(tmp_path, content):
    with pytest.raises(ValueError, match=r"sweep.toml is not a TOML file: .*line \d"):
        read(content, tmp_path)


def test_what_is_no_file_or_no_text(tmp_path):
    (tmp_path / "sweep.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a TOML file"):
        read_plan(tmp_path / "sweep.toml")
    with pytest.raises(FileNotFoundError, match="nowhere.toml"):
        sv.sweep(tmp_path / "nowhere.toml", store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f: sv.sweep(TOY, toy.Ridge(), store=f), ValueError, "a sweep from a file takes .* from the file alone"),
        (lambda f: sv.sweep(TOY, store=f, alpha=[1.0]), ValueError, "from the file alone"),
        (lambda f: sv.sweep(TOY, store=f, seeds=3), ValueError, "from the file alone"),
        (lambda f: sv.sweep(5, toy.Ridge(), store=f), TypeError, "model must be a Model"),
        (lambda f: sv.sweep(toy.Regression, toy.Ridge(), store=f), TypeError, "got the class Regression"),
        (lambda f: sv.sweep(toy.Regression(), store=f), ValueError, "learners = None is not allowed"),
        (lambda f: sv.sweep(toy.Regression(), [], store=f), ValueError, "learners must be one learner"),
        (lambda f: sv.sweep(toy.Regression(), toy.Ridge(), store=f), ValueError, "missing axis alpha"),
        (lambda f: sv.sweep(toy.Regression(), toy.Ridge(), store=f, alpha=1, colour=2), ValueError, "axis = 'colour'"),
        (lambda f: sv.sweep(toy.Regression(), toy.Mean(), store=f, alpha=1), sv.NotSolvable, "give the dimension d"),
        (lambda f: sv.sweep(toy.Regression(), toy.Ridge(), store=f, alpha=1, d=9, seeds=0), ValueError, "seeds = 0"),
        (lambda f: sv.sweep(sweep_toys.Plain(), toy.Ridge(), store=f, thresholds=True), sv.NotSolvable, "Leave out"),
    ],
)
def test_bad_calls_make_no_store(tmp_path, call, error, message):
    with pytest.raises(error, match=message):
        call(tmp_path / "store")
    assert not (tmp_path / "store").exists()
