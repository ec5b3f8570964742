"""The cost of one step of trace-penalised least squares as a multiple of what it cannot avoid, timed side by side.

A step of proximal gradient needs one product with the features each way and one eigendecomposition. The two are timed
in turn, block by block, and the median ratio of neighbouring blocks is reported, with the number of steps to a relative
duality gap of 1e-9. Run it with one BLAS thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time

import numpy as np

from solvable.models.matrix import QuadraticNetwork
from solvable.models.matrix.nuclear.convex import ProximalGradient

STEPS = 20
BLOCKS = 15
PENALTY = 0.2


def measure(d: int, alpha: float = 0.5, features: str = "quadratic") -> dict[str, float]:
    """Microseconds of the bare operations and of a step, the median of their ratio, and the steps of a whole run."""
    rng = np.random.default_rng(0)
    data = QuadraticNetwork(0.5, 0.5, features).sample(rng, d, alpha=alpha)
    whole = ProximalGradient(data.operator, rng)
    S, _ = whole.solve(data.y, PENALTY, 1e-9)

    def bare() -> None:
        for _ in range(STEPS):
            np.linalg.eigh(data.operator.adjoint(data.operator.forward(S)))

    def steps() -> None:
        solver = ProximalGradient(data.operator, rng, max_steps=STEPS)
        begin = time.perf_counter()
        solver.solve(data.y, PENALTY, 0.0)
        seconds.append(time.perf_counter() - begin)

    ratios, bares = [], []
    seconds: list[float] = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        bare()
        bares.append(time.perf_counter() - begin)
        steps()
        ratios.append(seconds[-1] / bares[-1])
    return {
        "bare_us": float(np.median(bares)) / STEPS * 1e6,
        "step_us": float(np.median(seconds)) / STEPS * 1e6,
        "ratio": float(np.median(ratios)),
        "iterations": whole.iterations,
    }


if __name__ == "__main__":
    for d, features in ((50, "quadratic"), (100, "quadratic"), (50, "gaussian")):
        found = measure(d, features=features)
        times = f"products and eigenvectors {found['bare_us']:.0f} us, one step {found['step_us']:.0f} us"
        print(f"d = {d}, {features}: {times}: {found['ratio']:.2f} x; {found['iterations']} steps to the solution")
