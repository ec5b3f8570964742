"""The figures of empirical risk minimisation: numbers read off runs, and every picture from made-up material."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import solvable as sv
from solvable.lab.figures.curves import lowest, mean, metric_of_run
from solvable.lab.figures.entries import (
    lasso_phase_diagram,
    negative_ridge,
    ridgeless_double_descent,
    robust_regression,
)
from solvable.lab.figures.entry import Effort, Material
from solvable.lab.figures.estimators import Estimate, Runs
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import AGREES, DIFFERS, Verdict, judge

WANTED = ("lasso-phase-diagram", "negative-ridge", "ridgeless-double-descent", "robust-regression")


def texts(figure):
    """All labels of a figure's legends and axes."""
    found = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        legend = ax.get_legend()
        found += [ax.get_xlabel(), ax.get_ylabel(), ax.get_title()]
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return found


def curve(metric, axes, learners=1, d=None, seeds=0, error=lambda *x: 0.1 + x[0] ** 2):
    """A curve with a made-up error over its axes, of theory, or of runs that scatter around it."""
    values = error(*np.meshgrid(*axes.values(), indexing="ij")) * np.ones((learners, *map(len, axes.values())))
    dims = ("learner", *axes)
    names = [f"l{k}" for k in range(learners)]
    coordinates = {"learner": names, "title": ("learner", names)} | {name: np.array(x) for name, x in axes.items()}
    if not seeds:
        variables = {f"{metric}_theory": (dims, values), "status": (dims, np.zeros(values.shape, int))}
        return sv.Curve(xr.Dataset(variables, coordinates))
    scatter = 0.02 * np.random.default_rng(0).standard_normal((learners, *[1] * len(axes), seeds))
    runs = values[..., None] + scatter
    variables = {f"{metric}_simulation": ((*dims, "seed"), runs)}
    variables["converged_simulation"] = ((*dims, "seed"), np.ones(runs.shape, bool))
    return sv.Curve(xr.Dataset(variables, coordinates, {"d": d}))


def test_the_entries_of_empirical_risk_minimisation_are_found():
    assert set(all_entries()) >= set(WANTED)


def test_the_mean_of_runs_leaves_out_those_that_gave_nothing():
    found = mean([1.0, 2.0, 3.0, np.nan], 400)
    assert found.value == 2.0 and found.error == pytest.approx(1 / np.sqrt(3))
    assert found.shift == 8 / 400 and np.isnan(mean([1.0, np.nan], 400).error)


def test_the_lowest_point_of_curves_and_its_jackknife_error():
    """Parabolas with their minimum at -1 + noise: that of their mean is the mean, its error the standard error."""
    places = -1 + 0.1 * np.random.default_rng(0).standard_normal(12)
    x = np.linspace(-2, 0.5, 7)
    heights = 5.0 * np.arange(12)  # what a run adds to its whole curve does not matter
    found = lowest(x, (x[:, None] - places) ** 2 + heights, 400)
    assert found.value == pytest.approx(places.mean(), abs=1e-9)
    assert found.error == pytest.approx(places.std(ddof=1) / np.sqrt(12), rel=1e-6)
    assert np.isnan(lowest(x, (x[:, None] - 3.0) ** 2 * np.ones(4), 400).value)  # still falling at the end


def test_a_run_without_a_minimum_has_no_metric():
    model = sv.MultiIndex("z", noise=0.1)
    ridge = ridgeless_double_descent.ridge
    assert 0 < metric_of_run(model, ridge(0.1), 3.0, 30, 0, "estimation_error") < 1
    assert np.isnan(metric_of_run(model, ridge(-2.0), 3.0, 30, 0, "estimation_error"))


def robust_material(alpha=(1.0, 10.0, 100.0), ratios=(10.0,), seeds=3):
    bayes, rng = 0.2 / np.array(alpha), np.random.default_rng(0)
    values = {"alpha": np.array(alpha), "ratios": np.array(ratios), "bayes": bayes, "square": 10 * bayes}
    values |= {"huber": 1.5 * bayes, "tukey": np.array([np.nan, 1.01, 1.01]) * bayes}
    values["replicon"] = np.array([np.nan, 0.97, 0.2])
    at = np.searchsorted(alpha, ratios)
    names = robust_regression.NAMES
    values["runs"] = {name: values[name][at, None] * rng.normal(1, 0.02, (len(ratios), seeds)) for name in names}
    return Material(values, sizes={"runs": {"d": [100], "seeds": [seeds]}})


def test_the_figure_of_robust_regression():
    found = robust_material()
    claims = [judge(claim, found) for claim in robust_regression.ENTRY.claims]
    assert [claim.computed for claim in claims] == pytest.approx([0.2, 0.03, 0.0202, 0.02])
    assert all(claim.simulation.word != DIFFERS for claim in claims)
    figure = robust_regression.draw(found, claims)
    assert {label for _, label in robust_regression.LOOKS.values()} <= set(texts(figure))
    assert {"runs at $d = 100$", "message passing, $d = 100$", "Tukey near a replicon of 1"} <= set(texts(figure))


@pytest.mark.slow
def test_the_best_numbers_of_the_square_loss_and_what_is_run(monkeypatch):
    """A loss for which no numbers are valid has no learner, and no runs."""
    alpha, asked = np.array([10.0]), []

    def in_processes(function, tasks, effort):
        asked.extend((str(learner), ratio, seed) for _, learner, ratio, _, seed, _ in tasks)
        return range(len(tasks))

    monkeypatch.setattr(robust_regression, "in_processes", in_processes)
    table = {"square": robust_regression.best("square", alpha), "tukey": np.array([[None, np.nan, np.nan]])}
    learner, error, _ = table["square"][0]
    assert float(learner.penalty.strength) == pytest.approx(0.103636, abs=1e-6)
    assert error == pytest.approx(0.287667, abs=1e-6)
    found = robust_regression.runs(table, alpha, (10.0,), 60, 2, Effort())
    assert [(ratio, seed) for _, ratio, seed in asked] == [(10.0, 0), (10.0, 1)] * 2
    assert {name: list(row[0]) for name, row in found.items() if name != "tukey"} == {"square": [0, 1], "bayes": [2, 3]}
    assert np.isnan(found["tukey"]).all()


def ridge_material():
    values, curves = (
        {"ratios": np.array([2.0, 10.0]), "best": {name: [0.2, -1.0] for name in negative_ridge.LOSSES}},
        {},
    )
    strengths = np.linspace(-2, 1, 5)
    for name in (*(f"{alpha:g}" for alpha in negative_ridge.ALPHAS), *negative_ridge.LOSSES):
        values[f"best_{name}"] = -0.5, 0.1
        curves[f"theory_{name}"] = curve(negative_ridge.METRIC, {"penalty": strengths})
        curves[f"runs_{name}"] = curve(negative_ridge.METRIC, {"penalty": strengths}, d=50, seeds=4)
    sizes = {"d": [50], "seeds": [4]}
    return Material(values, curves, {"runs": sizes, "losses": sizes})


def test_the_figure_of_negative_ridges():
    found = ridge_material()
    labels = texts(negative_ridge.draw(found, []))
    assert {r"$\alpha = 20$", "best strength", "runs at $d = 50$", "Huber, scale 1"} <= set(labels)
    # The runs of a strength without a minimum leave the lowest point undetermined.
    assert negative_ridge.best_of_runs(found, "5").value == pytest.approx(0.0, abs=0.05)
    found.curves["runs_5"].dataset["converged_simulation"][0, 2, 1] = False
    assert np.isnan(negative_ridge.best_of_runs(found, "5").value)


@pytest.mark.slow
def test_the_best_ridges_are_those_of_an_independent_code():
    assert negative_ridge.best("square", np.array([10.0, 30.0])) == pytest.approx([-1.44595, -7.28859], abs=1e-5)
    learner, model = negative_ridge.erm("square"), negative_ridge.model(negative_ridge.NOISE)
    for alpha, value in ((2.0, 0.21261), (5.0, -0.43016), (20.0, -4.69077)):
        found = sv.optimize(model, learner, over="penalty", metric="estimation_error", alpha=alpha)
        assert found.value == pytest.approx(value, abs=1e-5)


def test_the_figure_of_ridgeless_double_descent():
    module, values, curves, sizes = ridgeless_double_descent, {}, {}, {}
    for name in module.TARGETS:
        axes = {"alpha": (0.5, 0.9, 1.1, 2.0)}
        curves[f"theory_{name}"] = curve(module.METRIC, axes, 3)
        curves[f"runs_{name}_d50"] = curve(module.METRIC, axes, 3, d=50, seeds=4)
        sizes[f"runs_{name}"] = {"d": [50], "seeds": [4]}
        values |= {f"best_{name}": 0.25, f"error_{name}": {0.5: 0.75, 2.0: 0.25}}
    found = Material(values, curves, sizes)
    assert module.error_of_runs(found, "linear", 2.0).value == pytest.approx(4.1, abs=0.05)
    labels = texts(module.draw(found, []))
    assert {r"$\lambda \to 0$", r"$\lambda = 0.25$, the best", "runs at $d = 50$", "$y = z$"} <= set(labels)
    for claim in module.ENTRY.claims[:2]:
        assert Verdict(claim, claim.compute(found)).word == AGREES


def test_the_error_of_ridgeless_least_squares_is_the_published_one():
    model = sv.MultiIndex("z", noise=ridgeless_double_descent.NOISE)
    found = sv.predict(model, ridgeless_double_descent.ridge(0.0), alpha=np.array([0.5, 2.0]))
    wanted = [claim.exact for claim in ridgeless_double_descent.ENTRY.claims[:2]]
    assert found["generalization_error"] == pytest.approx(wanted, rel=1e-9)


def test_the_figure_of_the_lasso():
    module = lasso_phase_diagram
    axes = {"rho": (0.25, 0.75), "alpha": (0.25, 0.75)}
    density = np.array([0.1, 0.5])
    values = {"rho": density, "recovery": 1.2 * density, "coarse": density, "algorithmic": 1.1 * density}
    sizes = {"least_norm": {"d": [40, 80], "seeds": [4, 4]}}
    found = Material(values, {"theory": curve(module.METRIC, axes)}, sizes)
    labels = texts(module.draw(found, [Verdict(claim, 0.5, Estimate(0.5, 0.01)) for claim in module.ENTRY.claims]))
    assert {"lasso (Donoho and Tanner)", "Bayes-optimal message passing", r"$\alpha = n/d$"} <= set(labels)
    assert "half of the runs at $d =$ 40 and 80, 3 s.e." in labels


def test_least_norms_recover_above_the_threshold_and_not_below():
    module = lasso_phase_diagram
    assert module.recovery(0.2) == pytest.approx(0.511130, abs=1e-6)
    above, below = ([module.error_of_run(0.2, ratio, 60, seed) for seed in range(3)] for ratio in (0.85, 0.3))
    assert max(above) < module.RECOVERED < min(below)
    runs = Runs(60, np.array([0.3, 0.85]), -np.array([below, above]))
    assert np.isnan(module.boundary(0.2, Material({"runs_0.2": [runs]})).value)  # a clean step has no width


@pytest.mark.slow
def test_the_best_robust_losses_are_those_of_an_independent_code():
    alpha = np.array([10.0])
    for name, wanted in (("huber", (0.2139, -0.0985, 0.036155)), ("tukey", (1.3080, 0.0691, 0.022801))):
        learner, error, _ = robust_regression.best(name, alpha)[0]
        numbers = float(learner.loss.scale), float(learner.penalty.strength)
        assert numbers == pytest.approx(wanted[:2], abs=1e-4) and error == pytest.approx(wanted[2], abs=1e-6)
    assert robust_regression.bayes_optimal(alpha) == pytest.approx([0.022705], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", WANTED)
def test_each_entry_agrees(name, tmp_path):
    found = reproduce(all_entries()[name], tmp_path, quick=True, progress=False)
    for verdict in found.verdicts:
        assert verdict.simulation.word != DIFFERS, verdict.line(name)
        assert np.isfinite(verdict.simulated.error), verdict.line(name)
