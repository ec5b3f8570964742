"""Toys for axes and sizes of other kinds: a run that follows alpha, and a model of given n and p.

Online least squares takes one step $\\eta (y - x\\cdot w) x$ on each fresh sample, so that the error
$E = |w - w^*|^2/d$ follows $dE/d\\alpha = -2\\eta E + \\eta^2 (E + \\Delta)$ from E = 1. Least squares with n samples
of p Gaussian inputs of variance one has the mean error $\\Delta/(n - p - 1)$ an entry, exactly, at any n > p + 1.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from toys import ridge

import solvable as sv


class OnlineRegression(ridge.Regression):
    """The regression, with fresh samples as they are asked for."""

    def stream(self, rng, d):
        truth = rng.standard_normal(d)
        truth *= np.sqrt(d) / np.linalg.norm(truth)

        def samples(n):
            X = rng.standard_normal((n, d)) / np.sqrt(d)
            return X, X @ truth + np.sqrt(self.noise) * rng.standard_normal(n)

        return sv.Stream(truth[:, None], samples)


class OnlineLeastSquares(sv.Learner):
    """One step for each sample."""

    step: float = 0.5


@sv.theory(OnlineRegression, OnlineLeastSquares)
def _(model, learner, alpha):
    end = learner.step * model.noise / (2 - learner.step)
    return sv.Prediction({"estimation_error": end + (1 - end) * jnp.exp(-learner.step * (2 - learner.step) * alpha)})


@sv.simulation(OnlineRegression, OnlineLeastSquares, path="alpha", stream=True)
def _(model, learner, stream, alpha, rng):
    truth = stream.truth[:, 0]
    w, seen, errors = np.zeros(len(truth)), 0, []
    for value in alpha:
        n = round(value * len(truth))
        X, y, _ = stream.draw(n - seen)
        for x, label in zip(X, y, strict=True):
            w += learner.step * (label - x @ w) * x
        seen = n
        errors.append(np.mean((w - truth) ** 2))
    return sv.Outcome({"estimation_error": np.array(errors)}, estimate=w, details={"samples": seen})


class LinearModel(sv.Model):
    """n samples of p inputs of variance one."""

    noise: float = 0.25

    axes = (sv.Axis("n", "samples", whole=True, least=1), sv.Axis("p", "inputs", whole=True, least=1))
    scaling = "n samples of p inputs"
    size = None
    definitions = {"estimation_error": "|w_hat - w*|^2 / p"}

    def sample(self, rng, n, p):
        X, truth = rng.standard_normal((int(n), int(p))), rng.standard_normal(int(p))
        return sv.Data(X, X @ truth + np.sqrt(self.noise) * rng.standard_normal(int(n)), truth[:, None])


class LeastSquares(sv.Learner):
    """Without a penalty."""


@sv.theory(LinearModel, LeastSquares)
def _(model, learner, n, p):
    inside = n > p + 1
    error = np.where(inside, model.noise / np.where(inside, n - p - 1, 1.0), np.nan)
    return sv.Prediction({"estimation_error": error}, status=np.where(inside, 0, int(sv.Status.OUT_OF_DOMAIN)))


@sv.simulation(LinearModel, LeastSquares)
def _(model, learner, data, rng):
    w = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    return sv.Outcome({"estimation_error": np.mean((w - data.truth[:, 0]) ** 2)}, estimate=w)
