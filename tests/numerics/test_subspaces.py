"""Bases of subspaces: orthonormal, the right span, and in coordinates that a person would choose."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.numerics.subspaces import complement, snapped, tidy


@pytest.mark.parametrize(
    "directions", [np.eye(3)[:, [2]], np.eye(3)[:, [0, 2]], np.array([[1.0, 1, 0]]).T, np.array([[1.0, 1, 1]]).T]
)
def test_tidy_recognises_simple_subspaces(directions):
    clean = directions / np.linalg.norm(directions, axis=0)
    blurred = np.linalg.qr(clean + 1e-5 * np.random.default_rng(0).standard_normal(clean.shape))[0]
    found = tidy(blurred, 1e-3)
    np.testing.assert_allclose(found @ found.T, clean @ clean.T, atol=1e-12)
    if clean.shape[1] < 3 and np.count_nonzero(clean) == clean.shape[1]:
        np.testing.assert_allclose(np.sort(found.ravel())[: -clean.shape[1]], 0, atol=1e-12)


def test_tidy_keeps_what_is_not_simple():
    u = np.array([[np.cos(0.3)], [np.sin(0.3)]])
    np.testing.assert_allclose(abs(tidy(u, 1e-4).T @ u), 1, atol=1e-12)


def test_the_columns_of_a_basis_are_axes_and_simple_directions_in_order():
    plane = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]).T
    root = np.sqrt(0.5)
    np.testing.assert_allclose(tidy(plane), [[root, 0], [root, 0], [0, 1]], atol=1e-12)
    wanted = np.array([[root, 0, root], [0, 1, 0]])
    found = tidy(np.eye(3), wanted=wanted)
    np.testing.assert_allclose(found, np.array([wanted[0], [root, 0, -root], wanted[1]]).T, atol=1e-12)
    assert tidy(np.zeros((3, 0))).shape == (3, 0)
    np.testing.assert_array_equal(tidy(np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]), np.eye(4))


def test_snapping_keeps_simple_ratios_exact_and_others_as_they_are():
    found = snapped(np.array([0.0, -0.5 - 1e-11, 1 / 6]))
    np.testing.assert_array_equal(found, np.array([0.0, 1.0, -1 / 3]) / np.linalg.norm([0.0, 1.0, -1 / 3]))
    odd = np.array([0.3, -0.71234567])
    np.testing.assert_allclose(snapped(odd), -odd / np.linalg.norm(odd), rtol=1e-15)


def test_a_complement_completes_a_basis_by_axes_where_these_fit():
    known = np.array([[0.6, 0.0], [0.8, 0.0], [0.0, 1.0], [0.0, 0.0]])
    rest = complement(known)
    np.testing.assert_allclose(np.hstack([known, rest]).T @ np.hstack([known, rest]), np.eye(4), atol=1e-15)
    np.testing.assert_array_equal(rest[:, 0], np.eye(4)[3])
    assert complement(np.eye(2)).shape == (2, 0)
