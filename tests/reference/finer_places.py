"""Attention with places by finer rules: the package's equations with another copy of its averages, of smaller steps."""

from __future__ import annotations

import functools
import importlib.util
import sys
from types import ModuleType
from typing import Any

import equinox as eqx
import numpy as np

from solvable.models.attention.positional import scores, theory

STEP = 0.4


@functools.cache
def finer_scores() -> ModuleType:
    """The module of the averages once more, with trapezoidal rules of step `STEP`."""
    spec = importlib.util.spec_from_file_location("finer_scores", scores.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    assert STEP < module._STEP
    module._STEP = STEP
    module._GRID = module._grid()
    module._LINE = np.unique(module._GRID[1])
    return module


def metrics(model: Any, learner: Any, alpha: float, found: Any) -> dict[str, float]:
    """The metrics of the same branch, of those that a prediction has."""
    numbers = (np.asarray(number, float) for number in (model.positional, model.place, model.variance))
    law = finer_scores().AttentionScores(*numbers)
    risk = eqx.tree_at(lambda evolution: evolution.output.labels, theory.sides(model, learner), law)
    names = theory.BRANCHES if learner.start is None else (learner.start,)
    best = theory.lowest([theory.branch(risk, alpha, name) for name in names], risk, alpha)
    point = best.point
    return theory.scored(law, np.abs(point.c), point.q, point.loss, point.energy)
