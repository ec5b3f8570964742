"""Convolutional selection of features: scikit-learn's checks, its definition, shapes, and digits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from solvable.estimators import ConvolutionalLoFi

PENALTIES = np.geomspace(1e-6, 1e2, 17)


def test_scikit_learn_takes_it():
    check_estimator(ConvolutionalLoFi(features=2, width=10, readout=15, random_state=0))


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 5, 6, 2)), rng.standard_normal(30)


def test_it_does_what_its_definition_says(images):
    """By loops over images and places."""
    X, y = images
    model = ConvolutionalLoFi(features=4, width=12, readout=0, random_state=0)
    found = model.fit_transform(X, y)
    W, V, h = model._layers[0]._W, model._layers[0]._V, X - X.mean(axis=0)
    padded = np.zeros((30, 7, 8, 2))
    padded[:, 1:-1, 1:-1] = h
    patches = np.array(
        [[[padded[i, a : a + 3, b : b + 3].ravel() for b in range(6)] for a in range(5)] for i in range(30)]
    )
    Z = np.maximum(patches @ W, 0)
    C = np.einsum("i,iabp,iabq->pq", y - y.mean(), Z, Z) / (30 * 5 * 6)
    np.testing.assert_allclose(C @ V, V * model.eigenvalues_[0], atol=1e-12)
    assert W.std() * np.sqrt(12 * np.mean(np.sum(patches**2, axis=-1))) == pytest.approx(1, abs=0.2)
    channels = Z @ V
    pooled = np.array([[channels[:, a : a + 2, b : b + 2].mean(axis=(1, 2)) for b in (0, 2, 4)] for a in (0, 2, 4)])
    np.testing.assert_allclose(found, pooled.transpose(2, 0, 1, 3).reshape(30, -1), atol=1e-12)
    weighted = np.einsum("i,iabp,iabq->pq", y - y.mean(), patches, patches) / (30 * 5 * 6)
    filters = model.filters_.reshape(4, -1)
    np.testing.assert_allclose(filters @ weighted, model.filter_eigenvalues_[:, None] * filters, atol=1e-12)


def test_images_come_as_arrays_or_as_rows(images):
    X, y = images
    first = ConvolutionalLoFi(3, 1, 10, readout=8, random_state=0).fit(X, y)
    rows = ConvolutionalLoFi(3, 1, 10, readout=8, shape=(5, 6, 2), random_state=0).fit(X.reshape(30, -1), y)
    np.testing.assert_allclose(first.transform(X), rows.transform(X.reshape(30, -1)), atol=1e-12)
    np.testing.assert_allclose(first.fit_transform(X, y), first.transform(X), atol=1e-12)
    grey = ConvolutionalLoFi(3, 2, 10, readout=8, random_state=0).fit(X[..., 0], y)
    assert grey.shape_ == (5, 6, 1) and len(grey.eigenvalues_) == 2 and grey.transform(X[..., 0]).shape == (30, 8)
    assert ConvolutionalLoFi(2, 1, 10, random_state=0).fit(X[:, 0, :, 0], y).shape_ == (1, 6, 1)
    with pytest.raises(ValueError, match=r"images of shape \(6, 5, 2\), but those of the fit were \(5, 6, 2\)"):
        first.transform(X.transpose(0, 2, 1, 3))


def test_bad_parameters(images):
    X, y = images
    for values, message in (
        ({"patch": 4}, "patch = 4 is not allowed: patch must be odd"),
        ({"shape": (4, 4)}, r"shape = \(4, 4\) is not allowed: shape must be"),
        ({"features": 0}, "features = 0"),
        ({"readout": -1}, "readout = -1"),
    ):
        with pytest.raises(ValueError, match=message):
            ConvolutionalLoFi(**values).fit(X.reshape(30, -1), y)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="got 5 axes"):
        ConvolutionalLoFi().fit(X[..., None], y)


def test_layers_that_select_nothing_keep_their_neurons(images):
    X, y = images
    lazy = ConvolutionalLoFi(None, 1, 12, readout=0, random_state=0)
    found = lazy.fit_transform(X, y)
    assert found.shape == (30, 3 * 3 * 12) and found.min() >= 0 and lazy.eigenvalues_[0].size == 0
    np.testing.assert_allclose(found, lazy.fit(X, -y).transform(X), atol=1e-12)
    assert lazy.filters_.shape == (18, 3, 3, 2)


def test_a_pipeline():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(ConvolutionalLoFi(5, 1, 50, readout=100, random_state=0), RidgeCV(PENALTIES))
    assert model.fit(X[:300], y[:300] % 2).score(X[300:500], y[300:500] % 2) > 0.2
