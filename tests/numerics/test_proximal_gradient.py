"""Accelerated proximal gradient: minima known otherwise, few products, and no wrong bound on the curvature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from solvable.numerics.proximal_gradient import proximal_gradient

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 25)) @ np.diag(np.linspace(1.0, 3.0, 25))
Y = X @ np.where(np.arange(25) < 5, 1.0, 0.0) + 0.3 * RNG.standard_normal(40)
L = float(np.linalg.norm(X, 2) ** 2)


def soft(v, L, strength=2.0):
    return np.sign(v) * np.maximum(np.abs(v) - strength / L, 0)


def squares(prox=soft, linear=True, L=L, calls=None):
    """The iterates for |y - X w|^2 / 2 with a penalty."""
    calls = [] if calls is None else calls

    def forward(w):
        calls.append("forward")
        return X @ w

    def gradient(z):
        calls.append("gradient")
        return X.T @ (z - Y)

    return proximal_gradient(
        forward, gradient, prox, lambda a, b: np.sum((a - b) ** 2) / 2, np.zeros(25), L, linear=linear
    )


def until(iterates, change=1e-13, most=5000):
    for count, found in enumerate(itertools.islice(iterates, most), 1):
        if found.change <= change:
            return found, count
    raise AssertionError("no convergence")


@pytest.mark.parametrize("linear", [True, False])
def test_lasso_agrees_with_scikit_learn(linear):
    expected = Lasso(alpha=2.0 / 40, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, Y).coef_
    calls = []
    found, count = until(squares(linear=linear, calls=calls))
    np.testing.assert_allclose(found.x, expected, atol=1e-9)
    np.testing.assert_allclose(found.image, X @ found.x, atol=1e-11)
    assert calls.count("forward") == count + 1 and calls.count("gradient") <= count + 1
    if linear:
        np.testing.assert_allclose(found.gradient, X.T @ (X @ found.x - Y), atol=1e-9)
    else:
        assert found.gradient is None


def test_momentum_and_restarts_make_it_fast():
    """The square root of the condition number counts, where plain steps need some ten times as many."""
    found, count = until(squares(prox=lambda v, L: v), 1e-11)
    np.testing.assert_allclose(found.x, np.linalg.lstsq(X, Y)[0], atol=1e-8)
    w, plain = np.zeros(25), 0
    while np.linalg.norm(X.T @ (X @ w - Y)) > 1e-11 * L:
        w, plain = w - X.T @ (X @ w - Y) / L, plain + 1
    assert count < plain / 5


def test_a_bound_that_is_too_small_is_raised():
    found, _ = until(squares(L=L / 50))
    assert L / 50 < found.L <= 1.06 * L
    np.testing.assert_allclose(found.x, until(squares())[0].x, atol=1e-9)


def test_a_loss_that_is_not_quadratic():
    """Logistic regression with a ridge: the gradient vanishes at the end."""
    labels = np.sign(Y)

    def gradient(z):
        return X.T @ (-labels / (1 + np.exp(labels * z)))

    def divergence(a, b):
        slope = -labels / (1 + np.exp(labels * b))
        return np.sum(np.logaddexp(0, -labels * a) - np.logaddexp(0, -labels * b) - slope * (a - b)) - 1e-13

    ridge = lambda v, L: v * L / (L + 0.5)  # noqa: E731
    found, _ = until(proximal_gradient(lambda w: X @ w, gradient, ridge, divergence, np.zeros(25), 1.0))
    np.testing.assert_allclose(gradient(X @ found.x) + 0.5 * found.x, 0, atol=1e-9)
    assert found.move < 1e-10
