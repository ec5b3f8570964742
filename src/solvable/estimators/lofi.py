r"""Features that labels pick, layer by layer: iterative spectral selection ("Neural LoFi", arXiv:2605.13612).

A layer takes its input h (at first the data) through P random neurons, and keeps the K directions along which the
squares of their values go with the label most: with $c^2$ the mean of $|h|^2$ and W of standard normal entries,

    Z = sigma(h W / c) / sqrt(P),     C = (1/n) Z^T diag(y) Z,     h <- Z V,

V the eigenvectors of C of largest |eigenvalue|. This is what gradient descent from a small start does first. With many
classes each has its C, of the labels of one against the rest, and the K largest eigenvalues of all of them count.

As P grows Z Z^T tends to the kernel $k = |h||h'|(\sin t + (\pi - t)\cos t)/(2\pi c^2)$ of ReLU neurons, t the angle
between two inputs [cho2009kernel]. With its matrix G on the data, $G^{1/2} diag(y) G^{1/2} B = B\Lambda$ picks features
$G^{1/2} B$, on other points $k(\cdot, X) G^{-1/2} B$.

A feature of eigenvalue $\lambda$ of C is seen once that exceeds the noise of C. By the argument of spiked matrices that
takes about $n = E[y^2]\, d_{eff}/\lambda^2$ samples, $d_{eff} = (Tr G)^2/Tr G^2$; the constant has not been checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter

KERNEL = "kernel"
_SMALLEST = 1e-10
"""Eigenvalues of a kernel matrix below this part of the largest are rounding."""


class NeuralLoFi(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of the inputs that the label picks, by random layers and spectral selection.

    - `features`: how many directions K each layer keeps; at most the width and the number of samples.
    - `layers`: how many layers select; each doubles the degree that can be reached.
    - `width`: random neurons P of a layer, or `"kernel"` for infinitely many, at the cost of the third power of n.
    - `final`: whether a last random layer of `width` neurons follows, on which a ridge regression does well; a linear
      read-out of the K features alone does not. A kernel has none: use a kernel ridge regression on its features.
    - `random_state`: of the random layers.

    Labels are numbers, or classes of any number. After `fit`, `eigenvalues_` are those of the kept features of each
    layer, and `emergence_` the numbers of samples at which they are expected to stand out.
    """

    def __init__(
        self,
        features: int = 20,
        layers: int = 2,
        width: int | str = 1000,
        final: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.features = features
        self.layers = layers
        self.width = width
        self.final = final
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NeuralLoFi:
        """Select features of X (n x d) by labels y (n)."""
        self._fitted(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Select features, and return them for X."""
        return self._fitted(X, y)

    def transform(self, X: Any) -> np.ndarray:
        """The features of other inputs."""
        check_is_fitted(self)
        h = np.asarray(validate_data(self, X, reset=False, dtype=np.float64)) - self.mean_
        for layer in self._layers:
            h = layer(h)
        return h

    @property
    def _n_features_out(self) -> int:
        return self.features_out_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _fitted(self, X: Any, y: Any) -> np.ndarray:
        layers = check_count("layers", self.layers, least=1)
        kept = check_count("features", self.features, least=1)
        infinite = isinstance(self.width, str)
        if infinite and self.width != KERNEL:
            raise bad_parameter("width", self.width, f"a number of neurons, or '{KERNEL}'")
        if not infinite:
            check_count("width", self.width, least=1)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        labels = _labels(y)
        rng = check_random_state(self.random_state)
        self.mean_ = np.mean(X, axis=0)
        h = X - self.mean_
        self._layers, self.eigenvalues_, self.emergence_ = [], [], []
        for _ in range(layers):
            layer = _Kernel(h) if infinite else _Neurons(h, int(self.width), rng)
            values = layer.select(labels, kept)
            self._layers.append(layer)
            self.eigenvalues_.append(values)
            with np.errstate(divide="ignore"):
                self.emergence_.append(np.mean(labels**2) * layer.dimension / values**2)
            h = layer.chosen
        if self.final and not infinite:
            last = _Neurons(h, int(self.width), rng)
            self._layers.append(last)
            h = last.values
        self.features_out_ = h.shape[1]
        return h


class _Neurons:
    """A layer of random ReLU neurons, and what is kept of it."""

    def __init__(self, h: np.ndarray, width: int, rng: np.random.RandomState):
        self._W = rng.standard_normal((h.shape[1], width)) / max(_length(h), np.finfo(float).tiny)
        self._V: np.ndarray | None = None
        self.values = self._neurons(h)

    @property
    def dimension(self) -> float:
        """(Tr G)^2 / Tr G^2 of G = Z Z^T."""
        gram = (
            self.values.T @ self.values if self.values.shape[0] > self.values.shape[1] else self.values @ self.values.T
        )
        return float(np.trace(gram) ** 2 / max(np.sum(gram**2), np.finfo(float).tiny))

    def select(self, labels: np.ndarray, kept: int) -> np.ndarray:
        """Keep the directions that go with the labels (n, classes) most; their eigenvalues."""
        n = len(self.values)
        found = [_largest((self.values * y[:, None]).T @ self.values / n, kept) for y in labels.T]
        values, self._V = _merged(found, kept)
        return values

    @property
    def chosen(self) -> np.ndarray:
        assert self._V is not None
        return self.values @ self._V

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return self._neurons(h) if self._V is None else self._neurons(h) @ self._V

    def _neurons(self, h: np.ndarray) -> np.ndarray:
        return np.maximum(h @ self._W, 0.0) / np.sqrt(self._W.shape[1])


class _Kernel:
    """The same for infinitely many neurons."""

    def __init__(self, h: np.ndarray):
        self._inputs, self._scale = h, max(_length(h), np.finfo(float).tiny)
        values, vectors = eigh(self._kernel(h))
        there = values > _SMALLEST * max(values[-1], np.finfo(float).tiny)
        self._roots, self._vectors = np.sqrt(values[there]), vectors[:, there]
        self._B = np.zeros((int(there.sum()), 0))

    @property
    def dimension(self) -> float:
        """(Tr G)^2 / Tr G^2."""
        return float(np.sum(self._roots**2) ** 2 / max(np.sum(self._roots**4), np.finfo(float).tiny))

    def select(self, labels: np.ndarray, kept: int) -> np.ndarray:
        """Keep the directions that go with the labels (n, classes) most; their eigenvalues."""
        root = self._vectors * self._roots
        found = [_largest((root * y[:, None]).T @ root / len(root), kept) for y in labels.T]
        values, self._B = _merged(found, kept)
        return values

    @property
    def chosen(self) -> np.ndarray:
        return (self._vectors * self._roots) @ self._B

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return self._kernel(h) @ ((self._vectors / self._roots) @ self._B)

    def _kernel(self, h: np.ndarray) -> np.ndarray:
        """That of ReLU neurons, of points and the inputs."""
        norms = [np.linalg.norm(part, axis=1) for part in (h, self._inputs)]
        sizes = np.outer(*norms)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(np.where(sizes > 0, h @ self._inputs.T / sizes, 0.0), -1, 1)
        return sizes * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine) / (2 * np.pi * self._scale**2)


def _length(h: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(h**2, axis=1))))


def _largest(C: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of largest size, from either end of the spectrum."""
    size = len(C)
    if 4 * kept >= size:
        values, vectors = eigh(C)
    else:
        ends = [eigh(C, subset_by_index=part) for part in ((0, kept - 1), (size - kept, size - 1))]
        values, vectors = (np.concatenate([end[k] for end in ends], axis=-1) for k in (0, 1))
    order = np.argsort(-np.abs(values), kind="stable")[:kept]
    return values[order], vectors[:, order]


def _merged(found: list[tuple[np.ndarray, np.ndarray]], kept: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest of several classes, with signs that do not depend on the solver."""
    values, vectors = (np.concatenate([part[k] for part in found], axis=-1) for k in (0, 1))
    order = np.argsort(-np.abs(values), kind="stable")[:kept]
    values, vectors = values[order], vectors[:, order]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(largest < 0, -1.0, 1.0)


def _labels(y: np.ndarray) -> np.ndarray:
    """Columns of centred labels: the numbers themselves, +-1 for two classes, one against the rest for more."""
    kind = type_of_target(y)
    if kind in ("continuous", "continuous-multioutput"):
        columns = np.asarray(y, float).reshape(len(y), -1)
    else:
        classes = np.unique(y)
        if len(classes) == 1:
            raise ValueError(f"y has one class, {classes[0]!r}: features are picked by what differs between classes.")
        members = classes[1:] if len(classes) == 2 else classes
        columns = np.stack([np.where(y == one, 1.0, -1.0) for one in members], axis=1)
    return columns - columns.mean(axis=0)
