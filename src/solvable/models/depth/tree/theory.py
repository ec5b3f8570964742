r"""What is learned of a tree target from $n = d^\kappa$ samples as d grows: steps at certain kappa, flat between.

The parts of the label that a learner has enough samples for it learns completely, and of the others nothing.

- A kernel learns the part of degree q in the inputs above kappa = q. [ghorbani2021linearized, mei2022generalization]
- The first layer of a network finds the target's directions above $\kappa = 1 + \epsilon$, if P has a part of degree
  two and g a linear one, which is what the eigenvectors of $\frac1n\sum y(xx^T - I)$ need; otherwise it does not.
- Once it has, there are $d^\epsilon$ inputs instead of d: a read-out learns the part of degree q above
  $\kappa = q\epsilon$. [dandi2025computational]
- A second layer finds the part of degree at most q of the sum of the hidden features at the same place, and a read-out
  of that then learns the best function of it: for one branch everything, once q is the degree of P.

On a step the limit depends on more than kappa: such points are AMBIGUOUS_BRANCH. A second layer that regresses y on
polynomials of degree Q finds the hidden feature alone if no other power of h in y has a part of degree at most Q;
otherwise the feature is a mixture, and the point OUT_OF_DOMAIN. So is a first layer between kappa = 1 and its threshold
if P has a linear and g a quadratic part: it then finds the one direction of the linear part alone.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosine_error
from solvable.engine.kernel import Kernel
from solvable.models.depth.learners import SPECTRAL, Layerwise
from solvable.models.depth.tree.degrees import MOST_DEGREE
from solvable.models.depth.tree.model import TreeTarget

DEGREES = 6
"""How far the steps of a kernel of any degree are named."""
_SAME = 1e-9
"""How near two values of kappa are the same."""
_SEEN = 1e-11
"""A part of the label that explains less of its variance is none."""
_ROUNDING = 1e-13
"""Of a share of the label's variance that is known to be all of it, or to be none."""


@theory(TreeTarget, Kernel, references=("ghorbani2021linearized", "mei2022generalization"))
def kernel(model: TreeTarget, learner: Kernel, kappa: np.ndarray) -> Prediction:
    """All parts of degree below kappa are learned, up to the degree of the kernel."""
    learned = np.array([model.degrees.learned(min(_whole(k), learner.degree)) for k in kappa])
    status = _ambiguous(kappa, map(float, _jumps(model, learner.degree)))
    return _prediction(model, learned, model.degrees.error(learned), status)


@theory(TreeTarget, Layerwise, references=("dandi2025computational",))
def layerwise(model: TreeTarget, learner: Layerwise, kappa: np.ndarray) -> Prediction:
    """Nothing below the first layer's threshold, and above what its features allow."""
    degrees, first = model.degrees, first_layer(model)
    top = _degree(model, learner)
    Q = np.array([min(_whole(k / model.exponent), top) if k > first else 0 for k in kappa])
    found = {"first_layer": np.where(kappa > first, 1.0, 0.0)}
    status = _ambiguous(kappa, thresholds_of_layerwise(model, learner).values())
    alone = degrees.shares[1] > 0 and degrees.second_power == 2
    status = np.where(alone & (kappa > 1) & (kappa <= first), int(Status.OUT_OF_DOMAIN), status)
    if learner.layers == 1:
        learned = np.array([degrees.learned(q) for q in Q])
        return _prediction(model, learned, degrees.error(learned), status, found)
    found["second_layer"] = np.array([degrees.part(q) for q in Q])
    mixed = degrees.second_power * degrees.lowest <= Q
    status = np.where(mixed, int(Status.OUT_OF_DOMAIN), status)
    learned = np.array([degrees.read(q, model.branches) for q in Q])
    error = degrees.error(learned) + np.array([degrees.read_error(q, model.branches) for q in Q])
    return _prediction(model, learned, error, status, found)


def first_layer(model: TreeTarget) -> float:
    """Above which kappa the eigenvectors find the target's directions."""
    seen = model.degrees.shares[2] > 0 and model.degrees.linear
    return 1 + float(model.exponent) if seen else math.inf


@thresholds_of(TreeTarget, references=("dandi2025computational", "ghorbani2021linearized"))
def steps(model: TreeTarget) -> dict[str, float]:
    """Where a kernel begins to learn, a first layer finds the directions, a second one the hidden features."""
    first, whole = first_layer(model), model.degrees.highest
    jumps = _jumps(model, math.inf)
    return {
        "first_layer": first,
        "second_layer": max(first, float(model.exponent) * whole),
        "kernel": float(jumps[0]) if jumps else math.inf,
    }


@thresholds_of(TreeTarget, Kernel, references=("ghorbani2021linearized", "mei2022generalization"))
def thresholds_of_kernel(model: TreeTarget, learner: Kernel) -> dict[str, float]:
    """Where the error of a kernel falls, for degrees up to six if the kernel has any."""
    return {f"degree_{q}": float(q) for q in _jumps(model, learner.degree) if q <= DEGREES or learner.degree < math.inf}


@thresholds_of(TreeTarget, Layerwise, references=("dandi2025computational",))
def thresholds_of_layerwise(model: TreeTarget, learner: Layerwise) -> dict[str, float]:
    """Where the first layer finds the directions, and above what else is learned with them."""
    first = first_layer(model)
    found = {"first_layer": first}
    if math.isinf(first):
        return found
    if learner.layers == 1:
        degrees = [q for q in _jumps(model, _degree(model, learner)) if q * model.exponent > first]
        return found | {f"degree_{q}": q * float(model.exponent) for q in degrees}
    parts = model.degrees.shares[: int(_degree(model, learner)) + 1]
    steps = [q * float(model.exponent) for q in np.nonzero(parts)[0] if q * model.exponent > first]
    later = {f"second_layer_{i}": step for i, step in enumerate(steps[:-1], start=1)}
    return found | later | {"second_layer": steps[-1] if steps else first}


def _degree(model: TreeTarget, learner: Layerwise) -> float:
    """The largest degree in the target's directions that the learner's features have.

    That of its polynomials; neurons have any, of which a second layer uses those of the hidden features.
    """
    if learner.training == SPECTRAL:
        return learner.degree
    return MOST_DEGREE if learner.layers == 1 else min(model.degrees.highest, MOST_DEGREE)


def _jumps(model: TreeTarget, degree: float) -> list[int]:
    """The degrees that explain a part of the label, up to that of the learner."""
    top = int(min(degree, MOST_DEGREE))
    learned = [model.degrees.learned(q) for q in range(top + 1)]
    return [q for q in range(1, top + 1) if learned[q] - learned[q - 1] > _SEEN * model.degrees.variance]


def _whole(kappa: float) -> int:
    """The largest degree whose threshold is at most kappa."""
    return math.floor(kappa + _SAME)


def _ambiguous(kappa: np.ndarray, steps) -> np.ndarray:
    there = np.array([step for step in steps if math.isfinite(step)])
    on = np.any(np.abs(kappa[:, None] - there) < _SAME, axis=1) if there.size else np.zeros(len(kappa), bool)
    return np.where(on, int(Status.AMBIGUOUS_BRANCH), int(Status.CONVERGED))


def _prediction(
    model: TreeTarget,
    learned: np.ndarray,
    error: np.ndarray,
    status: np.ndarray,
    found: dict[str, np.ndarray] | None = None,
) -> Prediction:
    """The metrics where so much of the label's variance is learned, known to within `error`."""
    variance = model.degrees.variance
    share, of_share = np.clip(learned / variance, 0.0, 1.0), error / variance
    metrics = {
        "generalization_error": np.maximum(variance - learned, 0.0),
        "cosine": np.sqrt(share),
        "squared_overlap": share,
    }
    uncertainty = {
        "generalization_error": error + _ROUNDING * variance,
        "cosine": cosine_error(share, of_share) + _ROUNDING,
        "squared_overlap": of_share + _ROUNDING,
    }
    metrics |= found or {}
    exact = np.zeros(len(learned))  # a first layer is found or not
    uncertainty |= {
        name: exact if name == "first_layer" else model.degrees.error_of_part(value)
        for name, value in (found or {}).items()
    }
    return Prediction(metrics, status=status, uncertainty=uncertainty)
