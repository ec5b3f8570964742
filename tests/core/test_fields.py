"""Numbers by name, also inside the modules that fields hold."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.fields import field_names, get_field, number_paths

LEARNER = sv.ERM(sv.losses.Huber(0.8), sv.Lasso(0.2))
MODEL = sv.MultiIndex("z", 0.1, "gauss-bernoulli:0.3", contamination=sv.Contamination(0.2, 0.5, 4.0))


def test_numbers_go_by_path_by_name_and_by_field():
    assert number_paths(LEARNER) == {
        "loss.scale": ("loss", "scale"),
        "loss": ("loss", "scale"),
        "scale": ("loss", "scale"),
        "penalty.strength": ("penalty", "strength"),
        "penalty": ("penalty", "strength"),
        "strength": ("penalty", "strength"),
    }
    assert field_names(LEARNER) == ["loss", "penalty", "solver", "start", "scale", "strength"]
    assert get_field(MODEL, "noise") == 0.1 and get_field(MODEL, "contamination.noise") == 4.0
    assert get_field(MODEL, "rho") == 0.3 and get_field(MODEL, "fraction") == 0.2


def test_a_number_inside_is_replaced_and_checked():
    assert LEARNER.with_field("penalty", 0.5) == sv.ERM(sv.losses.Huber(0.8), sv.Lasso(0.5))
    assert LEARNER.with_field("scale", 2.0).loss == sv.losses.Huber(2.0)
    assert LEARNER.with_field("penalty", sv.Ridge(1.0)).penalty == sv.Ridge(1.0)
    assert LEARNER.with_field("penalty", "ridge:0.3").penalty == sv.Ridge(0.3)
    assert MODEL.with_field("fraction", 0.4).contamination == (sv.Contamination(0.4, 0.5, 4.0),)
    assert MODEL.with_field("rho", 0.5).prior.rho == 0.5
    with pytest.raises(ValueError, match=r"scale = -1.0 is not allowed: scale must be a positive number"):
        LEARNER.with_field("scale", -1.0)
    with pytest.raises(ValueError, match=r"fraction = 1.5 is not allowed"):
        MODEL.with_field("fraction", 1.5)
    with pytest.raises(
        ValueError, match=r"field = 'width' is not allowed: field must be one of the fields of ERM: loss"
    ):
        LEARNER.with_field("width", 1.0)


def test_several_contaminations_are_told_apart_by_their_place():
    model = sv.MultiIndex("z", contamination=[sv.Contamination(0.1, 0.0, 5.0), sv.Contamination(0.2, -1.0, 1.0)])
    assert get_field(model, "contamination.1.slope") == -1.0
    assert "fraction" not in number_paths(model)
    changed = model.with_field("contamination.0.fraction", 0.3)
    assert [part.fraction for part in changed.contamination] == [0.3, 0.2]


def test_such_numbers_are_axes_of_curves():
    learner = sv.ERM(sv.losses.Square(), sv.Ridge(0.1))
    curve = sv.learning_curve(MODEL, learner, penalty=np.array([0.1, 1.0]), alpha=2.0, progress=False)
    errors = curve.theory("estimation_error").values.ravel()
    for strength, error in zip((0.1, 1.0), errors, strict=True):
        one = sv.ERM(sv.losses.Square(), sv.Ridge(strength))
        assert error == pytest.approx(sv.predict(MODEL, one, alpha=2.0)["estimation_error"])
    plane = sv.phase_diagram(
        MODEL, learner, ("alpha", [1.0, 2.0]), ("fraction", [0.0, 0.3]), progress=False, marks=False
    )
    assert plane.theory("estimation_error").shape == (1, 2, 2)
