"""The staircase of what is learned when, and the thresholds between, on channels where they are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from toys.outputs import LinearToy, ParityToy, PotentialToy, continued

from solvable.channels.closed import Parity, Product, Staircase


def steps_of(channel):
    steps = list(continued(channel).steps)
    together = np.column_stack([step.directions for step in steps])
    np.testing.assert_allclose(together.T @ together, np.eye(channel.projections), atol=1e-9)
    return steps


def axes(*numbers: int, r: int = 3) -> np.ndarray:
    return np.eye(r)[:, list(numbers)]


def test_a_mean_is_learned_at_once_and_what_no_label_shows_never():
    first, second = steps_of(LinearToy([1.0, 1.0], 0.1))
    assert (first.kind, first.alpha) == ("trivial", 0.0) and (second.kind, second.alpha) == ("hard", np.inf)
    np.testing.assert_allclose(first.directions[:, 0], [np.sqrt(0.5)] * 2)


def test_directions_that_grow_equally_fast_are_learned_together():
    (step,) = steps_of(ParityToy())
    assert step.kind == "easy" and step.alpha == pytest.approx(np.pi**2 / 4, rel=1e-12)
    np.testing.assert_array_equal(step.directions, np.eye(2))


def test_independent_directions_have_their_own_thresholds():
    steps = steps_of(PotentialToy(np.zeros((3, 3)), [np.diag([np.sqrt(2), 0, 0]), np.diag([0, 0.5, 0.5])]))
    assert [s.kind for s in steps] == ["easy", "easy"]
    np.testing.assert_allclose([s.alpha for s in steps], [0.5, 4.0], rtol=1e-9)
    np.testing.assert_array_equal(steps[1].directions, axes(1, 2))


def test_what_becomes_trivial_given_an_easy_direction_follows_at_the_same_alpha():
    steps = steps_of(PotentialToy(np.zeros((2, 2)), [np.diag([np.sqrt(2), 0])], np.eye(2), c=0.3))
    assert [(s.kind, pytest.approx(0.5)) for s in steps] == [("easy", s.alpha) for s in steps[:1]] + [
        ("trivial", s.alpha) for s in steps[1:]
    ]


class Coupled(PotentialToy):
    """Overlap q on z1 makes an overlap on z2 grow at the rate 0.2 + 0.6 q, with Psi = q M22^2 / 4 and so on."""

    def at(self, M):
        found = super().at(M)
        extra = 0.6 * np.diag([M[1, 1] ** 2 / 2, M[0, 0] * M[1, 1]])
        return found._replace(
            information=found.information + extra, entropy=found.entropy + 0.15 * M[0, 0] * M[1, 1] ** 2
        )

    def linearisation(self, M, basis):
        lin = super().linearisation(M, basis)
        b = basis[1] ** 2
        return lin._replace(easy=lin.easy + 0.6 * M[0, 0] * np.outer(b, b) if basis.shape[1] == 1 else lin.easy)


def test_the_next_threshold_uses_what_is_known_at_that_alpha():
    steps = steps_of(Coupled(np.diag([0.5, 0.0]), [np.diag([0.0, np.sqrt(0.2)])]))
    # q / (1 - q) = alpha / 2 while z2 is unknown, and alpha (0.2 + 0.6 q) = 1 there.
    alpha = brentq(lambda a: a * (0.2 + 0.6 * (a / 2) / (1 + a / 2)) - 1, 0.1, 10)
    assert [s.kind for s in steps] == ["trivial", "easy"]
    assert steps[1].alpha == pytest.approx(alpha, rel=1e-6)


def test_known_staircases():
    first, second = steps_of(Staircase())
    assert first.alpha == pytest.approx(0.575166352, abs=1e-6) and second.alpha == pytest.approx(np.pi**2 / 4, rel=1e-8)
    np.testing.assert_array_equal(first.directions, axes(0))
    np.testing.assert_array_equal(second.directions, axes(1, 2))
    (product,) = steps_of(Product())
    assert product.alpha == pytest.approx(0.593751099, abs=1e-6) and product.directions.shape == (2, 2)
    (noisy,) = steps_of(Parity(0.5))
    assert noisy.alpha == pytest.approx(3.2086600367, abs=1e-6)


@pytest.mark.slow
def test_a_jump_and_the_hard_phase_before_it():
    """M = q I, alpha(q) = 1 / ((1 - q)(0.5 + 8 c q^2)): weak recovery at 2, above the jump to the upper branch."""
    c = 0.4
    toy = PotentialToy(np.diag([0.05, 0.05]), [np.sqrt(0.2) * np.eye(2)], np.eye(2), c)
    evolution = continued(toy)

    def curve(q):
        return q / ((1 - q) * (0.05 + 0.2 * q + 8 * c * q**3))

    def phi(q, alpha):
        return q + np.log1p(-q) + alpha * (0.05 * q + 0.1 * q**2 + 2 * c * q**4)

    spinodal = minimize_scalar(lambda q: -curve(q), bounds=(0.05, 0.5), method="bounded", options={"xatol": 1e-12})
    lowest = minimize_scalar(curve, bounds=(0.5, 0.99), method="bounded").x

    def gain(alpha):
        low = brentq(lambda q: curve(q) - alpha, 1e-9, spinodal.x)
        high = brentq(lambda q: curve(q) - alpha, lowest, 1 - 1e-12)
        return phi(high, alpha) - phi(low, alpha)

    found = evolution.thresholds()
    assert found["weak_recovery"] == 0
    assert found["algorithmic"] == pytest.approx(-spinodal.fun, rel=1e-4)
    assert found["information_theoretic"] == pytest.approx(brentq(gain, 1.001 * curve(lowest), -spinodal.fun), rel=1e-4)


@pytest.mark.slow
def test_a_target_that_amp_never_learns_may_still_be_learned():
    toy = PotentialToy(np.zeros((2, 2)), [], np.eye(2), c=0.1)

    def best(alpha):
        q = np.linspace(0, 1, 200_001)[:-1]
        return np.max(q + np.log1p(-q) + alpha * 0.2 * q**4)

    found = continued(toy).thresholds()
    assert found["weak_recovery"] == np.inf and found["algorithmic"] == np.inf
    assert found["information_theoretic"] == pytest.approx(brentq(lambda a: best(a) - 1e-12, 1, 100), rel=1e-4)


def test_specialization_is_named():
    plus, minus = (np.outer(v, v) / 2 for v in ([1, 1], [1, -1]))
    found = continued(PotentialToy(0.4 * plus, [np.sqrt(0.5) * minus])).thresholds()
    assert found["weak_recovery"] == 0 and found["step_2"] == found["specialization"] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
def test_thresholds_of_a_staircase_with_exact_recovery():
    evolution = continued(Staircase())
    found = evolution.thresholds()
    assert found["algorithmic"] == pytest.approx(1.400107, abs=3e-5) and found["information_theoretic"] == 1.0
    assert found["step_2"] == pytest.approx(np.pi**2 / 4, rel=1e-6) and evolution.output.calls < 500
