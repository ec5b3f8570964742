"""What the theory of wide teachers costs: one point warm, a hundred points at once, and the first point of a model.

Milliseconds of CPU time, medians of several rounds. A point should be below 5 ms warm.
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv
from solvable.core.registry import find_theory

ROUNDS = 7
MODELS = {
    "cubic, infinite width": sv.WideTeacher(1.0, np.inf, noise=0.1),
    "cubic, width 1000, exponent 3/4": sv.WideTeacher(0.75, 1000, noise=0.1),
    "tanh, width 20": sv.WideTeacher(1.0, 20, "tanh(2*z)", 0.02),
    "relu, extensive (universal)": sv.WideNetwork(0.5, "relu", 0.1),
}


def measure(model: sv.Model) -> dict[str, float]:
    """First point, one point warm, a hundred points in one call."""
    learner = sv.BayesOptimal()
    function = find_theory(model, learner).function
    top = 0.6 if isinstance(model, sv.WideNetwork) else 1e5
    grid = np.geomspace(top / 1e4, top, 100)
    first = _milliseconds(lambda: function(model, learner, np.array([top / 2])))
    function(model, learner, grid)
    one = np.median([_milliseconds(lambda at=at: function(model, learner, at)) for at in grid[::10, None]])
    hundred = np.median([_milliseconds(lambda: function(model, learner, grid)) for _ in range(ROUNDS)])
    return {"first": first, "point": float(one), "hundred": float(hundred)}


def _milliseconds(part) -> float:
    begin = time.process_time()
    part()
    return (time.process_time() - begin) * 1e3


if __name__ == "__main__":
    for name, model in MODELS.items():
        print(f"{name}: " + ", ".join(f"{what} {value:.3g} ms" for what, value in measure(model).items()))
