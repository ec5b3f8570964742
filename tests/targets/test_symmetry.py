"""Symmetry groups of targets, and the alignment of overlaps over them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvable.targets.symmetry import align, signed_permutations, symmetries
from solvable.targets.target import Target

KNOWN = [
    ("sign(z1*z2)", 4, ("(z1, z2) -> (-z1, -z2)", "z1 <-> z2"), ()),
    ("z1**2 + sign(z1*z2*z3)", 8, ("(z1, z2) -> (-z1, -z2)", "(z1, z3) -> (-z1, -z3)", "z2 <-> z3"), ()),
    ("z1 + z1*z2", 1, (), ()),
    ("abs(z1)*z2 + z3**2", 4, ("z1 -> -z1", "z3 -> -z3"), ()),
    ("z1**2 + z2**2 + z3", 8, ("rotations of (z1, z2)",), ((0, 1),)),
    ("max(z1, z2, z3)", 6, ("z1 <-> z2", "z1 <-> z3"), ()),
    ("tanh(z1 - z2)", 2, ("z1 <-> -z2",), ()),
    ("z1**2 + z2**2 + z3**2 + z4**2", 384, ("rotations of (z1, z2, z3, z4)",), ((0, 1, 2, 3),)),
    (
        "(z1**2 + z3**2)*(z2**2 + z4**2)",
        128,
        ("rotations of (z1, z3)", "rotations of (z2, z4)", "(z1, z2, z3, z4) -> (z2, z1, z4, z3)"),
        ((0, 2), (1, 3)),
    ),
]


@pytest.mark.parametrize(("text", "order", "names", "rotations"), KNOWN)
def test_groups(text, order, names, rotations):
    found = symmetries(Target(text))
    assert (len(found.group), found.names, found.rotations) == (order, names, rotations)
    np.testing.assert_array_equal(found.group[0], np.eye(found.group.shape[1]))


@pytest.mark.parametrize("r", [3, 4])
def test_parity_has_the_even_flips_and_all_permutations(r):
    found = symmetries(Target("sign(" + "*".join(f"z{k + 1}" for k in range(r)) + ")"))
    assert len(found.group) == 2 ** (r - 1) * math.factorial(r)


def test_a_callable_has_the_group_of_its_formula():
    typed = Target("z1**3*z2 - z2**3*z1")
    found = symmetries(Target(lambda z: typed(z), 2))
    np.testing.assert_array_equal(found.group, symmetries(typed).group)
    assert "(z1, z2) -> (z2, -z1)" in found.names


def test_one_projection():
    assert align(np.array([[-0.3]]), symmetries(Target("abs(z)")))[0, 0] == 0.3
    assert align(np.array([[-0.3]]), symmetries(Target("z")))[0, 0] == -0.3


@pytest.mark.parametrize(("text", "order", "names", "rotations"), KNOWN)
def test_an_equivalent_estimate_is_aligned_with_the_truth(text, order, names, rotations):
    """Labels are the same for W* and W* S^T, so the overlap of a perfect but transformed estimate becomes I."""
    del order, names
    target, generator = Target(text), np.random.default_rng(0)
    r, d = target.projections, 40
    truth = np.sqrt(d) * np.linalg.qr(generator.standard_normal((d, r)))[0]
    x = generator.standard_normal((100, d)) / np.sqrt(d)
    found = symmetries(target)
    for s in found.group[:: max(1, len(found.group) // 12)]:
        turn = s.copy()
        for block in rotations:
            turned = turn[:, block] @ np.linalg.qr(generator.standard_normal((len(block),) * 2))[0]
            turn[:, block] = turned
        estimate = truth @ turn.T
        np.testing.assert_allclose(target.numpy(x @ estimate), target.numpy(x @ truth), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(align(truth.T @ estimate / d, found), np.eye(r), atol=1e-12)


def test_alignment_maximises_the_trace_over_the_group():
    generator = np.random.default_rng(1)
    found = symmetries(Target("sign(z1*z2*z3)"))
    overlaps = generator.standard_normal((5, 4, 3, 3))
    aligned = align(overlaps, found)
    traces = np.trace(overlaps[..., None, :, :] @ found.group, axis1=-2, axis2=-1)
    np.testing.assert_allclose(np.trace(aligned, axis1=-2, axis2=-1), traces.max(-1))
    np.testing.assert_array_equal(align(aligned, found), aligned)


def test_alignment_over_rotations_beats_every_rotation():
    generator = np.random.default_rng(2)
    found = symmetries(Target("z1**2 + z2**2 + z3"))
    overlap = generator.standard_normal((3, 3))
    best = np.trace(align(overlap, found))
    for angle in np.linspace(0, 2 * np.pi, 60):
        for flip in (1.0, -1.0):
            turn = np.eye(3)
            turn[:2, :2] = [[np.cos(angle), -flip * np.sin(angle)], [np.sin(angle), flip * np.cos(angle)]]
            assert np.trace(overlap @ turn) <= best + 1e-12


def test_signed_permutations():
    matrices = signed_permutations(3)
    assert matrices.shape == (48, 3, 3)
    np.testing.assert_array_equal(matrices[0], np.eye(3))
    np.testing.assert_array_equal(matrices @ np.swapaxes(matrices, 1, 2), np.broadcast_to(np.eye(3), (48, 3, 3)))
