"""The cost of a matrix and a tensor with a common factor: a message passing step, and a point of theory.

A step cannot do without two passes over the tensor, T y and T(u, x), and two products with the matrix. The step and
the bare products are timed in turn, and the median ratio of neighbouring blocks is reported. Run it with one BLAS
thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv
from solvable.core.registry import find_theory
from solvable.engine.amp import amp

STEPS = 60
BLOCKS = 9


def measure(d: int) -> dict[str, float]:
    """Milliseconds of the bare contractions and of a step, CPU time, and their median ratio."""
    model, rng = sv.MatrixTensor(0.5, 0.3), np.random.default_rng(0)
    data = model.sample(rng, d)
    instance = model.instance(data)
    assert instance.start is not None
    start, flat = instance.start(rng), data.tensor.reshape(-1, d)
    u, v, x, y = data.truth

    def bare() -> None:
        for _ in range(STEPS):
            contracted = (flat @ y).reshape(d, d)
            np.matmul(contracted, x)
            np.matmul(u, contracted)
            np.matmul(np.outer(u, x).ravel(), flat)
            np.matmul(data.matrix, v)
            np.matmul(u, data.matrix)

    def steps() -> None:
        report = amp(
            instance.operator,
            instance.output,
            instance.signal,
            start,
            np.random.default_rng(1),
            max_steps=STEPS,
            tolerance=1e-300,
        )
        assert report.iterations == STEPS

    for part in (bare, steps):
        part()
    times = np.array([[_seconds(part) for part in (bare, steps)] for _ in range(BLOCKS)]) / STEPS * 1e3
    return {
        "bare_ms": float(np.median(times[:, 0])),
        "step_ms": float(np.median(times[:, 1])),
        "ratio": float(np.median(times[:, 1] / times[:, 0])),
    }


def points(learner: sv.Learner, count: int = 40) -> float:
    """Milliseconds of CPU time of the theory of one point, warm."""
    models = [sv.MatrixTensor(noise, 0.2) for noise in np.linspace(0.05, 1.2, count)]
    function = find_theory(models[0], learner).function
    function(models[0], learner)

    def all_points() -> None:
        for model in models:
            function(model, learner)

    return float(np.median([_seconds(all_points) for _ in range(5)])) / count * 1e3


def _seconds(part) -> float:
    begin = time.process_time()
    part()
    return time.process_time() - begin


if __name__ == "__main__":
    for d in (60, 100, 150):
        print(f"d = {d}: " + ", ".join(f"{name} {value:.3g}" for name, value in measure(d).items()))
    for learner in (sv.BayesOptimal(), sv.AMP(), sv.MaximumLikelihood(), sv.Curriculum()):
        print(f"{learner.name()}: {points(learner):.2f} ms a point")
