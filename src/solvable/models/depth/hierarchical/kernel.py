r"""Kernel ridge regression on hierarchical targets: a network whose features are those of any target.

A label is of degree 2q in the inputs. A kernel learns the part of degree p from about d^p samples, so that of some
$D \sim d^q$ samples it learns what the label has of degree q and below, which vanishes as d grows. For Gaussian
features the same holds in their dimension D: the label has no linear part, and its squares take D^2/2 samples. With
the best penalty the prediction is the mean label, and the error the variance of the label.
"""

from __future__ import annotations

import numpy as np

from solvable.core.errors import NotSolvable
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.kernel import Kernel
from solvable.engine.kernel.fit import fit_kernel
from solvable.models.depth.hierarchical.model import SHOWN, HierarchicalData, HierarchicalTarget

_FRESH = 2000
_KEYS = ("wortsman2026scaling", "ghorbani2021linearized")


@theory(HierarchicalTarget, Kernel, references=_KEYS)
def kernel(model: HierarchicalTarget, learner: Kernel, alpha: np.ndarray) -> Prediction:
    """Nothing is learned at any n/D, with the best penalty."""
    if learner.penalty is not None:
        raise NotSolvable(
            "the theory of HierarchicalTarget x Kernel is that of the best penalty: leave out penalty, or simulate it."
        )
    nothing = np.zeros(len(alpha))
    metrics = {"generalization_error": nothing + 1, "cosine": nothing, "squared_overlap": nothing}
    metrics |= {"feature_overlap": np.zeros((len(alpha), SHOWN)), "features_learned": nothing}
    exact = {name: np.zeros_like(value) for name, value in metrics.items()}
    return Prediction(metrics, status=np.full(len(alpha), int(Status.CONVERGED)), uncertainty=exact)


@simulation(HierarchicalTarget, Kernel, references=_KEYS)
def run_kernel(model: HierarchicalTarget, learner: Kernel, data: HierarchicalData, rng: np.random.Generator) -> Outcome:
    """One fit in the inputs, or in the features where those are Gaussian; its error is that on fresh samples."""

    def seen(Phi: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        points = Phi if X is None else X
        return points / np.sqrt(points.shape[1])

    fit = fit_kernel(learner, seen(data.Phi, data.inputs), data.y)
    Phi, X = model.embedded(rng, _FRESH, data.dimension)
    label, predicted = model.labels(Phi, data.truth, data.amplitudes), fit.predict(seen(Phi, X))
    moments = [float(a @ b) / _FRESH for a, b in ((predicted, label), (predicted, predicted), (label, label))]
    moments[2] += data.unseen
    metrics = {"generalization_error": moments[1] - 2 * moments[0] + moments[2]}
    metrics |= {name: float(value) for name, value in cosines(*moments).items()}
    metrics |= {"feature_overlap": np.zeros(SHOWN), "features_learned": 0.0}
    return Outcome(metrics, fit, details={"penalty": fit.penalty})
