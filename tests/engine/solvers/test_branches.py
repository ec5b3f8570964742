"""Points on branches: the field where directions are recovered exactly, one after the other or only some of them."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.solvers.branches import Point


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
