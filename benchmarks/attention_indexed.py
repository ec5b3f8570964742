"""Attention-indexed models: a step of message passing as a multiple of its bare parts, and warm predictions.

What is asked for: a step of softmax at d = 100 within 1.5 times its bare parts; a softmax point in 20 ms and a hundred
points in 5 times that; a point of hardmax of two tokens in 0.2 s; an iteration of two layers in 1 s.

The bare parts are the two products of all tokens with a d x d matrix, those with the other tokens of a sample, and one
eigendecomposition, of a matrix of full rank like that which a step denoises. Parts are timed in turn and the median
ratio of neighbouring blocks is reported; a block of steps is long enough for the report at the end of a run not to
count. Run it with one BLAS thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv
from solvable.engine.amp import amp

STEPS = 20
BLOCKS = 7
LAYERS = (0.21, 0.23, 0.27)
"""The alpha at which two layers are predicted."""
CASES = ((100, 2, "softmax", 0.1), (100, 3, "softmax", 0.04), (100, 2, "hardmax", 0.4), (200, 2, "softmax", 0.1))


def measure(d: int = 150, tokens: int = 2, output: str = "softmax", alpha: float = 0.1) -> dict[str, float]:
    """Milliseconds of the bare parts and of a step of message passing, and the median ratio."""
    model = sv.AttentionIndexed(0.5, tokens, output)
    data = model.sample(np.random.default_rng(0), d, alpha=alpha)
    instance = model.instance(data)
    noise = np.random.default_rng(3).standard_normal((d, d))
    X, S = data.X, data.truth + (noise + noise.T) / np.sqrt(2 * d)
    n = len(X)
    rows = X.reshape(n * tokens, d)
    G = np.random.default_rng(1).standard_normal((n, tokens, tokens))

    def bare() -> None:
        for _ in range(STEPS):
            np.matmul((rows @ S).reshape(n, tokens, d), X.transpose(0, 2, 1))
            rows.T @ np.matmul(G, X).reshape(n * tokens, d)
            np.linalg.eigh(S)

    def steps() -> None:
        start = np.zeros((instance.operator.dimension, 1))
        rng = np.random.default_rng(2)
        amp(instance.operator, instance.output, instance.signal, start, rng, max_steps=STEPS, tolerance=0.0)

    for part in (bare, steps):
        part()
    times = np.array([[_seconds(part) for part in (bare, steps)] for _ in range(BLOCKS)]) / STEPS * 1e3
    return {
        "bare_ms": float(np.median(times[:, 0])),
        "step_ms": float(np.median(times[:, 1])),
        "step_ratio": float(np.median(times[:, 1] / times[:, 0])),
    }


def predictions() -> dict[str, float]:
    """Milliseconds of warm predictions: a softmax point, a hundred, and a point of hardmax of 2, 3 and 4 tokens."""
    many = np.linspace(0.01, 0.18, 100)
    cases = {
        "softmax": (sv.AttentionIndexed(0.5, 2), 0.1),
        "softmax, 100 points": (sv.AttentionIndexed(0.5, 2), many),
        **{f"hardmax, T = {T}": (sv.AttentionIndexed(0.5, T, "hardmax"), 0.2) for T in (2, 3, 4)},
    }
    found = {}
    for name, (model, alpha) in cases.items():

        def point(model=model, alpha=alpha) -> None:
            sv.predict(model, sv.BayesOptimal(), alpha=alpha)

        point()
        found[name] = 1e3 * float(np.median([_seconds(point) for _ in range(BLOCKS)]))
    return found


def iteration_of_two_layers() -> float:
    """Milliseconds of an iteration of state evolution of two layers, warm: those of points over their iterations.

    What a point costs beside, for its errors, counts too.
    """
    model = sv.DeepAttentionIndexed(0.5, 2, 2)
    sv.predict(model, sv.AMP(), alpha=0.2)
    found = []
    for alpha in LAYERS:
        begin = time.process_time()
        point = sv.predict(model, sv.AMP(), alpha=alpha)
        found.append((time.process_time() - begin) / point.iterations)
    return 1e3 * float(np.median(found))


def _seconds(function) -> float:
    """CPU seconds."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


if __name__ == "__main__":
    for d, tokens, output, alpha in CASES:
        found = measure(d, tokens, output, alpha)
        print(
            f"{output}, T = {tokens}, d = {d}: bare {found['bare_ms']:.1f} ms, one step {found['step_ms']:.1f} ms: "
            f"{found['step_ratio']:.2f} x"
        )
    points = predictions()
    for name, milliseconds in points.items():
        print(f"{name}: {milliseconds:.1f} ms")
    print(f"softmax, 100 points over one: {points['softmax, 100 points'] / points['softmax']:.1f} x")
    print(f"two layers, an iteration: {iteration_of_two_layers():.0f} ms")
