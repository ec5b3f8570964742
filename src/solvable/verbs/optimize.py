"""`optimize`: the best values of hyper-parameters, from the theory and, where JAX can trace it, its derivative.

How the values are searched for is `search`'s; here is what is searched: the numbers of a model or a learner, by name.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import check_learner, check_model, check_point
from solvable.core.errors import ConvergenceError, NotSolvable, bad_parameter
from solvable.core.fields import Path, get_field, number_paths
from solvable.core.learners import BayesOptimal
from solvable.core.model import Learner, Model
from solvable.core.precision import float64
from solvable.core.registry import TheoryEntry, find_theory
from solvable.core.results import Prediction
from solvable.verbs.predict import predict
from solvable.verbs.search import GRID, Search, Values

DEFAULT_BOUNDS = (1e-4, 1e4)
DEFAULT_METRICS = ("generalization_error", "estimation_error")
LARGER_IS_BETTER = ("overlap", "cosine", "accuracy")


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The best `value` of the field `over`, with the `model` and `learner` that carry it and their `prediction`.

    For several fields `over` and `value` are tuples. `method` is "gradient" (the theory's derivative was used),
    "derivative-free" or "flat" (the metric does not depend on the fields, which keep their values). `at_bound` says
    that a best value is one of its `bounds`, so that a better one may lie beyond. `converged` is that of the prediction
    at the optimum. `bayes_optimal` is what no learner can beat on this model, None if that is not known.
    """

    over: str | tuple[str, ...]
    value: float | tuple[float, ...]
    metric: str
    prediction: Prediction
    model: Model
    learner: Learner
    evaluations: int
    method: str
    converged: bool
    at_bound: bool
    bounds: tuple[Any, ...]
    _bound: Callable[[], Prediction | None] = dataclasses.field(repr=False, default=lambda: None)

    @functools.cached_property
    def bayes_optimal(self) -> Prediction | None:
        """The Bayes-optimal prediction at the same point, found when it is first asked for."""
        return self._bound()

    def __repr__(self) -> str:
        edge = ", at a bound" if self.at_bound else ""
        names, values = _tuple(self.over), _tuple(self.value)
        best = ", ".join(f"{name}={value:.6g}" for name, value in zip(names, values, strict=True))
        return f"Optimum({best}, {self.metric}={self.prediction[self.metric]:.6g}{edge})"


def optimize(
    model: Model,
    learner: Learner,
    over: str | Sequence[str] = "penalty",
    metric: str | None = None,
    bounds: Any = None,
    **axes: Any,
) -> Optimum:
    """The best value of a number of the learner (or else of the model), by differentiating the theory.

    **Arguments:** `over`, the field, or up to three that are optimised together; a number inside a field goes by its
    own name, such as `"scale"` for that of a loss; `metric`, what to optimise (`generalization_error` if there is one,
    otherwise `estimation_error`); `bounds`, where to look, a pair or a pair for each field (what the learner proposes
    unless told, else 1e-4 to 1e4); the model's axes, single numbers. Overlaps, cosines and accuracies are made large,
    every other metric small.

    **Returns:** an `Optimum`. `method` says whether the derivative of the theory was used (`"gradient"`) or, for a
    theory that JAX cannot trace, function values only (`"derivative-free"`). A best value at a bound has `at_bound`,
    and `bayes_optimal` is the prediction that no learner can beat.
    """
    check_model(model)
    check_learner(learner)
    entry = find_theory(model, learner)
    point = check_point(model, axes)
    names = _check_names(over)
    owners = [_owner(model, learner, name) for name in names]
    limits = _check_bounds(bounds, names, owners, model, point)
    metric = _check_metric(metric, predict(model, learner, throw=False, **point))
    sign = -1.0 if any(word in metric for word in LARGER_IS_BETTER) else 1.0

    def pair(values: Values) -> tuple[Model, Learner]:
        chosen_model, chosen_learner = model, learner
        for name, owner, value in zip(names, owners, values, strict=True):
            if owner is learner:
                chosen_learner = chosen_learner.with_field(name, float(value))
            else:
                chosen_model = chosen_model.with_field(name, float(value))
        return chosen_model, chosen_learner

    def objective(values: Values) -> float:
        try:
            chosen = pair(values)
        except ValueError:
            return math.inf  # a field refuses this value: outside its domain
        found = predict(*chosen, throw=False, **point)
        return sign * found[metric] if found.converged else math.inf

    current = tuple(float(get_field(owner, name)) for name, owner in zip(names, owners, strict=True))
    gradient = _gradient(entry, model, learner, names, owners, metric, point, current)
    slope = None if gradient is None else lambda values: [sign * part for part in gradient(values)]
    search = Search(objective, slope, limits)
    values, method = search.run(current)
    if values is None:
        where = " and ".join(f"{n} between {low:g} and {high:g}" for n, (low, high) in zip(names, limits, strict=True))
        where = f"no value of {where} gave a converged prediction"
        raise ConvergenceError(f"{where} for {model}, {learner}; widen or move the bounds.")
    best_model, best_learner = pair(values)
    prediction = predict(best_model, best_learner, throw=False, **point)
    single = isinstance(over, str)
    return Optimum(
        over=names[0] if single else names,
        value=values[0] if single else values,
        metric=metric,
        prediction=prediction,
        model=best_model,
        learner=best_learner,
        evaluations=search.evaluations,
        method=method,
        converged=bool(prediction.converged),
        at_bound=method != "flat" and any(value in pair for value, pair in zip(values, limits, strict=True)),
        bounds=limits[0] if single else tuple(limits),
        _bound=lambda: _unbeatable(best_model, point),
    )


def _unbeatable(model: Model, point: dict[str, float]) -> Prediction | None:
    try:
        find_theory(model, BayesOptimal())
        return predict(model, BayesOptimal(), throw=False, **point)
    except (NotSolvable, ValueError):
        return None


def _gradient(
    entry: TheoryEntry,
    model: Model,
    learner: Learner,
    names: tuple[str, ...],
    owners: list[Any],
    metric: str,
    point: dict[str, float],
    current: Values,
) -> Callable[[Values], list[float]] | None:
    """The derivatives of the metric with respect to the fields, or None where JAX cannot trace the theory."""
    import jax
    import jax.numpy as jnp

    axes = {name: np.array([value]) if entry.vectorized else value for name, value in point.items()}
    paths = [number_paths(owner)[name] for name, owner in zip(names, owners, strict=True)]

    def traced(values: Any) -> Any:
        chosen_model, chosen_learner = model, learner
        for path, owner, value in zip(paths, owners, values, strict=True):
            place = functools.partial(_at, path)
            if owner is learner:
                chosen_learner = eqx.tree_at(place, chosen_learner, value)
            else:
                chosen_model = eqx.tree_at(place, chosen_model, value)
        return jnp.reshape(jnp.asarray(entry.function(chosen_model, chosen_learner, **axes).metrics[metric]), ())

    # Forward mode first, since it passes through while loops; reverse mode for rules that define only that.
    def forward(values: Any) -> list[Any]:
        if len(values) == 1:
            return [jax.jvp(traced, (values,), ([jnp.ones_like(values[0])],))[1]]
        along = jax.linearize(traced, values)[1]
        return [along([jnp.asarray(x) for x in row]) for row in np.eye(len(values))]

    for mode in (forward, jax.grad(traced)):

        @float64
        def gradient(values: Values, mode: Callable = mode) -> list[float]:
            return [float(part) for part in mode([jnp.asarray(value, dtype=jnp.float64) for value in values])]

        try:
            gradient(current)
        except Exception:  # the theory has just been evaluated without tracing, so whatever this is, tracing caused it
            continue
        return gradient
    return None


def _at(path: Path, module: Any) -> Any:
    for key in path:
        module = module[key] if isinstance(key, int) else getattr(module, key)
    return module


def _tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def _check_names(over: Any) -> tuple[str, ...]:
    names = (over,) if isinstance(over, str) else tuple(over) if isinstance(over, (list, tuple)) else ()
    if (
        not names
        or len(names) > max(GRID)
        or len(set(names)) < len(names)
        or not all(isinstance(n, str) for n in names)
    ):
        raise bad_parameter("over", over, f"the name of a field, or up to {max(GRID)} different ones")
    return names


def _owner(model: Model, learner: Learner, over: str) -> Any:
    takes = []
    for module in (learner, model):
        fields = {f.name: f.type for f in dataclasses.fields(module)}
        numeric = [n for n in number_paths(module) if fields.get(n) not in (int, "int")]
        if over in numeric:
            return module
        takes.append(f"a real-valued field of {type(module).__name__} ({', '.join(numeric) or 'it has none'})")
        if over in fields:
            break  # the learner's own field is meant, and it is not one that can be optimised
    raise bad_parameter("over", over, " or ".join(takes))


def _check_bounds(
    bounds: Any, names: tuple[str, ...], owners: list[Any], model: Model, point: dict[str, float]
) -> list[tuple[float, float]]:
    """The bounds of each field: one pair for a single field, or a pair for each, in order or by name."""
    if isinstance(bounds, Mapping):
        for name in bounds:
            if name not in names:
                raise bad_parameter("bounds", bounds, f"given for {', '.join(names)} only")
        given = [bounds.get(name) for name in names]
    elif bounds is None or len(names) == 1:
        given = [bounds] * len(names)
    else:
        given = list(bounds) if isinstance(bounds, (list, tuple)) and len(bounds) == len(names) else [bounds]
    if len(given) != len(names):
        raise bad_parameter("bounds", bounds, "a pair of numbers for each field")
    return [
        _check_pair(pair if pair is not None else owner.search_bounds(name, model, point) or DEFAULT_BOUNDS)
        for pair, name, owner in zip(given, names, owners, strict=True)
    ]


def _check_pair(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
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
