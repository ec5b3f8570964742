"""The cost of spiked models: a point of theory, a curve of a hundred, and a step of message passing over its product.

A step cannot do without the product of the matrix or the contraction of the tensor. The step and the bare product are
timed in turn, and the median ratio of neighbouring blocks is reported. Run it with one BLAS thread
(OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import solvable as sv
from solvable.engine.amp import amp
from solvable.engine.informed import truthful_start

STEPS, BLOCKS = 60, 9


def step_ratio(model: Any, d: int, **axes: float) -> dict[str, float]:
    """Milliseconds of the bare product and of a step, CPU time, and their median ratio."""
    rng = np.random.default_rng(0)
    data = model.sample(rng, d, **axes)
    instance = model.instance(data)
    start = truthful_start(rng, data.truth, 0.9) if instance.start is None else instance.start(rng)
    product = _product(data)

    def bare() -> None:
        for _ in range(STEPS):
            product()

    def steps() -> None:
        sides = instance.operator, instance.output, instance.signal
        report = amp(*sides, start, np.random.default_rng(1), max_steps=STEPS, tolerance=1e-300)
        assert report.iterations == STEPS

    for part in (bare, steps):
        part()
    times = np.array([[seconds(part) for part in (bare, steps)] for _ in range(BLOCKS)]) / STEPS * 1e3
    ratio = float(np.median(times[:, 1] / times[:, 0]))
    return {"bare_ms": float(np.median(times[:, 0])), "step_ms": float(np.median(times[:, 1])), "ratio": ratio}


def _product(data: Any) -> Callable[[], Any]:
    """What a step cannot do without: Y w, Y w ... w, X w and X^T g, or the contractions with factors one by one."""
    if hasattr(data, "tensor"):
        u, v, x, y = data.truth
        flat = data.tensor.reshape(-1, len(y))
        return lambda: (data.matrix @ v, u @ data.matrix, flat @ y, np.outer(u, x).ravel() @ flat)
    w = data.truth[:, 0]
    if hasattr(data, "X"):
        return lambda: (data.X @ w) @ data.X

    def contract() -> np.ndarray:
        field = data.Y
        for _ in range(data.Y.ndim - 1):
            field = field.reshape(-1, len(w)) @ w
        return field

    return contract


def theory(
    make: Callable[[float], sv.Model],
    learner: sv.Learner,
    grid: np.ndarray,
    axis: str | None,
    alpha: float | None = None,
) -> dict[str, Any]:
    """Milliseconds of CPU time of one prediction, warm, and of a curve of a hundred over one.

    The grid is that of an axis, or of a number of the model at a given `alpha`, if it has one.
    """
    fixed: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    one = lambda value: sv.predict(make(value), learner, **({axis: value} if axis else fixed))  # noqa: E731
    one(float(grid[0]))
    point = float(np.median([seconds(lambda value=value: one(float(value))) for value in grid[::5]])) * 1e3
    found: dict[str, Any] = {"point_ms": point}
    if axis:
        model = make(0.0)
        whole = lambda: sv.predict(model, learner, **{axis: grid}, throw=False)  # noqa: E731
        whole()
        found["hundred_over_one"] = float(np.median([seconds(whole) for _ in range(5)])) * 1e3 / point
    return found


def seconds(part: Callable[[], Any]) -> float:
    begin = time.process_time()
    part()
    return time.process_time() - begin


if __name__ == "__main__":
    alpha, strength, noise = np.linspace(1.9, 6.0, 100), np.linspace(0.5, 3.0, 100), np.linspace(0.02, 0.3, 100)
    cases: dict[str, Any] = {
        "matrix": (lambda snr: sv.SpikedMatrix(snr, "rademacher"), sv.BayesOptimal(), strength, None),
        "tensor": (lambda noise: sv.SpikedTensor(3, noise, "rademacher"), sv.BayesOptimal(), noise, None),
        "covariance": (lambda _: sv.SpikedCovariance(1.5), sv.BayesOptimal(), alpha, "alpha"),
        "covariance, every snr its own": (sv.SpikedCovariance, sv.BayesOptimal(), strength, None, 2.0),
        "matrix and tensor": (lambda noise: sv.MatrixTensor(0.4, noise), sv.BayesOptimal(), noise, None),
        "wide teacher": (lambda noise: sv.WideTeacher(1.0, noise=noise), sv.BayesOptimal(), noise, None, 1e3),
        "covariance, RBM": (lambda _: sv.SpikedCovariance(1.5), sv.RBM(), alpha, "alpha"),
    }
    for name, case in cases.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in theory(*case).items()))
    runs: dict[str, Any] = {
        "matrix, d = 1000": (sv.SpikedMatrix(1.7, "rademacher"), 1000, {}),
        "matrix, d = 3000": (sv.SpikedMatrix(1.7, "rademacher"), 3000, {}),
        "tensor, d = 100": (sv.SpikedTensor(3, 0.1, "rademacher"), 100, {}),
        "tensor, d = 150": (sv.SpikedTensor(3, 0.1, "rademacher"), 150, {}),
        "matrix and tensor, d = 120": (sv.MatrixTensor(0.4, 0.3), 120, {}),
        "covariance, d = 1000": (sv.SpikedCovariance(1.5), 1000, {"alpha": 2.0}),
    }
    for name, (model, d, axes) in runs.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in step_ratio(model, d, **axes).items()))
