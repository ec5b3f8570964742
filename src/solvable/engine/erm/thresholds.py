r"""Thresholds of convex learners: separable classes, and exact recovery by the l1 norm.

- Labels +-1 can be separated by a hyperplane through the origin below
  $\alpha = 1 / \min_t E[(x - t\,y z)_+^2]$, x ~ N(0, 1) independent of the label y and its projection z. There the
  logistic loss without penalty has no minimum. [cover1965geometrical, candes2020phase]
- A share rho of weights that are not zero is recovered from noiseless linear labels as the solution of least l1 norm
  above $\alpha = \min_t \{\rho (1 + t^2) + 2 (1 - \rho) E[(x - t)_+^2]\}$ [donoho2009counting].
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from solvable.core.registry import thresholds_of
from solvable.engine.erm import ERM
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.two_sided import TwoSided
from solvable.numerics.gaussian import gaussian_panels, normal_density
from solvable.priors.penalties import Lasso

_FLAT = 1e-12
_LARGEST_STEP = 60.0


def separability(labels: Likelihood) -> float:
    """The alpha below which labels +-1 are separable; infinite if they always are, NaN for other labels."""
    if not labels.binary:
        return float("nan")
    z, weight = gaussian_panels(labels.landscape.edges, 48)
    share = weight[:, None] * labels.probabilities(z)
    least = _least_excess(np.concatenate([-z, z]), share.T.ravel())
    return float("inf") if least < _FLAT else 1 / least


def lasso_recovery(density: float) -> float:
    """The alpha above which noiseless weights, a share `density` of them not zero, have the least l1 norm."""

    def needed(t: float) -> float:
        return density * (1 + t**2) + 2 * (1 - density) * float(_excess(np.array(t)))

    found = minimize_scalar(needed, bounds=(0.0, 40.0), method="bounded", options={"xatol": 1e-10})
    return float(min(found.fun, needed(0.0)))  # type: ignore[attr-defined]


@thresholds_of(
    TwoSided, ERM, references=("cover1965geometrical", "candes2020phase", "donoho2009counting", "hastie2022surprises")
)
def erm_thresholds(model: TwoSided, learner: ERM) -> dict[str, float]:
    """Where the minimiser of the risk changes its nature as its penalty vanishes.

    - `separability`, of a classification loss: below it a hyperplane separates the labels, and the loss has no minimum.
    - `interpolation`, of a regression loss: below it the labels are fitted exactly, at it the error is largest.
    - `recovery`, of the l1 norm on noiseless linear labels: above it the weights are found exactly.
    """
    labels = model.likelihood()
    labels.check(learner.loss)
    unit = float(model.gain(**{model.axis_names[0]: 1.0}))
    if learner.loss.margin:
        return {"separability": separability(labels) / unit}
    found = {"interpolation": 1.0 / unit}
    if isinstance(learner.penalty, Lasso) and labels.noiseless_linear:
        weight, mean, variance = model.signal_side().with_penalty(learner.penalty).mixture
        found["recovery"] = lasso_recovery(float(weight[(mean != 0) | (variance > 0)].sum())) / unit
    return found


def _excess(a: np.ndarray) -> np.ndarray:
    """E[(x - a)_+^2] for x ~ N(0, 1)."""
    return np.maximum((1 + a**2) * ndtr(-a) - a * normal_density(a), 0.0)


def _least_excess(u: np.ndarray, weight: np.ndarray) -> float:
    """min over t of E[(x - t u)_+^2], a convex function of t, for u of the given law."""

    def mean(t: float) -> float:
        return float(weight @ _excess(t * u))

    # The minimum may lie at infinity, where the labels are separable for any number of samples.
    found = minimize_scalar(mean, bracket=(-1.0, 1.0), options={"xtol": 1e-12})
    best = float(found.fun)  # type: ignore[attr-defined]
    return min(best, mean(_LARGEST_STEP**3), mean(-(_LARGEST_STEP**3)))
