"""Axes: their words, their bounds, and names in their place."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

CASES = [
    (sv.Axis("a"), [0, 0.5, 1e9], [-1e-9, np.inf, np.nan], "finite and not negative"),
    (sv.Axis("a", whole=True, least=1), [1, 10], [0, 10.5], "a whole number of at least 1"),
    (sv.Axis("a", most=1), [0, 1], [-0.1, 1.1], "a finite number of at least 0 and at most 1"),
    (sv.Axis("a", most=1, closed="right"), [1e-9, 1], [0, 1.1], "a finite number above 0 and at most 1"),
    (sv.Axis("a", most=1, closed="left"), [0, 0.9], [1], "a finite number of at least 0 and below 1"),
    (sv.Axis("a", most=1, closed="neither"), [0.5], [0, 1], "a finite number above 0 and below 1"),
    (sv.Axis("a", infinite=True), [0, 0.5, np.inf], [-1, -np.inf, np.nan], "not negative, or infinite"),
    (
        sv.Axis("a", whole=True, least=1, infinite=True),
        [1, np.inf],
        [0, 1.5],
        "a whole number of at least 1, or infinite",
    ),
    (sv.Axis("a", least=-np.inf), [-3, 3], [np.inf, -np.inf], "a finite number"),
]


@pytest.mark.parametrize(("axis", "good", "bad", "takes"), CASES)
def test_bounds(axis, good, bad, takes):
    axis.check(np.array(good))
    for value in bad:
        with pytest.raises(ValueError) as caught:
            axis.check(np.array([good[0], value]))
        assert str(caught.value) == f"a = {float(value)!r} is not allowed: a must be {takes}."


def test_names_are_axes_too():
    class Two(sv.Model):
        axes = ("alpha", sv.Axis("p", "width", whole=True))

    assert Two.axes == (sv.Axis("alpha"), sv.Axis("p", "width", whole=True)) and Two.axis_names == ("alpha", "p")
    assert sv.Model.axes[0].label == "n/d" and sv.MultiIndex.axis_names == ("alpha",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.Axis("two words"), "name = 'two words' is not allowed: name must be a keyword that Python takes"),
        (lambda: sv.Axis("a", closed="open"), "closed = 'open' is not allowed"),
        (lambda: type("Twice", (sv.Model,), {"axes": ("a", "a")}), "axes = .* is not allowed: axes must be different"),
    ],
)
def test_bad_axes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_may_check_its_axes_itself():
    class Capped(sv.Model):
        def check_axes(self, **axes):
            super().check_axes(**axes)
            if np.any(axes["alpha"] > 5):
                raise ValueError("alpha is too large")

    sv.theory(Capped, sv.BayesOptimal)(lambda model, learner, alpha: sv.Prediction({"overlap": alpha}))
    assert sv.predict(Capped(), sv.BayesOptimal(), alpha=5.0)["overlap"] == 5.0
    with pytest.raises(ValueError, match="too large"):
        sv.predict(Capped(), sv.BayesOptimal(), alpha=6.0)
    with pytest.raises(ValueError, match="not negative"):
        sv.predict(Capped(), sv.BayesOptimal(), alpha=-6.0)
