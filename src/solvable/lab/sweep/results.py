"""The result of one point as plain values: the same bits whatever the process computed before, and in any process."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.core.errors import ConvergenceError
from solvable.core.plain import to_json
from solvable.core.results import Prediction
from solvable.lab.grids import run_once
from solvable.lab.sweep.points import Point
from solvable.numerics.blas import single_thread
from solvable.verbs.predict import predict
from solvable.verbs.thresholds import thresholds


def result_of(point: Point) -> dict[str, Any]:
    """Compute a point. A prediction that did not converge is a result, with its status; what raises is not."""
    if point.learner is None:
        with single_thread():
            return {"thresholds": to_json(dict(thresholds(point.model)))}
    if point.d is None or point.seed is None:
        with single_thread():
            return _prediction(_predicted(point))
    outcome = run_once(point.model, point.learner, point.d, point.seed, point.axes)
    return to_json({"metrics": outcome.metrics, "converged": outcome.converged, "seconds": outcome.seconds})


def _predicted(point: Point) -> Prediction:
    assert point.learner is not None
    try:
        return predict(point.model, point.learner, True, **point.axes)
    except ConvergenceError as error:
        if error.prediction is None:
            raise
        return error.prediction


def _prediction(found: Prediction) -> dict[str, Any]:
    return to_json(
        {
            "metrics": found.metrics,
            "order_parameters": {name: v for name, v in found.order_parameters.items() if np.isrealobj(v)},
            "uncertainty": found.uncertainty,
            "status": int(found.status),
            "residual": found.residual,
            "iterations": found.iterations,
        }
    )
