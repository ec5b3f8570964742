"""Channels of which some projections are known exactly."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from at_overlap import errors_at, information_at
from scipy.integrate import quad

from solvable.channels import GenericChannel, channel_of
from solvable.channels.generic import KnownChannel
from solvable.channels.levels.predictor import LevelSetPredictor
from solvable.core.errors import NotSimulable
from solvable.numerics.subspaces import complement
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

OVERLAPS = [np.diag([0.2, 0.2]), np.diag([0.6, 0.3]), np.array([[0.4, 0.1], [0.1, 0.3]])]


@functools.cache
def given(text: str, noise: float = 0.0) -> KnownChannel:
    """The channel that is left once z1 is known."""
    target = Target(text)
    return KnownChannel(target, noise, np.eye(target.projections)[:, :1])


@pytest.mark.parametrize(
    "text", ["z1**2+sign(z1*z2*z3)", pytest.param("he4(z1)+sign(z1*z2*z3)", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("M", OVERLAPS)
def test_the_staircase_leaves_a_parity(text, M):
    """Given z1, the label reveals sign(z2 z3)."""
    parity = channel_of(Target("sign(z1*z2)"), 0.0)
    found, expected = information_at(given(text), M), information_at(parity, M)
    np.testing.assert_allclose(found.information, expected.information, atol=3 * found.error + 1e-5)
    assert found.entropy == pytest.approx(expected.entropy, abs=3 * found.entropy_error + 1e-5)
    assert given(text).discrete and given(text).projections == 2


def test_the_threshold_after_the_first_step():
    """1 / lambda_max(E[G (x) G]) = pi^2 / 4 exactly, and nothing is learned at once."""
    here = given("z1**2+sign(z1*z2*z3)")
    found = here.linearisation(np.zeros((2, 2)), np.eye(2))
    assert 1 / np.linalg.eigvalsh(found.easy)[-1] == pytest.approx(np.pi**2 / 4, rel=1e-5)
    assert np.abs(found.trivial).max() < 1e-9 and found.error < 1e-5
    law = here.label_law()
    assert law.weight.sum() == pytest.approx(1, abs=1e-9)
    easy = np.einsum("l,lia,ljb->ijab", law.weight, law.G, law.G).reshape(4, 4)
    np.testing.assert_allclose(easy, found.easy, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("q", [0.9, *(pytest.param(q, marks=pytest.mark.slow) for q in (0.0, 0.5))])
def test_a_product_with_one_known_factor(noise, q):
    """y = z1 z2 + sqrt(D) xi given z1: E[g^2] = E_c[1 / (V + D / c^2)], c ~ N(0, 1)."""
    V = 1 - q
    exact = quad(lambda c: c**2 / (c**2 * V + noise) * np.exp(-(c**2) / 2) / np.sqrt(2 * np.pi), -9, 9)[0]
    found = information_at(given("z1*z2", noise), np.array([[q]]))
    assert found.information[0, 0] == pytest.approx(exact, abs=3 * found.error + 1e-3 * exact)
    # Where the noise is small, what the label says changes quickly with z1 near 0.
    assert found.error < (0.06 if noise < 1 else 0.01) * exact


@pytest.mark.slow
@pytest.mark.parametrize("q", [pytest.param(0.0, marks=pytest.mark.slow), 0.9])
def test_a_product_without_noise_gives_the_other_factor(q):
    """Given z1, the label is z2 itself: E[g^2] = 1 / V."""
    assert information_at(given("z1*z2"), np.array([[q]])).information[0, 0] == pytest.approx(1 / (1 - q), rel=2e-3)
    assert given("z1*z2").pinned_mass(np.eye(1)) == pytest.approx(1, abs=1e-9)
    assert given("z1*z2", 0.1).pinned_mass(np.eye(1)) == 0


@pytest.mark.slow
def test_nothing_known_of_the_rest_says_what_the_label_says():
    """A label that does not depend on z1 is not changed by knowing it."""
    M = np.array([[0.4, 0.1], [0.1, 0.3]])
    here = given("0*z1 + tanh(z2)*z3 + 0.3*z2**2")
    found, expected = information_at(here, M), information_at(GenericChannel(Target("tanh(z1)*z2+0.3*z1**2")), M)
    np.testing.assert_allclose(found.information, expected.information, atol=3 * (found.error + expected.error))


@pytest.mark.slow
def test_knowing_a_projection_never_hurts():
    """E[g g^T] given z1 is at least what it is at an overlap M that leaves z1 uncertain."""
    target = Target("tanh(z1)*z2+0.3*z1**2")
    generic = GenericChannel(target, 0.1)
    left = information_at(given(target.name, 0.1), np.array([[0.3]])).information[0, 0]
    before = [information_at(generic, np.diag([q, 0.3])).information[1, 1] for q in (0.2, 0.6, 0.9, 0.99)]
    assert np.all(np.diff([*before, left]) > 0)
    assert before[-1] == pytest.approx(left, rel=0.06)


@pytest.mark.slow
def test_knowing_step_by_step():
    """Knowing z1, then z2, is knowing both; coordinates are those of the complement."""
    here = given("z1*z2*z3", 0.2)
    twice = here.known(np.array([[1.0], [0.0]]))
    once = KnownChannel(Target("z1*z2*z3"), 0.2, np.eye(3)[:, :2])
    assert twice.projections == 1
    M = np.array([[0.4]])
    np.testing.assert_allclose(information_at(twice, M).information, information_at(once, M).information, atol=1e-10)


@pytest.mark.slow
def test_breaks_of_the_rest_are_found_in_any_coordinates():
    """A function without a formula, turned at random: given its z1 the label is a parity all the same."""
    B = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0]
    plain = Target("z1**2+sign(z1*z2*z3)")
    turned = KnownChannel(rotate(Target(lambda z: plain(z), 3), B), 0.0, B[:1].T)
    found = turned.linearisation(np.zeros((2, 2)), np.eye(2))
    assert 1 / np.linalg.eigvalsh(found.easy)[-1] == pytest.approx(np.pi**2 / 4, rel=1e-5)
    left = complement(B[:1].T).T @ B[1:].T
    M = np.diag([0.6, 0.3])
    expected = information_at(channel_of(Target("sign(z1*z2)"), 0.0), M).information
    np.testing.assert_allclose(
        left.T @ information_at(turned, left @ M @ left.T).information @ left, expected, atol=1e-4
    )


@pytest.mark.slow
def test_knowing_a_rotated_direction():
    """Knowing (z1 + z2)/sqrt(2) of a rotated target is knowing z1 of the plain one."""
    B = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    turned = KnownChannel(rotate(Target("z1*z2"), B), 0.1, B[:, :1])
    M = np.array([[0.5]])
    found, expected = information_at(turned, M), information_at(given("z1*z2", 0.1), M)
    np.testing.assert_allclose(found.information, expected.information, atol=3 * (found.error + expected.error))


def test_prediction_errors_given_a_projection():
    """Given z1: sign(z2 z3) is predicted as by a parity; z1^2 is known."""
    M = np.diag([0.6, 0.3])
    found = LevelSetPredictor(given("z1**2+sign(z1*z2*z3)")).errors((np.eye(2) - M)[None])
    whole = errors_at(GenericChannel(Target("z1**2+sign(z1*z2*z3)")), np.diag([1.0, 0.6, 0.3]))
    assert whole["generalization_error"][0] == pytest.approx(found["generalization_error"][0][0], rel=1e-9)
    parity = errors_at(GenericChannel(Target("sign(z1*z2)")), M)
    for name in ("generalization_error", "classification_error"):
        value, error = found[name]
        assert value[0] == pytest.approx(parity[name][0], abs=3 * (error[0] + parity[name][1]) + 2e-3)


def test_a_generic_channel_gives_what_is_left():
    left = GenericChannel(Target("z1**2+sign(z1*z2*z3)")).known(np.eye(3)[:, :1])
    assert isinstance(left, KnownChannel) and left.projections == 2


def test_a_channel_with_known_directions_has_no_rows():
    here = given("z1*z2", 0.1)
    for call in (
        lambda: here.sample(np.zeros((1, 1)), np.random.default_rng(0)),
        lambda: here.observe(np.zeros(1)),
        lambda: here.posterior(None, np.zeros((1, 1)), np.eye(1)),
    ):
        with pytest.raises(NotSimulable, match="draws and reads none"):
            call()
