"""What estimators that make features by labels share: the frame of a scikit-learn transformer, and the labels."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target


class LabelledTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, abc.ABC):
    """A transformer whose features are picked by labels; it says how in `_fitted`."""

    features_out_: int

    @abc.abstractmethod
    def _fitted(self, X: Any, y: Any) -> np.ndarray:
        """Select features, and return them for X."""

    def fit(self, X: Any, y: Any) -> LabelledTransformer:
        """Select features of X by labels y (n)."""
        self._fitted(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Select features, and return them for X."""
        return self._fitted(X, y)

    @property
    def _n_features_out(self) -> int:
        return self.features_out_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def columns(y: np.ndarray) -> np.ndarray:
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
