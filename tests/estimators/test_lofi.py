"""Neural LoFi: scikit-learn's checks, the limit of many neurons, digits, and what it picks from synthetic labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from solvable.estimators import NeuralLoFi

PENALTIES = np.geomspace(1e-6, 1e2, 17)


def test_scikit_learn_takes_it():
    check_estimator(NeuralLoFi(features=2, layers=1, width=20, random_state=0))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1))), np.where(y % 2, 1.0, -1.0)


def test_digits_are_read_better_than_by_random_features(digits):
    """At least 8 % lower a squared error than one random layer of the same width, ridge by cross-validation."""
    X, y = digits
    found = {"selected": [], "random": []}
    for seed in range(2):
        train, test, label, truth = train_test_split(X, y, train_size=1000, random_state=seed)
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((64, 1000))
        layers = {
            "random": lambda x, W=W: np.maximum(x @ W, 0.0) / np.sqrt(1000),
            "selected": NeuralLoFi(20, 2, 1000, random_state=seed).fit(train, label).transform,
        }
        for name, layer in layers.items():
            ridge = RidgeCV(PENALTIES).fit(layer(train), label)
            found[name].append(np.mean((ridge.predict(layer(test)) - truth) ** 2))
    assert np.mean(found["selected"]) < 0.92 * np.mean(found["random"])


def test_many_neurons_select_what_their_kernel_does(digits):
    X, y = digits[0][:200], digits[1][:200]
    exact = np.linalg.qr(NeuralLoFi(10, 1, "kernel").fit_transform(X, y))[0]
    shares = []
    for width in (100, 1000):
        many = NeuralLoFi(10, 1, width, final=False, random_state=0).fit_transform(X, y)
        shares.append(np.sum((np.linalg.qr(many)[0].T @ exact) ** 2) / 10)
    assert shares[0] < shares[1] and shares[1] > 0.98


def test_new_points_are_taken_like_those_seen(digits):
    X, y = digits[0][:150], digits[1][:150]
    for width in (100, "kernel"):
        found = NeuralLoFi(5, 2, width, random_state=0)
        np.testing.assert_allclose(found.fit_transform(X, y), found.transform(X), atol=1e-7)
        assert [len(values) for values in found.eigenvalues_] == [5, 5]
        assert np.all(np.diff(np.abs(found.eigenvalues_[0])) <= 0)
        assert [len(values) for values in found.emergence_] == [5, 5] and np.all(found.emergence_[0] > 0)


def test_it_finds_the_direction_of_a_quadratic_label():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    y = X[:, 3] ** 2 - 1
    scores = []
    for labels in (y, rng.permutation(y)):
        first = NeuralLoFi(1, 1, 400, final=False, random_state=0).fit_transform(X, labels)[:, 0]
        scores.append(abs(np.corrcoef(first**2, y)[0, 1]))
    assert scores[0] > 0.3 and scores[1] < 0.15


def test_several_classes_and_a_pipeline():
    X, y = load_digits(return_X_y=True)
    found = make_pipeline(NeuralLoFi(20, 1, 200, random_state=0), RidgeCV(PENALTIES)).fit(
        X[:500], np.eye(10)[y[:500]][:, 3]
    )
    assert found.predict(X[:3]).shape == (3,)
    assert NeuralLoFi(12, 1, 100, random_state=0).fit(X[:300], y[:300]).eigenvalues_[0].shape == (12,)


@pytest.mark.parametrize("options", [{"width": "wide"}, {"width": 0}, {"features": 0}, {"layers": 0}])
def test_what_is_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} = "):
        NeuralLoFi(**options).fit(np.eye(4), [0.1, 0.2, 0.3, 0.7])
    with pytest.raises(ValueError, match="one class"):
        NeuralLoFi(1, 1, 5).fit(np.eye(4), [1, 1, 1, 1])
