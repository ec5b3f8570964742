"""Empirical risk minimisation: a fixed point, an optimisation of two numbers, and a step of message passing.

A fixed point is timed against the same equations in plain NumPy (proximal operator by bisection, 2000 nodes, damped
iteration), and a step of message passing against the two matrix products that it cannot avoid, in turn, block by block;
medians of the ratios of neighbouring blocks are reported. Run it with one BLAS thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import solvable as sv
from solvable.core.precision import float64
from solvable.engine.signals.separable import PenalisedSignal

BLOCKS = 9
COMPONENTS = ((0.7, 1.0, 0.1), (0.3, 0.0, 5.0))
MODEL = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, slope=0.0, noise=5.0))
ALPHA, STRENGTH, SCALE = 3.0, 0.1, 3.0


def naive() -> float:
    """The estimation error with Tukey's loss, as a script would compute it."""
    m, q, V = 0.8, 0.9, 0.3
    t = np.linspace(-8, 8, 2000)
    weight = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()
    for _ in range(200):
        push = power = response = 0.0
        for p, slope, noise in COMPONENTS:
            R = np.sqrt(noise + q - 2 * slope * m + slope**2) * t
            low, high = np.zeros_like(R), np.abs(R)
            for _ in range(40):
                middle = (low + high) / 2
                above = middle * (1 + V * np.maximum(1 - (middle / SCALE) ** 2, 0) ** 2) > np.abs(R)
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            rest = np.maximum(1 - (low / SCALE) ** 2, 0)
            curvature = rest * (5 * rest - 4)
            h = weight @ (curvature / (1 + V * curvature))
            power += ALPHA * p * (weight @ (low * rest**2) ** 2)
            response, push = response + ALPHA * p * h, push + ALPHA * p * slope * h
        new_V = 1 / (STRENGTH + response)
        new = push * new_V, (push**2 + power) * new_V**2, new_V
        change = max(abs(a - b) for a, b in zip(new, (m, q, V), strict=True))
        m, q, V = (0.3 * b + 0.7 * a for a, b in zip(new, (m, q, V), strict=True))
        if change < 1e-10:
            break
    return 1 - 2 * m + q


def seconds(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float, float]:
    """Median milliseconds of both, and the median of theirs over ours."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(BLOCKS)]
    mine, other = (float(np.median(column)) * 1e3 for column in zip(*pairs, strict=True))
    return mine, other, float(np.median([b / a for a, b in pairs]))


@float64
def message_passing(d: int, alpha: float) -> tuple[float, float, float]:
    """Milliseconds of one step, of its two products, and the ratio."""
    data = MODEL.sample(np.random.default_rng(0), d, alpha=alpha)
    output = MODEL.likelihood().with_loss(sv.losses.Huber(1.0)).denoiser(data.y)
    signal = PenalisedSignal.of(sv.Ridge(0.1), MODEL.prior).denoiser()
    w = np.zeros((d, 1))

    def products() -> None:
        for _ in range(10):
            (data.X @ w).T @ data.X

    def steps() -> None:
        for _ in range(10):
            found = output(data.X @ w, np.ones((1, 1)))
            signal((found.g.T @ data.X).T + w, alpha * found.minus_derivative)

    mine, bare, _ = ratio(steps, products)
    return mine / 10, bare / 10, mine / bare


if __name__ == "__main__":
    for loss in (sv.losses.Square(), sv.losses.Huber(1.0), sv.losses.Absolute(), sv.losses.Tukey(SCALE)):
        learner = sv.ERM(loss, sv.Ridge(STRENGTH))
        mine, other, times = ratio(lambda learner=learner: sv.predict(MODEL, learner, alpha=ALPHA), naive)
        against = f", {times:.0f} x faster than a plain script" if isinstance(loss, sv.losses.Tukey) else ""
        print(f"a point, {loss}: {mine:.1f} ms{against}")
    for loss in (sv.losses.Huber(1.0), sv.losses.Tukey(2.0)):
        learner = sv.ERM(loss, sv.Ridge(0.1))
        best = lambda learner=learner: sv.optimize(MODEL, learner, over=("scale", "penalty"), alpha=10.0)  # noqa: E731
        best()
        print(f"scale and penalty of {loss}: {min(seconds(best) for _ in range(3)):.2f} s")
    for d, alpha in ((1000, 2.0), (2000, 2.0)):
        mine, bare, times = message_passing(d, alpha)
        print(f"a step of message passing, d = {d}: {mine:.2f} ms, its products {bare:.2f} ms: {times:.2f} x")
