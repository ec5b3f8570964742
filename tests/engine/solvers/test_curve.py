"""The explicit curve of fixed points against independent quadrature, closed forms, and its own free entropy."""

from __future__ import annotations

import numpy as np
import pytest
from reference.equations import (
    absolute_information,
    gauss_bernoulli_overlap,
    gaussian_overlap,
    linear_error,
    linear_information,
    probit_entropy,
    probit_information,
    rademacher_overlap,
    rademacher_potential,
)
from scipy.integrate import quad
from toys.outputs import scalars

from solvable.channels import Logit, Probit
from solvable.core.status import Status
from solvable.engine.sides import Overlap
from solvable.models.index import MultiIndex

ABS = MultiIndex("abs(z)")
SIGN = MultiIndex("sign(z)")
BINARY_SIGN = MultiIndex("sign(z)", prior="rademacher")
NOISY = MultiIndex("z", noise=0.3)
CLEAN = MultiIndex("z")
BINARY_NOISY = MultiIndex("z", noise=0.05, prior="rademacher")
SPARSE_NOISY = MultiIndex("z", noise=0.01, prior="gauss-bernoulli:0.2")
SPARSE_CLEAN = MultiIndex("z", prior="gauss-bernoulli:0.5")
EVERY = {
    "abs": ABS,
    "sign": SIGN,
    "binary sign": BINARY_SIGN,
    "noisy": NOISY,
    "binary noisy": BINARY_NOISY,
    "sparse noisy": SPARSE_NOISY,
}


def curve_of(model: MultiIndex):
    """The solver of a model of one projection; its points by their letters."""
    return scalars(model.solver())


every_model = pytest.mark.parametrize("model", EVERY.values(), ids=EVERY.keys())

TOLERANCE = 1e-8
"""A fixed point counts as converged when it solves log alpha(qhat) = log alpha to this."""


def scaled_residual(model: MultiIndex, alpha: float, information, overlap) -> float:
    """|q - overlap(alpha I(q))| / (tolerance q) with both functions evaluated by SciPy."""
    points = curve_of(model).uninformed(np.array([alpha]))
    q = float(points.q[0])
    assert points.status[0] == Status.CONVERGED and 0 < q < 1
    return abs(q - overlap(alpha * information(q))) / (TOLERANCE * q)


@pytest.mark.parametrize("alpha", [0.505, 0.6, 0.8, 1.0, 1.1, 1.128])
def test_scaled_residual_of_abs(alpha):
    assert scaled_residual(ABS, alpha, absolute_information, gaussian_overlap) < 30


@pytest.mark.sampled(3)
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 2.5, 10.0, 100.0])
def test_scaled_residual_of_sign(alpha):
    assert scaled_residual(SIGN, alpha, probit_information, gaussian_overlap) < 30


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0, 1.4, 1.49])
def test_scaled_residual_of_sign_with_binary_weights(alpha):
    assert scaled_residual(BINARY_SIGN, alpha, probit_information, rademacher_overlap) < 30


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 1.0, 3.0, 100.0])
def test_scaled_residual_of_linear(alpha):
    assert scaled_residual(NOISY, alpha, lambda q: linear_information(q, 0.3), gaussian_overlap) < 30


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.56, 0.6, 1.0])
def test_scaled_residual_of_linear_with_binary_weights(alpha):
    assert scaled_residual(BINARY_NOISY, alpha, lambda q: linear_information(q, 0.05), rademacher_overlap) < 30


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5, 2.0])
def test_scaled_residual_of_linear_with_sparse_weights(alpha):
    found = scaled_residual(
        SPARSE_NOISY, alpha, lambda q: linear_information(q, 0.01), lambda qhat: gauss_bernoulli_overlap(qhat, 0.2)
    )
    assert found < 30


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
def test_linear_closed_form(noise):
    evolution = curve_of(MultiIndex("z", noise=noise))
    alpha = np.array([0.01, 0.3, 0.999, 1.0, 1.001, 2.0, 50.0, 1e4])
    points = evolution.uninformed(alpha)
    V = np.array([linear_error(a, noise) for a in alpha])
    np.testing.assert_allclose(points.V, V, rtol=1e-9)
    np.testing.assert_allclose(points.q / (1 - points.q), alpha / (1 - points.q + noise), rtol=1e-7)
    np.testing.assert_allclose(np.exp(evolution.log_gain(np.log(points.qhat))), alpha, rtol=1e-8)


def test_noiseless_linear_learns_alpha_and_then_everything():
    points = curve_of(CLEAN).uninformed(np.array([0.0, 0.2, 0.999, 1.0, 1.001, 5.0]))
    np.testing.assert_allclose(points.q, [0, 0.2, 0.999, 1, 1, 1], atol=1e-9)
    np.testing.assert_allclose(points.V, [1, 0.8, 0.001, 0, 0, 0], atol=1e-9)
    assert np.all(points.status == Status.CONVERGED)


@every_model
def test_free_entropy_is_stationary_at_the_fixed_point(model):
    evolution = curve_of(model)
    alpha = np.array([0.55, 0.9, 1.1])
    qhat = evolution.uninformed(alpha).qhat

    def slope(factor: float) -> np.ndarray:
        """d Phi / d log qhat at `factor` times the fixed point, by a five-point rule."""
        h = 2e-3
        shift = np.array([-2.0, -1.0, 1.0, 2.0])
        values = evolution.free_entropy(factor * qhat[:, None] * np.exp(h * shift), alpha[:, None])
        return values @ np.array([1.0, -8.0, 8.0, -1.0]) / (12 * h)

    around = np.abs(slope(0.9)) + np.abs(slope(1.1))
    assert np.all(np.abs(slope(1.0)) < 3e-5 * around + 1e-11)
    # A stable fixed point is a maximum along qhat.
    assert np.all(slope(0.9) > 0) and np.all(slope(1.1) < 0)


@every_model
def test_free_entropy_grows_with_alpha_as_the_entropy_of_a_label_falls(model):
    """The envelope theorem: d Phi / d alpha = Psi(V) - Psi(1) at the optimum."""
    evolution = curve_of(model)
    alpha, h = 0.9, 1e-4
    below, here, above = (evolution.optimal(np.array([a])) for a in (alpha - h, alpha, alpha + h))
    expected = np.diff(evolution.table.channel.information(np.array([1.0, here.V[0]])[:, None, None]).entropy)
    np.testing.assert_allclose((above.free_entropy - below.free_entropy) / (2 * h), expected, rtol=1e-6)
    assert here.free_entropy[0] > 0


@pytest.mark.parametrize("noise", [1e-12, 1e-6])
def test_free_entropy_of_linear_labels_where_almost_all_is_known(noise):
    alpha = np.array([0.5, 0.9, 1.0, 1.5])
    V = np.array([linear_error(one, noise) for one in alpha])
    qhat = alpha / (noise + V)
    exact = V * qhat / 2 - np.log1p(qhat) / 2 - alpha * np.log((noise + V) / (noise + 1)) / 2
    found = MultiIndex("z", noise=noise).solver().uninformed(alpha)
    np.testing.assert_allclose(found.free_entropy, exact, rtol=1e-5)  # what interpolation leaves in the table of Psi


def test_free_entropy_of_linear_labels_without_noise_at_its_transition():
    for points in (CLEAN.solver().uninformed, CLEAN.solver().optimal):
        assert points(np.array([1.0])).free_entropy == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("model", [ABS, SIGN, NOISY], ids=["abs", "sign", "noisy"])
def test_information_is_twice_the_slope_of_the_entropy(model):
    """dPsi/dq = I/2, along the table in t = log(q / V), dq/dt = q V."""
    evolution = curve_of(model)
    t = np.linspace(-2.9, 5.9, 19)  # off the edges of the table's panels
    q, V = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))
    slope = (evolution.table.entropy(t + 1e-4) - evolution.table.entropy(t - 1e-4)) / 2e-4
    np.testing.assert_allclose(slope, np.exp(evolution.table.log_information(t)) * q * V / 2, rtol=2e-5)


@pytest.mark.parametrize("model", [ABS, pytest.param(SIGN, marks=pytest.mark.slow)], ids=["abs", "sign"])
def test_table_agrees_with_doubled_nodes_within_its_error(model):
    """Off the nodes of the table, and with a finer rule than the one it was made with."""
    evolution = curve_of(model)
    t = np.array([-9.3, -5.1, -1.7, 0.3, 1.9, 3.3, 5.5, 7.7])
    V = 1 / (1 + np.exp(t))
    finer = evolution.table.channel.information(V[:, None, None], fineness=2.0).information[:, 0, 0]
    table = np.exp(evolution.table.log_information(t))
    assert np.all(np.abs(table / finer - 1) < evolution.table.relative_error(t))
    assert np.all(evolution.table.relative_error(t) < 2e-4)


def test_table_continues_past_its_ends():
    """V -> 0: I of |z| is 1/V. q -> 0: I is 2 q."""
    table = curve_of(ABS).table
    t = np.array([26.0, 40.0])
    np.testing.assert_allclose(table.log_information(t), t, atol=1e-3)
    t = np.array([-14.0, -20.0])
    np.testing.assert_allclose(table.log_information(t), t + np.log(2), atol=1e-3)


def path(model: MultiIndex, alpha: float, q: float, steps: int) -> np.ndarray:
    """The overlaps of the iteration, step by step."""
    states = model.evolution().path(Overlap.bayes(np.array([[1 - q]])), alpha, steps)
    return np.array([float(state.q[0, 0]) for state in states])


def test_iteration_climbs_to_the_fixed_point():
    found = path(SIGN, 1.0, 0.0, 40)
    # The first step from nothing: qhat = alpha E[E[z|y]^2] = 2 alpha / pi.
    assert found[1] == pytest.approx(gaussian_overlap(2 / np.pi), abs=1e-9)
    assert np.all(np.diff(found) > -1e-12)
    assert found[-1] == pytest.approx(curve_of(SIGN).uninformed(np.array([1.0])).q[0], abs=1e-6)


def test_iteration_stays_where_nothing_can_be_learned():
    assert np.all(np.abs(path(ABS, 0.8, 0.0, 3)) < 1e-15)
    assert path(ABS, 0.4, 0.01, 30)[-1] < 1e-4


@every_model
def test_optimum_is_never_worse_than_the_iteration(model):
    evolution = curve_of(model)
    alpha = np.concatenate([[0.0, 1e-6], np.linspace(0.02, 2.5, 125)])
    amp, bayes = evolution.uninformed(alpha), evolution.optimal(alpha)
    assert np.all(bayes.q >= amp.q - 1e-9) and np.all(bayes.free_entropy >= amp.free_entropy - 1e-9)
    for points in (amp, bayes):
        assert np.all((points.q >= 0) & (points.q <= 1)) and np.all(np.diff(points.q) >= -1e-12)
        np.testing.assert_allclose(points.V, 1 - points.q, atol=1e-15)
        assert np.all(points.residual < TOLERANCE) and np.all(points.uncertainty >= 0)
    assert amp.q[0] == bayes.q[0] == 0 and amp.free_entropy[0] == 0


def test_free_entropy_of_binary_sign_by_quadrature():
    """Both branches from their definitions; they cross at 1.24468."""
    evolution = curve_of(BINARY_SIGN)

    def branches(alpha: float) -> tuple[float, float]:
        point = evolution.uninformed(np.array([alpha]))
        q, qhat = float(point.q[0]), float(point.qhat[0])
        learned = rademacher_potential(qhat) - q * qhat / 2 + alpha * (probit_entropy(q) - probit_entropy(0.0))
        assert float(point.free_entropy[0]) == pytest.approx(learned, abs=1e-7)
        perfect = -np.log(2) - alpha * probit_entropy(0.0)
        assert evolution.perfect_free_entropy(np.array([alpha]))[0] == pytest.approx(perfect, abs=1e-9)
        return learned, perfect

    below, above = branches(1.2446), branches(1.2448)
    assert below[0] > below[1] and above[0] < above[1]


@pytest.mark.parametrize("model", [*EVERY.values(), MultiIndex("abs(z)", noise=0.05, prior="rademacher")])
def test_the_optimal_free_entropy_is_convex_in_alpha(model):
    """It is the largest of functions that are linear in alpha: a branch preferred too early or too late breaks that."""
    alpha = np.linspace(0.02, 4.0, 200)
    points = curve_of(model).optimal(alpha)
    assert (points.status == Status.CONVERGED).all()
    known = np.isfinite(points.free_entropy)
    value = points.free_entropy[known]
    assert (value > -1e-7).all() and (np.diff(points.q) > -1e-9).all()
    assert (np.diff(value, 2) > -1e-6).all()


def test_a_tie_between_branches_is_not_called_converged():
    evolution = curve_of(BINARY_SIGN)
    low, high = 1.2446, 1.2448
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if evolution.optimal(np.array([middle])).q[0] == 1 else (middle, high)
    statuses = evolution.optimal(np.array([low - 1e-6, low, high + 1e-6])).status
    assert list(statuses) == [Status.CONVERGED, Status.AMBIGUOUS_BRANCH, Status.CONVERGED]


@pytest.mark.parametrize(
    "model, expected",
    [(ABS, 1.0), (CLEAN, 1.0), (SPARSE_CLEAN, 0.5), (SIGN, np.inf), (BINARY_SIGN, 0.0), (NOISY, np.inf)],
    ids=["abs", "clean", "sparse clean", "sign", "binary sign", "noisy"],
)
def test_where_perfect_recovery_becomes_stable(model, expected):
    assert curve_of(model).gain_perfect == expected


@pytest.mark.parametrize("noise", [0.5, 0.1])
def test_binary_weights_of_noisy_signs_are_known_once_labels_tell_one_bit_each(noise):
    """At q = 1 the free entropy is alpha I(y; z) - log 2, I(y; z) the capacity of a binary label in Gaussian noise."""

    def told(y):
        return np.logaddexp(0, -2 * y / noise) * np.exp(-((y - 1) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)

    capacity = np.log(2) - quad(told, 1 - 12 * noise**0.5, 1 + 12 * noise**0.5, epsabs=1e-12)[0]
    solver = curve_of(MultiIndex("sign(z)", noise=noise, prior="rademacher"))
    alphas = np.array([1.2, 2.0, 5.0])
    best, found = solver.optimal(alphas), solver.uninformed(alphas)
    exact = alphas * capacity - np.log(2)
    np.testing.assert_array_equal(best.q == 1, exact > np.where(found.q == 1, -np.inf, found.free_entropy))
    np.testing.assert_allclose(best.free_entropy[best.q == 1], exact[best.q == 1], atol=1e-5)
    threshold = float(solver.thresholds()["information_theoretic"])
    at = solver.uninformed(np.array([threshold])).free_entropy[0]
    assert threshold * capacity - np.log(2) == pytest.approx(at, abs=1e-5)


@pytest.mark.parametrize(
    "channel",
    [MultiIndex("z", noise=0.05).channel, Probit(0.5), Logit(2.0), MultiIndex("abs(z)", noise=0.1).channel],
    ids=["linear", "probit", "logit", "abs"],
)
def test_labels_that_stay_random_keep_their_entropy(channel):
    """Psi at V -> 0 is E[log P(y|z)], here by drawn labels and the evidence at a variance of nothing."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4000, 1))
    log_Z = channel.posterior(channel.observe(channel.sample(z, rng)), z, np.array([[1e-10]])).log_Z
    scatter = np.std(log_Z) / np.sqrt(len(z))
    assert channel.settled_entropy == pytest.approx(np.mean(log_Z), abs=4 * scatter)


def test_many_alphas_at_once_equal_one_at_a_time():
    alpha = np.linspace(0.0, 1.6, 33)
    evolutions = curve_of(ABS), curve_of(BINARY_NOISY)
    for solve in (solve for evolution in evolutions for solve in (evolution.uninformed, evolution.optimal)):
        together = solve(alpha)
        alone = [solve(np.array([a])) for a in alpha]
        for field in ("q", "V", "qhat", "free_entropy", "status", "uncertainty"):
            one_by_one = [getattr(p, field)[0] for p in alone]
            np.testing.assert_allclose(getattr(together, field), one_by_one, rtol=1e-9, atol=1e-11, err_msg=field)


def test_a_point_off_the_curve_is_not_converged(monkeypatch):
    """Not even by a ten-millionth: the threshold between converged and not is at 1e-8."""
    solver = SIGN.solver()
    crossing = type(solver)._crossing
    gain = np.array([1.5, 3.0])
    assert np.all(solver.uninformed(gain).status == Status.CONVERGED)
    monkeypatch.setattr(type(solver), "_crossing", lambda *args: crossing(*args) * (1 + 1e-6))
    for points in (solver.uninformed(gain), solver.optimal(gain)):
        assert np.all(points.status == Status.MAX_STEPS) and np.all(points.residual > 1e-8)


@pytest.mark.parametrize("gain", [0.9, 1.5, 4.0])
@pytest.mark.parametrize("model", [SIGN, pytest.param(MultiIndex("abs(z)", noise=0.1), marks=pytest.mark.slow)])
def test_the_uncertainty_of_the_overlap_is_what_an_error_of_the_information_does_to_it(model, gain, monkeypatch):
    """An information that is larger by its own error has the fixed point of so many more samples."""
    solver = model.solver()
    monkeypatch.setattr(type(solver.table), "relative_error", lambda self, t: np.full(np.shape(t), 1e-4))
    here, there = (solver.uninformed(np.array([gain * factor])) for factor in (1.0, 1 + 1e-4))
    moved = there.overlap[0, 0, 0] - here.overlap[0, 0, 0]
    assert here.uncertainty[0] == pytest.approx(moved, rel=1e-2)
