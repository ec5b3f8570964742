"""Curves of any number of axes and sizes: parts of them, agreement, tables, words, files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import ridge as toy
from toys.curves import TARGETS, sweep, with_thresholds

import solvable as sv

RIDGE = toy.Ridge(penalty=0.5)
ALPHA, NOISE, SIZES = (0.5, 1.0, 2.0), (0.1, 0.4), (10, 20)


@pytest.fixture(scope="module")
def curve():
    return sweep([RIDGE, toy.Mean()], SIZES, alpha=ALPHA, target=TARGETS, noise=NOISE)


@pytest.fixture(scope="module")
def marked():
    curve = sweep([RIDGE], alpha=ALPHA, noise=NOISE, penalty=(1.0, 2.0))
    return with_thresholds(curve, weak=(("noise",), [0.6, np.inf]), both=((), 1.5))


def test_an_axis_given_one_value_is_fixed(curve):
    part = curve.select(noise=0.4, target="abs(z)")
    assert part.axes == ("alpha",) and part.sizes == SIZES and part.learners == curve.learners
    assert json.loads(part.dataset.attrs["fixed"]) == {"noise": 0.4, "target": "abs(z)"}
    np.testing.assert_array_equal(part["overlap"], curve["overlap"].values[:, :, 0, 1])
    np.testing.assert_array_equal(part.simulation("overlap"), curve.simulation("overlap").values[:, :, 0, 1])
    assert curve.axes == ("alpha", "target", "noise")


def test_learners_and_sizes(curve):
    part = curve.select(learner="mean", d=20)
    assert part.learners == ("mean",) and part.sizes == (20,) and part.dataset.attrs["d"] == 20
    assert json.loads(part.dataset.attrs["learners"]) == [{"name": "mean"}]
    assert part.simulation("overlap").dims == ("learner", "alpha", "target", "noise", "seed")
    np.testing.assert_array_equal(part.simulation("overlap")[0], curve.simulation("overlap").values[1, ..., 1, :])
    assert curve.select(learner=["mean", "ridge"]).learners == ("mean", "ridge")
    assert curve.select(d=[20]).sizes == (20,) and curve.select(d=[20, 10]).sizes == (20, 10)
    assert part.select(d=20).dataset.identical(part.dataset)


def test_a_list_keeps_an_axis(curve):
    part = curve.select(alpha=[2.0, 0.5])
    assert part.axes == curve.axes and part.dataset["alpha"].values.tolist() == [2.0, 0.5]
    assert json.loads(part.dataset.attrs["fixed"]) == {}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_order_of_selecting_does_not_matter(curve, data):
    every = {"alpha": ALPHA, "target": TARGETS, "noise": NOISE, "d": SIZES, "learner": curve.learners}
    names = data.draw(st.lists(st.sampled_from(sorted(every)), unique=True))
    values = {name: data.draw(st.sampled_from(every[name])) for name in names}
    once, slowly = curve.select(**values), curve
    for name in reversed(names):
        slowly = slowly.select(**{name: values[name]})
    assert once.dataset.equals(slowly.dataset)
    assert once.axes == slowly.axes and once.sizes == slowly.sizes
    assert json.loads(once.dataset.attrs["fixed"]) == json.loads(slowly.dataset.attrs["fixed"])


@settings(max_examples=25, deadline=None)
@given(error=st.floats(-0.9e-9, 0.9e-9), value=st.sampled_from(ALPHA))
def test_numbers_are_found_within_rounding(curve, error, value):
    assert json.loads(curve.select(alpha=value * (1 + error)).dataset.attrs["fixed"]) == {"alpha": value}
    with pytest.raises(ValueError, match=r"alpha must be one of: 0\.5, 1, 2"):
        curve.select(alpha=value * (1 + 3e-9))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 0.7}, r"alpha = 0\.7 is not allowed: alpha must be one of: 0\.5, 1, 2"),
        ({"alpha": "abs(z)"}, r"alpha must be one of: 0\.5, 1, 2"),
        ({"alpha": float("nan")}, "alpha = nan is not allowed"),
        ({"alpha": True}, "alpha = True is not allowed"),
        ({"target": "z"}, r"target must be one of: abs\(z\), z\*\*2 \+ 1, price in \$"),
        ({"target": 1.0}, "target must be one of: abs"),
        ({"learner": "amp"}, "learner = 'amp' is not allowed: learner must be one of: ridge, mean"),
        ({"learner": []}, "learner must be a value or a list of at least one"),
        ({"d": 15}, "d = 15 is not allowed: d must be one of: 10, 20"),
        ({"colour": 1}, "name = 'colour' is not allowed: name must be one of: alpha, target, noise, learner, d"),
    ],
)
def test_a_value_that_is_not_there(curve, values, message):
    with pytest.raises(ValueError, match=message):
        curve.select(**values)


def test_no_size_without_runs():
    with pytest.raises(ValueError, match="d = 9 is not allowed: d must be left out: this curve has no runs"):
        sv.learning_curve(toy.Regression(), RIDGE, alpha=ALPHA).select(d=9)
    one = sv.learning_curve(toy.Regression(), RIDGE, alpha=ALPHA, d=9, seeds=2)
    assert one.select(d=9).dataset.identical(one.dataset)


def test_thresholds_that_no_longer_vary_are_those_of_the_curve(marked):
    assert marked.thresholds == {"both": 1.5}
    part = marked.select(penalty=2.0)
    assert part.thresholds == {"both": 1.5} and part.dataset["weak_threshold"].dims == ("noise",)
    assert part.select(noise=0.1).thresholds == {"both": 1.5, "weak": 0.6}
    last = marked.select(noise=0.4)
    assert last.thresholds == {"both": 1.5, "weak": np.inf}
    assert not [name for name in last.dataset if str(name).endswith("_threshold")]


def test_the_first_axis_of_the_model_is_known_or_found_out(marked):
    assert marked.model_axis == marked.select(alpha=1.0).model_axis == "alpha"
    dataset = marked.dataset.copy()
    del dataset.attrs["model_axes"]
    earlier = sv.Curve(dataset)
    assert earlier.model_axis == earlier.select(alpha=1.0).model_axis == "alpha"
    assert earlier.select(learner="ridge").model_axis == "alpha"


def test_agreement_over_all_axes_and_sizes(curve):
    found = curve.agreement()
    each = [curve.select(alpha=a, target=t, noise=n, d=d) for a in ALPHA for t in TARGETS for n in NOISE for d in SIZES]
    assert found.points == len(each) == sum(found.words.values()) and all(part.agreement().at == {} for part in each)
    assert list(found.at) == ["alpha", "target", "noise", "d"] and found.at["target"] in TARGETS
    there = curve.select(**found.at)
    assert there.agreement().theory == found.theory and isinstance(found.at["d"], int)
    assert f"target = {found.at['target']}, noise = {found.at['noise']:g}, d = {found.at['d']}: theory" in str(found)


def test_the_mean_over_seeds_keeps_the_sizes(curve):
    mean, error, count = curve.summary("overlap")
    assert mean.dims == error.dims == count.dims == ("learner", "alpha", "target", "noise", "d")
    np.testing.assert_allclose(mean, curve.simulation("overlap").values.mean(-1))


def test_how_computations_ended_is_no_metric(curve):
    assert curve.metrics == ("overlap", "estimation_error")
    dataset = curve.dataset.assign(failed_theory=curve.dataset["status"].astype(str))
    assert sv.Curve(dataset).metrics == curve.metrics


def test_a_sweep_without_results_yet(curve):
    names = [name for name in curve.dataset if not str(name).startswith(("overlap", "estimation"))]
    empty = sv.Curve(curve.dataset[names])
    assert empty.metrics == () and repr(empty).endswith("no metric yet)")
    with pytest.raises(ValueError, match="this curve has no metric yet: no point of it has been computed"):
        empty.plot()


def test_as_a_table(curve, marked):
    frame = curve.to_dataframe()
    assert len(frame) == 2 * 3 * 3 * 2 * 2 * 3
    assert list(frame.columns[:6]) == ["learner", "alpha", "target", "noise", "d", "seed"]
    picked = frame.query("learner == 'ridge' and alpha == 2 and target == 'abs(z)' and noise == 0.4 and d == 20")
    part = curve.select(learner="ridge", alpha=2, target="abs(z)", noise=0.4, d=20)
    np.testing.assert_array_equal(picked["overlap_simulation"], part.simulation("overlap")[0])
    assert part.to_dataframe().shape[0] == 3
    assert {"weak_threshold", "both_threshold"} <= set(marked.to_dataframe().columns)
    assert len(marked.to_dataframe()) == 12


def test_in_words(curve):
    assert repr(curve) == (
        "Curve(varied; ridge, mean; alpha from 0.5 to 2 (3), target in abs(z), z**2 + 1, price in $ (3), "
        "noise from 0.1 to 0.4 (2); d = 10 and 20, 3 seeds; overlap, estimation_error)"
    )
    point = curve.select(alpha=1, target="abs(z)", noise=0.1, d=10)
    assert repr(point) == "Curve(varied; ridge, mean; d = 10, 3 seeds; overlap, estimation_error)"


def test_saved_and_loaded(curve, marked, tmp_path):
    for k, one in enumerate((curve, marked, curve.select(alpha=1, target="abs(z)", noise=0.1))):
        assert sv.Curve.load(one.save(tmp_path / f"{k}.nc")).dataset.identical(one.dataset)
