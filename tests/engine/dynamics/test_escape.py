"""When a neuron leaves its start: the expansion of the pull against known values, and against flows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import solvable as sv
from solvable.core.precision import float64
from solvable.engine.dynamics.escape import Expansion, expansion
from solvable.engine.dynamics.moves import AHEAD, PLAIN, Move, Rates
from solvable.engine.dynamics.student import Student, as_activation
from solvable.targets.target import Target


@float64
def expanded(target, activation, extrapolation=0.0, square=False, noise=0.0):
    move = Move(Student(as_activation(activation), (1.0,), square), AHEAD if extrapolation else PLAIN)
    return expansion(Target(target), noise, move, Rates(0.1, extrapolation))


@pytest.mark.parametrize(("square", "critical"), [(True, 1 / 3), (False, 2.0)])
def test_critical_rates_of_the_second_hermite_polynomial(square, critical):
    found = expanded("he2(z)/sqrt(2)", "he2(z)/sqrt(2)", square=square)
    assert found.order == 1 and found.critical_rate == pytest.approx(critical, rel=1e-12)


# Small-overlap coefficients of ReLU with correlation loss, by one-dimensional integrals: order, B_k, and 2 B_1 / V.
RELU = [
    ("he3(z)", 0.37, 0, -0.10560320896571498, None),
    ("he3(z)", 0.1, 0, -0.118646, None),
    ("he3(z)", 1.0, 0, -0.023787852501446022, None),
    ("he3(z)/sqrt(6)", 0.5, 0, -0.052644, None),
    ("he4(z)", -0.1, 1, -0.916596, 0.0),
    ("he4(z)", 0.1, 1, 0.084965, 0.015637302217106384),
    ("he4(z)", 0.37, 1, 0.543599138696687, None),
    ("he4(z)", 1.0, 1, 0.6669721692177861, 0.14868947950429173),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("target", "extrapolation", "order", "value", "critical"), RELU)
def test_what_a_look_ahead_pulls(target, extrapolation, order, value, critical):
    found = expanded(target, "relu", extrapolation)
    assert found.order == order and found.tensor.item() == pytest.approx(value, abs=1e-6)
    if critical is not None:
        assert found.critical_rate == pytest.approx(critical, abs=1e-6)


def test_the_sign_of_the_extrapolation_decides_for_even_targets():
    model = sv.MultiIndex("he4(z)/sqrt(24)")
    ahead = sv.thresholds(model, sv.Extragradient(0.3, "erf", loss="correlation", extrapolation=1.0))
    assert ahead["escapes"] == 0 and ahead["critical_learning_rate"] == 0 and ahead["exit_constant"] == math.inf
    assert ahead["escaping_extrapolation"] == -1.0
    back = sv.thresholds(model, sv.Extragradient(0.3, "erf", loss="correlation", extrapolation=-1.0))
    assert back["escapes"] == 1 and back["exit_log"] == 1 and back["escaping_extrapolation"] == -1.0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_exit_constants_are_those_of_the_equation_of_one_direction(k):
    """From 1/sqrt(d), with the whole equation: C d log d or C d^k samples, the closer the larger d."""
    beta, V = 0.7, 1.3
    told = Expansion(k, np.full((1,) * (k + 1), beta), V)
    rate, away = told.critical_rate / 3, []
    for d in (1e4, 1e8):
        gamma = rate * d**told.rate_power

        def speed(m, gamma=gamma):
            return gamma * (1 - m**2) * beta * m**k / math.factorial(k) - gamma**2 * V * m / 2

        # The time to come from m = d^(-1/2) to 1/2, in steps of log m.
        time = quad(lambda x, speed=speed: math.exp(x) / speed(math.exp(x)), -math.log(d) / 2, math.log(0.5), limit=200)
        samples = told.constant(rate) * d ** (k - 1) * (math.log(d) if k == 1 else 1)
        away.append(abs(time[0] / samples - 1))
    assert away[0] > away[1] and away[1] < {1: 0.1, 2: 1e-3, 3: 1e-3}[k]


@pytest.mark.slow
@pytest.mark.parametrize("degree", [2, 3])
def test_exit_constants_are_those_of_flows(degree):
    """Exit times of the flow from 1/sqrt(d) over d log d, or d^2, come closer to the constant as d grows."""
    formula = f"he{degree}(z)/sqrt({math.factorial(degree)})"
    model, rate = sv.MultiIndex(formula), {2: 0.2, 3: 0.5}[degree]
    told = sv.thresholds(model, sv.OnlineSGD(rate, formula, loss="correlation"))
    ratios = []
    grid = {2: np.linspace(0.5, 1.2, 141), 3: np.linspace(0.97, 1.005, 1401)}[degree]  # fine where the exit is steep
    for d in (1e4, 1e6, 1e8):
        learner = sv.OnlineSGD(rate * d ** told["rate_power"], formula, loss="correlation", start=d**-0.5)
        scale = d ** (told["exit_power"] - 1) * math.log(d) ** told["exit_log"]
        alpha = told["exit_constant"] * scale * grid
        cosine = sv.predict(model, learner, alpha=alpha)["cosine"]
        ratios.append(np.interp(0.5, cosine, alpha) / (told["exit_constant"] * scale))
    away = np.abs(np.array(ratios) - 1)
    assert away[0] > away[1] > away[2] and away[2] < {2: 0.06, 3: 1e-3}[degree]


def test_three_directions_of_a_parity_go_together():
    """Repetition changes the constant of a parity, not the power of d."""
    plain, ahead = (expanded("sign(z1*z2*z3)", "he3(z)/sqrt(6)", extrapolation) for extrapolation in (0.0, 0.1))
    assert plain.order == ahead.order == 2
    # E[sign(z1 z2 z3) z1 z2 z3] = (2/pi)^(3/2), times u_3 of the neuron; 3! equal entries of the tensor over 3 x_j^2.
    assert plain.growth == pytest.approx((2 / math.pi) ** 1.5 * math.sqrt(6), rel=1e-9)
    assert 1 < ahead.constant(0.55) / plain.constant(0.55) < 2


@pytest.mark.slow
def test_a_neuron_without_the_degree_never_escapes():
    """The odd Hermite coefficients of ReLU from the third on vanish."""
    told = sv.thresholds(sv.MultiIndex("he3(z)"), sv.OnlineSGD(0.1, "relu"))
    assert told["escapes"] == 0 and told["exit_power"] == math.inf


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (sv.OnlineSGD(0.1, width=2), "one neuron on the sphere"),
        (sv.OnlineSGD(0.1, spherical=False), "one neuron on the sphere"),
        (sv.Extragradient(0.1, similarity=0.5), "near-copies"),
    ],
)
def test_escape_that_is_not_known_is_refused(learner, message):
    with pytest.raises(sv.NotSolvable, match=message):
        sv.thresholds(sv.MultiIndex("he3(z)"), learner)


def test_a_diagnosis_quotes_both():
    told = sv.diagnose("he3(z)/sqrt(6)").descent
    assert told["one-pass SGD"] == "about 0.41 d^2 samples"
    assert told["with repetition"].endswith(" d samples")
    assert sv.diagnose("he2(z)").descent == {"one-pass SGD": "about 0.5 d log d samples"}
