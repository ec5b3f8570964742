"""The cost of one message passing step as a multiple of its two matrix products, X W and X^T g, timed side by side.

The channel is the closed form of |z| and the prior Gaussian, one direction, at two sizes. The two are timed in
turn, block by block, and the median ratio of neighbouring blocks is reported. Run it with one BLAS thread
(OPENBLAS_NUM_THREADS=1): more threads speed up the products only, and so raise the ratio.
"""

from __future__ import annotations

import time

import numpy as np

from solvable.channels import Absolute
from solvable.engine.amp import amp, uninformed_start
from solvable.engine.operators import Dense
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.priors import Gaussian

STEPS = 50
BLOCKS = 30


def measure(n: int = 2000, d: int = 1000) -> dict[str, float]:
    """Microseconds of the products and of a step, and the median of their ratio."""
    rng = np.random.default_rng(0)
    truth = Gaussian().sample(rng, d)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    operator, output = Dense(X), PosteriorOutput(Absolute()).denoiser(np.abs(X @ truth))
    signal, start = SeparableSignal(Gaussian()).denoiser(operator), uninformed_start(rng, d, 1)

    def products() -> None:
        for _ in range(STEPS):
            operator.adjoint(operator.forward(start))

    def steps() -> None:
        report = amp(operator, output, signal, start, np.random.default_rng(1), max_steps=STEPS, tolerance=0.0)
        assert report.iterations == STEPS

    products()
    steps()
    times = np.array([[_seconds(products), _seconds(steps)] for _ in range(BLOCKS)]) / STEPS * 1e6
    return {
        "products_us": float(np.median(times[:, 0])),
        "step_us": float(np.median(times[:, 1])),
        "ratio": float(np.median(times[:, 1] / times[:, 0])),
    }


def _seconds(function) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


if __name__ == "__main__":
    for n, d in ((2000, 1000), (4000, 2000)):
        found = measure(n, d)
        times = f"two products {found['products_us']:.0f} us, one step {found['step_us']:.0f} us"
        print(f"n = {n}, d = {d}: {times}: {found['ratio']:.2f} x")
