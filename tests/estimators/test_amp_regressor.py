"""Regression by message passing: against the theory of its target, with what it learns itself, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import solvable as sv
from solvable.estimators import AMPRegressor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["z", pytest.param(None, marks=pytest.mark.slow)])
def test_scikit_learn_takes_it(target):
    check_estimator(AMPRegressor(target))


def absolute(n, d, seed=0, noise=0.04):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.abs(X[:, 0]) + np.sqrt(noise) * rng.standard_normal(n)


def cosine_squared(regressor):
    first = regressor.components_[0]
    return first[0] ** 2 / (first @ first)


@pytest.mark.slow
def test_what_it_finds_is_what_theory_predicts():
    shares, expected = [], []
    for seed in range(4):
        found = AMPRegressor("abs(z)", noise=0.04, affine=False).fit(*absolute(500, 250, seed))
        assert found.converged_
        shares.append(cosine_squared(found))
        expected.append(found.overlaps_[0])
    theory = float(sv.predict(sv.MultiIndex("abs(z)", noise=0.04), sv.AMP(), alpha=2.0)["overlap"])
    assert np.mean(shares) == pytest.approx(theory, abs=0.02)
    assert np.mean(expected) == pytest.approx(theory, abs=0.02)


def test_it_knows_how_much_it_finds():
    found = AMPRegressor("abs(z)", noise=0.04, affine=False).fit(*absolute(500, 100))
    assert found.converged_ and found.overlaps_[0] == pytest.approx(cosine_squared(found), abs=0.03)


def test_scale_offset_and_noise_are_learned():
    X, y = absolute(600, 100)
    found = AMPRegressor("abs(z)").fit(X, 30 * y - 7)
    assert found.scale_ == pytest.approx(30, rel=0.15) and found.offset_ == pytest.approx(-7, abs=5)
    assert found.noise_ == pytest.approx(0.03 * (1 - 2 / np.pi), rel=0.01) or found.noise_ == pytest.approx(
        0.04, rel=0.4
    )
    assert cosine_squared(found) > 0.9


def test_a_link_is_learned():
    """As good as with the link given, where a linear method finds nothing; the score counts fresh noise."""
    X, y = absolute(1500, 100)
    told = AMPRegressor("abs(z)", noise=0.04, affine=False).fit(X[:500], y[:500])
    learned = AMPRegressor().fit(X[:500], y[:500])
    assert learned.converged_ and learned.score(X[500:], y[500:]) > told.score(X[500:], y[500:]) - 0.04
    assert RidgeCV(np.geomspace(0.1, 1e4, 9)).fit(X[:500], y[:500]).score(X[500:], y[500:]) < 0.1
    assert (
        sv.Target(learned.target_).numpy(np.array([[2.0]]))[0] > sv.Target(learned.target_).numpy(np.zeros((1, 1)))[0]
    )


def test_labels_scale_through():
    X, y = absolute(300, 40)
    one, other = AMPRegressor().fit(X, y), AMPRegressor().fit(X, 1e5 * y - 3e4)
    np.testing.assert_allclose(other.predict(X), 1e5 * one.predict(X) - 3e4, rtol=1e-6)
    # Densities change by the scale.
    assert other.evidence_ == pytest.approx(one.evidence_ - np.log(1e5), abs=1e-6)


def test_two_directions_and_labels_of_two_values():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1400, 60))
    clean = np.where(X[:, 0] * X[:, 1] > 0, 3.0, 1.0)
    y = np.where(rng.random(1400) < 0.05, 4.0 - clean, clean)
    found = AMPRegressor("sign(z1*z2)").fit(X[:900], y[:900])
    assert (found.scale_, found.offset_) == (1.0, 2.0) and found.components_.shape == (2, 60)
    assert np.mean((found.predict(X[900:]) > 2) == (clean[900:] > 2)) > 0.85
    assert found.noise_ > 0


def test_pipelines_and_searches():
    X, y = absolute(300, 20)
    pipe = make_pipeline(StandardScaler(), AMPRegressor())
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.7
    search = GridSearchCV(pipe, {"ampregressor__target": ["z", "abs(z)"], "ampregressor__noise": [0.04]}, cv=3).fit(
        X, y
    )
    assert search.best_params_["ampregressor__target"] == "abs(z)"


def test_it_says_when_it_did_not_come_to_rest():
    with pytest.warns(ConvergenceWarning, match="did not come to rest in 2 steps"):
        assert not AMPRegressor(max_steps=2).fit(*absolute(200, 40)).converged_


@pytest.mark.parametrize(
    ("options", "name"),
    [({"noise": 0.1}, "noise"), ({"target": "abs(z)", "noise": -1.0}, "noise"), ({"max_steps": 0}, "max_steps")],
)
def test_what_is_refused(options, name):
    with pytest.raises(ValueError, match=f"{name} = "):
        AMPRegressor(**options).fit(*absolute(50, 4))


def test_labels_that_a_target_never_gives_are_refused():
    X, y = absolute(200, 10)
    with pytest.raises(ValueError, match="noise = 0 is not allowed with the label"):
        AMPRegressor("sign(z)", noise=0.0).fit(X, y)
    with pytest.raises(ValueError, match="noise = 0 is not allowed with the label"):
        AMPRegressor("abs(z)", noise=0.0).fit(X, y)
    with pytest.raises(ValueError, match="constant"):
        AMPRegressor().fit(X, np.ones(200))


def test_on_real_data_it_starts_from_the_direction_that_predicts():
    """Diabetes has an outlier of second moments that says nothing of the mean: starting there the error is 1.8."""
    X, y = load_diabetes(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), AMPRegressor())
    assert cross_val_score(pipe, X, y, cv=4).min() > 0.3
