"""Thresholds read off the curve of fixed points, on channels whose curve and free entropy are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from toys.outputs import Toy, scalars

from solvable.channels.base import Average, LabelLaw
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import Thresholds
from solvable.engine.solvers.curve import Curve
from solvable.priors import Gaussian
from solvable.targets.target import Target


class PolynomialChannel(Toy):
    """I = a + b q + c q^3, Psi = (a q + b q^2 / 2 + c q^4 / 4) / 2: noisy, with a curve alpha(q) = q / ((1 - q) I)."""

    target, noise = Target("z"), 1.0

    def __init__(self, a: float, b: float, c: float):
        self.a, self.b, self.c = a, b, c

    def label_law(self, fineness=1.0):
        """Labels of which a share shows the mean of z, and another its square."""
        return LabelLaw(np.array([self.a, self.b]), np.eye(2)[:, :1], np.array([[[0.0]], [[1.0]]]))

    def at(self, M):
        information, entropy = self.labels(float(M[0, 0]))
        return Average(np.array([[information]]), float(entropy))

    def labels(self, q):
        """I and Psi at q."""
        information = self.a + self.b * q + self.c * q**3
        return information, (self.a * q + self.b * q**2 / 2 + self.c * q**4 / 4) / 2

    @property
    def evolution(self):
        return scalars(Curve(PosteriorOutput(self), SeparableSignal(Gaussian())))

    def alpha(self, q):
        return q / ((1 - q) * (self.a + self.b * q + self.c * q**3))

    def free_entropy(self, q, alpha):
        """The Gaussian prior's (q + log(1 - q)) / 2 and the labels' part."""
        return (q + np.log1p(-q)) / 2 + alpha * self.labels(q)[1]


CONTINUOUS = PolynomialChannel(0.0, 2.0, 0.0)
JUMPING = PolynomialChannel(0.0, 2.0, 12.0)
TRIVIAL_JUMPING = PolynomialChannel(0.05, 0.0, 12.0)
NEVER = PolynomialChannel(0.0, 0.0, 4.0)


def turning_points(channel: PolynomialChannel) -> tuple[float, float]:
    """The q where alpha(q) turns: the spinodals, where the iteration's state and the far one cease to exist."""
    q = np.linspace(1e-6, 1 - 1e-6, 200_001)
    slope = np.diff(np.log(channel.alpha(q)))
    first, second = np.nonzero(slope[1:] * slope[:-1] < 0)[0] + 1
    return float(q[first]), float(q[second])


def crossing(channel: PolynomialChannel) -> float:
    """The alpha where the free entropy of the two branches is the same, from their definitions."""
    first, second = turning_points(channel)

    def difference(alpha: float) -> float:
        near = brentq(lambda q: channel.alpha(q) - alpha, 1e-9, first) if alpha > channel.alpha(1e-9) else 0.0
        far = brentq(lambda q: channel.alpha(q) - alpha, second, 1 - 1e-9)
        return float(channel.free_entropy(far, alpha) - channel.free_entropy(near, alpha))

    return brentq(difference, channel.alpha(second) * (1 + 1e-9), channel.alpha(first) * (1 - 1e-9), xtol=1e-12)


def test_continuous_transition_has_one_threshold():
    found = CONTINUOUS.evolution.thresholds()
    assert found == {"weak_recovery": 0.5, "algorithmic": 0.5, "information_theoretic": 0.5}
    assert found.coincide == [("weak_recovery", "algorithmic", "information_theoretic")]


def test_first_order_transition_against_the_closed_form():
    found = JUMPING.evolution.thresholds()
    # d/dq of (1 - q) (2 + 12 q^2) vanishes at q = (12 -+ sqrt(72)) / 36.
    q = (12 - np.sqrt(72)) / 36
    assert turning_points(JUMPING)[0] == pytest.approx(q, abs=1e-5)
    assert found["weak_recovery"] == 0.5
    assert found["algorithmic"] == pytest.approx(float(JUMPING.alpha(q)), rel=1e-8)
    assert found["information_theoretic"] == pytest.approx(crossing(JUMPING), rel=1e-6)
    assert found.coincide == []


def test_a_trivial_target_may_jump_too():
    found = TRIVIAL_JUMPING.evolution.thresholds()
    spinodal = float(TRIVIAL_JUMPING.alpha(turning_points(TRIVIAL_JUMPING)[0]))
    assert found["weak_recovery"] == 0
    assert found["algorithmic"] == pytest.approx(spinodal, rel=1e-7)
    assert found["information_theoretic"] == pytest.approx(crossing(TRIVIAL_JUMPING), rel=1e-6)


def test_a_hard_target_has_no_algorithmic_threshold():
    """I = 4 q^3: the far branch exists for alpha > 1 / (4 max (1 - q) q^2), the iteration never leaves q = 0."""
    found = NEVER.evolution.thresholds()
    assert found["weak_recovery"] == found["algorithmic"] == np.inf
    assert found.coincide == []  # neither ever happens

    def gain(alpha: float) -> float:
        far = brentq(lambda q: NEVER.alpha(q) - alpha, 2 / 3, 1 - 1e-9)
        return float(NEVER.free_entropy(far, alpha))

    assert found["information_theoretic"] == pytest.approx(brentq(gain, 1.6875 * (1 + 1e-9), 10.0), rel=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("channel", [JUMPING, TRIVIAL_JUMPING], ids=["easy", "trivial"])
def test_thresholds_agree_with_the_jumps_of_the_fixed_points(channel):
    evolution = channel.evolution
    found, far = evolution.thresholds(), turning_points(channel)[1]
    for name, solve in (("algorithmic", evolution.uninformed), ("information_theoretic", evolution.optimal)):
        low, high = 0.0, 3.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if solve(np.array([middle])).q[0] > far else (middle, high)
        assert found[name] == pytest.approx(high, rel=1e-6)


def test_free_entropies_of_both_branches_meet_at_the_threshold():
    evolution = JUMPING.evolution
    threshold = evolution.thresholds()["information_theoretic"]
    below, above = (evolution.optimal(np.array([threshold + s])) for s in (-1e-7, 1e-7))
    assert above.q[0] - below.q[0] > 0.3
    assert above.free_entropy[0] == pytest.approx(below.free_entropy[0], abs=1e-6)


class FlatChannel(PolynomialChannel):
    """I = 2 q / V, so that alpha = 1/2 for every q, with a relative error of 1e-9 that makes the curve wiggle."""

    def labels(self, q):
        V = 1 - q
        return 2 * q / V * (1 + 1e-9 * np.sin(30 * V)), -q - np.log(V)


def test_error_of_the_curve_is_not_taken_for_a_jump():
    assert FlatChannel(0.0, 2.0, 0.0).evolution.thresholds()["algorithmic"] == 0.5


def test_thresholds_are_a_dictionary_that_says_what_coincides():
    found = Thresholds(weak_recovery=0.0, algorithmic=1.5, information_theoretic=1.5)
    assert dict(found) == {"weak_recovery": 0.0, "algorithmic": 1.5, "information_theoretic": 1.5}
    assert found.coincide == [("algorithmic", "information_theoretic")]
    assert str(found).splitlines() == [
        "weak_recovery           0",
        "algorithmic             1.5",
        "information_theoretic   1.5",
        "(algorithmic = information_theoretic)",
    ]


class TwiceJumpingChannel(PolynomialChannel):
    """I = q / (1 + sin(15 q) / 2), so that alpha = (1 + sin(15 q) / 2) / (1 - q) rises and falls more than once."""

    def labels(self, q):
        t, w = np.polynomial.legendre.leggauss(60)
        inner = q * (t + 1) / 2
        entropy = np.sum(w / 2 * inner / (1 + np.sin(15 * inner) / 2)) * q / 2
        return q / (1 + np.sin(15 * q) / 2), entropy


def test_the_last_of_several_jumps_counts():
    """Such fast oscillations are at the limit of the table: its relative error is about 1e-3."""
    evolution = TwiceJumpingChannel(0.0, 1.0, 0.0).evolution
    q = np.linspace(0, 0.999, 400_001)
    curve = (1 + np.sin(15 * q) / 2) / (1 - q)
    highest = np.maximum.accumulate(curve)
    jumps = np.unique(highest[curve < highest])
    assert len(jumps) == 2 and jumps[1] > 1.5 * jumps[0]
    assert evolution.thresholds()["algorithmic"] == pytest.approx(jumps[1], rel=1e-3)
    # Each jump lands on the next rise of the curve.
    for jump in jumps:
        before, after = evolution.uninformed(jump * np.array([0.99, 1.01])).q
        beyond = q[(curve > 1.01 * jump) & (q > before + 0.01)][0]
        assert after == pytest.approx(beyond, abs=2e-3)
