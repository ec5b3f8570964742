"""The best value of one hyper-parameter, found from the theory and, where JAX can trace it, its derivative.

The search is made for functions of one variable that may have several minima, points without a solution and optima
at the edge: a coarse grid (logarithmic when the bounds span a decade), then, around each of its lowest minima, the
root of the derivative between the neighbouring grid points. A derivative is used only if it agrees with finite
differences of the theory; otherwise Brent's bounded minimisation takes its place.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.errors import ConvergenceError, bad_parameter
from solvable.core.model import Learner, Model
from solvable.core.precision import float64
from solvable.core.registry import TheoryEntry
from solvable.core.results import Prediction

DEFAULT_BOUNDS = (1e-4, 1e4)
DEFAULT_METRICS = ("generalization_error", "estimation_error")
LARGER_IS_BETTER = ("overlap", "cosine", "accuracy")
GRID = 25
STARTS = 3


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The best `value` of the field `over`, with the `model` and `learner` that carry it and their `prediction`.

    `method` is "gradient" (root of the theory's derivative), "derivative-free" (Brent) or "flat" (the metric does not
    depend on the field, which keeps its value). `at_bound` says that the best value is one of the `bounds`, so that a
    better one may lie beyond. `converged` is that of the prediction at the optimum.
    """

    over: str
    value: float
    metric: str
    prediction: Prediction
    model: Model
    learner: Learner
    evaluations: int
    method: str
    converged: bool
    at_bound: bool
    bounds: tuple[float, float]

    def __repr__(self) -> str:
        edge = ", at a bound" if self.at_bound else ""
        return f"Optimum({self.over}={self.value:.6g}, {self.metric}={self.prediction[self.metric]:.6g}{edge})"


def best_value(
    predict: Callable[..., Prediction],
    entry: TheoryEntry,
    model: Model,
    learner: Learner,
    over: str,
    metric: str | None,
    bounds: tuple[float, float] | None,
    point: dict[str, float],
) -> Optimum:
    """Optimise `metric` over the field `over` at one point of the axes (see `verbs.optimize`)."""
    owner = _owner(model, learner, over)
    low, high = _check_bounds(bounds)
    metric = _check_metric(metric, predict(model, learner, throw=False, **point))
    sign = -1.0 if any(word in metric for word in LARGER_IS_BETTER) else 1.0

    def pair(value: float) -> tuple[Model, Learner]:
        changed = owner.with_field(over, float(value))
        return (model, changed) if owner is learner else (changed, learner)

    def objective(value: float) -> float:
        try:
            chosen = pair(value)
        except ValueError:
            return math.inf  # the field refuses this value: outside its domain
        found = predict(*chosen, throw=False, **point)
        return sign * found[metric] if found.converged else math.inf

    derivative = _derivative(entry, model, learner, owner, over, metric, point)
    slope = None if derivative is None else lambda value: sign * derivative(value)
    search = _Search(objective, slope, low, high)
    value, method = search.run(float(getattr(owner, over)))
    if value is None:
        where = f"no value of {over} between {low:g} and {high:g} gave a converged prediction"
        raise ConvergenceError(f"{where} for {model}, {learner}; widen or move the bounds.")
    best_model, best_learner = pair(value)
    prediction = predict(best_model, best_learner, throw=False, **point)
    return Optimum(
        over=over,
        value=value,
        metric=metric,
        prediction=prediction,
        model=best_model,
        learner=best_learner,
        evaluations=search.evaluations,
        method=method,
        converged=bool(prediction.converged),
        at_bound=method != "flat" and value in (low, high),
        bounds=(low, high),
    )


class _Search:
    """Minimise a function of one variable between two bounds, counting the evaluations."""

    def __init__(self, objective: Callable[[float], float], slope: Callable | None, low: float, high: float):
        self.logarithmic = low > 0 and high >= 10 * low
        self.low, self.high = low, high
        self.evaluations = 0
        self._objective, self._slope = objective, slope

    def run(self, current: float) -> tuple[float | None, str]:
        """The best value (None if no point has one) and the method that found it; `current` is kept if flat."""
        ends = (math.log(self.low), math.log(self.high)) if self.logarithmic else (self.low, self.high)
        grid = np.linspace(*ends, GRID)
        heights = np.array([self.height(t) for t in grid])
        finite = np.isfinite(heights)
        if not finite.any():
            return None, "none"
        scale = np.abs(heights[finite]).max()
        if np.ptp(heights[finite]) <= 1e-12 * scale:
            return float(np.clip(current, self.low, self.high)), "flat"
        padded = np.concatenate([[math.inf], heights, [math.inf]])
        valleys = np.flatnonzero(finite & (heights <= padded[:-2]) & (heights <= padded[2:]))
        brackets = [
            (int(i), float(grid[max(i - 1, 0)]), float(grid[min(i + 1, GRID - 1)]))
            for i in valleys[np.argsort(heights[valleys], kind="stable")][:STARTS]
        ]
        if self._slope is not None and not self._trustworthy(brackets[0][1:]):
            self._slope = None
        method = "derivative-free" if self._slope is None else "gradient"
        candidates = [(float(heights[i]), float(grid[i])) for i in valleys]
        for i, left, right in brackets:
            t = self._refine(left, float(grid[i]), right)
            candidates.append((self.height(t), t))
        t = min(candidates)[1]
        if t in (grid[0], grid[-1]):
            return (self.low if t == grid[0] else self.high), method
        return self.value(t), method

    def value(self, t: float) -> float:
        return min(max(math.exp(t), self.low), self.high) if self.logarithmic else t

    def height(self, t: float) -> float:
        self.evaluations += 1
        height = self._objective(self.value(t))
        return height if math.isfinite(height) else math.inf

    def slope(self, t: float) -> float:
        assert self._slope is not None
        self.evaluations += 1
        value = self.value(t)
        return self._slope(value) * (value if self.logarithmic else 1.0)

    def _trustworthy(self, bracket: tuple[float, float]) -> bool:
        """Whether the derivative agrees with a central difference at both ends of the bracket."""
        middle, step = sum(bracket) / 2, 1e-4 * (bracket[1] - bracket[0])
        for end in bracket:
            t = end + math.copysign(2 * step, middle - end)
            above, below = self.height(t + step), self.height(t - step)
            difference, slope = (above - below) / (2 * step), self.slope(t)
            noise = 1e-10 * max(abs(above), abs(below)) / step
            if not abs(difference - slope) <= 0.01 * max(abs(difference), abs(slope)) + noise:
                return False
        return True

    def _refine(self, left: float, middle: float, right: float) -> float:
        from scipy.optimize import brentq, minimize_scalar

        if self._slope is not None:
            if self.slope(left) < 0 < self.slope(right):
                return float(brentq(self.slope, left, right, xtol=1e-12, rtol=1e-12))  # type: ignore[arg-type]
            if middle in (left, right):
                return middle  # the slope points out of the interval: the bound itself
        with np.errstate(
            invalid="ignore"
        ):  # infinite heights make its parabolas NaN, and it then takes golden sections
            found = minimize_scalar(self.height, bounds=(left, right), method="bounded", options={"xatol": 1e-9})
        return float(found.x)  # type: ignore[attr-defined]


def _derivative(
    entry: TheoryEntry, model: Model, learner: Learner, owner: Any, over: str, metric: str, point: dict[str, float]
) -> Callable[[float], float] | None:
    """The derivative of the metric with respect to the field, or None where JAX cannot trace the theory."""
    import jax
    import jax.numpy as jnp

    axes = {name: np.array([value]) if entry.vectorized else value for name, value in point.items()}

    def traced(value):
        changed = eqx.tree_at(lambda module: getattr(module, over), owner, value)
        chosen = (model, changed) if owner is learner else (changed, learner)
        return jnp.reshape(jnp.asarray(entry.function(*chosen, **axes).metrics[metric]), ())

    # Forward mode first, since it passes through while loops; reverse mode for rules that define only that.
    modes = (lambda value: jax.jvp(traced, (value,), (jnp.ones_like(value),))[1], jax.grad(traced))
    for mode in modes:
        derivative = float64(lambda value, mode=mode: float(mode(jnp.asarray(value, dtype=jnp.float64))))
        try:
            derivative(float(getattr(owner, over)))
        except Exception:  # the theory has just been evaluated without tracing, so whatever this is, tracing caused it
            continue
        return derivative
    return None


def _owner(model: Model, learner: Learner, over: str) -> Any:
    takes = []
    for module in (learner, model):
        fields = {f.name: f.type for f in dataclasses.fields(module)}
        numeric = [n for n, kind in fields.items() if kind not in (int, "int") and is_number(getattr(module, n))]
        if over in numeric:
            return module
        takes.append(f"a real-valued field of {type(module).__name__} ({', '.join(numeric) or 'it has none'})")
        if over in fields:
            break  # the learner's own field is meant, and it is not one that can be optimised
    raise bad_parameter("over", over, " or ".join(takes))


def is_number(value: Any) -> bool:
    """Whether a field holds a single real number (booleans are not numbers here)."""
    if isinstance(value, numbers.Real):
        return not isinstance(value, bool)
    return getattr(value, "ndim", None) == 0 and np.asarray(value).dtype.kind in "iuf"


def _check_bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = DEFAULT_BOUNDS if bounds is None else (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise bad_parameter("bounds", bounds, "a pair of numbers (lowest, highest)") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise bad_parameter("bounds", bounds, "two finite numbers, the lower one first")
    return low, high


def _check_metric(metric: str | None, prediction: Prediction) -> str:
    names = list(prediction.metrics)
    if metric is None:
        metric = next((name for name in DEFAULT_METRICS if name in names), None)
        if metric is None:
            raise bad_parameter("metric", metric, f"given here, one of: {', '.join(names)}")
    if metric not in names:
        raise bad_parameter("metric", metric, f"one of: {', '.join(names)}")
    if np.ndim(prediction[metric]) > 0:
        raise bad_parameter("metric", metric, "a metric with a single value, not a matrix")
    return metric
