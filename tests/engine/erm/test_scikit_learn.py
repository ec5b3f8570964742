"""The dictionary between scikit-learn and this library, by fitting both on the same data.

Here inputs have variance 1/d, losses are summed over the samples and a ridge is (strength/2)|w|^2. With X as sampled,
no intercept, and n samples:

| here | scikit-learn |
|---|---|
| square, Ridge(s) | Ridge(alpha=s), or ElasticNet(alpha=s/n, l1_ratio=0) |
| square, Lasso(s) | Lasso(alpha=s/n) |
| logistic, Ridge(s) | LogisticRegression(C=1/s) |
| hinge, Ridge(s) | LinearSVC(loss="hinge", C=1/s) |
| absolute, Ridge(s) | LinearSVR(epsilon=0, C=1/s) |
| pinball of level t (written out), Lasso(s) | QuantileRegressor(quantile=t, alpha=s/n) |

On features of unit variance, sqrt(d) X, the weights are smaller by sqrt(d): s becomes s d for a ridge, so that
Ridge(alpha=s d) and C = 1/(s d), and s sqrt(d) for a lasso.

`HuberRegressor` cannot be mapped by its parameters alone: it minimises sum_i (sigma + H((y_i - x_i.w)/sigma) sigma) +
alpha |w|^2 over the scale sigma too. At its fitted sigma it is Huber(epsilon sigma) with a ridge of strength
alpha sigma, as the last test shows: its scale and ridge are known after the fit only, and depend on the data.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import solvable as sv
from solvable.verbs.simulate import generators

D, ALPHA, SEED = 60, 2.5, 3
N = 150
LINEAR = sv.MultiIndex("z", noise=0.3)
OUTLIERS = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, 0.0, 5.0))
CLASSES = sv.MultiIndex(sv.channels.Probit(noise=0.3))


def data(model: sv.MultiIndex):
    """The inputs and labels that `simulate` draws."""
    sample = model.sample(generators(SEED, D, {"alpha": ALPHA})[0], D, alpha=ALPHA)
    assert sample.X.shape == (N, D)
    return sample.X, sample.y


def ours(model: sv.MultiIndex, loss, penalty) -> np.ndarray:
    outcome = sv.simulate(model, sv.ERM(loss, penalty), alpha=ALPHA, d=D, seed=SEED)
    assert outcome.converged
    return outcome.estimate[:, 0]


def scikit_learn(name: str, **options):
    """An estimator of theirs, imported when a test needs it."""
    from sklearn import linear_model, svm

    return getattr(svm if name.startswith("LinearSV") else linear_model, name)(**options)


def theirs(estimator, X, y) -> np.ndarray:
    return np.ravel(estimator.set_params(fit_intercept=False).fit(X, y).coef_)


def pinball(y, z):
    return jnp.maximum(0.7 * (y - z), -0.3 * (y - z))


LONG = ("hinge", "logistic", "pinball")
PRECISE = {"tol": 1e-12, "max_iter": 1_000_000}
S = 0.4
SETTINGS = {
    "ridge": (LINEAR, "square", sv.Ridge(S), lambda s, n: scikit_learn("Ridge", alpha=s), 1e-9),
    "elastic net": (
        LINEAR,
        "square",
        sv.Ridge(S),
        lambda s, n: scikit_learn("ElasticNet", alpha=s / n, l1_ratio=0.0, **PRECISE),
        1e-6,
    ),
    "lasso": (LINEAR, "square", sv.Lasso(S), lambda s, n: scikit_learn("Lasso", alpha=s / n, **PRECISE), 1e-7),
    "logistic": (
        CLASSES,
        "logistic",
        sv.Ridge(S),
        lambda s, n: scikit_learn("LogisticRegression", C=1 / s, **PRECISE),
        1e-5,
    ),
    "hinge": (
        CLASSES,
        "hinge",
        sv.Ridge(S),
        lambda s, n: scikit_learn("LinearSVC", loss="hinge", C=1 / s, random_state=0, **PRECISE),
        1e-5,
    ),
    "absolute": (
        OUTLIERS,
        "absolute",
        sv.Ridge(S),
        lambda s, n: scikit_learn("LinearSVR", epsilon=0, C=1 / s, random_state=0, **PRECISE),
        1e-5,
    ),
    "pinball": (
        OUTLIERS,
        pinball,
        sv.Lasso(S),
        lambda s, n: scikit_learn("QuantileRegressor", quantile=0.7, alpha=s / n),
        1e-5,
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*:UserWarning")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in SETTINGS])
def test_same_weights_on_the_same_data(name):
    model, loss, penalty, estimator, tolerance = SETTINGS[name]
    X, y = data(model)
    w = theirs(estimator(penalty.strength, N), X, y)
    assert np.max(np.abs(ours(model, loss, penalty) - w)) < tolerance * np.max(np.abs(w))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["ridge", "lasso", pytest.param("logistic", marks=pytest.mark.slow)])
def test_same_weights_from_features_of_unit_variance(name):
    model, loss, penalty, estimator, tolerance = SETTINGS[name]
    X, y = data(model)
    scaled = penalty.strength * (np.sqrt(D) if isinstance(penalty, sv.Lasso) else D)
    w = np.sqrt(D) * theirs(estimator(scaled, N), np.sqrt(D) * X, y)
    assert np.max(np.abs(ours(model, loss, penalty) - w)) < 10 * tolerance * np.max(np.abs(w))


def test_huber_regressor_is_huber_at_its_fitted_scale():
    X, y = data(OUTLIERS)
    fitted = scikit_learn(
        "HuberRegressor", epsilon=1.5, alpha=0.3, fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    w = ours(OUTLIERS, sv.losses.Huber(1.5 * fitted.scale_), sv.Ridge(0.3 * fitted.scale_))
    assert np.max(np.abs(fitted.coef_ - w)) < 1e-4 * np.max(np.abs(w))
    unscaled = ours(OUTLIERS, sv.losses.Huber(1.5), sv.Ridge(0.3))
    assert np.max(np.abs(fitted.coef_ - unscaled)) > 0.01 * np.max(np.abs(w))
