"""Learning curves and phase diagrams of the toy model."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import numpy as np
import pytest
from toys import axes
from toys import ridge as toy
from toys.chain import CALLS, Chain

import solvable as sv
from solvable.core import registry
from solvable.lab.grid.crews import WorkersLost
from solvable.lab.grid.plan import with_field
from solvable.lab.plots.style import axis_label
from solvable.verbs.simulate import simulate_many

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
GRID = np.array([0.5, 1.0, 2.0])


class Fragile(sv.Learner):
    """An algorithm that raises where `alpha` is above `limit`, and whose theory fails there too."""

    limit: float = 1.5


@sv.theory(toy.Regression, Fragile)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": np.where(alpha > learner.limit, np.nan, 0.5)})


@sv.simulation(toy.Regression, Fragile)
def _(model, learner, data, rng):
    if len(data.y) > learner.limit * data.X.shape[1]:
        raise RuntimeError("too many samples")
    return sv.Outcome({"overlap": 0.5}, converged=False)


class Matrix(sv.Learner):
    """A learner whose overlap is a matrix."""


@sv.theory(toy.Regression, Matrix)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": alpha[:, None, None] * np.eye(2)})


def test_theory_only():
    curve = sv.learning_curve(MODEL, RIDGE, alpha=GRID)
    assert curve.axes == ("alpha",) and curve.learners == ("ridge",)
    assert curve.metrics == ("overlap", "estimation_error")
    expected = sv.predict(MODEL, RIDGE, alpha=GRID)
    np.testing.assert_array_equal(curve["overlap"].sel(learner="ridge"), expected["overlap"])
    np.testing.assert_array_equal(curve.dataset["resolvent_order_parameter"][0], expected.order_parameters["resolvent"])
    np.testing.assert_array_equal(curve.dataset["overlap_uncertainty"][0], expected.uncertainty["overlap"])
    assert "seed" not in curve.dataset.dims and "overlap_simulation" not in curve.dataset
    assert curve.thresholds == {"interpolation": 1.0, "never": np.inf}
    assert curve.model == {"name": "regression", "noise": 0.25}
    assert json.loads(curve.dataset.attrs["learners"]) == [{"name": "ridge", "penalty": 0.5, "variant": "plain"}]


def test_theory_and_simulation_side_by_side():
    learners = [RIDGE, toy.Mean()]
    curve = sv.learning_curve(MODEL, learners, alpha=GRID, d=20, seeds=[3, 5])
    assert curve.dataset["overlap_simulation"].dims == ("learner", "alpha", "seed")
    for j, learner in enumerate(learners):
        for i, alpha in enumerate(GRID):
            for k, seed in enumerate((3, 5)):
                run = sv.simulate(MODEL, learner, d=20, seed=seed, alpha=alpha)
                assert curve.dataset["overlap_simulation"].values[j, i, k] == pytest.approx(run["overlap"], rel=1e-9)
    assert (curve.dataset["status"].sel(learner="mean") == -1).all()
    assert np.isnan(curve["overlap"].sel(learner="mean")).all()
    assert curve.dataset["converged_simulation"].all() and (curve.dataset["seconds"] > 0).all()
    assert "failed" not in curve.dataset and curve.dataset.attrs["d"] == 20


@pytest.mark.parametrize("pool", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_values_do_not_depend_on_the_workers(pool):
    alone = sv.learning_curve(MODEL, [RIDGE, toy.Mean()], alpha=GRID, d=20, seeds=3)
    make = {"threads": lambda: ThreadPoolExecutor(3), "processes": lambda: ProcessPoolExecutor(2, get_context("spawn"))}
    with make[pool]() as executor:
        shared = sv.learning_curve(MODEL, [RIDGE, toy.Mean()], alpha=GRID, d=20, seeds=3, executor=executor)
    assert alone.dataset.drop_vars("seconds").identical(shared.dataset.drop_vars("seconds"))


def test_a_pool_that_forks_is_refused_instead_of_waiting_for_ever(tmp_path):
    with ProcessPoolExecutor(2, get_context("fork")) as executor:
        calls = (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=20, seeds=3, executor=executor),
            lambda: sv.phase_diagram(MODEL, RIDGE, ("alpha", GRID), ("noise", [0.1, 0.2]), executor=executor),
            lambda: sv.sweep(MODEL, RIDGE, store=tmp_path, alpha=GRID, executor=executor),
        )
        for call in calls:
            with pytest.raises(ValueError, match=r'forks .* mp_context=multiprocessing.get_context\("spawn"\)'):
                call()
    with pytest.raises(ValueError, match="executor must be a concurrent.futures executor"):
        sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=20, seeds=3, executor="threads")


def test_a_learner_twice_has_two_labels():
    twice = [toy.Ridge(0.1), toy.Ridge(1.0), toy.Ridge(1.0, variant="b"), toy.Mean()]
    assert sv.learning_curve(MODEL, twice, alpha=GRID, d=10, seeds=1).learners == (
        "ridge(penalty=0.1, variant=plain)",
        "ridge(penalty=1.0, variant=plain)",
        "ridge(penalty=1.0, variant=b)",
        "mean",
    )
    assert sv.learning_curve(MODEL, [RIDGE, RIDGE], alpha=GRID).learners == ("ridge", "ridge #2")


def test_the_grid_may_run_over_a_field_of_the_learner_or_of_the_model():
    penalties = np.array([0.1, 0.25, 1.0])
    curve = sv.learning_curve(MODEL, RIDGE, alpha=1.3, penalty=penalties, d=10, seeds=2)
    assert curve.axes == ("penalty",) and curve.thresholds == {}
    for i, penalty in enumerate(penalties):
        assert curve["overlap"].values[0, i] == sv.predict(MODEL, toy.Ridge(penalty), alpha=1.3)["overlap"]
        run = sv.simulate(MODEL, toy.Ridge(penalty), d=10, seed=1, alpha=1.3)
        assert curve.simulation("overlap").values[0, i, 1] == pytest.approx(run["overlap"], rel=1e-9)
    curve = sv.learning_curve(MODEL, RIDGE, alpha=GRID, noise=1.0)
    expected = sv.predict(toy.Regression(noise=1.0), RIDGE, alpha=GRID)["overlap"]
    np.testing.assert_array_equal(curve["overlap"][0], expected)
    assert json.loads(curve.dataset.attrs["fixed"]) == {"noise": 1.0}


def test_whole_numbers_stay_integers_where_the_field_is_one():
    assert type(with_field(sv.GradientDescent(), "runs", 4.0).runs) is int
    assert type(with_field(sv.NuclearNorm(0.1, width=3), "width", 5.0).width) is int
    assert with_field(sv.NuclearNorm(0.1, width=0.5), "width", 1.0).width == 1.0
    with pytest.raises(ValueError, match="runs"):
        with_field(sv.GradientDescent(), "runs", 2.5)


def test_a_learner_without_the_field_is_constant_along_it():
    curve = sv.learning_curve(MODEL, [RIDGE, Fragile()], alpha=1.0, penalty=GRID)
    assert curve["overlap"].sel(learner="fragile").values.tolist() == [0.5, 0.5, 0.5]


def test_a_run_that_raises_is_kept_as_missing_with_its_error():
    curve = sv.learning_curve(MODEL, Fragile(), alpha=GRID, d=10, seeds=2)
    assert curve.dataset["failed"].values[0].tolist() == [["", ""], ["", ""], ["RuntimeError: too many samples"] * 2]
    runs = curve.simulation("overlap").values[0]
    assert np.isnan(runs[2]).all() and not np.isnan(runs[:2]).any()
    assert not curve.dataset["converged_simulation"].any()
    assert curve.dataset["status"].values[0].tolist() == [0, 0, sv.Status.NONFINITE]


def test_if_every_run_raises_so_does_the_curve():
    with pytest.raises(RuntimeError, match="too many samples"):
        sv.learning_curve(MODEL, Fragile(limit=0.1), alpha=GRID, d=10, seeds=2)


def test_workers_that_die_are_not_a_missing_point():
    class Dead(Executor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(BrokenExecutor("a worker died"))
            return future

    with pytest.raises(WorkersLost, match="the executor broke .*a worker died"):
        sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=10, seeds=1, executor=Dead())


def test_scalars_and_matrices_under_one_name_are_refused():
    with pytest.raises(ValueError, match="overlap_theory has different shapes"):
        sv.learning_curve(MODEL, [RIDGE, Matrix()], alpha=GRID)


def test_phase_diagram_over_an_axis_and_a_field():
    noises = np.array([0.1, 0.5])
    diagram = sv.phase_diagram(MODEL, RIDGE, x=("alpha", GRID), y=("noise", noises), metric="estimation_error")
    assert diagram.axes == ("alpha", "noise") and diagram.default_metric == "estimation_error"
    for j, noise in enumerate(noises):
        expected = sv.predict(toy.Regression(noise=noise), RIDGE, alpha=GRID)["overlap"]
        np.testing.assert_array_equal(diagram["overlap"].values[0, :, j], expected)
    swapped = sv.phase_diagram(MODEL, RIDGE, x=("noise", noises), y=("alpha", GRID))
    np.testing.assert_array_equal(swapped["overlap"].values[0], diagram["overlap"].values[0].T)


def test_phase_diagram_over_two_fields_with_runs():
    diagram = sv.phase_diagram(
        MODEL, RIDGE, x=("penalty", [0.1, 1.0]), y=("noise", [0.1, 0.5, 0.9]), alpha=1.5, d=10, seeds=2
    )
    assert diagram.simulation("overlap").shape == (1, 2, 3, 2)
    run = sv.simulate(toy.Regression(noise=0.5), toy.Ridge(1.0), d=10, seed=1, alpha=1.5)
    assert diagram.simulation("overlap").values[0, 1, 1, 1] == pytest.approx(run["overlap"], rel=1e-9)


class Marked(toy.Regression):
    """A regression whose thresholds take long to find."""

    @property
    def quick_thresholds(self):
        return False


def test_thresholds_that_take_long_are_found_only_if_asked_for():
    assert sv.learning_curve(Marked(), RIDGE, alpha=GRID).thresholds == {}
    found = sv.learning_curve(Marked(), RIDGE, alpha=GRID, marks=True).thresholds
    assert found == {"interpolation": 1.0, "never": np.inf}
    assert sv.learning_curve(MODEL, RIDGE, alpha=GRID, marks=False).thresholds == {}
    assert sv.learning_curve(Marked(), RIDGE, alpha=GRID, marks={"mine": 2.0}).thresholds == {"mine": 2.0}
    assert sv.MultiIndex("abs(z)").quick_thresholds and not sv.MultiIndex("z1*z2*z3").quick_thresholds


class Telling(sv.Learner):
    """An algorithm that says how it went, and has a vector for a metric."""


@sv.simulation(toy.Regression, Telling)
def _(model, learner, data, rng):
    details = {"iterations": len(data.y), "consistent": len(data.y) > 10, "history": np.zeros(3)}
    return sv.Outcome({"overlap": 0.5, "rates": [1.0, 2.0, 3.0]}, details=details)


def test_what_runs_tell_of_themselves_is_kept_beside_the_metrics():
    curve = sv.learning_curve(MODEL, [Telling(), toy.Mean()], alpha=GRID, d=10, seeds=2)
    data = curve.dataset.sel(learner="telling")
    assert data["iterations_simulation"].values[:, 0].tolist() == [5, 10, 20]
    assert data["consistent_simulation"].values[:, 1].tolist() == [0, 0, 1] and "history" not in str(data.data_vars)
    assert np.isnan(curve.dataset["iterations_simulation"].sel(learner="mean")).all()
    assert set(curve.metrics) == {"overlap", "estimation_error", "rates"}
    assert curve.simulation("rates").dims == ("learner", "alpha", "seed", "entry") and curve.default_metric == "overlap"
    ax = curve.plot("rates")
    labels = [f"Telling, $d = 10$,{told} $k = {k}$" for told in (" not settled,", "") for k in (1, 2, 3)]
    assert sorted(ax.get_legend_handles_labels()[1]) == sorted(labels)
    assert ax.get_ylabel() == "rates $k$"


ONLINE = axes.OnlineRegression(noise=0.1)
STEPS = axes.OnlineLeastSquares(0.5)


def test_one_run_answers_a_whole_line_of_a_path(monkeypatch):
    calls = []
    spied = lambda *a, **k: calls.append(k) or simulate_many(*a, **k)  # noqa: E731
    monkeypatch.setattr("solvable.lab.grid.results.simulate_many", spied)
    alpha = np.array([2.0, 0.5, 1.0])  # not in order
    curve = sv.learning_curve(ONLINE, STEPS, alpha=alpha, d=40, seeds=2)
    assert len(calls) == 2 and calls[0]["alpha"].tolist() == [0.5, 1.0, 2.0]
    error = curve.simulation("estimation_error")
    assert error.dims == ("learner", "alpha", "seed")
    for k in range(2):
        path = sv.simulate(ONLINE, STEPS, d=40, seed=k, alpha=np.sort(alpha))["estimation_error"]
        np.testing.assert_allclose(error[0, :, k], path[[2, 0, 1]], rtol=1e-9)
    assert (curve.dataset["seconds"][0, 0] == curve.dataset["seconds"][0, 1]).all()
    assert curve.dataset["converged_simulation"].all() and curve.agreement("estimation_error").points == 3


def test_lines_of_a_path_differ_in_their_fields():
    diagram = sv.phase_diagram(ONLINE, STEPS, x=("alpha", [0.5, 1.0]), y=("step", [0.2, 0.8]), d=30, seeds=1)
    for j, step in enumerate((0.2, 0.8)):
        path = sv.simulate(ONLINE, axes.OnlineLeastSquares(step), d=30, seed=0, alpha=np.array([0.5, 1.0]))
        np.testing.assert_allclose(
            diagram.simulation("estimation_error")[0, :, j, 0], path["estimation_error"], rtol=1e-9
        )


def test_a_path_in_a_store(tmp_path):
    whole = sv.sweep(ONLINE, STEPS, store=tmp_path / "a", alpha=[0.5, 1.0, 2.0], d=40, seeds=2)
    again = sv.sweep(ONLINE, STEPS, store=tmp_path / "a", alpha=[0.5, 1.0, 1.5, 2.0], d=40, seeds=2)
    assert "11 were done" not in (log := (tmp_path / "a/sweep.log").read_text()) and "9 were done, 3 computed" in log
    runs = whole.simulation("estimation_error").values
    np.testing.assert_array_equal(again.simulation("estimation_error").values[:, [0, 1, 3]], runs)
    curve = sv.learning_curve(ONLINE, STEPS, alpha=[0.5, 1.0, 1.5, 2.0], d=40, seeds=2)
    np.testing.assert_allclose(again.simulation("estimation_error"), curve.simulation("estimation_error"), rtol=1e-12)
    assert axis_label(curve, "alpha") == axis_label(again, "alpha") == r"$\alpha$ = $n/d$"


@pytest.fixture
def calls():
    CALLS.clear()
    return CALLS


@pytest.mark.parametrize("threads", [0, 3])
def test_runs_of_several_seeds_are_made_together(calls, threads):
    alpha = np.array([2.0, 0.5, 1.0])
    with ThreadPoolExecutor(threads) if threads else nullcontext() as executor:
        curve = sv.learning_curve(ONLINE, Chain(), alpha=alpha, d=10**6, seeds=20, executor=executor)
    assert sorted(calls) == [(10**6, [0.5, 1.0, 2.0], 4), (10**6, [0.5, 1.0, 2.0], 16)]
    error = curve.simulation("estimation_error").values[0]
    for k in (0, 15, 16, 19):
        path = sv.simulate(ONLINE, Chain(), d=10**6, seed=k, alpha=np.sort(alpha))["estimation_error"]
        np.testing.assert_array_equal(error[:, k], path[[2, 0, 1]])
    assert curve.dataset["consistent_simulation"].all() and curve.dataset["converged_simulation"].all()
    assert curve.agreement("estimation_error").word == "agrees"


def test_a_diagram_of_runs_that_are_made_together(calls):
    diagram = sv.phase_diagram(ONLINE, Chain(), x=("alpha", [0.5, 1.0]), y=("step", [0.2, 0.8]), d=30, seeds=3)
    assert calls == [(30, [0.5, 1.0], 3)] * 2
    path = sv.simulate(ONLINE, Chain(0.8), d=30, seed=2, alpha=np.array([0.5, 1.0]))["estimation_error"]
    np.testing.assert_array_equal(diagram.simulation("estimation_error")[0, :, 1, 2], path)


def test_a_seed_that_raises_does_not_take_the_others_with_it():
    whole = sv.learning_curve(ONLINE, Chain(), alpha=[0.5, 1.0], d=30, seeds=16).simulation("estimation_error")
    curve = sv.learning_curve(ONLINE, Chain(limit=1.0), alpha=[0.5, 1.0], d=30, seeds=16)
    lost = curve.dataset["failed"].values[0] == "ArithmeticError: a run begins too high"
    assert 0 < lost[0].sum() < 16 and (lost[0] == lost[1]).all()
    found = curve.simulation("estimation_error").values[0]
    np.testing.assert_array_equal(found, np.where(lost, np.nan, whole.values[0]))
    with pytest.raises(ArithmeticError, match="a run begins too high"):
        sv.learning_curve(ONLINE, Chain(limit=-10.0), alpha=[0.5, 1.0], d=30, seeds=16)


def test_theory_is_asked_once_for_a_line_and_point_by_point_for_a_store(tmp_path, monkeypatch):
    asked = []
    entry = registry.find_theory(ONLINE, Chain())
    spied = dataclasses.replace(
        entry, function=lambda m, c, alpha: asked.append(len(alpha)) or entry.function(m, c, alpha)
    )
    monkeypatch.setitem(registry._theories, (axes.OnlineRegression, Chain), spied)
    curve = sv.learning_curve(ONLINE, Chain(), alpha=[2.0, 0.5, 1.0])
    assert asked == [3]
    stored = sv.sweep(ONLINE, Chain(), store=tmp_path, alpha=[2.0, 0.5, 1.0])
    assert asked == [3, 1, 1, 1]
    np.testing.assert_allclose(stored["estimation_error"], curve["estimation_error"], rtol=1e-12)


LINEAR = axes.LinearModel()


def test_a_model_without_size_needs_no_dummy(tmp_path):
    curve = sv.learning_curve(LINEAR, axes.LeastSquares(), n=[20, 40], p=5, seeds=3)
    assert "d" not in curve.dataset.attrs and curve.sizes == () and curve.size_name is None
    assert curve.simulation("estimation_error").dims == ("learner", "n", "seed")
    run = sv.simulate(LINEAR, axes.LeastSquares(), seed=2, n=40, p=5)
    assert curve.simulation("estimation_error").values[0, 1, 2] == pytest.approx(run["estimation_error"], rel=1e-9)
    assert "3 seeds" in repr(curve) and "d = " not in repr(curve)
    ax = curve.plot()
    assert ax.get_xlabel() == "n, samples"
    assert ax.get_legend_handles_labels()[1] == ["Least squares, theory", "Least squares, simulation"]
    stored = sv.sweep(LINEAR, axes.LeastSquares(), store=tmp_path, n=[20, 40], p=5, seeds=3)
    assert stored.simulation("estimation_error").equals(curve.simulation("estimation_error"))
    assert "d" not in stored.dataset.attrs and sv.Curve.load(curve.save(tmp_path / "a.nc")).sizes == ()
    assert "seed" not in sv.learning_curve(LINEAR, axes.LeastSquares(), n=[20, 40], p=5).dataset.dims
    with pytest.raises(ValueError, match="d must be left out: linear-model has no size"):
        sv.learning_curve(LINEAR, axes.LeastSquares(), n=[20, 40], p=5, d=10)


class Sized(toy.Regression):
    """A regression whose size goes by another name."""

    size = "N"

    def sample(self, rng, N, alpha):
        return super().sample(rng, N, alpha)


def test_a_size_of_another_name():
    curve = sv.learning_curve(Sized(), toy.Mean(), N=20, seeds=2, alpha=GRID)
    run = sv.simulate(Sized(), toy.Mean(), N=20, seed=1, alpha=1.0)
    assert curve.simulation("overlap").values[0, 1, 1] == pytest.approx(run["overlap"], rel=1e-9)
    assert curve.sizes == (20,) and curve.plot().get_legend_handles_labels()[1] == ["Mean, $N = 20$"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sv.learning_curve(MODEL, RIDGE, alpha=1.0), ValueError, "exactly one axis must be a grid .* got none"),
        (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=GRID, penalty=GRID),
            ValueError,
            "exactly one axis must be a grid .* got alpha, penalty",
        ),
        (lambda: sv.learning_curve(MODEL, RIDGE, penalty=GRID), ValueError, "missing axis alpha"),
        (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=1.0, colour=GRID),
            ValueError,
            "axis = 'colour' is not allowed: .* alpha, noise, penalty, variant",
        ),
        (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=1.0, variant=GRID),
            ValueError,
            "variant cannot be a grid: it is not a number on Ridge",
        ),
        (lambda: sv.learning_curve(MODEL, RIDGE, alpha=[1.0, 1.0]), ValueError, "different finite values"),
        (lambda: sv.learning_curve(MODEL, RIDGE, alpha=[[1.0, 2.0]]), ValueError, "a one-dimensional array"),
        (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=[-1.0, 2.0]),
            ValueError,
            "alpha must be finite and not negative",
        ),
        (
            lambda: sv.learning_curve(MODEL, [], alpha=GRID),
            ValueError,
            "learners must be one learner or a list of them",
        ),
        (lambda: sv.learning_curve(MODEL, [toy.Ridge], alpha=GRID), TypeError, "got the class Ridge"),
        (lambda: sv.learning_curve(MODEL, "ridge", alpha=GRID), TypeError, "got str 'ridge'"),
        (lambda: sv.learning_curve("abs(z)", RIDGE, alpha=GRID), TypeError, "model must be a Model"),
        (lambda: sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=1), ValueError, "d = 1 is not allowed"),
        (lambda: sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=9, seeds=0), ValueError, "seeds = 0 is not allowed"),
        (
            lambda: sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=9, seeds=[1, 1]),
            ValueError,
            "a list of different ones",
        ),
        (lambda: sv.learning_curve(MODEL, toy.Guess(), alpha=GRID, d=9), sv.NotSolvable, "no theory .* Guess"),
        (lambda: sv.learning_curve(MODEL, toy.Mean(), alpha=GRID), sv.NotSolvable, "can be simulated: give .* d"),
        (lambda: sv.learning_curve(MODEL, Matrix(), alpha=GRID, d=9), sv.NotSimulable, "no algorithm .* Matrix"),
        (lambda: sv.phase_diagram(MODEL, RIDGE, x="alpha", y=("noise", GRID)), ValueError, r"a pair \(name, values\)"),
        (
            lambda: sv.phase_diagram(MODEL, RIDGE, x=("alpha", GRID), y=("alpha", GRID)),
            ValueError,
            "x and y must be two different axes",
        ),
        (
            lambda: sv.phase_diagram(MODEL, RIDGE, x=("alpha", GRID), y=("noise", GRID), metric="beauty"),
            ValueError,
            "metric = 'beauty' is not allowed: metric must be one of: overlap, estimation_error",
        ),
    ],
)
def test_bad_requests(call, error, message):
    with pytest.raises(error, match=message):
        call()
