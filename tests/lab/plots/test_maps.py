"""Heat maps: when, of what, and the thresholds over them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from toys import ridge as toy
from toys.curves import TARGETS, sweep, with_thresholds

import solvable as sv

RIDGE = toy.Ridge(penalty=0.5)
ALPHA, NOISE = np.linspace(0.5, 2.5, 6), np.linspace(0.1, 0.9, 5)


@pytest.fixture(scope="module")
def curve():
    return sweep([RIDGE], alpha=ALPHA, noise=NOISE)


def names(ax):
    return [text.get_text() for text in ax.texts]


def test_two_axes_of_many_numbers_are_a_map(curve):
    ax = curve.plot()
    np.testing.assert_array_equal(ax.collections[0].get_array(), curve["overlap"].values[0].T)
    np.testing.assert_allclose(ax.get_xlim(), (0.3, 2.7))
    assert len(curve.plot(kind="lines")) == 5
    assert len(curve.select(alpha=list(ALPHA[:4])).plot()) == 5  # four values are few enough for lines
    assert curve.select(alpha=list(ALPHA[:4])).plot(kind="map").get_title() == "Ridge"


def test_either_axis_may_run_from_left_to_right(curve):
    ax = curve.plot(x="noise")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("noise", r"$\alpha$ = $n/d$")
    np.testing.assert_array_equal(ax.collections[0].get_array(), curve["overlap"].values[0])


def test_a_diagram_is_a_map_whatever_its_size(curve):
    diagram = sv.phase_diagram(toy.Regression(), RIDGE, x=("alpha", [0.5, 1.0]), y=("noise", [0.1, 0.2]))
    assert len(diagram.plot().collections) == 1
    earlier = diagram.dataset.copy()
    for name in ("metric", "model_axes"):
        del earlier.attrs[name]
    assert len(sv.Curve(earlier).plot().collections) == 1


def test_each_learner_and_size_has_a_map_with_one_scale():
    curve = sweep([RIDGE, toy.Mean(), toy.Guess()][:2], (10, 20), alpha=ALPHA, noise=NOISE)
    axes = curve.plot()
    assert [ax.get_title() for ax in axes] == ["Ridge", "Mean, $d = 10$", "Mean, $d = 20$"]
    assert len({ax.collections[0].get_clim() for ax in axes}) == 1
    runs = curve.summary("overlap")[0].values
    np.testing.assert_array_equal(axes[2].collections[0].get_array(), runs[1, :, :, 1].T)
    assert axes[0].collections[0].get_clim()[0] == min(runs[1].min(), np.nanmin(curve["overlap"].values))
    ridge = curve.select(learner="ridge", d=10)
    assert ridge.plot(parts=["simulation"]).get_title() == "Ridge, $d = 10$"
    with pytest.raises(ValueError, match=r"one Axes cannot hold 3 panels: .* curve.select\(learner='ridge'\)"):
        curve.plot(ax=Figure().add_subplot())


def test_a_third_axis_makes_panels():
    curve = sweep([RIDGE], alpha=ALPHA[:2], target=TARGETS[:2], noise=NOISE)
    axes = curve.plot(kind="map")
    assert [ax.get_title() for ax in axes] == ["Ridge, target = abs(z)", "Ridge, target = z**2 + 1"]
    assert [ax.get_xlabel() for ax in axes] == [r"$\alpha$ = $n/d$"] * 2 and axes[0].get_ylabel() == "noise"


@pytest.mark.parametrize("upright", [True, False])
def test_thresholds_are_lines_along_the_other_axis(curve, upright):
    weak = np.array([0.6, 0.8, np.nan, np.inf, 1.6])
    marked = with_thresholds(
        curve,
        weak=(("noise",), weak),
        same=(("noise",), weak),
        far=(("noise",), np.full(5, 7.0)),
        never=(("noise",), np.full(5, np.inf)),
        always=((), 1.1),
    )
    ax = marked.plot() if upright else marked.plot(x="noise")
    assert names(ax) == ["always", "weak = same"]
    constant, line = (np.array(line.get_data())[:: 1 if upright else -1] for line in ax.lines)
    np.testing.assert_array_equal(line, [np.where(np.isfinite(weak), weak, np.nan), NOISE])
    np.testing.assert_allclose(constant, [[1.1, 1.1], [0.0, 1.0]])
    np.testing.assert_allclose(ax.get_xlim() if upright else ax.get_ylim(), (0.3, 2.7))


def letters(text):
    """Where the letters of a text are, in points."""
    angle, middle = np.radians(text.get_rotation()), text.get_window_extent().get_points().mean(0) * 72 / 150
    length = 0.55 * text.get_fontsize() * len(text.get_text())
    return middle + np.linspace(-0.5, 0.5, 30)[:, None] * length * np.array([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize("x", ["alpha", "noise"])
def test_names_do_not_overlap_and_stay_inside(curve, x):
    marks = {name: (("noise",), 1.2 + 0.03 * k + NOISE) for k, name in enumerate(("first", "second", "third_one"))}
    ax = with_thresholds(curve, **marks, edge=((), 2.65)).plot(x=x)
    ax.figure.draw_without_rendering()
    places = [letters(text) for text in ax.texts]
    assert names(ax) == ["edge", "first", "second", "third one"]
    for k, place in enumerate(places):
        inside = ax.transAxes.inverted().transform(place * 150 / 72)
        assert inside.min() > 0 and inside.max() < 1
        for other in places[:k]:
            assert np.hypot(*(place[:, None] - other[None]).transpose(2, 0, 1)).min() > 6
    assert all(np.cos(np.radians(text.get_rotation())) > -1e-9 for text in ax.texts)  # none is upside down


def test_between_texts_there_is_no_line():
    curve = with_thresholds(sweep([RIDGE], alpha=ALPHA, target=TARGETS), weak=(("target",), [0.7, 1.0, 2.0]))
    ax = curve.plot(kind="map")
    x, y = ax.lines[0].get_data()
    assert np.isnan(x[2::3]).all() and x[::3].tolist() == x[1::3].tolist() == [0.7, 1.0, 2.0]
    assert y[0] == -0.5 and y[1] == 0.5
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == list(TARGETS[:2])


class Marked(toy.Regression):
    """A regression whose thresholds move with the noise, and cannot be found for some of it."""


@sv.theory(Marked, toy.Ridge)
def _(model, learner, alpha):
    return sv.Prediction({"overlap": alpha / (1 + alpha)})


@sv.thresholds_of(Marked)
def _(model):
    if model.noise > 0.8:
        raise ArithmeticError("lost")
    return {"weak": 1 + model.noise, **({"strong": np.inf} if model.noise > 0.2 else {}), "steps": [1.0, 2.0]}


def test_a_diagram_finds_the_thresholds_of_each_model():
    diagram = sv.phase_diagram(Marked(), RIDGE, x=("noise", NOISE), y=("alpha", ALPHA))
    found = diagram.dataset[["weak_threshold", "strong_threshold"]]
    assert found["weak_threshold"].dims == ("noise",) and "steps_threshold" not in diagram.dataset
    np.testing.assert_array_equal(found["weak_threshold"], [*(1 + NOISE[:4]), np.nan])
    np.testing.assert_array_equal(found["strong_threshold"], [np.nan, np.inf, np.inf, np.inf, np.nan])
    assert names(diagram.plot()) == ["weak"] and diagram.thresholds == {}
    assert diagram.select(noise=NOISE[1]).thresholds == {"weak": 1 + NOISE[1], "strong": np.inf}
    plain = sv.phase_diagram(Marked(), RIDGE, x=("noise", NOISE), y=("alpha", ALPHA), marks=False)
    assert plain.dataset.identical(diagram.dataset.drop_vars(list(found)))


def test_thresholds_do_not_depend_on_the_learner():
    diagram = sv.phase_diagram(Marked(), RIDGE, x=("alpha", ALPHA), y=("penalty", NOISE), noise=0.5)
    assert "weak_threshold" not in diagram.dataset and diagram.thresholds == {"weak": 1.5, "strong": np.inf}
    ax = diagram.plot()
    assert names(ax) == ["weak"] and ax.lines[0].get_xdata().tolist() == [1.5, 1.5]


def test_without_the_first_axis_or_without_thresholds_there_are_none():
    diagram = sv.phase_diagram(Marked(), RIDGE, x=("noise", NOISE), y=("penalty", NOISE), alpha=1.0)
    assert not [name for name in diagram.dataset if str(name).endswith("_threshold")]
    lost = sv.phase_diagram(Marked(), RIDGE, x=("alpha", ALPHA), y=("noise", [0.85, 0.9]))
    assert not [name for name in lost.dataset if str(name).endswith("_threshold")]
