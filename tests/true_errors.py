"""True errors of predictions at random points, beside their stated uncertainties: what tests of coverage judge.

A draw makes, from a random generator, a model, a learner, a grid of each axis, and `truth`: a function of model,
learner, the place on each axis and the prediction there, which gives metrics by better rules or independent equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import solvable as sv

COVERED, HUGE = 0.95, 1e-3
ROUNDING = 1e-10
"""An uncertainty below this, relative to the larger of one and the value, is that of rounding."""

Point = tuple[Any, Any, dict[str, np.ndarray], Callable]
Draw = Callable[[np.random.Generator], Point]


class Judged(NamedTuple):
    """The share of true errors within the uncertainty, their median ratio, how many there are, and the others."""

    covered: float
    ratio: float
    count: int
    worst: list[str]

    def __str__(self) -> str:
        return f"{self.count} numbers, {self.covered:.1%} covered, median ratio {self.ratio:.2g}"


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int | None = None) -> Any:
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def true_errors(draw: Draw, points: int, seed: int = 0) -> Iterator[tuple[float, float, float, str]]:
    """True error, uncertainty and value of each metric at about so many converged points, and where that was."""
    rng, seen = np.random.default_rng(seed), 0
    while seen < points:
        model, learner, axes, truth = draw(rng)
        found = sv.predict(model, learner, throw=False, **axes)
        places = [dict(zip(axes, place, strict=True)) for place in zip(*axes.values(), strict=True)] or [{}]
        for i, place in enumerate(places):
            seen += 1
            at = (i,) if axes else ()
            if not np.asarray(found.converged)[at]:
                continue
            order = {key: np.asarray(value)[at] for key, value in found.order_parameters.items()}
            metrics, stated = (
                {k: np.asarray(v)[at] for k, v in part.items()} for part in (found.metrics, found.uncertainty)
            )
            point = sv.Prediction(metrics, order, uncertainty=stated)
            with jax.enable_x64(True):
                exact = truth(model, learner, *map(float, place.values()), point)
            where = ", ".join([f"{model}, {learner}", *(f"{name}={value:.6g}" for name, value in place.items())])
            for metric, value in exact.items():
                error = np.max(np.abs(np.asarray(found[metric])[at] - value))
                stated = float(np.max(np.asarray(found.uncertainty[metric])[at]))
                yield float(error), stated, float(np.max(np.abs(value))), f"{metric} of {where}"


def judged(draw: Draw, points: int, seed: int = 0) -> Judged:
    """How the uncertainties at so many points compare with the true errors."""
    rows = list(true_errors(draw, points, seed))
    error, stated, size = (np.array(column) for column in list(zip(*rows, strict=True))[:3])
    rounding = 1e-14 * np.maximum(1, size)  # which the better rule has as well
    good = error <= stated + rounding
    blurred = stated > ROUNDING * np.maximum(1, size)
    ratio = float(np.median(error[blurred] / stated[blurred])) if blurred.sum() >= 10 else 1.0
    worst = [f"{row[3]}: {row[0]:.1e} +- {row[1]:.1e}" for row, fine in zip(rows, good, strict=True) if not fine]
    return Judged(float(np.mean(good)), ratio, len(rows), worst)


def assert_honest(name: str, draw: Draw, points: int) -> None:
    """That the uncertainties at so many points cover the true errors, and are not huge."""
    found = judged(draw, points)
    print(f"{name}: {found}")
    assert found.covered >= COVERED, "\n".join(found.worst[:10])
    assert found.ratio >= HUGE
