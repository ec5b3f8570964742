"""The cost of a point of theory of two-layer networks, warm, and of a grid of 100 points over that of one.

CPU time, the median of blocks. `unit` is a call of the cheapest theory there is, ridge regression on random features
with a handful of scalar Newton steps; the others are given as multiples of it, beside their milliseconds.
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv

BLOCKS = 7
MODEL = sv.TwoLayer("sin(z)", "tanh", 0.83, noise=0.1)
CLASSES = sv.TwoLayer("sign(z)", "tanh", 0.83)
PAIRS = {
    "random features, ridge": (MODEL, sv.RandomFeatures(0.05), 2.0),
    "random features, logistic": (CLASSES, sv.RandomFeatures(0.05, "logistic"), None),
    "one step, isotropic": (MODEL, sv.OneStep(0.1, 3.0, 2.0, bulk="isotropic"), 50.0),
    "one step, exact": (MODEL, sv.OneStep(0.1, 3.0, 2.0), 500.0),
    "one step, exact, relu": (sv.TwoLayer("sin(z)", "relu", 1.2), sv.OneStep(0.1, 2.0, 2.0), 500.0),
    "one step, two values": (MODEL, sv.OneStep(0.1, 3.0, 2.0, {1: 0.5, 2: 0.5}, bulk="isotropic"), None),
}
"""Each with the milliseconds that one point should cost at most."""


def milliseconds(model: sv.Model, learner: sv.Learner, alpha: float | np.ndarray, calls: int) -> float:
    """CPU milliseconds of a prediction, warm."""
    sv.predict(model, learner, alpha=alpha)
    found = []
    for _ in range(BLOCKS):
        start = time.process_time()
        for _ in range(calls):
            sv.predict(model, learner, alpha=alpha)
        found.append((time.process_time() - start) / calls * 1e3)
    return float(np.median(found))


def main() -> None:
    unit = milliseconds(MODEL, sv.RandomFeatures(0.05), 1.37, 20)
    print(f"{'pair':28}{'one point':>12}{'goal':>9}{'units':>8}{'100 points / one':>19}")
    for name, (model, learner, goal) in PAIRS.items():
        calls = 20 if goal == 2.0 else 1
        one = milliseconds(model, learner, 1.37, calls)
        many = milliseconds(model, learner, np.linspace(0.3, 3.0, 100), 1)
        wanted = "" if goal is None else f"{goal:g} ms"
        print(f"{name:28}{one:9.2f} ms{wanted:>9}{one / unit:8.1f}{many / one:19.1f}", flush=True)


if __name__ == "__main__":
    main()
