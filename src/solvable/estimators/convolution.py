r"""Features of images that labels pick: the selection of `engine.lofi` at every place of an image [dandi2026deep].

A layer sees k x k patches of its image h (zeros around it), takes each through P random neurons, and keeps the K
directions that go with the label of the image most, over all places and images:

    Z = relu(patch W / c)/sqrt(P),     C = mean of y Z Z^T over images and places,     h <- Z V,

c^2 the mean of |patch|^2 and V the eigenvectors of largest |eigenvalue|. The new image has K channels, and its size is
halved by means over 2 x 2 places. A last layer of random neurons sees all of it, as a ridge regression wants them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter
from solvable.engine.lofi.layers import Neurons, largest, length, merged
from solvable.estimators.labelled import LabelledTransformer, columns

_ROWS = 40_000
"""Patches that are taken through the neurons at a time."""


class ConvolutionalLoFi(LabelledTransformer):
    """Features of images that the label picks, by random convolutions and spectral selection.

    Images are arrays (n, height, width) or (n, height, width, channels), or rows of numbers whose `shape` is given; a
    square number of them is taken for a square image of one channel, and any other for an image of one row.

    - `features`: how many channels K each layer keeps; None for all of its neurons, of which labels then pick none.
    - `layers`: how many layers select; each halves the image.
    - `width`: random neurons P of a layer.
    - `patch`: k, odd.
    - `readout`: random neurons of the last layer, or 0 for the channels themselves.
    - `shape`: (height, width) or (height, width, channels) of images that come as rows.
    - `random_state`: of the random layers.

    After `fit`, `eigenvalues_` are those of the kept channels of each layer. `filters_` (K, k, k, channels) can be
    drawn: they are the eigenvectors of the label-weighted covariance of the patches themselves, with
    `filter_eigenvalues_`.
    """

    def __init__(
        self,
        features: int | None = 10,
        layers: int = 1,
        width: int = 200,
        patch: int = 3,
        readout: int = 600,
        shape: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.features = features
        self.layers = layers
        self.width = width
        self.patch = patch
        self.readout = readout
        self.shape = shape
        self.random_state = random_state

    def transform(self, X: Any) -> np.ndarray:
        """The features of other images."""
        check_is_fitted(self)
        if _has_images(X):
            X = self._rows(X)
        X = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        h = (X - self.mean_).reshape(len(X), *self.shape_)
        for layer in self._layers:
            h = layer(h)
        flat = h.reshape(len(h), -1)
        return flat if self._readout is None else self._readout(flat)

    def _rows(self, X: Any) -> np.ndarray:
        """Images as rows, if they are those that were fitted."""
        images = check_array(X, allow_nd=True, dtype="float64")
        if images.shape[1:] != self.shape_[: images.ndim - 1] or math.prod(images.shape[1:]) != math.prod(self.shape_):
            raise ValueError(f"X has images of shape {images.shape[1:]}, but those of the fit were {self.shape_}.")
        return images.reshape(len(images), -1)

    def _fitted(self, X: Any, y: Any) -> np.ndarray:
        for name in ("layers", "width"):
            check_count(name, getattr(self, name), least=1)
        kept = None if self.features is None else check_count("features", self.features, least=1)
        readout, patch = check_count("readout", self.readout, least=0), check_count("patch", self.patch, least=1)
        if patch % 2 == 0:
            raise bad_parameter("patch", patch, "odd, so that a patch has a place in the middle")
        given = None
        if _has_images(X):
            images = check_array(X, allow_nd=True, dtype="float64")
            if images.ndim > 4:
                raise ValueError(
                    f"X must be images (n, height, width) or (n, height, width, channels); got {images.ndim} axes."
                )
            given, X = images.shape[1:], images.reshape(len(images), -1)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.shape_ = _image_shape(X.shape[1], self.shape if given is None else given)
        rng, labels = check_random_state(self.random_state), columns(y)
        self.mean_ = np.mean(X, axis=0)
        h = (X - self.mean_).reshape(len(X), *self.shape_)
        self.filter_eigenvalues_, self.filters_ = _filters(h, labels, patch, kept)
        self._layers, self.eigenvalues_ = [], []
        for _ in range(self.layers):
            layer = _Convolution(h, labels, kept, int(self.width), patch, rng)
            self._layers.append(layer)
            self.eigenvalues_.append(layer.eigenvalues)
            h = layer(h)
        flat = h.reshape(len(h), -1)
        self._readout = Neurons(flat, readout, rng) if readout else None
        found = flat if self._readout is None else self._readout.values
        self.features_out_ = found.shape[1]
        return found


class _Convolution:
    """Random neurons at every place of an image, what is kept of them, and means over 2 x 2 places."""

    def __init__(
        self,
        h: np.ndarray,
        labels: np.ndarray,
        kept: int | None,
        width: int,
        patch: int,
        rng: np.random.RandomState,
    ):
        self._patch = patch
        inputs = min(patch, _odd(h.shape[1])) * min(patch, _odd(h.shape[2])) * h.shape[3]
        scale = np.sqrt(np.mean([length(rows) ** 2 for rows, _ in _patches(h, patch)]))
        self._W = rng.standard_normal((inputs, width)) / max(scale, np.finfo(float).tiny) / np.sqrt(width)
        self.eigenvalues, self._V = np.empty(0), np.eye(width)
        if kept is None:
            return
        moments = np.zeros((labels.shape[1], width, width))
        places = h.shape[1] * h.shape[2]
        for rows, part in _patches(h, patch):
            Z = np.maximum(rows @ self._W, 0.0)
            for C, y in zip(moments, labels.T, strict=True):
                C += (Z * np.repeat(y[part], places)[:, None]).T @ Z
        found = [largest(C / (len(h) * places), kept) for C in moments]
        self.eigenvalues, self._V = merged(found, kept)

    def __call__(self, h: np.ndarray) -> np.ndarray:
        parts = [np.maximum(rows @ self._W, 0.0) @ self._V for rows, _ in _patches(h, self._patch)]
        return _pooled(np.concatenate(parts).reshape(*h.shape[:3], -1))


def _filters(h: np.ndarray, labels: np.ndarray, patch: int, kept: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, and eigenvectors as small images, of the label-weighted covariance of the patches."""
    places = h.shape[1] * h.shape[2]
    moments: Any = 0.0
    for rows, part in _patches(h, patch):
        moments = moments + np.stack([(rows * np.repeat(y[part], places)[:, None]).T @ rows for y in labels.T])
    most = moments.shape[1] if kept is None else min(kept, moments.shape[1])
    values, vectors = merged([largest(C / (len(h) * places), most) for C in moments], most)
    size = [min(patch, _odd(side)) for side in h.shape[1:3]]
    return values, vectors.T.reshape(len(values), *size, h.shape[3])


def _patches(h: np.ndarray, patch: int) -> Iterator[tuple[np.ndarray, slice]]:
    """The patches at every place of some images at a time, one a row, and which images they are of."""
    sizes = [min(patch, _odd(side)) for side in h.shape[1:3]]
    images = max(1, _ROWS // (h.shape[1] * h.shape[2]))
    for start in range(0, len(h), images):
        part = slice(start, min(start + images, len(h)))
        around = [(0, 0), *((size // 2, size // 2) for size in sizes), (0, 0)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(h[part], around), sizes, axis=(1, 2))  # pyright: ignore
        yield windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, sizes[0] * sizes[1] * h.shape[3]), part


def _has_images(X: Any) -> bool:
    """Whether there are more axes than those of rows of numbers."""
    return isinstance(X, (np.ndarray, list, tuple)) and np.ndim(X) > 2


def _odd(side: int) -> int:
    """The side of the largest patch that says anything at an image of that side."""
    return 2 * side - 1


def _pooled(h: np.ndarray) -> np.ndarray:
    """Means over 2 x 2 places; a side of one stays, and of an odd one the last place is left alone."""
    for axis in (1, 2):
        if h.shape[axis] > 1:
            starts = np.arange(0, h.shape[axis], 2)
            counts = np.diff(np.append(starts, h.shape[axis]))
            shape = [1] * h.ndim
            shape[axis] = -1
            h = np.add.reduceat(h, starts, axis=axis) / counts.reshape(shape)
    return h


def _image_shape(count: int, shape: Sequence[int] | None) -> tuple[int, int, int]:
    """Height, width and channels of images of so many numbers."""
    if shape is None:
        side = math.isqrt(count)
        return (side, side, 1) if side * side == count else (1, count, 1)
    found = tuple(int(side) for side in shape)
    if len(found) not in (2, 3) or min(found) < 1 or math.prod(found) != count:
        raise bad_parameter("shape", shape, f"(height, width) or (height, width, channels) with a product of {count}")
    return (found[0], found[1], found[2] if len(found) == 3 else 1)
