"""The figures of matrix models: how thresholds are read off runs, and every picture from made-up or small material."""

from __future__ import annotations

import types

import numpy as np
import pytest
import xarray as xr

import solvable as sv
from solvable.lab.figures.curves import in_processes, matrix_jump, vanishing
from solvable.lab.figures.drawing import draw_points, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entries import (
    double_descent,
    interpolation_threshold,
    nuclear_recovery,
    quadratic_network,
    weight_spectra,
    width_scaling,
)
from solvable.lab.figures.entry import Effort, Material
from solvable.lab.figures.estimators import Estimate, Runs
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.verdict import Verdict

WANTED = {
    "double-descent",
    "interpolation-threshold",
    "nuclear-recovery",
    "quadratic-network",
    "weight-spectra",
    "width-scaling",
}


def curve(learners, sizes, seeds=None, axis="alpha", values=(0.1, 0.2, 0.3, 0.4)):
    """A curve with an error that falls from 1 to 0, of theory, or of runs that scatter around it."""
    values = np.array(values)
    error = np.linspace(1, 0, len(values)) * np.ones((len(learners), 1))
    variables = {"estimation_error_theory": (("learner", axis), error)}
    if seeds:
        scatter = 0.02 * np.random.default_rng(0).standard_normal((*error.shape, seeds))
        variables = {"estimation_error_simulation": (("learner", axis, "seed"), error[..., None] + scatter)}
    coordinates = {"learner": list(learners), "title": ("learner", list(learners)), axis: values}
    attributes = {} if sizes is None else {"d": sizes}
    return sv.Curve(xr.Dataset(variables, coordinates, attributes))


def texts(figure):
    """All labels of a figure's legends and axes."""
    found = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        legend = ax.get_legend()
        found += [ax.get_xlabel(), ax.get_ylabel(), ax.get_title()]
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return found


def verdicts(entry, simulated=None):
    return [Verdict(claim, 0.3, claim.simulate and simulated) for claim in entry.claims]


def test_the_entries_of_matrix_models_are_found():
    assert set(all_entries()) >= WANTED


def test_an_error_that_vanishes_is_found_from_below():
    alpha = np.linspace(0.2, 0.45, 11)
    values = np.maximum(0.375 - alpha, 0)[:, None] + 1e-4 * np.random.default_rng(0).standard_normal((11, 6))
    found = vanishing(Runs(60, alpha, values), low=0.02, high=0.3)
    assert found.value == pytest.approx(0.375, abs=1e-3) and found.error < 2e-3


def test_the_threshold_of_a_matrix_counts_its_unknowns():
    """Runs that succeed from n = 0.3 d (d + 1) on, up to fluctuations of 1/d, have their threshold at 0.3."""
    rng, runs = np.random.default_rng(1), []
    for d in (16, 32):
        alpha = np.arange(0.24, 0.40, 0.01)
        edge = 0.3 * (1 + 1 / d) + 0.3 / d * rng.standard_normal((len(alpha), 40))
        runs.append(Runs(d, alpha, np.where(alpha[:, None] > edge, 1.0, -1.0)))
    found = matrix_jump(runs, above=0.0)
    assert found.error < 0.01 and abs(found.value - 0.3) < 3 * found.error


def test_tasks_go_through_the_executor_in_order():
    class Executor:
        def map(self, function, *columns):
            return (function(*row) for row in zip(*columns, strict=True))

    tasks = [(1, 2), (3, 4)]
    assert in_processes(max, tasks, Effort()) == [2, 4] == in_processes(max, tasks, Effort(executor=Executor()))  # type: ignore[arg-type]


def test_lines_and_markers_share_a_style_and_missing_runs_are_left_out():
    ax = new_figure().add_subplot()
    draw_theory(ax, [0, 1], [1, 0], 2, "line")
    draw_runs(ax, [0, 1], [[1.0, 3.0, np.nan], [2.0, 2.0, 2.0]], 2, "runs")
    draw_points(ax, [0], [1], None, 2, None)
    line, (markers, *_), _ = ax.lines[0], *ax.containers
    assert line.get_color() == markers.get_color() and list(markers.get_ydata()) == [2.0, 2.0]
    assert ax.get_legend_handles_labels()[1] == ["line", "runs"]


def test_the_figure_of_a_quadratic_network():
    known = {"theory": curve(["Bayes optimal"], None), "amp_d60": curve(["AMP"], 60, 3)}
    known["descent_d30"] = curve(["GD", "GD of 8 runs"], 30, 3)
    sizes = {"amp": {"d": [60], "seeds": [3]}, "descent": {"d": [30], "seeds": [3]}}
    found = Material({"perfect_recovery": 0.375, "averaged": 8}, known, sizes)
    figure = quadratic_network.draw(found, verdicts(quadratic_network.ENTRY, Estimate(0.37, 0.01)))
    assert {"Bayes optimal", "message passing, $d = 60$", "gradient descent, $d = 30$"} <= set(texts(figure))
    assert {"average of 8 such runs", "threshold of the runs, 3 s.e."} <= set(texts(figure))


def test_the_figure_of_double_descent():
    known = {"theory": curve(list("abcde"), None), "runs_d40": curve(list("abcd"), 40, 3)}
    found = Material({"interpolation": 0.29}, known, {"runs": {"d": [40], "seeds": [3]}})
    labels = texts(double_descent.draw(found, verdicts(double_descent.ENTRY)))
    assert {"ridge on the features", "Bayes optimal", "runs at $d = 40$", r"$\alpha = n/d^2$"} <= set(labels)


def test_the_peak_of_a_curve_by_narrowing_a_grid(monkeypatch):
    def predict(model, learner, alpha):
        return {"estimation_error": -np.abs(alpha - 0.2871)}

    monkeypatch.setattr("solvable.verbs.predict.predict", predict)
    assert double_descent.peak(None, None, 0.2, 0.4) == pytest.approx(0.2871, abs=1e-6)


def test_the_figures_of_thresholds():
    noise = np.logspace(-3, 3, 5)
    values = {"noise": noise, "threshold": np.linspace(0.43, 0.25, 5)}
    found = Material(values, sizes={"noise_1": {"d": [10, 16], "seeds": [6, 6]}})
    figure = interpolation_threshold.draw(found, verdicts(interpolation_threshold.ENTRY, Estimate(0.3, 0.01)))
    assert {"theory", "runs at $d =$ 10 and 16, 3 s.e."} <= set(texts(figure))

    values = {"rho": np.linspace(0, 1, 4), **{name: np.linspace(0, 0.5, 4) for name in nuclear_recovery.NAMES}}
    found = Material(values, sizes={"rho_0.5": {"d": [10, 15], "seeds": [6, 6]}})
    figure = nuclear_recovery.draw(found, verdicts(nuclear_recovery.ENTRY, Estimate(0.3, 0.01)))
    assert {"Bayes optimal", "least trace", "any positive matrix", "ridge on the features"} <= set(texts(figure))


def test_the_recovery_of_theory_and_the_boundary_of_runs():
    assert nuclear_recovery.recovery(0.5)["nuclear_recovery"] == pytest.approx(0.4221750, abs=1e-7)
    runs = curve(["NuclearNorm"], 10, 4, values=np.linspace(0.2, 0.5, 9))
    found = Material({}, {"rho_0.5_d10": runs}, {"rho_0.5": {"d": [10], "seeds": [4]}})
    assert np.isnan(nuclear_recovery.boundary(0.5, found).value)  # no run recovers: undetermined


def spectra_labels(theory, values):
    spectra = {alpha: (theory, np.stack([values, values])) for alpha in weight_spectra.SHAPES}
    found = Material({"spectra": spectra}, sizes={"descent": {"d": [20], "seeds": [2]}})
    return set(texts(weight_spectra.draw(found, verdicts(weight_spectra.ENTRY))))


SPECTRA = {"runs at $d = 20$", "theory", "share of zeros", r"$\alpha = 1$, bulk and spikes"}


def test_the_figure_of_spectra():
    x = np.linspace(0.5, 1.5, 50)
    theory = types.SimpleNamespace(x=x, density=0.75 * (1 - (2 * x - 2) ** 2), zero=0.5)
    values = np.concatenate([np.zeros(10), np.linspace(0.6, 1.4, 10)])
    assert weight_spectra.share_of_zeros(values[None]) == 0.5
    assert spectra_labels(theory, values) >= SPECTRA


@pytest.mark.slow
def test_the_figure_of_computed_spectra_and_the_share_of_zeros():
    model, learner = sv.QuadraticNetwork(0.1, 2.5), sv.NuclearNorm(0.05)
    from solvable.models.matrix.nuclear.spectrum import spectrum

    theory = spectrum(model, learner, 1.0)
    values = weight_spectra.eigenvalues_of_run(model, learner, 1.0, 20, 0)
    assert len(theory.bulks) == 2 and theory.masses[-1] == pytest.approx(0.1, abs=1e-6)
    assert values.shape == (20,) and 0.3 < weight_spectra.share_of_zeros(values[None]) < 0.6
    assert spectra_labels(theory, values) >= SPECTRA


def test_the_figure_of_scaling():
    from solvable.models.matrix.nuclear.scaling import Exponent

    alpha, widths = np.geomspace(0.1, 10, 4), np.array([1, 10, 100])
    grid = 1 / np.outer(widths, alpha)
    slope = Exponent("n", alpha, alpha, -0.6, -0.6)
    values = {"alpha": alpha, "widths": widths, "phases": {"estimation_error": grid, "effective_rank": 1 / grid}}
    values["exponents"] = {"estimation_error": slope, "error_of_width": slope}
    known = {}
    for cut in width_scaling.CUTS:
        known[f"theory_alpha{cut:g}"] = curve(["a"], None, axis="width", values=(1, 2, 4))
        known[f"runs_alpha{cut:g}"] = curve(["a"], 40, 3, axis="width", values=(1, 2, 4))
    found = Material(values, known, {"descent": {"d": [40], "seeds": [3]}})
    labels = texts(width_scaling.draw(found, verdicts(width_scaling.ENTRY)))
    assert {"$n/d$", "width", "slope $-0.6$", "runs"} <= set(labels)
    assert width_scaling.penalty(1.0) == pytest.approx(4 * np.sqrt(0.1))
