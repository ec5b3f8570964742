r"""The theory of `LayerwiseSpectral` on a hierarchical target, exact for Gaussian features and infinite dimension.

An eigenvector of squared overlap $o_k$ is fitted with the coefficient $\lambda_k o_k$ of its square, which explains
$2\lambda_k^2 o_k^2$ of the variance of the label:

    generalization_error = 1 - 2 sum_k lambda_k^2 o_k^2.

The number K of learned features is where $\delta A_\lambda(l_e)$ falls below one. Of many learned features the overlap
is a smooth function of log k up to K: some are solved for, and the sum is made from their Chebyshev interpolation.

Far from the bulk's edge, $n \gg D$, and for weak features the matrix is white noise with a spike, and

    n_k = D E[y^2]/(4 lambda_k^2),   o_k = (1 - n_k/n)_+,    error ~ (n/D)^-(1 - 1/(2 gamma)):

that is `recovery_thresholds` and `white_noise_error`, for labels that are not preprocessed but have no heavy tails.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosine_error
from solvable.models.depth.hierarchical.labels import Labels, labels
from solvable.models.depth.hierarchical.learner import LayerwiseSpectral
from solvable.models.depth.hierarchical.model import SHOWN, HierarchicalTarget
from solvable.models.depth.hierarchical.spectrum import Averages, Found
from solvable.numerics.interpolation import chebyshev_nodes, fit
from solvable.numerics.roots import halving
from solvable.numerics.series import integer_rule

_ALONE = 63
"""Features that are solved for one by one: those that the rule for sums takes one by one as well."""
_INTERPOLATED = 20
_SAFETY, _ROUNDING = 2.0, 1e-12
_KEYS = ("wortsman2026scaling", "lu2020phase", "mondelli2017fundamental")


@theory(HierarchicalTarget, LayerwiseSpectral, references=_KEYS)
def layerwise_spectral(model: HierarchicalTarget, learner: LayerwiseSpectral, alpha: np.ndarray) -> Prediction:
    """Overlaps of the features and the error, at each alpha = n/D; the uncertainty is what coarser rules change."""
    fine, coarse = (_Method(model, learner, coarse) for coarse in (False, True))
    found, beside = ([method.at(float(a)) for a in alpha] for method in (fine, coarse))
    explained, change = np.array([point.explained for point in found]), np.array([p.explained for p in beside])
    error = _SAFETY * np.abs(explained - change) + _ROUNDING
    overlaps, coarser = (np.array([p.overlaps for p in part]).reshape(-1, SHOWN) for part in (found, beside))
    learned, other = (np.array([p.learned for p in part], float) for part in (found, beside))
    metrics = {
        "generalization_error": 1 - explained,
        "cosine": np.sqrt(explained),
        "squared_overlap": explained,
        "feature_overlap": overlaps,
        "features_learned": learned,
    }
    uncertainty = {
        "generalization_error": error,
        # Where no feature has an outlier by either rule all overlaps are zero, not small.
        "cosine": np.where((learned == 0) & (other == 0), _ROUNDING, cosine_error(explained, error)),
        "squared_overlap": error,
        "feature_overlap": _SAFETY * np.abs(overlaps - coarser) + _ROUNDING,
        "features_learned": np.abs(learned - other),
    }
    order = {"bulk_edge": np.array([p.edge for p in found]), "outlier": np.array([p.outlier for p in found])}
    return Prediction(metrics, order, np.full(len(alpha), int(Status.CONVERGED)), uncertainty=uncertainty)


@thresholds_of(HierarchicalTarget, references=_KEYS)
def recovery_thresholds(model: HierarchicalTarget) -> dict[str, float]:
    """n_k/D = E[y^2]/(4 lambda_k^2) of the strongest features: `feature_1`, `feature_2`, ... (labels as they are)."""
    found = (1 + float(model.noise)) / (4 * model.amplitudes(SHOWN) ** 2)
    return {f"feature_{k}": float(value) for k, value in enumerate(found, 1)}


@thresholds_of(HierarchicalTarget, LayerwiseSpectral, references=_KEYS)
def spectral_thresholds(model: HierarchicalTarget, learner: LayerwiseSpectral) -> dict[str, float]:
    """The n/D at which the strongest features are found, exactly: `feature_1`, `feature_2`, ..."""
    method = _Method(model, learner, False)
    found = method.averages.threshold(method.second(model.amplitudes(SHOWN)))
    return {f"feature_{k}": float(value) for k, value in enumerate(found, 1)}


def white_noise_error(model: HierarchicalTarget, alpha: np.ndarray) -> np.ndarray:
    """The error for overlaps o_k = (1 - n_k/n)_+, a limit for alpha to infinity."""
    first = float(model.amplitudes(1)[0])
    gamma, found = float(model.decay), np.zeros(np.shape(alpha))
    for index, a in np.ndenumerate(np.asarray(alpha, float)):
        last = _count((4 * a * first**2 / (1 + float(model.noise))) ** (1 / (2 * gamma)), model.features)
        if last:
            logs, weights, _ = integer_rule(last=last)
            squares = first**2 * np.exp(-2 * gamma * logs)
            overlaps = np.maximum(0.0, 1 - (1 + float(model.noise)) / (4 * squares * a))
            found[index] = 2 * weights @ (squares * overlaps**2)
    return 1 - found


class _Method:
    """Preprocessed labels of a model, and what is found from them."""

    def __init__(self, model: HierarchicalTarget, learner: LayerwiseSpectral, coarse: bool):
        self._model, self._coarse = model, coarse
        self._decay = float(model.decay)
        self._first = float(model.amplitudes(1)[0])
        self._labels = _labels(model, learner.breaks, coarse)
        self.averages = Averages(learner.transformed(self._labels.y), self._labels.weight)

    def second(self, amplitude: np.ndarray) -> np.ndarray:
        """weight times E[h^2|y] - 1 for features of these amplitudes."""
        return self._labels.second(amplitude)

    @functools.cached_property
    def _alone(self) -> np.ndarray:
        """The same of the first features."""
        return self.second(self._model.amplitudes(_ALONE))

    def at(self, delta: float) -> Found:
        """What is found at delta = n/D."""
        overlaps = np.zeros(SHOWN)
        if delta <= 0:
            return Found(math.inf, math.inf, overlaps, 0.0, 0.0)
        edge = float(self.averages.edge(np.array([delta]))[0])
        bulk = float(self.averages.eigenvalue(np.array([edge]), delta)[0])
        K = self._learned(delta, edge)
        if not K:
            return Found(bulk, bulk, overlaps, 0.0, 0.0)
        few = min(K, _ALONE)
        ell, o = self._solved(delta, edge, self._alone[:few])
        overlaps[: min(SHOWN, few)] = o[:SHOWN]
        explained = 2 * float(np.sum((self._model.amplitudes(few) * o) ** 2))
        if K > _ALONE:
            explained += self._beyond(delta, edge, K)
        return Found(bulk, float(self.averages.eigenvalue(ell[:1], delta)[0]), overlaps, float(K), explained)

    def _solved(self, delta: float, edge: float, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ell = self.averages.outlier(delta, edge, second)
        return ell, np.clip(self.averages.overlap(ell, delta, second), 0.0, 1.0)

    def _learned(self, delta: float, edge: float) -> int:
        """How many features have an outlier: a stronger one has one if a weaker does."""
        first = self.averages.A(np.full(len(self._alone), edge), self._alone) * delta > 1
        if not np.all(first) or (self._model.features or math.inf) <= _ALONE:
            return int(np.argmin(first)) if not np.all(first) else len(first)

        def lost(log_k: float) -> bool:
            second = self.second(np.array([self._first * math.exp(-self._decay * log_k)]))
            return bool(delta * self.averages.A(np.array([edge]), second)[0] <= 1)

        high = math.log(_ALONE)
        while not lost(high):
            high += 1.0
        return _count(math.exp(halving(lost, high - 1.0, high, 45).middle), self._model.features)

    def _beyond(self, delta: float, edge: float, K: int) -> float:
        """2 sum of lambda_k^2 o_k^2 over the features after those solved for, up to K."""
        ends, degree = np.log([_ALONE, K]), _INTERPOLATED // (2 if self._coarse else 1)
        second = self.second(self._first * np.exp(-self._decay * chebyshev_nodes(ends, degree)[0]))
        curve = fit(ends, degree, self._solved(delta, edge, second)[1][None])
        logs, weights, _ = integer_rule(last=K)
        logs, weights = logs[_ALONE:], weights[_ALONE:]
        squares = (self._first * np.exp(-self._decay * logs)) ** 2
        return 2 * float(weights @ (squares * curve(logs) ** 2))


def _labels(model: HierarchicalTarget, breaks: tuple[float, ...], coarse: bool) -> Labels:
    return labels(float(model.decay), model.features, float(model.noise), breaks, coarse)


def _count(number: float, features: int | None) -> int:
    """A number of features as an integer, of those there are."""
    return int(min(number, math.inf if features is None else features))
