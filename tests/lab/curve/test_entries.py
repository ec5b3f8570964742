"""Curves of a metric that is a matrix at each point: dimensions, diagonals, figures, agreement, files, tables."""

from __future__ import annotations

import numpy as np
import pytest
from toys import ridge as toy
from toys import two_ridges as toy_pair

import solvable as sv
from solvable.core.results import Prediction
from solvable.lab.curve.assemble import Columns
from solvable.lab.curve.entries import diagonal, entries_of, entry_groups, group_mean

RIDGES = toy_pair.TwoRidges(penalty=0.5)
GRID = np.array([0.5, 1.0, 2.0])


@pytest.fixture(scope="module")
def curve():
    return sv.learning_curve(toy_pair.TwoRegressions(), [RIDGES, toy_pair.TwoMeans()], alpha=GRID, d=60, seeds=8)


@pytest.fixture(scope="module")
def twins():
    return sv.learning_curve(toy_pair.TwoRegressions(ratio=1.0), RIDGES, alpha=GRID, d=60, seeds=8)


def test_a_matrix_has_rows_and_columns_counted_from_1(curve):
    assert curve["overlap"].dims == ("learner", "alpha", "row", "column")
    assert curve.simulation("overlap").dims == ("learner", "alpha", "seed", "row", "column")
    assert curve.dataset["M_order_parameter"].dims == ("learner", "alpha", "row", "column")
    assert curve.dataset["row"].values.tolist() == curve.dataset["column"].values.tolist() == [1, 2]
    assert curve.has_entries("overlap") and not curve.has_entries("overlap_1")
    second = curve["overlap"].sel(row=2, column=2, learner="two-ridges")
    np.testing.assert_array_equal(second, curve["overlap_2"].sel(learner="two-ridges"))


def test_the_diagonal(curve):
    found = diagonal(curve["overlap"])
    assert found.dims == ("learner", "alpha", "entry") and found["entry"].values.tolist() == [1, 2]
    np.testing.assert_array_equal(found[..., 1], curve["overlap_2"])
    assert diagonal(curve["overlap_1"]) is not None and diagonal(curve["overlap_1"]).dims == ("learner", "alpha")
    with pytest.raises(ValueError, match="overlap_theory is not a square matrix"):
        diagonal(curve["overlap"].isel(column=[0]))


def test_the_mean_over_seeds_is_taken_entry_by_entry(curve):
    mean, error, count = curve.summary("overlap")
    runs = curve.simulation("overlap").values
    np.testing.assert_allclose(mean, runs.mean(2))
    np.testing.assert_allclose(error, runs.std(2, ddof=1) / np.sqrt(8))
    assert (count == 8).all()


def test_agreement_is_judged_on_the_diagonal(curve):
    found = curve.agreement("overlap")
    each = [curve.agreement("overlap_1"), curve.agreement("overlap_2")]
    worst = max(each, key=lambda one: one.deviation)
    assert found.deviation == pytest.approx(worst.deviation) and found.metric == worst.metric
    assert found.at == worst.at and found.points == 6 and found.deviation < 5
    dataset = curve.dataset.copy(deep=True)
    dataset["overlap_theory"].loc[{"row": 2, "column": 2, "alpha": 1.0}] += 0.3
    off = sv.Curve(dataset).agreement("overlap")
    assert off.metric == "overlap_2" and off.at == {"alpha": 1.0} and off.deviation > 5


def test_off_diagonal_entries_are_not_judged(curve):
    dataset = curve.dataset.copy(deep=True)
    dataset["overlap_theory"].loc[{"row": 1, "column": 2}] += 0.9
    assert sv.Curve(dataset).agreement("overlap") == curve.agreement("overlap")


def test_the_default_metric_is_a_scalar(curve):
    assert curve.default_metric == "estimation_error"
    assert curve.agreement().metric == "estimation_error"
    only = sv.Curve(curve.dataset[["overlap_theory", "status"]])
    assert only.default_metric == "overlap"


def test_entries_that_theory_does_not_tell_apart_are_grouped(curve, twins):
    assert entry_groups(curve, "overlap") == [(1,), (2,)]
    assert entry_groups(twins, "overlap") == [(1, 2)]
    both = group_mean(twins.simulation("overlap"), (1, 2))
    np.testing.assert_allclose(both, (twins.simulation("overlap_1") + twins.simulation("overlap_2")) / 2)
    dataset = twins.dataset.copy(deep=True)
    dataset["status"].values[:] = sv.Status.MAX_STEPS
    assert entry_groups(sv.Curve(dataset), "overlap") == [(1,), (2,)]
    assert entry_groups(sv.Curve(twins.dataset.drop_vars("overlap_theory")), "overlap") == [(1,), (2,)]


def test_a_figure_has_a_line_for_each_distinct_entry(curve, twins):
    ax = curve.plot("overlap")
    handles, labels = ax.get_legend_handles_labels()
    assert labels == [
        "Two ridges, theory, $k = 1$",
        "Two ridges, theory, $k = 2$",
        "Two ridges, $d = 60$, $k = 1$",
        "Two ridges, $d = 60$, $k = 2$",
        "Two means, $d = 60$, $k = 1$",
        "Two means, $d = 60$, $k = 2$",
    ]
    first, second = handles[:2]
    np.testing.assert_array_equal(second.get_ydata(), curve["overlap_2"].values[0])
    assert first.get_color() == second.get_color() and first.get_linestyle() != second.get_linestyle()
    markers = [bars.lines[0].get_marker() for bars in handles[2:]]
    assert markers[0] != markers[1] and markers[:2] == markers[2:]
    assert handles[2].lines[0].get_color() != handles[4].lines[0].get_color()
    assert twins.plot("overlap").get_legend_handles_labels()[1] == [
        "Two ridges, theory, $k = 1, 2$",
        "Two ridges, $d = 60$, $k = 1, 2$",
    ]
    np.testing.assert_array_equal(curve.plot("overlap_1").lines[0].get_ydata(), curve["overlap_1"].values[0])


def test_a_map_needs_a_scalar():
    diagram = sv.phase_diagram(toy_pair.TwoRegressions(), RIDGES, x=("alpha", GRID), y=("noise", [0.1, 0.9]))
    assert diagram["overlap"].dims == ("learner", "alpha", "noise", "row", "column")
    assert diagram.plot().get_title() == "Two ridges"
    with pytest.raises(ValueError, match="overlap is a matrix at each point; a map shows a scalar, such as estimation"):
        diagram.plot("overlap")


def test_saved_and_loaded(curve, tmp_path):
    assert sv.Curve.load(curve.save(tmp_path / "curve.nc")).dataset.identical(curve.dataset)


def test_as_a_table(curve):
    frame = curve.to_dataframe()
    assert len(frame) == 2 * 3 * 8
    assert {"overlap_theory_1_2", "overlap_simulation_2_2", "overlap_1_theory", "status"} <= set(frame.columns)
    assert not {"row", "column", "overlap_theory"} & set(frame.columns)
    picked = frame[(frame["learner"] == "two-ridges") & (frame["alpha"] == 2.0)]
    assert picked["overlap_theory_2_2"].unique().tolist() == [curve["overlap_2"].values[0, 2]]


class Lost(sv.Learner):
    """A theory that fails at every point."""


class Tall(sv.Learner):
    """Another shape of overlap, and matrices of two sizes."""


@sv.theory(toy_pair.TwoRegressions, Lost)
def _(model, learner, alpha):
    raise ArithmeticError("lost")


@sv.theory(toy_pair.TwoRegressions, Tall)
def _(model, learner, alpha):
    return Prediction({"overlap": np.ones((len(alpha), 3, 3))}, {"M": np.ones((len(alpha), 2, 2))})


@pytest.mark.filterwarnings("ignore:3 of 3 points failed")
def test_a_learner_that_failed_everywhere_does_not_spoil_the_matrix():
    curve = sv.learning_curve(toy_pair.TwoRegressions(), [Lost(), RIDGES], alpha=GRID)
    assert curve["overlap"].dims == ("learner", "alpha", "row", "column")
    assert np.isnan(curve["overlap"].values[0]).all() and not np.isnan(curve["overlap"].values[1]).any()
    alone = sv.learning_curve(toy_pair.TwoRegressions(), Lost(), alpha=GRID)
    assert alone["overlap"].dims == ("learner", "alpha")


def test_matrices_of_another_size_have_their_own_dimensions():
    curve = sv.learning_curve(toy_pair.TwoRegressions(), Tall(), alpha=GRID)
    assert curve["overlap"].dims == ("learner", "alpha", "row", "column")
    assert curve.dataset["M_order_parameter"].dims[2:] == ("M_order_parameter_1", "M_order_parameter_2")
    with pytest.raises(ValueError, match="overlap_theory has different shapes"):
        sv.learning_curve(toy_pair.TwoRegressions(), [RIDGES, Tall()], alpha=GRID)


def test_scalars_stay_as_they_were():
    curve = sv.learning_curve(toy.Regression(), toy.Ridge(), alpha=GRID)
    assert "row" not in curve.dataset.dims and curve.default_metric == "overlap"


def test_smaller_matrices_fill_the_first_entries_where_padding_is_asked_for():
    columns = Columns(("learner", "alpha"), (1, 3))
    columns.put("overlap_theory", (0, 0), 0.5)
    columns.put("overlap_theory", (0, 1), [[0.1, 0.2], [0.3, 0.4]])
    columns.put("overlap_theory", (0, 2), np.nan)
    with pytest.raises(ValueError, match="overlap_theory has different shapes"):
        columns.arrays({}, strict=True)
    sizes = {}
    dims, array = columns.arrays(sizes, strict=False)["overlap_theory"]
    assert dims == ("learner", "alpha", "row", "column") and sizes == {"row": 2, "column": 2}
    np.testing.assert_array_equal(array[0, 0], [[0.5, np.nan], [np.nan, np.nan]])
    assert array[0, 1].tolist() == [[0.1, 0.2], [0.3, 0.4]] and np.isnan(array[0, 2]).all()


def test_a_vector_has_entries_and_is_not_a_matrix():
    columns = Columns(("learner",), (2,))
    for j in range(2):
        columns.put("rates_theory", (j,), [0.5, 0.6, 0.7 + j])
    sizes = {}
    dims, array = columns.arrays(sizes, strict=True)["rates_theory"]
    assert dims == ("learner", "entry") and sizes == {"entry": 3} and array[1].tolist() == [0.5, 0.6, 1.7]


def padded(curve):
    """The curve as if its matrices had three rows elsewhere."""
    wider = {"row": [1, 2, 3], "column": [1, 2, 3]}
    return sv.Curve(curve.dataset.reindex(wider))


def test_entries_that_are_nowhere_are_not_drawn_or_judged(curve, twins):
    assert entry_groups(padded(curve), "overlap") == [(1,), (2,)]
    assert entry_groups(padded(twins), "overlap") == [(1, 2)]
    assert padded(curve).agreement("overlap") == curve.agreement("overlap")
    labels = padded(curve).plot("overlap").get_legend_handles_labels()[1]
    assert labels == curve.plot("overlap").get_legend_handles_labels()[1]


def test_numbers_beside_matrices_are_their_first_entry(curve):
    dataset = curve.dataset.copy()
    dataset["overlap_theory"] = dataset["overlap_1_theory"]
    mixed = sv.Curve(dataset)
    assert entries_of(mixed["overlap"]).dims == ("learner", "alpha", "entry")
    found, first = mixed.agreement("overlap"), curve.agreement("overlap_1")
    assert (found.metric, found.deviation, found.points) == ("overlap_1", first.deviation, first.points)
    assert "Two ridges, theory, $k = 1$" in mixed.plot("overlap").get_legend_handles_labels()[1]
