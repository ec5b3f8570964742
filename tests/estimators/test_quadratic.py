"""The wide quadratic network on one's own data: its convex problem, against solvers that share nothing with it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import solvable as sv
from solvable.engine.operators import QuadraticFeatures
from solvable.estimators import QuadraticRegressor
from solvable.models.matrix.nuclear.convex import ProximalGradient, minimise


@pytest.mark.parametrize("penalty", [50.0, pytest.param(None, marks=pytest.mark.slow)])
def test_scikit_learn_takes_it(penalty):
    check_estimator(QuadraticRegressor(penalty, penalty))


@pytest.fixture(scope="module")
def data():
    """Labels with a positive and a negative neuron, a linear part and an intercept."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8)) * np.linspace(0.5, 2, 8) + 3.0
    z = X - 3.0
    return X, z[:, 0] ** 2 - 0.5 * (z[:, 1] + z[:, 2]) ** 2 + z[:, 3] + 4.0 + 0.3 * rng.standard_normal(150)


@pytest.fixture(scope="module")
def chosen(data):
    return QuadraticRegressor().fit(*data)


@pytest.mark.parametrize("semidefinite", [False, True])
def test_it_solves_the_problem_it_says(data, semidefinite):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = data
    found = QuadraticRegressor(50.0, 2.0, semidefinite=semidefinite, tolerance=1e-8).fit(X, y)
    Z = X - X.mean(axis=0)
    S, beta, b = cvxpy.Variable((8, 8), symmetric=True), cvxpy.Variable(8), cvxpy.Variable()
    features = np.einsum("ni,nj->nij", Z, Z).reshape(len(Z), -1)
    loss = cvxpy.sum_squares(y - b - Z @ beta - features @ cvxpy.vec(S, order="C"))
    problem = cvxpy.Problem(
        cvxpy.Minimize(loss + 50.0 * cvxpy.normNuc(S) + 2.0 * cvxpy.sum_squares(beta)), [S >> 0] if semidefinite else []
    )
    problem.solve(solver="SCS", eps=1e-8, max_iters=100_000)
    np.testing.assert_allclose(found.quadratic_, S.value, atol=2e-4)
    np.testing.assert_allclose(found.coef_, beta.value, atol=2e-4)
    assert found.intercept_ == pytest.approx(float(np.asarray(b.value)), abs=1e-3)
    assert found.converged_ and np.all(found.spectrum_ > 0) == semidefinite


def test_without_a_linear_part_it_is_the_learner_of_the_theory():
    """On centred Gaussian inputs the minimiser of NuclearNorm, whose features are (x x^T - I) / sqrt d."""
    model = sv.QuadraticNetwork(0.2, noise=0.1)
    rng = np.random.default_rng(1)
    d, penalty = 20, 0.2
    found = model.sample(rng, d, alpha=0.8)
    assert isinstance(found.operator, QuadraticFeatures)
    X = found.operator.X
    X = np.concatenate([X, -X])  # of mean zero exactly
    y = np.concatenate([found.y, found.y])
    operator = QuadraticFeatures(X)
    ours = QuadraticRegressor(penalty * d**1.5, linear=False, semidefinite=True, tolerance=1e-8).fit(X, y)
    # The learner has no intercept: it is given the labels that the fitted one leaves.
    shift = ours.intercept_ + np.trace(ours.quadratic_)
    theirs = minimise(ProximalGradient(operator, rng), operator, y - shift, penalty).S / np.sqrt(d)
    assert ours.rank_ > 0
    np.testing.assert_allclose(ours.quadratic_, theirs, atol=1e-4 * np.abs(theirs).max())


def test_a_large_penalty_leaves_the_linear_part(data):
    X, y = data
    found = QuadraticRegressor(1e6, 3.0).fit(X, y)
    ridge = Ridge(3.0).fit(X, y)
    assert found.rank_ == 0 and found.spectrum_.size == 0
    np.testing.assert_allclose(found.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(found.predict(X), ridge.predict(X), atol=1e-8)


def test_the_penalty_is_chosen_by_cross_validation(data, chosen):
    # The two neurons of the labels lead, one of each sign.
    assert 0.9 < chosen.score(*data) < 1 and np.sign(chosen.spectrum_[:2]).sum() == 0
    assert np.all(np.abs(chosen.spectrum_[:2]) > 4 * np.abs(chosen.spectrum_[2]))


@pytest.mark.slow
def test_the_chosen_penalty_serves_rows_not_seen(data):
    X, y = data
    plain = cross_val_score(RidgeCV(), X, y, cv=4)
    assert cross_val_score(QuadraticRegressor(), X, y, cv=4).mean() > 0.9 > plain.mean() + 0.2


def test_scaling_inputs_or_labels_changes_nothing_but_units(data, chosen):
    X, y = data
    other = QuadraticRegressor().fit(1e3 * X, 1e-4 * y)
    np.testing.assert_allclose(other.predict(1e3 * X), 1e-4 * chosen.predict(X), rtol=1e-3, atol=1e-6)


def test_pipelines_and_searches():
    X, y = load_diabetes(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), QuadraticRegressor())
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.4
    search = GridSearchCV(pipe, {"quadraticregressor__penalty": [1e3, 1e9]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.4


def test_it_says_when_it_did_not_converge(data):
    with pytest.warns(ConvergenceWarning, match="raise max_steps"):
        found = QuadraticRegressor(1e-3, 1.0, max_steps=3).fit(*data)
    assert not found.converged_


@pytest.mark.parametrize("options", [{"penalty": 0.0}, {"linear_penalty": -1.0}, {"cv": 1}, {"tolerance": 2.0}])
def test_what_is_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} = "):
        QuadraticRegressor(**options).fit(np.eye(4), [0.1, 0.2, 0.3, 0.7])
