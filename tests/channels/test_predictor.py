"""Predicting fresh labels: against the Mehler series, adaptive quadrature, closed forms and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm, gammaln, ndtr
from scipy.stats import norm

from solvable.channels import predictor as prediction
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

Q = np.array([0.0, 0.05, 0.3, 0.7, 0.95])


def shape(text):
    return landscape(Target(text))


def series(coefficients, q):
    """sum c_k^2 (1 - q^k): the variance of g that omega leaves, by Mehler's formula."""
    k = np.arange(len(coefficients))
    return np.sum(coefficients**2 * (1 - q ** np.maximum(k, 1)) * (k > 0))


@pytest.mark.parametrize(
    ("text", "coefficients"),
    [
        ("z", [0, 1]),
        ("he3(z)", [0, 0, 0, np.sqrt(6)]),
        ("he4(z)", [0, 0, 0, 0, np.sqrt(24)]),
        ("z**2", [1, 0, np.sqrt(2)]),
        ("z**3 + z", [0, 4, 0, np.sqrt(6)]),
    ],
)
def test_polynomials_follow_their_series(text, coefficients):
    found = prediction.generalization_error(shape(text), 1 - Q)
    assert np.allclose(found, [series(np.array(coefficients, float), q) for q in Q], rtol=1e-7)


def test_exponential_and_cosine_have_closed_forms():
    # Var[exp(a z)|omega] averages to exp(2 a^2) - exp(a^2 (1 + q)); cos(a z) to (1 + e^(-2 a^2))/2 - E[yhat^2].
    a = 0.7
    found = prediction.generalization_error(shape("exp(0.7*z)"), 1 - Q)
    assert np.allclose(found, np.exp(2 * a**2) - np.exp(a**2 * (1 + Q)), rtol=1e-7)
    a = 2.0
    found = prediction.generalization_error(shape("cos(2*z)"), 1 - Q)
    exact = (1 + np.exp(-2 * a**2)) / 2 - np.exp(-(a**2) * (1 - Q)) * (1 + np.exp(-2 * a**2 * Q)) / 2
    assert np.allclose(found, exact, rtol=1e-7)


def test_kinks_and_jumps_follow_the_series_with_its_tail():
    """abs and sign by their own coefficients from integration by parts; the rest of the series bounds the tail."""
    k = np.arange(1, 400)
    even = k[k % 2 == 0]
    # |z|: c_k = 2 phi(0) He_{k-2}(0) / sqrt(k!), k even, with He_{2m}(0)^2 = ((2m)! / (2^m m!))^2.
    m = (even - 2) / 2
    log_square = 2 * (gammaln(2 * m + 1) - m * np.log(2) - gammaln(m + 1)) - gammaln(even + 1)
    squares = 4 * norm.pdf(0) ** 2 * np.exp(log_square)
    found = prediction.generalization_error(shape("abs(z)"), 1 - Q)
    variance = 1 - 2 / np.pi
    for value, q in zip(found, Q, strict=True):
        assert value == pytest.approx(variance - np.sum(squares * q**even), abs=1e-8)
    # E[yhat^2] of the sign is the arcsine law.
    found = prediction.generalization_error(shape("sign(z)"), 1 - Q)
    assert np.allclose(found, 1 - 2 / np.pi * np.arcsin(Q), atol=1e-8)


def test_sign_is_classified_by_the_arc_cosine_law():
    q = np.array([1e-6, 0.05, 0.3, 0.7, 0.95, 0.9999])
    found = prediction.classification_error(shape("sign(z)"), 1 - q)
    assert np.allclose(found, np.arccos(np.sqrt(q)) / np.pi, rtol=1e-5)


@pytest.mark.parametrize("q", [0.3, 0.9])
def test_interval_against_monte_carlo(q):
    rng, size = np.random.default_rng(0), 400_000
    omega = np.sqrt(q) * rng.standard_normal(size)
    inside = np.abs(omega + np.sqrt(1 - q) * rng.standard_normal(size)) < 1
    s = np.sqrt(1 - q)
    p = norm.cdf((1 - omega) / s) - norm.cdf((-1 - omega) / s)
    squared, wrong = (inside - p) ** 2, (p > 0.5) != inside
    found = prediction.generalization_error(shape("abs(z) < 1"), np.array([1 - q]))[0]
    assert abs(found - squared.mean()) < 4 * squared.std() / np.sqrt(size)
    found = prediction.classification_error(shape("abs(z) < 1"), np.array([1 - q]))[0]
    assert abs(found - wrong.mean()) < 4 * wrong.std() / np.sqrt(size)


def test_interval_against_adaptive_quadrature():
    for q in (0.3, 0.9, 0.999):
        s = np.sqrt(1 - q)

        def inside(omega, s=s):
            return ndtr((1 - omega) / s) - ndtr((-1 - omega) / s)

        reach = 8 * np.sqrt(q)
        ends = [-reach, *(e for e in (-1 - 8 * s, -1, -1 + 8 * s, 0, 1 - 8 * s, 1, 1 + 8 * s) if abs(e) < reach), reach]
        ends = sorted(ends)

        def average(f, q=q, ends=ends):
            parts = zip(ends[:-1], ends[1:], strict=True)
            scale = np.sqrt(2 * np.pi * q)
            return sum(quad(lambda w: f(w) * np.exp(-w * w / (2 * q)) / scale, a, b, limit=200)[0] for a, b in parts)

        V = np.array([1 - q])
        squared = average(lambda w, p=inside: p(w) * (1 - p(w)))
        wrong = average(lambda w, p=inside: min(p(w), 1 - p(w)))
        assert prediction.generalization_error(shape("-1 < z < 1"), V)[0] == pytest.approx(squared, rel=1e-6)
        assert prediction.classification_error(shape("-1 < z < 1"), V)[0] == pytest.approx(wrong, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "breaks"), [("abs(z)", [0]), ("tanh(z)", []), ("min(abs(z), 1)", [-1, 0, 1]), ("z**2 + sign(z)", [0])]
)
@pytest.mark.parametrize("V", [1.0, 0.09, 1e-6])
def test_predictor_against_adaptive_quadrature(text, breaks, V):
    target, s = Target(text), np.sqrt(V)
    omega = np.array([-1.3, -0.02, 0.5, 1.01])
    found = prediction.predict(shape(text), omega, V)
    for w, value in zip(omega, found, strict=True):
        ends = [w - 8 * s, *(b for b in breaks if abs(b - w) < 8 * s), w + 8 * s]
        exact = sum(
            quad(lambda z, w=w: float(target.numpy(np.array([z]))) * norm.pdf(z, w, s), a, b, epsabs=1e-12, limit=200)[
                0
            ]
            for a, b in zip(ends[:-1], ends[1:], strict=True)
        )
        assert value == pytest.approx(exact, abs=1e-7)


def test_predictor_of_a_steep_sigmoid():
    found = prediction.predict(shape("tanh(5*z)"), np.array([-1.3]), 1.0)[0]
    exact = quad(lambda z: np.tanh(5 * z) * norm.pdf(z, -1.3), -10, 8, points=[-0.5, 0, 0.5], epsabs=1e-12, limit=200)[
        0
    ]
    assert found == pytest.approx(exact, abs=1e-6)


def test_a_poles_singularity_is_integrated():
    # E log|z| at omega = 0, V = 1.
    found = prediction.predict(shape("log(abs(z))"), np.array([0.0]), 1.0)[0]
    assert found == pytest.approx(-(np.euler_gamma + np.log(2)) / 2, abs=1e-5)


def test_limits_of_knowing_nothing_and_everything():
    V = np.array([1.0, 1e-10, 0.0])
    found = prediction.generalization_error(shape("abs(z)"), V)
    assert found[0] == pytest.approx(1 - 2 / np.pi, rel=1e-8)
    assert 0 < found[1] < 2e-10 and found[2] == 0
    found = prediction.classification_error(shape("-1 < z < 1"), V)
    assert found[0] == pytest.approx(2 * norm.sf(1), rel=1e-9)
    assert 0 < found[1] < 1e-4 and found[2] == 0


def test_class_probabilities_and_classes():
    omega, V = np.array([-3.0, -0.9, 0.0, 5.0]), 0.25
    probabilities = prediction.class_probabilities(shape("sign(z)*(abs(z) > 1)"), omega, V)
    exact = np.stack(
        [
            norm.cdf((-1 - omega) / 0.5),
            norm.cdf((1 - omega) / 0.5) - norm.cdf((-1 - omega) / 0.5),
            norm.sf((1 - omega) / 0.5),
        ],
        -1,
    )
    assert np.allclose(probabilities, exact, atol=1e-12)
    assert prediction.classify(shape("sign(z)*(abs(z) > 1)"), omega, V).tolist() == [-1, 0, 0, 1]


@pytest.mark.parametrize("text", ["abs(z)", "relu(z)", "sign(sin(5*z))", "tanh(5*z)", "cos(2*z)"])
def test_errors_fall_with_what_is_known(text):
    V = 1 - np.array([0.0, 0.1, 0.3, 0.5, 0.8, 0.95, 0.999])
    found = prediction.generalization_error(shape(text), V)
    assert np.all(np.isfinite(found)) and np.all(np.diff(found) < 1e-12) and np.all(found > 0)


def test_hermite_rotation_of_a_predictor():
    """E[He_k(z) | omega] = q^(k/2) He_k(omega / sqrt q)."""
    omega, q = np.array([-0.7, 0.2, 1.1]), 0.6
    for k in (3, 4):
        found = prediction.predict(shape(f"he{k}(z)"), omega, 1 - q)
        assert np.allclose(found, q ** (k / 2) * eval_hermitenorm(k, omega / np.sqrt(q)), atol=1e-8)
