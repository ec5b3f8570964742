"""The message passing loop against state evolution, closed forms, and its own honesty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import erf, log_ndtr, ndtr

from solvable.core.status import Status
from solvable.engine.amp import _Stillness, amp, uninformed_start
from solvable.engine.operators import Dense
from solvable.engine.sides import OutputStep
from solvable.engine.signals.separable import gaussian_denoiser, precision_from_norm
from solvable.numerics.symmetric import eigh

_X_NODES = np.linspace(-8, 8, 1601)
_X_WEIGHTS = np.exp(-(_X_NODES**2) / 2) / np.exp(-(_X_NODES**2) / 2).sum()


def differentiated(g_out: Callable) -> Callable:
    """An output denoiser from `g_out(Omega, V)` alone: the mean derivative by central differences, 2 p more calls.

    The step scales with the smallest posterior width, $10^{-4} \\lambda_{min}(V)^{1/2}$, since g varies on that scale.
    """

    def denoise(Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        p = Omega.shape[1]
        h = 1e-4 * np.sqrt(np.linalg.eigvalsh(V)[0])
        columns = [(g_out(Omega + h * e, V) - g_out(Omega - h * e, V)).mean(axis=0) / (2 * h) for e in np.eye(p)]
        D = np.stack(columns, axis=1)
        return OutputStep(g_out(Omega, V), -0.5 * (D + D.T))

    return denoise


def abs_output(y):
    def denoise(Omega, V):
        omega, v = Omega[:, 0], V[0, 0]
        mean = y * np.tanh(y * omega / v)
        minus_derivative = 1 / v - np.mean(y**2 - mean**2) / v**2
        exponents = np.stack([-((y - omega) ** 2), -((y + omega) ** 2)]) / (2 * v)
        log_Z = np.logaddexp(*exponents) - np.log(2 * np.pi * v) / 2
        return OutputStep(((mean - omega) / v)[:, None], np.array([[minus_derivative]]), log_Z=lambda: log_Z)

    return denoise


def sign_output(y):
    def denoise(Omega, V):
        a, v = y * Omega[:, 0] / np.sqrt(V[0, 0]), V[0, 0]
        log_Z = log_ndtr(a)
        hazard = np.exp(-(a**2) / 2 - log_Z) / np.sqrt(2 * np.pi)
        minus_derivative = np.mean(hazard * (hazard + a)) / v
        return OutputStep((y * hazard / np.sqrt(v))[:, None], np.array([[minus_derivative]]), log_Z=lambda: log_Z)

    return denoise


def linear_output(Y, noise):
    """Labels Y (n, p) = Z + noise: one noisy label for each direction."""

    def denoise(Omega, V):
        p = V.shape[0]
        K = np.linalg.inv(V + noise * np.eye(p))
        R = Y - Omega
        log_Z = -0.5 * np.sum((R @ K) * R, 1) + 0.5 * np.linalg.slogdet(K / (2 * np.pi))[1]
        return OutputStep(R @ K, K, log_Z=lambda: log_Z)

    return denoise


def instance(rng, d, alpha, p=1):
    W = rng.standard_normal((d, p))
    W = W @ np.linalg.inv(np.linalg.cholesky(W.T @ W / d)).T
    X = rng.standard_normal((round(alpha * d), d)) / np.sqrt(d)
    return X, W, X @ W


def informed(rng, W, q):
    return q * W + np.sqrt(q * (1 - q)) * rng.standard_normal(W.shape)


def sign_information(q):
    """E[g^2] of sign(z) at overlap q, by the trapezoid rule over omega."""
    V = 1 - q
    a = np.sqrt(q / V) * _X_NODES
    return np.sum(_X_WEIGHTS * np.exp(-(a**2) - log_ndtr(a) - log_ndtr(-a))) / (2 * np.pi * V)


def sign_fixed_point(alpha):
    q = 0.0
    for _ in range(500):
        q = (qhat := alpha * sign_information(q)) / (1 + qhat)
    return q


def overlaps(output, label, d, alpha, seeds, **options):
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, W, Z = instance(rng, d, alpha)
        report = amp(Dense(X), output(label(Z[:, 0])), gaussian_denoiser, uninformed_start(rng, d, 1), rng, **options)
        found.append((np.vdot(report.estimate, W) / d, np.mean(report.estimate**2), report.converged))
    return np.array(found).T


@pytest.mark.sampled(1)
@pytest.mark.parametrize("alpha, expected", [(1.0, 0.4862636), (2.5, 0.7956882)])
def test_sign_reaches_the_state_evolution_fixed_point(alpha, expected):
    assert sign_fixed_point(alpha) == pytest.approx(expected, abs=2e-7)
    m, q, converged = overlaps(sign_output, np.sign, 500, alpha, 12)
    assert converged.all()
    # The finite-size deficit is about 0.003 at d = 500; four standard errors are about 0.012.
    for value in (m, q):
        assert abs(value.mean() - expected) < 4 * value.std(ddof=1) / np.sqrt(12) + 0.003
    # Nishimori: the overlap with the truth is the self-overlap, up to fluctuations of order 1/sqrt(d).
    assert np.max(np.abs(m - q)) < 3 / np.sqrt(500)


def test_abs_is_recovered_perfectly_above_its_algorithmic_threshold():
    m, q, converged = overlaps(abs_output, np.abs, 1000, 1.25, 3)
    assert converged.all()
    assert np.all(np.abs(m) > 1 - 1e-5)


def test_nothing_is_learned_below_the_weak_threshold_and_the_run_says_converged():
    m, q, converged = overlaps(abs_output, np.abs, 400, 0.25, 3)
    assert converged.all()
    assert np.all(np.abs(m) < 0.01) and np.all(q < 0.01)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("start_overlap", [0.05, 0.6])
def test_undamped_iteration_follows_state_evolution_step_by_step(start_overlap):
    alpha, steps, seeds = 2.0, 6, 10
    expected = [start_overlap]
    for _ in range(steps):
        qhat = alpha * sign_information(expected[-1])
        expected.append(qhat / (1 + qhat))
    spread = {}
    for d in (150, 1200):
        measured = np.empty((seeds, steps + 1, 2))
        for seed in range(seeds):
            rng = np.random.default_rng(100 + seed)
            X, W, Z = instance(rng, d, alpha)

            def record(t, estimate, W=W, d=d, row=measured[seed]):
                row[t] = np.vdot(W, estimate) / d, np.mean(estimate**2)

            start = informed(rng, W, start_overlap)
            options = {"damping": 1.0, "max_steps": steps, "tolerance": 0.0, "callback": record}
            amp(Dense(X), sign_output(np.sign(Z[:, 0])), gaussian_denoiser, start, rng, **options)
        deviation = measured - np.array(expected)[:, None]
        error = measured.std(0, ddof=1) / np.sqrt(seeds)
        assert np.all(np.abs(deviation.mean(0)) < 4 * error + 1 / d)
        spread[d] = np.sqrt(np.mean(deviation**2))
    # Eight times the dimension should cut the deviation by sqrt(8).
    assert spread[1200] < 0.55 * spread[150]


@pytest.mark.parametrize("p", [1, 2])
def test_linear_gaussian_estimate_is_the_ridge_posterior_mean(p):
    rng = np.random.default_rng(3)
    d, noise = 600, 0.3
    X, W, Z = instance(rng, d, 1.5, p)
    Y = Z + np.sqrt(noise) * rng.standard_normal(Z.shape)
    start = uninformed_start(rng, d, p)
    report = amp(Dense(X), linear_output(Y, noise), gaussian_denoiser, start, rng, tolerance=1e-8)
    exact = np.linalg.solve(X.T @ X + noise * np.eye(d), X.T @ Y)
    assert report.converged and report.consistent
    # The noise levels are measured, so the effective ridge differs from 0.3 by a few percent.
    assert np.linalg.norm(report.estimate - exact) / np.linalg.norm(exact) < 0.03
    assert np.allclose(report.V, np.eye(p) - report.estimate.T @ report.estimate / d, atol=1e-6)


def test_rotating_the_directions_rotates_the_run():
    d, p, noise = 200, 2, 0.2
    rng = np.random.default_rng(5)
    X, W, Z = instance(rng, d, 1.2, p)
    Y = Z + np.sqrt(noise) * rng.standard_normal(Z.shape)
    start = uninformed_start(rng, d, p)
    c, s = np.cos(0.7), np.sin(0.7)
    U = np.array([[c, -s], [s, c]])
    plain = amp(Dense(X), linear_output(Y, noise), gaussian_denoiser, start, rng)
    rotated = amp(Dense(X), linear_output(Y @ U, noise), gaussian_denoiser, start @ U, rng)
    assert plain.iterations == rotated.iterations
    np.testing.assert_allclose(rotated.estimate, plain.estimate @ U, atol=1e-10)
    assert rotated.free_entropy == pytest.approx(plain.free_entropy, abs=1e-9)


_T, _T_WEIGHTS = (a / 2 for a in np.polynomial.legendre.leggauss(24))


def parity_g(y):
    """g of y = sign(z1 z2) for any V, with the bivariate normal integral by Gauss-Legendre quadrature."""

    def g_out(Omega, V):
        s = np.sqrt(np.diag(V))
        a, b = (Omega / s).T
        rho = np.clip(V[0, 1] / (s[0] * s[1]), -0.99, 0.99)
        t = np.arcsin(rho) * (_T + 0.5)
        bend = np.exp(-(a[:, None] ** 2 + b[:, None] ** 2 - 2 * np.outer(a * b, np.sin(t))) / (2 * np.cos(t) ** 2))
        joint = ndtr(a) * ndtr(b) + np.arcsin(rho) / (2 * np.pi) * bend @ _T_WEIGHTS
        plus = 2 * joint + 1 - ndtr(a) - ndtr(b)
        root = np.sqrt(2 * (1 - rho**2))
        slope = np.stack([_density(a) * erf((b - rho * a) / root), _density(b) * erf((a - rho * b) / root)], 1) / s
        Z = np.where(y > 0, plus, 1 - plus)
        return y[:, None] * slope / np.maximum(Z, 1e-12)[:, None]

    return g_out


def _density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def test_two_directions_of_a_parity_are_learned_together():
    d, alpha = 300, 5.0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, W, Z = instance(rng, d, alpha, 2)
        output = differentiated(parity_g(np.sign(Z[:, 0] * Z[:, 1])))
        report = amp(Dense(X), output, gaussian_denoiser, uninformed_start(rng, d, 2), rng)
        M = W.T @ report.estimate / d
        aligned = max(abs(M[0, 0] + M[1, 1]), abs(M[0, 1] + M[1, 0])) / 2
        assert report.converged and report.free_entropy is None
        assert aligned == pytest.approx(0.8235, abs=0.06)
        np.testing.assert_allclose(report.residual_ratios, 1, atol=0.35)


def test_bethe_free_entropy_is_the_replica_value():
    d, alpha, seeds = 600, 1.5, 8
    q = sign_fixed_point(alpha)
    a = np.sqrt(q / (1 - q)) * _X_NODES
    mean_log_Z = np.sum(_X_WEIGHTS * 2 * ndtr(a) * log_ndtr(a))
    expected = q / 2 + np.log(1 - q) / 2 + alpha * mean_log_Z
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, W, Z = instance(rng, d, alpha)
        report = amp(Dense(X), sign_output(np.sign(Z[:, 0])), gaussian_denoiser, uninformed_start(rng, d, 1), rng)
        found.append((report.free_entropy, report.log_likelihood))
    entropy, likelihood = np.array(found).T
    assert abs(entropy.mean() - expected) < 4 * entropy.std(ddof=1) / np.sqrt(seeds) + 1 / d
    assert abs(likelihood.mean() - mean_log_Z) < 4 * likelihood.std(ddof=1) / np.sqrt(seeds) + 1 / d


def test_precision_solves_its_equation():
    B = np.random.default_rng(0).standard_normal((50, 3)) @ np.diag([3.0, 1.0, 0.01])
    a, u = precision_from_norm(B)
    A = (u * a) @ u.T
    np.testing.assert_allclose(A @ A + A, B.T @ B / 50, atol=1e-12)
    values, vectors = eigh(np.array([[2.5]]))
    assert values[0] == 2.5 and vectors[0, 0] == 1.0


def test_gaussian_log_partition_is_the_integral():
    B = np.array([[0.7], [-1.3]])
    step = gaussian_denoiser(B, np.zeros((B.shape[1], B.shape[1])))
    assert step.log_partition is not None
    w, width = np.linspace(-12, 12, 24001, retstep=True)
    A = step.precision[0, 0]
    integrals = [np.log(np.sum(_density(w) * np.exp(b * w - A * w**2 / 2)) * width) for b in B[:, 0]]
    assert step.log_partition() == pytest.approx(sum(integrals), abs=1e-9)


def test_memory_layout_does_not_matter():
    rng = np.random.default_rng(0)
    X, w, g = rng.standard_normal((30, 20)), rng.standard_normal((20, 2)), rng.standard_normal((30, 2))
    for order in ("C", "F"):
        operator = Dense(np.array(X, order=order))
        np.testing.assert_allclose(operator.forward(w), X @ w)
        np.testing.assert_allclose(operator.adjoint(g), X.T @ g)


def _small_run(X=None, y=None, start=None, memory=None, **options):
    rng = np.random.default_rng(0)
    X0, W, Z = instance(rng, 60, 2.0)
    X = X0 if X is None else X(X0)
    y = np.sign(Z[:, 0]) if y is None else y(np.sign(Z[:, 0]))
    begin = uninformed_start(rng, 60, 1)
    begin = begin if start is None else start(begin)
    return amp(Dense(X), sign_output(y), gaussian_denoiser, begin, rng, memory=memory, **options)


def _with_nan(array):
    array = array.copy()
    array.flat[7] = np.nan
    return array


@pytest.mark.parametrize("where", ["X", "y", "start"])
def test_nan_is_never_marked_converged(where):
    report = _small_run(**{where: _with_nan})
    assert report.status == Status.NONFINITE
    assert not report.converged and not report.consistent
    assert report.free_entropy is None


def test_nan_in_the_memory_is_never_marked_converged():
    assert _small_run(memory=np.full((120, 1), np.nan)).status == Status.NONFINITE


def test_a_run_that_stops_early_says_so():
    report = _small_run(max_steps=3)
    assert report.status == Status.MAX_STEPS and not report.converged
    assert report.iterations == 3
    assert report.history.self_overlap.shape == (3, 1, 1) and report.history.change.shape == (3, 1)


def test_the_same_seed_gives_the_same_run():
    first, second = _small_run(), _small_run()
    assert first.converged
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_callback_sees_every_estimate():
    seen = []
    report = _small_run(max_steps=4, callback=lambda t, W: seen.append((t, W)))
    assert [t for t, _ in seen] == [0, 1, 2, 3, 4]
    assert seen[-1][1] is report.estimate


@pytest.mark.parametrize(
    "options, message",
    [
        ({"damping": 0.0}, r"damping = 0.0 is not allowed: damping must be in \(0, 1\]."),
        ({"max_steps": 0}, r"max_steps = 0 is not allowed: max_steps must be at least 1."),
        ({"start": lambda w: w[:, 0]}, r"start must be of shape \(60, p\)."),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        _small_run(**options)


def test_converged_and_consistent_are_two_facts():
    """A run cut short may agree with itself; one that reads its labels with the wrong noise stops, and does not."""
    rng = np.random.default_rng(3)
    X, _, Z = instance(rng, 400, 1.5)
    short = amp(
        Dense(X), sign_output(np.sign(Z[:, 0])), gaussian_denoiser, uninformed_start(rng, 400, 1), rng, max_steps=12
    )
    assert short.consistent and not short.converged
    Y = Z + 2.0 * rng.standard_normal(Z.shape)
    wrong = amp(Dense(X), linear_output(Y, 0.5), gaussian_denoiser, uninformed_start(rng, 400, 1), rng)
    assert wrong.converged and not wrong.consistent


def _still_after(uncertainty):
    """The step at which a run stops whose one direction trembles by 0.005, with 1 - q as given at each step."""
    stillness = _Stillness(1e-5, 1e-4, 1e-6, 60, 1)
    return next((t for t, v in enumerate(uncertainty) if stillness.reached([1 - v], [0.005], True)), None)


def test_a_nearly_recovered_direction_stops_where_it_no_longer_improves():
    t = np.arange(1, 1500)
    stop = _still_after(5 / t)
    # 5/t falls by less than a tenth in 60 steps from t = 660 on.
    assert stop is not None and 600 < stop < 720
    assert _still_after(0.02 * 0.99 ** t[:400]) is None
    assert _still_after(np.full(400, 0.1)) is None


def test_a_run_that_found_nothing_says_so():
    rng = np.random.default_rng(0)
    X, _, Z = instance(rng, 300, 0.25)
    report = amp(Dense(X), abs_output(np.abs(Z[:, 0])), gaussian_denoiser, uninformed_start(rng, 300, 1), rng)
    assert report.trivial and report.converged and report.consistent and not report.nearly_recovered
