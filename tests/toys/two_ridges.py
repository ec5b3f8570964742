"""A toy model whose overlap is a 2 x 2 matrix: two ridge regressions on the same inputs.

Labels $Y = X W^* + \\sqrt\\Delta \\Xi$ with two orthogonal teachers, $W^{*T} W^* = d I$; the estimate of teacher k is
ridge regression with penalty $\\lambda_k$, $\\lambda$ for the first and `ratio` $\\lambda$ for the second, so that the
overlap $M = W^{*T} \\hat W / d$ tends to diag($1 - \\lambda_k m(\\lambda_k)$): equal entries for `ratio` = 1.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from toys import ridge as toy

import solvable as sv


class TwoRegressions(sv.Model):
    """Two linear regressions with Gaussian inputs."""

    noise: float = 0.25
    ratio: float = 8.0

    definitions = {"overlap": "W*^T W_hat / d", "estimation_error": "|W_hat - W*|^2 / d"}

    def sample(self, rng, d, alpha):
        n = max(1, round(alpha * d))
        truth = np.linalg.qr(rng.standard_normal((d, 2)))[0] * np.sqrt(d)
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        return sv.Data(X, X @ truth + np.sqrt(self.noise) * rng.standard_normal((n, 2)), truth)


class TwoRidges(sv.Learner):
    """Least squares with a squared penalty."""

    penalty: float = 0.5


class TwoMeans(sv.Learner):
    """An algorithm without a theory."""


@sv.theory(TwoRegressions, TwoRidges)
def _(model, learner, alpha):
    penalties = learner.penalty * np.array([1.0, model.ratio])
    metrics, m = toy.ridge(jnp.asarray(alpha)[:, None], model.noise, penalties, jnp)
    diagonal = 1 - penalties * m
    overlap = diagonal[:, :, None] * np.eye(2)
    return sv.Prediction(
        {
            "overlap": overlap,
            "overlap_1": diagonal[:, 0],
            "overlap_2": diagonal[:, 1],
            "estimation_error": metrics["estimation_error"].sum(1),
        },
        {"M": overlap},
    )


@sv.simulation(TwoRegressions, TwoRidges)
def _(model, learner, data, rng):
    X, y, truth = data
    penalties = learner.penalty * np.array([1.0, model.ratio])
    gram = X.T @ X
    columns = [np.linalg.solve(gram + penalties[k] * np.eye(len(truth)), X.T @ y[:, k]) for k in range(2)]
    return score(np.stack(columns, axis=1), truth)


@sv.simulation(TwoRegressions, TwoMeans)
def _(model, learner, data, rng):
    return score(data.X.T @ data.y, data.truth)


def score(estimate, truth):
    overlap = truth.T @ estimate / len(truth)
    diagonal = {f"overlap_{k + 1}": overlap[k, k] for k in range(2)}
    error = np.sum((estimate - truth) ** 2) / len(truth)
    return sv.Outcome({"overlap": overlap, **diagonal, "estimation_error": error}, estimate=estimate)


@sv.thresholds_of(TwoRegressions)
def _(model):
    return {"interpolation": 1.0}
