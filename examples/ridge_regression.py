r"""Ridge regression, as a model and a learner of one's own: everything that a new pair needs, in one file.

Data: X is n x d with independent N(0, 1/d) entries, |w*|^2 = d, y = X w* + noise, n = alpha d.
Learner: w minimises |y - X w|^2 / 2 + penalty |w|^2 / 2.

In the limit of infinite d, with V the variance of the cavity field of a weight,

    V = 1 / (penalty + alpha / (1 + V)),        m = w . w* / d = V alpha / (1 + V),
    k = alpha V^2 / (1 + V)^2,                  E = |w - w*|^2 / d = ((1 - m)^2 + k noise) / (1 - k),
    q = |w|^2 / d = m^2 + k (E + noise).

The Bayes-optimal estimate is the ridge one with penalty = noise, so that is where E is smallest.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import solvable as sv
from solvable.numerics.fixed_point import solve_fixed_point

TINY = 1e-300


class LinearRegression(sv.Model):
    """Labels y = X w* + noise, with noise of the given variance."""

    noise: float = 0.25

    definitions = {
        "cosine": "cosine of the angle between the estimate and the teacher",
        "estimation_error": "|w - w*|^2 / d",
        "generalization_error": "mean squared error on the noiseless label of a fresh input",
    }

    def sample(self, rng: np.random.Generator, d: int, alpha: float) -> sv.Data:
        teacher = rng.normal(size=d)
        teacher *= np.sqrt(d) / np.linalg.norm(teacher)
        X = rng.normal(size=(round(alpha * d), d)) / np.sqrt(d)
        y = X @ teacher + np.sqrt(self.noise) * rng.normal(size=len(X))
        return sv.Data(X, y, teacher[:, None])


class Ridge(sv.Learner):
    """Least squares with a penalty on the squared norm."""

    penalty: float = 1.0


def cavity_equation(V, parameters):
    alpha, penalty = parameters
    return 1 / (penalty + alpha / (1 + V))


@jax.jit
def cavity_variance(alpha, penalty):
    return jax.vmap(lambda alpha: solve_fixed_point(cavity_equation, 1.0, (alpha, penalty)))(alpha)


@sv.theory(LinearRegression, Ridge, references=("hastie2022surprises",))
def _(model: LinearRegression, learner: Ridge, alpha) -> sv.Prediction:
    found = cavity_variance(alpha, learner.penalty)
    V = found.value
    m = V * alpha / (1 + V)
    k = alpha * V**2 / (1 + V) ** 2
    error = ((1 - m) ** 2 + k * model.noise) / (1 - k)
    q = m**2 + k * (error + model.noise)
    # Without data the estimate is zero and has no direction: its cosine is 0, not 0/0.
    cosine = m / jnp.sqrt(jnp.maximum(q, TINY))
    return sv.Prediction(
        metrics={"cosine": cosine, "estimation_error": error, "generalization_error": error},
        order_parameters={"V": V, "m": m, "q": q},
        status=found.status,
        residual=found.residual,
        iterations=found.iterations,
    )


@sv.simulation(LinearRegression, Ridge)
def _(model: LinearRegression, learner: Ridge, data: sv.Data, rng: np.random.Generator) -> sv.Outcome:
    X, y, teacher = data.X, data.y, data.truth[:, 0]
    d = len(teacher)
    w = np.linalg.solve(X.T @ X + learner.penalty * np.eye(d), X.T @ y)
    # A fresh input has variance 1/d in every direction, so the test error of a linear model is exact given w.
    error = np.sum((w - teacher) ** 2) / d
    cosine = (w @ teacher / d) / np.sqrt(max(w @ w / d, TINY))
    metrics = {"cosine": cosine, "estimation_error": error, "generalization_error": error}
    return sv.Outcome(metrics=metrics, estimate=w)


def main() -> None:
    model, learner = LinearRegression(noise=0.25), Ridge(penalty=1.0)
    print(sv.predict(model, learner, alpha=2.0))
    print(sv.simulate(model, learner, alpha=2.0, d=500, seed=0))
    curve = sv.learning_curve(model, learner, alpha=np.array([0.5, 1.0, 2.0, 4.0]), d=300, seeds=32)
    print(curve.agreement("generalization_error"))
    best = sv.optimize(model, learner, over="penalty", alpha=2.0)
    print(f"best penalty {best.value:.6f} (the noise is {model.noise})")


if __name__ == "__main__":
    main()
