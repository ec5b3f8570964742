"""The cost of one message passing step of a quadratic network, as a multiple of what it cannot do without.

That is the two products X S X^T (its diagonal) and X^T diag(g) X as bare matrix products, and one eigendecomposition.
The parts are timed in turn, and the median ratio of neighbouring blocks is reported. Run it with one BLAS thread
(OPENBLAS_NUM_THREADS=1): more threads speed up the products only, and so raise the ratio.
"""

from __future__ import annotations

import time

import jax
import numpy as np

from solvable.engine.amp import amp
from solvable.engine.operators import PackedFeatures, QuadraticFeatures
from solvable.engine.outputs.gaussian import GaussianLabels
from solvable.engine.signals.eigenvalues import EigenvalueDenoiser, EigenvalueSignal
from solvable.models.matrix import QuadraticNetwork
from solvable.spectra import Law, PowerLaw

STEPS = 5
BLOCKS = 9


def measure(law: Law, d: int = 200, alpha: float = 0.35) -> dict[str, float]:
    """Milliseconds of the bare parts, of the operator's two products and of a step, and the median ratios."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((round(alpha * d**2), d))
    features = QuadraticFeatures(X)
    S = rng.standard_normal((d, d))
    S, g = (S + S.T) / np.sqrt(2 * d), rng.standard_normal(len(X))
    scaled = g[:, None] * X
    operator = PackedFeatures(features)
    y = features.forward(S)[:, None]
    start = np.zeros((operator.dimension, 1))

    def bare() -> None:
        for _ in range(STEPS):
            np.matmul(X, S)
            np.matmul(X.T, scaled)
            np.linalg.eigh(S)

    def products() -> None:
        for _ in range(STEPS):
            features.forward(S)
            features.adjoint(g)
            np.linalg.eigh(S)

    def steps() -> None:
        labels = GaussianLabels(y, np.full_like(y, 0.1), scattered=True)
        signal = EigenvalueDenoiser(EigenvalueSignal(law), operator, by_norm=False)
        report = amp(operator, labels, signal, start, np.random.default_rng(1), max_steps=STEPS, tolerance=0.0)
        assert report.iterations == STEPS

    for part in (bare, products, steps):
        part()
    times = np.array([[_seconds(part) for part in (bare, products, steps)] for _ in range(BLOCKS)]) / STEPS * 1e3
    return {
        "bare_ms": float(np.median(times[:, 0])),
        "products_ms": float(np.median(times[:, 1])),
        "step_ms": float(np.median(times[:, 2])),
        "products_ratio": float(np.median(times[:, 1] / times[:, 0])),
        "step_ratio": float(np.median(times[:, 2] / times[:, 0])),
    }


def _seconds(function) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


if __name__ == "__main__":
    with jax.enable_x64(True):
        for d in (100, 200):
            for name, law in (("quadratic network", QuadraticNetwork(0.5).law), ("power law", PowerLaw(1.25, d))):
                found = measure(law, d)
                parts = f"bare {found['bare_ms']:.1f} ms, products {found['products_ratio']:.2f} x"
                print(f"d = {d}, {name}: {parts}, one step {found['step_ms']:.1f} ms: {found['step_ratio']:.2f} x")
