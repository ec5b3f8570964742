r"""The index subspace of one's own data: the optimal spectral method for a link function that is not known.

The label is taken for a noisy function of a few projections z = W^T x of whitened inputs, y ~ P(y|z). Two things are
read off slices of the label, neither of which needs the function:

- first order, the means E[x|y]: directions with E[z|y] != 0 show at any number of samples in proportion to the
  dimension. That is inverse regression [li1991sliced];
- second order, E[x x^T|y] - I: outliers of a matrix of the samples weighted by T(y), where T is first one of a few
  generic functions of the label, and then the optimal one that each outlier suggests (`sights`), without the label's
  law ever being told [mondelli2017fundamental, defilippis2025optimal].

Directions u_j of expected squared cosines q_j are put together as a likelihood would: the leading left singular vectors
of the columns $u_j / \sqrt{1 - q_j}$, whose noise is of one size.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter
from solvable.estimators.index_report import report
from solvable.estimators.sights import (
    EXPLAINED,
    Null,
    Sight,
    explained,
    first_order,
    joint,
    outlier,
    pilots,
    second_order,
)
from solvable.estimators.slices import Moments, Slices
from solvable.estimators.whitening import doubts, warn_of, whitening

_LEAST_NOISE, _LEAST_Q, _FAR = 1e-3, 0.05, 0.5


class SpectralIndex(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The directions of the inputs that a label depends on, whatever the function, and how many there are.

    - `n_components`: how many directions to return; None for those that stand out, or the best one if there are none.
    - `slices`: the most slices that a label of many values is cut into.
    - `permutations`: how many times labels are shuffled to learn what eigenvalues say nothing.
    - `random_state`: of the shuffling.

    Labels are numbers, or classes of any number. After `fit`: `components_` (k x d), with projections of variance one
    (X - mean_) @ components_.T; `n_directions_` that stand out; and for each component `orders_` (1: seen in the mean
    of the inputs given the label, 2: in their second moments), `eigenvalues_` and the `bulk_edges_` that they exceed
    where they stand out, and `overlaps_`, the squared cosines with the true directions that are expected: too high
    where a direction hardly stands out. `report()` says it in words, with the samples that a network would need.
    """

    def __init__(
        self,
        n_components: int | None = None,
        slices: int = 20,
        permutations: int = 8,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.n_components = n_components
        self.slices = slices
        self.permutations = permutations
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SpectralIndex:
        """Find the directions of X (n x d) by labels y (n)."""
        if self.n_components is not None:
            check_count("n_components", self.n_components, least=1)
        most, shuffles = check_count("slices", self.slices, 2), check_count("permutations", self.permutations, 2)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        labels = numbered(y)
        self._whitening = whitening(X)
        white = self._whitening(X)
        size = white.shape[1]
        if size == 0:
            raise ValueError("every column of X is constant: there is no direction to find.")
        if self.n_components is not None and self.n_components > size:
            raise bad_parameter("n_components", self.n_components, f"at most the {size} inputs that vary")
        self.mean_ = self._whitening.mean
        self.doubts_ = doubts(X, white, self._whitening)
        warn_of("SpectralIndex", self.doubts_)
        self._moments = moments = Moments(white, Slices.cut(labels, most, size))
        null = Null(white, moments.slices, shuffles, check_random_state(self.random_state))
        second, spare = second_order(moments, null, all_of_them=self.n_components is not None)
        sights = first_order(moments, null) + second
        leading = leading_of(sights)
        more = joint(moments, null, leading)
        sights, leading = sights + more, leading + more
        self.n_directions_ = len(leading)
        if not leading:
            warnings.warn("SpectralIndex: no direction stands out of what shuffled labels give.", stacklevel=2)
        wanted = self.n_components or max(self.n_directions_, 1)
        leading = sorted(leading, key=lambda seen: -seen.q)[:wanted]
        extra = _next_best(moments, leading, spare, wanted - len(leading))
        U = _merged(sights + extra, leading + extra)
        self._set(white, U, leading + extra, sights + extra, labels)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The projections of other inputs on the directions, of variance one."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        return (X - self.mean_) @ self.components_.T

    def report(self) -> str:
        """What was found, how sure it is, and how many samples a network would need, in words."""
        check_is_fitted(self)
        return report(self)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _set(
        self, white: np.ndarray, U: np.ndarray, leading: list[Sight], sights: list[Sight], labels: np.ndarray
    ) -> None:
        # Signs that do not depend on the solver.
        U = U * np.where(U[np.argmax(np.abs(U), axis=0), np.arange(U.shape[1])] < 0, -1.0, 1.0)
        self._U = U
        self.components_ = (self._whitening.map @ U).T
        self.orders_ = np.array([seen.order for seen in leading])
        self.eigenvalues_ = np.array([seen.value for seen in leading])
        self.bulk_edges_ = np.array([seen.edge for seen in leading])
        u, q = np.stack([seen.u for seen in sights], axis=1), np.array([seen.q for seen in sights])
        # Each component as a combination of sights, whose errors are independent of each other.
        weights = np.linalg.lstsq(u, U, rcond=1e-6)[0]
        noise = np.einsum("jk,j->k", weights**2, 1 - q)
        self.overlaps_ = np.clip(1 - noise / np.sum((u @ weights) ** 2, axis=0), 0.0, 1.0)
        of = self._moments.slices.of
        fields = np.stack([seen.field(white, of) for seen in sights], axis=1) @ weights
        self._fields = fields / np.maximum(fields.std(axis=0), 1e-300)
        self._labels, self._slices = labels, self._moments.slices
        self.alpha_ = self._moments.alpha
        del self._moments


def numbered(y: np.ndarray) -> np.ndarray:
    """Labels as numbers: classes by their rank."""
    values = np.asarray(y)
    found = np.asarray(y, float) if values.dtype.kind in "biuf" else np.unique(y, return_inverse=True)[1].astype(float)
    if np.ptp(found) == 0:
        raise ValueError(f"y is constant, {values[0]} in every row: it says nothing of directions.")
    return found


def leading_of(sights: list[Sight]) -> list[Sight]:
    """One sight for each direction that is not a combination of others."""
    found: list[Sight] = []
    for seen in sights:
        if explained(seen, found) <= EXPLAINED:
            found.append(seen)
    return found


def _next_best(moments: Moments, leading: list[Sight], spare: list[Sight], count: int) -> list[Sight]:
    """So many more directions, though they do not stand out."""
    chosen: list[Sight] = []
    if count > 0:
        best = max(pilots(moments), key=lambda pilot: pilot.heights()[0])
        rest = [outlier(moments, best, j) for j in range(moments.d)]
        # Far from the span of the others first; in the end anything that is not in it.
        for candidates, far in ((spare, _FAR), (rest, _FAR), (rest, _LEAST_NOISE / moments.d)):
            for seen in candidates:
                basis = (
                    np.linalg.qr(np.stack([other.u for other in leading + chosen], axis=1))[0]
                    if leading + chosen
                    else np.zeros((moments.d, 0))
                )
                if len(chosen) < count and 1 - np.sum((basis.T @ seen.u) ** 2) > far:
                    chosen.append(dataclasses.replace(seen, q=_LEAST_Q) if candidates is rest else seen)
    return chosen


def _merged(sights: list[Sight], leading: list[Sight]) -> np.ndarray:
    """Orthonormal directions (d x k), one for each leading sight, from all sights."""
    columns = np.stack([seen.u / np.sqrt(max(1 - seen.q, _LEAST_NOISE)) for seen in sights], axis=1)
    span = np.linalg.svd(columns, full_matrices=False)[0][:, : len(leading)]
    inside = span.T @ np.stack([seen.u for seen in leading], axis=1)
    Q, R = np.linalg.qr(inside)
    return span @ (Q * np.where(np.diag(R) < 0, -1.0, 1.0))
