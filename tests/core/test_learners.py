"""The shared learners refuse fields that make no sense."""

from __future__ import annotations

import pytest

import solvable as sv


def test_defaults():
    assert (sv.AMP().damping, sv.AMP().max_steps, sv.AMP().tolerance) == (0.5, 600, 1e-4)
    assert sv.Spectral().kind == "symmetric"
    assert [kind.name() for kind in (sv.BayesOptimal, sv.AMP, sv.Spectral)] == ["bayes-optimal", "amp", "spectral"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.AMP(damping=0.0), "damping = 0.0 is not allowed: damping must be a number above 0 and at most 1"),
        (lambda: sv.AMP(damping=1.5), "damping = 1.5 is not allowed"),
        (lambda: sv.AMP(damping=float("nan")), "damping = nan is not allowed"),
        (lambda: sv.AMP(damping="half"), "damping = 'half' is not allowed"),  # type: ignore[arg-type]
        (lambda: sv.AMP(max_steps=0), "max_steps = 0 is not allowed: max_steps must be an integer of at least 1"),
        (lambda: sv.AMP(max_steps=10.0), "max_steps = 10.0 is not allowed"),  # type: ignore[arg-type]
        (lambda: sv.AMP(tolerance=0.0), "tolerance = 0.0 is not allowed: tolerance must be a number between 0 and 1"),
        (lambda: sv.Spectral(kind="round"), "kind = 'round' is not allowed: kind must be 'symmetric' or 'asymmetric'"),
    ],
)
def test_bad_fields(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_fields_are_changed_by_copy():
    assert sv.AMP().with_field("damping", 1.0) == sv.AMP(damping=1.0)
    with pytest.raises(ValueError, match="damping must be"):
        sv.AMP().with_field("damping", 2.0)
    with pytest.raises(ValueError, match="field = 'speed' is not allowed: .* damping, max_steps, tolerance"):
        sv.AMP().with_field("speed", 1.0)
