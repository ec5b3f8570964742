r"""A Boltzmann machine of few hidden units for one's own inputs, and how far they stand out of noise.

Inputs are centred and divided by one number, the standard deviation $\sigma$ of their noise. The weights maximise the
likelihood of $P(x, h) \propto P(x) P(h)\, e^{x\cdot W h/\sqrt d}$ with Gaussian visible units,

    sum_mu eta1(W^T x_mu / sqrt d) - n eta2(W^T W / d),     eta1(z) = log E e^{z.h},    eta2(Q) = log E e^{h^T Q h / 2},

and a sample is described by the means of its hidden units, $\nabla\eta_1$: tanh of its field for units +-1, the field
itself for Gaussian ones, which are principal components. [xu2025learning]

The eigenvalues l of the covariance of n inputs that are noise follow the law of Marchenko and Pastur with
$\gamma = d/n$, whose median gives $\sigma$, and end at $(1 + \sqrt\gamma)^2$. A direction along which the variance is
larger by the factor $1 + \theta$, $\theta > \sqrt\gamma$, has an eigenvalue outside [baik2005phase],

    l = (1 + theta)(1 + gamma/theta),     squared cosine of its eigenvector  (1 - gamma/theta^2)/(1 + gamma/theta).

Noise alone exceeds the edge a little: centred and scaled its largest eigenvalue follows the law of Tracy and Widom
[johnstone2001distribution].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import svdvals
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.core.checks import check_count
from solvable.models.lowrank.rbm.run import by_ascent, by_eigenvectors, log_likelihood
from solvable.models.lowrank.rbm.units import KINDS, MOST, GaussianUnits, Units, check_hidden
from solvable.spectra.wishart import MarchenkoPastur

_SEEN_BY_CHANCE = 2.0234
"""What the largest eigenvalue of noise exceeds once in a hundred times: a quantile of the law of Tracy and Widom."""
_TINY = np.finfo(float).tiny


class RBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The means of a few hidden units of a Boltzmann machine of largest likelihood.

    - `units`: their number. `hidden`: `"binary"` for units +-1, `"gaussian"` for principal components.
    - `standardize`: whether each feature is first divided by its own standard deviation.
    - `starts`: random starts of the ascent for binary units; that of largest likelihood is kept.
    - `random_state`: of the starts.

    After `fit`: `components_` (units x features), whose products with centred inputs are the fields of the units;
    `noise_scale_`, the standard deviation of the noise; `eigenvalues_` of the covariance in units of its square, the
    largest first, and `edge_`, where those of noise end. `excess_` is by how many of its typical fluctuations each
    eigenvalue exceeds that (chance reaches 2 once in a hundred times), `outliers_` how many stand out, `snr_` the
    strength theta of each of these, and `squared_overlap_` the squared cosine that its eigenvector has with the true
    direction, by theory. These take noise of the same size and no correlations in all features.
    """

    def __init__(
        self,
        units: int = 1,
        hidden: str = "binary",
        standardize: bool = False,
        starts: int = 3,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.units = units
        self.hidden = hidden
        self.standardize = standardize
        self.starts = starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RBM:
        """Find the weights for inputs X (n x d); labels are not looked at."""
        units = KINDS[check_hidden(self.hidden)](check_count("units", self.units, least=1, most=MOST))
        starts = check_count("starts", self.starts, least=1)
        X = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        deviations = centred.std(axis=0) if self.standardize else np.ones(X.shape[1])
        deviations[deviations == 0] = 1.0
        centred /= deviations
        self._judge(centred)
        d = X.shape[1]
        inputs = centred / (max(self.noise_scale_, _TINY) * np.sqrt(d))
        W = self._weights(units, inputs, starts)
        order = np.argsort(-np.sum(W**2, axis=0), kind="stable")
        largest = W[np.argmax(np.abs(W), axis=0), np.arange(units.count)]
        W = (W * np.where(largest < 0, -1.0, 1.0))[:, order]
        self.components_ = (W / (max(self.noise_scale_, _TINY) * np.sqrt(d) * deviations[:, None])).T
        self._self_overlap = W.T @ W / d
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The mean of each hidden unit (n x units)."""
        return np.asarray(self._units().force(self._fields(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of an input, relative to a machine without weights."""
        fields, units = self._fields(X), self._units()
        return float(np.mean(units.gain(fields))) - units.cost(self._self_overlap)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _units(self) -> Units:
        return KINDS[self.hidden](len(self.components_))

    def _fields(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        return (X - self.mean_) @ self.components_.T

    def _weights(self, units: Units, inputs: np.ndarray, starts: int) -> np.ndarray:
        if isinstance(units, GaussianUnits):
            self.converged_, self.n_iter_ = True, 1
            return by_eigenvectors(units, inputs)
        seeds = check_random_state(self.random_state).randint(2**31, size=starts)
        ends = [by_ascent(units, inputs, np.random.default_rng(int(seed))) for seed in seeds]
        W, self.converged_, self.n_iter_ = max(ends, key=lambda end: log_likelihood(units, inputs, end[0]))
        return W

    def _judge(self, centred: np.ndarray) -> None:
        """The noise, and what stands out of it; centring takes one sample away."""
        samples, d = len(centred) - 1, centred.shape[1]
        values = np.asarray(svdvals(centred))[: min(samples, d)] ** 2 / samples
        law = np.sqrt(d / samples) * MarchenkoPastur(samples / d).eigenvalues(d)[::-1][: len(values)]
        middle = len(values) // 2
        variance = values[middle] / law[middle]
        self.noise_scale_ = float(np.sqrt(variance))
        ratio = d / samples
        self.edge_ = float((1 + np.sqrt(ratio)) ** 2)
        self.eigenvalues_ = values / max(variance, _TINY)
        roots = np.sqrt(samples - 0.5), np.sqrt(d - 0.5)
        width = sum(roots) * (1 / roots[0] + 1 / roots[1]) ** (1 / 3)
        self.excess_ = (samples * self.eigenvalues_ - sum(roots) ** 2) / width
        beyond = (self.excess_ > _SEEN_BY_CHANCE) & (self.eigenvalues_ > self.edge_)
        self.outliers_ = int(np.argmin(beyond)) if not beyond.all() else len(beyond)
        lifted = self.eigenvalues_[: self.outliers_] - 1 - ratio
        self.snr_ = (lifted + np.sqrt(np.maximum(lifted**2 - 4 * ratio, 0.0))) / 2
        self.squared_overlap_ = (1 - ratio / self.snr_**2) / (1 + ratio / self.snr_)
