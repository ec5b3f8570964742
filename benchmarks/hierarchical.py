"""What hierarchical targets and selected features cost: CPU seconds.

- Theory: the law of the labels of a model (once), one point warm, and a hundred points.
- Two selecting layers of 1000 neurons on 1000 digits, with the ridge regression on what follows; below 2 s.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

import solvable as sv
from solvable.core.registry import find_theory

MODELS = {
    "eight features": sv.HierarchicalTarget(1.0, features=8),
    "infinitely many": sv.HierarchicalTarget(1.0),
    "infinitely many, slow decay, noise": sv.HierarchicalTarget(0.6, noise=0.1),
}
ROUNDS = 5


def measure(model: sv.Model) -> dict[str, float]:
    """First point, one point warm, a hundred points in one call."""
    learner = sv.LayerwiseSpectral()
    function = find_theory(model, learner).function
    grid = np.geomspace(0.5, 1e4, 100)
    first = _seconds(lambda: function(model, learner, grid[50:51]))
    one = np.median([_seconds(lambda at=at: function(model, learner, at)) for at in grid[::10, None]])
    return {"first": first, "point": float(one), "hundred": _seconds(lambda: function(model, learner, grid))}


def digits() -> float:
    """The selection, and a ridge regression on the last layer."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:1000] / 16.0, np.where(y[:1000] % 2, 1.0, -1.0)

    def work() -> None:
        layer = sv.estimators.NeuralLoFi(20, 2, 1000, random_state=0)
        Ridge(1e-3).fit(layer.fit_transform(X, y), y)

    return float(np.median([_seconds(work) for _ in range(ROUNDS)]))


def _seconds(part) -> float:
    begin = time.process_time()
    part()
    return time.process_time() - begin


if __name__ == "__main__":
    for name, model in MODELS.items():
        print(f"{name}: " + ", ".join(f"{what} {value:.3g} s" for what, value in measure(model).items()))
    print(f"digits, two selecting layers and a ridge regression: {digits():.3g} s")
