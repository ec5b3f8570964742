"""A model and a learner as a user would write them, in one file outside the package: ridge regression.

Labels $y = X w^* + \\sqrt\\Delta \\xi$ with $X$ of $n \\times d$ entries N(0, 1/d) and $|w^*|^2 = d$; the estimate is
$\\hat w = (X^T X + \\lambda)^{-1} X^T y$. With $m(\\lambda)$ the limit of $\\mathrm{tr}(X^T X + \\lambda)^{-1}/d$, the
positive root of $\\lambda m^2 + (\\lambda + \\alpha - 1) m - 1 = 0$ (Marchenko and Pastur), the error is
$|\\hat w - w^*|^2/d = -\\lambda^2 m' + \\Delta (m + \\lambda m')$, smallest at $\\lambda = \\Delta$.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import solvable as sv


class Regression(sv.Model):
    """Linear regression with Gaussian inputs."""

    noise: float = 0.25

    definitions = {
        "overlap": "cosine of the angle between estimate and truth",
        "estimation_error": "|w_hat - w*|^2 / d",
    }

    def sample(self, rng, d, alpha):
        n = max(1, round(alpha * d))
        truth = rng.standard_normal(d)
        truth *= np.sqrt(d) / np.linalg.norm(truth)
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        return sv.Data(X, X @ truth + np.sqrt(self.noise) * rng.standard_normal(n), truth[:, None])


class Ridge(sv.Learner):
    """Least squares with a squared penalty."""

    penalty: float = 1.0
    variant: str = eqx.field(default="plain", static=True)


class RidgeByHand(Ridge):
    """The same, with a theory that works one point at a time and that JAX cannot trace."""


class Guess(sv.Learner):
    """No theory and no algorithm."""


class Mean(sv.Learner):
    """An algorithm without a theory."""


def ridge(alpha, noise, penalty, numpy):
    linear = penalty + alpha - 1
    m = (numpy.sqrt(linear**2 + 4 * penalty) - linear) / (2 * penalty)
    slope = -(m**2 + m) / (2 * penalty * m + linear)
    error = -(penalty**2) * slope + noise * (m + penalty * slope)
    raw = 1 - penalty * m
    return {"overlap": raw / numpy.sqrt(error - 1 + 2 * raw), "estimation_error": error}, m


@sv.theory(Regression, Ridge)
def _(model, learner, alpha):
    metrics, m = ridge(alpha, model.noise, learner.penalty, jnp)
    return sv.Prediction(
        metrics, {"resolvent": m}, uncertainty={name: 1e-15 * value for name, value in metrics.items()}
    )


@sv.theory(Regression, RidgeByHand, vectorized=False)
def _(model, learner, alpha):
    assert isinstance(alpha, float)
    metrics, m = ridge(alpha, float(model.noise), float(learner.penalty), np)
    return sv.Prediction(metrics, {"resolvent": m})


@sv.simulation(Regression, Ridge)
def _(model, learner, data, rng):
    X, y, truth = data
    gram = X.T @ X + learner.penalty * np.eye(X.shape[1])
    return score(np.linalg.solve(gram, X.T @ y), truth[:, 0])


@sv.simulation(Regression, Mean)
def _(model, learner, data, rng):
    return score(data.X.T @ data.y, data.truth[:, 0])


def score(estimate, truth):
    overlap = estimate @ truth / np.linalg.norm(estimate) / np.linalg.norm(truth)
    return sv.Outcome({"overlap": overlap, "estimation_error": np.mean((estimate - truth) ** 2)}, estimate=estimate)


@sv.thresholds_of(Regression)
def _(model):
    return {"interpolation": 1.0, "never": float("inf")}
