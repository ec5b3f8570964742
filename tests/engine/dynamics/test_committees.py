"""Closed averages of committees: reference values, quadrature, Monte Carlo, symmetry, and which targets have them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.engine.dynamics import committees, neuron
from solvable.engine.dynamics.committees import average, committee_rules, erf_moments
from solvable.engine.dynamics.flow import follow, velocity
from solvable.engine.dynamics.moves import AHEAD, TWICE, Move, Rates
from solvable.engine.dynamics.student import Student, as_activation
from solvable.targets.target import Target

ERF = "erf(z1/sqrt(2)) + 0.7*erf(z2/sqrt(2))"
LAYER = (1.0, -0.5, 0.8)
M0 = np.array([[0.2, 0.1], [-0.1, 0.15], [0.05, -0.2]])
Q0 = np.array([[0.6, 0.1, 0.0], [0.1, 0.5, 0.05], [0.0, 0.05, 0.7]])
"""The setting of the reference values: noise 0.01, until t = 5."""


averages = jax.jit(average, static_argnums=0)
label_error = jax.jit(committees.label_error, static_argnums=0)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def made(activation="erf", layer=LAYER, spherical=False, square=True, **given):
    return Move(Student(as_activation(activation), tuple(layer), square), spherical=spherical, **given)


def the_rule(target, noise, move):
    found = committee_rules(Target(target), noise, move)
    assert found is not None and len(found) == 1
    return found[0]


def numbers(found):
    return [np.asarray(part) for part in found]


# Values of the closed integrals E[s'_a u_b s_c] and E[s'_a s'_b s_c s_d], checked by Monte Carlo with 4e6 samples.
C = np.array([[0.9, 0.2, -0.3, 0.15], [0.2, 0.7, 0.1, -0.25], [-0.3, 0.1, 1.0, 0.05], [0.15, -0.25, 0.05, 1.3]])


def test_the_integrals_of_saad_and_solla():
    def moments(*which):
        return compiled(C, 4, np.isin(np.arange(4), which) * 1.0, 0.0, 0.0)

    compiled = jax.jit(erf_moments, static_argnums=1)

    assert moments(2)[0][0, 1] == pytest.approx(0.04348901546196072, abs=1e-14)
    assert moments(2)[0][0, 0] == pytest.approx(-0.05218681855435285, abs=1e-14)
    assert moments(2)[1][0, 0] == pytest.approx(0.12219882352679413, abs=1e-14)
    mixed = (moments(2, 3)[1] - moments(2)[1] - moments(3)[1]) / 2
    assert mixed[0, 1] == pytest.approx(0.010271567896879443, abs=1e-14)


# Computed by an independent code with the same closed forms, and seen in runs at d = 500.
@pytest.mark.parametrize(
    ("activation", "target", "rate", "final"),
    [
        (
            "erf",
            ERF,
            0.7,
            [
                [0.48876762211103075, 0.4657307492311923],
                [-0.253921394437749, -0.04987177905605131],
                [0.3051516393890505, 0.10224828681438443],
            ],
        ),
        pytest.param(
            "z**2",
            "z1**2 + 0.7*z2**2",
            0.1,
            [
                [0.5788508577952853, 0.17337911975972037],
                [-0.007990654225973268, 0.04802149277446761],
                [0.14250128497314135, -0.37353463579591817],
            ],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_three_neurons_learn_two_directions(activation, target, rate, final):
    move = made(activation)
    rule = the_rule(target, 0.01, move)
    path = follow(average, move, Rates(rate), [rule], (M0, Q0), np.array([0.0, 2.0, 5.0]))
    assert path.M[-1] == pytest.approx(np.array(final), abs=1e-6)
    assert np.all(path.status == 0) and np.array_equal(path.M[0], M0)
    assert np.abs(path.Q - np.swapaxes(path.Q, 1, 2)).max() < 1e-12
    assert 0 < np.abs(path.others[0][0] - path.M).max() < 1e-5
    if activation == "erf":
        risks = [float(label_error(move.student, rule, M, Q)) / 2 for M, Q in zip(path.M, path.Q, strict=True)]
        assert risks[0] == pytest.approx(0.385270, abs=5e-7) and risks[-1] == pytest.approx(0.029314, abs=5e-7)


@pytest.mark.parametrize(
    ("activation", "target", "square"),
    [
        ("2*erf(0.4*z) + 0.3", "3*erf(0.4*z) - 0.2", True),
        ("he2(z)", "0.5*z**2 + 0.1", False),
        pytest.param("2*erf(0.4*z) + 0.3", "3*erf(0.4*z) - 0.2", False, marks=pytest.mark.slow),
        pytest.param("he2(z)", "0.5*z**2 + 0.1", True, marks=pytest.mark.slow),
        pytest.param("erf", "erf(z/sqrt(2))", True, marks=pytest.mark.slow),
        pytest.param("erf", "erf(z/sqrt(2))", False, marks=pytest.mark.slow),
    ],
)
def test_one_neuron_agrees_with_quadrature(activation, target, square):
    move, rates = made(activation, (0.8,), square=square), Rates(0.5)
    M, Q = jnp.array([[0.35]]), jnp.array([[0.7]])
    closed = numbers(averages(move, rates, the_rule(target, 0.2, move), M, Q))
    fine = neuron.neuron_rules(Target(target), 0.2, move, rates)[0]
    quadrature = jax.jit(neuron.average, static_argnums=0)(move, rates, fine, M, Q)
    for one, other in zip(closed, numbers(quadrature), strict=True):
        assert one == pytest.approx(other, rel=1e-7, abs=1e-7)


@pytest.fixture(scope="module")
def overlaps():
    """M (3 x 2) and Q (3 x 3) of random weights in ten dimensions."""
    W = np.random.default_rng(5).standard_normal((3, 10)) / 3
    return W[:, :2], W @ W.T


@pytest.mark.parametrize(
    ("activation", "target", "square"),
    [
        ("erf", ERF + " + 0.4", True),
        ("z**2 - 0.5", "z1**2 - 0.6*z2**2 + 0.3", True),
        pytest.param("erf", ERF + " + 0.4", False, marks=pytest.mark.slow),
        pytest.param("z**2 - 0.5", "z1**2 - 0.6*z2**2 + 0.3", False, marks=pytest.mark.slow),
    ],
)
def test_averages_are_those_of_samples(activation, target, square, overlaps):
    M, Q = overlaps
    move, rates, noise, count = made(activation, square=square), Rates(0.5), 0.3, 200_000
    rng = np.random.default_rng(1)
    covariance = np.block([[Q, M], [M.T, np.eye(2)]])
    u = rng.standard_normal((count, 5)) @ np.linalg.cholesky(covariance).T
    h, z = u[:, :3], u[:, 3:]
    y = Target(target).numpy(z) + np.sqrt(noise) * rng.standard_normal(count)
    F = np.asarray(jax.jit(move.force)(y, h, rates))
    rule = the_rule(target, noise, move)
    for exact, other in zip(averages(move, rates, rule, *map(jnp.asarray, overlaps)), (z, h, F), strict=True):
        samples = F[:, :, None] * other[:, None, :]
        z_score = (samples.mean(0) - np.asarray(exact)) / (samples.std(0) / np.sqrt(count))
        assert np.abs(z_score).max() < 4
    difference = (Target(target).numpy(z) - np.asarray(move.student.output(jnp.asarray(h)))) ** 2
    error = label_error(move.student, rule, *map(jnp.asarray, overlaps))
    assert abs(difference.mean() - error) < 4 * difference.std() / np.sqrt(count)


@pytest.mark.parametrize(
    ("activation", "target"), [pytest.param("erf", ERF, marks=pytest.mark.slow), ("z**2", "z1**2 - 0.6*z2**2")]
)
def test_neurons_have_no_order(activation, target, overlaps):
    M, Q = map(jnp.asarray, overlaps)
    order = np.array([2, 0, 1])
    move, moved = made(activation), made(activation, np.array(LAYER)[order])
    rule = the_rule(target, 0.1, move)
    first = averages(move, Rates(0.5), rule, M, Q)
    second = averages(moved, Rates(0.5), rule, M[order], Q[np.ix_(order, order)])
    assert second.Fz == pytest.approx(np.asarray(first.Fz)[order], abs=1e-13)
    for one, other in ((first.Fh, second.Fh), (first.FF, second.FF)):
        assert np.asarray(other) == pytest.approx(np.asarray(one)[np.ix_(order, order)], abs=1e-13)


@pytest.mark.parametrize("activation", [pytest.param("erf", marks=pytest.mark.slow), "z**2", "he2(z)"])
def test_a_student_that_is_the_teacher_stays(activation):
    text = str(as_activation(activation))
    target = " - 0.6*".join(text.replace("(z", f"(z{k}").replace("z**", f"z{k}**") for k in (1, 2))
    move, eye = made(activation, (1.0, -0.6)), jnp.eye(2)
    rule = the_rule(target, 0.0, move)
    for part in averages(move, Rates(0.5), rule, eye, eye):
        assert np.abs(part).max() < 1e-14
    assert abs(label_error(move.student, rule, eye, eye)) < 1e-14
    noisy = averages(move, Rates(0.5), the_rule(target, 0.3, move), eye, eye)
    assert np.abs(noisy.Fh).max() < 1e-14 and np.all(np.diag(noisy.FF) > 0.01)


@pytest.mark.slow
def test_the_error_of_a_flow_covers_that_of_its_steps():
    """Over a plateau small errors grow: a flow with much smaller steps ends within the reported error."""
    move = made(layer=(1.0, 1.0))
    rule = the_rule("erf(z1/sqrt(2)) + erf(z2/sqrt(2))", 0.0, move)
    start, times = (np.array([[1e-4, 0.0], [0.0, 0.0]]), np.diag([0.3, 0.2])), np.array([20.0, 60.0, 100.0])
    path = follow(average, move, Rates(1.0), [rule], start, times)
    exact = _by_scipy(move, rule, start, times)
    error = np.abs(path.others[0][0] - path.M) + path.slack * np.abs(path.M)
    assert np.all(np.abs(path.M - exact) <= error + 1e-12) and error.max() < 1e-3


def test_neurons_stay_on_the_sphere(overlaps):
    """What a step takes away from spherical neurons keeps their norm, and the flow of M is that along the sphere."""
    M, Q = overlaps
    size = np.sqrt(np.diag(Q))
    M, Q = jnp.asarray(M / size[:, None]), jnp.asarray(Q / np.outer(size, size))
    move, rates = made(spherical=True), Rates(0.5)
    found = averages(move, rates, the_rule(ERF, 0.1, move), M, Q)
    dM, dQ = velocity(move, rates, found, M, Q)
    assert np.abs(np.diag(dQ)).max() < 1e-14 and np.abs(dM).max() > 0.01


def _by_scipy(move, rule, start, times):
    from scipy.integrate import solve_ivp

    @jax.jit
    def field(t, state):
        M, Q = state[:4].reshape(2, 2), state[4:].reshape(2, 2)
        dM, dQ = velocity(move, Rates(1.0), average(move, Rates(1.0), rule, M, Q), M, Q)
        return jnp.concatenate([dM.ravel(), dQ.ravel()])

    state = np.concatenate([part.ravel() for part in start])
    found = solve_ivp(field, (0, times[-1]), state, "DOP853", times, rtol=1e-12, atol=1e-14)
    return found.y[:4].T.reshape(-1, 2, 2)


def test_what_is_recognised():
    rule = the_rule(ERF, 0.01, made())
    assert rule.kind == committees.ERF and rule.b == pytest.approx([1, 0.7], abs=1e-12)
    assert [float(x) for x in (rule.noise, rule.scale, rule.stretch)] == pytest.approx([0.01, 1, 1], abs=1e-13)
    scaled = the_rule("3 - erf(2.5*z2)", 0.0, made("-2*erf(2.5*z) + 1"))
    assert scaled.b == pytest.approx([0, 0.5], abs=1e-12) and float(scaled.level) == pytest.approx(3)
    assert float(scaled.stretch) == pytest.approx(2.5 * np.sqrt(2)) and float(scaled.shift) == 1
    even = the_rule("z1*z1 + 2*z2**2 - 3*abs(z3)**2", 0.0, made("he2(z)"))
    assert even.kind == committees.SQUARE
    assert np.asarray(even.b) / even.b[0] == pytest.approx([1, 2, -3])
    function = Target(lambda z: jnp.sum(jax.scipy.special.erf(z / jnp.sqrt(2.0))), projections=3)
    assert committee_rules(function, 0.0, made()) is not None


@pytest.mark.parametrize(
    ("activation", "target"),
    [
        ("relu", "relu(z)"),
        ("tanh", "tanh(z)"),
        ("z", "z"),
        ("z**2 + z", "z**2 + z"),
        ("z**4", "z**4"),
        ("erf", "erf(z)"),
        ("erf", "erf(z1/sqrt(2))*erf(z2/sqrt(2))"),
        ("erf", "erf(z1/sqrt(2)) + 1e-9*z2"),
        ("erf(z)", "1/z"),
        ("z**2", "z1*z2"),
        ("z**2", "erf(z/sqrt(2))"),
        ("erf", "z**2"),
    ],
)
def test_what_is_not(activation, target):
    assert committee_rules(Target(target), 0.0, made(activation)) is None


@pytest.mark.parametrize("kind", [AHEAD, TWICE])
def test_steps_that_are_not_plain_are_not_closed(kind):
    assert committee_rules(Target(ERF), 0.0, made(kind=kind)) is None
    assert committee_rules(Target(ERF), 0.0, made(copies=True)) is None


def test_rules_are_made_in_double_precision():
    with jax.enable_x64(False):
        assert the_rule(ERF, 0.0, made()).b.dtype == np.float64
