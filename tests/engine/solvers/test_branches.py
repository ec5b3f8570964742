"""Points on branches: the field where directions are recovered exactly, one after the other or only some of them."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.solvers.branches import Point, _aligned


def recovered(exact: np.ndarray, inner: Point | None = None) -> Point:
    """A point with these directions (r x m) known exactly, and the others where `inner` has them."""
    r = len(exact)
    return Point(2.0, np.eye(r), np.zeros((r, 0)), np.zeros((0, 0)), 0.0, 0.0, rate=1.0, exact=exact, inner=inner)


def learned(q: float) -> Point:
    """The point of one direction with overlap q."""
    return Point(2.0, np.full((1, 1), q), np.eye(1), np.full((1, 1), -np.log1p(-q)), 0.0, 0.0)


def test_directions_recovered_one_after_the_other_have_an_infinite_field_and_no_nan():
    first = np.eye(3)[:, :1]
    point = recovered(first, recovered(np.eye(2)[:, :1], recovered(np.eye(1))))
    np.testing.assert_array_equal(point.Mhat, np.where(np.eye(3) > 0, np.inf, 0.0))


def test_the_field_of_a_direction_that_is_not_recovered_stays_finite():
    point = recovered(np.eye(3)[:, :1], recovered(np.eye(2)[:, 1:], learned(0.6)))
    finite = [q for q in np.diag(point.Mhat) if np.isfinite(q)]
    assert finite == pytest.approx([1.5])
    assert np.sum(np.isinf(point.Mhat)) == 2 and not np.isnan(point.Mhat).any()


def test_a_recovered_direction_between_the_axes_makes_its_whole_block_infinite():
    along = np.array([[1.0], [-1.0], [0.0]]) / np.sqrt(2)
    field = recovered(along, recovered(np.eye(2)[:, :1], learned(0.5))).Mhat
    assert not np.isnan(field).any()
    assert np.sum(np.isfinite(np.diag(field))) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, alpha", [("max(z1,z2)", 2.2), ("where(z1>0,z1,z2)", 2.5), ("z1*z2", 2.2), ("z1+z2**3", 2.3)]
)
def test_perfect_recovery_is_predicted_with_an_infinite_field(text, alpha):
    found = sv.predict(sv.MultiIndex(text), sv.BayesOptimal(), alpha=alpha)
    np.testing.assert_allclose(found["overlap"], np.eye(2), atol=1e-9)
    np.testing.assert_array_equal(found.order_parameters["Mhat"], np.where(np.eye(2) > 0, np.inf, 0.0))


def test_directions_a_little_off_a_subspace_are_those_of_it():
    x, y = np.eye(2)[:, :1], np.eye(2)[:, 1:]

    def turned(angle: float) -> np.ndarray:
        return np.array([[np.cos(angle)], [np.sin(angle)]])

    assert [U.tolist() for U in _aligned([x, y, np.eye(2)], turned(0.05))] == [x.tolist()]
    assert _aligned([x, y, np.eye(2)], turned(0.3)) == []


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.3, 1.6])
def test_a_direction_that_is_turned_on_its_way_to_exact_recovery(alpha):
    """The labels correlate z1, which becomes known exactly, with z2, of which they then say the sign and no more."""
    found = sv.predict(sv.MultiIndex("z1**2 + sign(z1*z2)"), sv.AMP(), alpha=alpha)
    sign = sv.predict(sv.MultiIndex("sign(z)"), sv.AMP(), alpha=alpha)
    assert found["overlap_1"] == 1
    assert found["overlap_2"] == pytest.approx(sign["overlap"], abs=found.uncertainty["overlap_2"])
