"""Descent on single samples: the chain of overlaps against a loop over d-dimensional weights; flows; mean-field theory.

The chain costs the same at any d; the loop is what one would write with NumPy, at d = 512. Both are timed in turn,
block by block, and the median ratio of neighbouring blocks is reported. Flows are timed warm: the first call compiles.
Asked for: below 1 microsecond a step for one neuron and direction, below 5 for eight neurons and three, flows below 50
milliseconds, and seven steps on a batch with half a million samples below half a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import numpy as np

import solvable as sv
from solvable.engine.dynamics.chain import BLOCK, chain
from solvable.models.index.dynamics.sgd import move_of, path_of

D = 512
BLOCKS = 7
TANH = sv.MultiIndex("tanh(z)")
ONE = sv.OnlineSGD(0.5, "tanh", start=0.05)
STAIRCASE = sv.MultiIndex("z1 + z1*z2 + z1*z2*z3")
EIGHT = sv.OnlineSGD(0.1, "tanh", 8)


def seconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def naive(model: sv.MultiIndex, learner: sv.OnlineSGD, steps: int, rng: np.random.Generator) -> None:
    """Spherical descent on d-dimensional weights with the square loss, tanh neurons, a sample at a time."""
    r, p = model.projections, int(learner.width)
    a, rate = np.array(learner.student.second_layer), float(learner.learning_rate)
    W = rng.standard_normal((p, D))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    for _ in range(steps):
        x = rng.standard_normal(D)
        z = x[:r]  # the directions are the first axes
        y = np.tanh(z[0]) if r == 1 else z[0] + z[0] * z[1] + z[0] * z[1] * z[2]
        h = W @ x
        value = np.tanh(h)
        c = rate / D * (y - a @ value) * a * (1 - value**2)
        W += c[:, None] * (x - h[:, None] * W)
        W /= np.linalg.norm(W, axis=1, keepdims=True)


def steps_of_the_chain(model: sv.MultiIndex, learner: sv.OnlineSGD, runs: int, blocks: int) -> Callable[[], object]:
    """`runs` runs of some blocks of steps, drawing included."""
    move, rates = move_of(learner)
    counts = np.array([blocks * BLOCK])

    def call() -> object:
        rngs = [np.random.default_rng(seed) for seed in range(runs)]
        starts = [learner.first_overlaps(model.projections, D, rng) for rng in rngs]
        return chain(model.target, float(model.noise), move, rates, D, starts, counts, rngs)

    return call


def report_chain(model: sv.MultiIndex, learner: sv.OnlineSGD, asked: float, runs: int, blocks: int) -> None:
    """Print microseconds a step, and the ratio to the loop."""
    ours, rng = steps_of_the_chain(model, learner, runs, blocks), np.random.default_rng(0)
    loop = 1000
    ours()
    pairs = [
        (seconds(ours) / (runs * blocks * BLOCK), seconds(lambda: naive(model, learner, loop, rng)) / loop)
        for _ in range(BLOCKS)
    ]
    fast, slow = np.min(pairs, axis=0) * 1e6
    ratio = np.median([theirs / mine for mine, theirs in pairs])
    shape = f"p = {int(learner.width)}, r = {model.projections}"
    print(f"chain, {shape}: {fast:.2f} us a step (asked {asked:g}); NumPy at d = {D}: {slow:.1f} us, {ratio:.0f} times")


def report_flow(name: str, model: sv.MultiIndex, learner: sv.OnlineSGD) -> None:
    """Print the warm time of a flow seen at twenty times, and of the prediction with its metrics."""
    alpha = np.linspace(0.5, 10.0, 20)
    with jax.enable_x64(True):
        path_of(model, learner, alpha)
        flow = min(seconds(lambda: path_of(model, learner, alpha)) for _ in range(3))
    whole = seconds(lambda: sv.predict(model, learner, alpha=alpha))
    print(f"flow, {name}: {1e3 * flow:.0f} ms warm (asked 50); predict with 20 label errors: {1e3 * whole:.0f} ms")


def report_batch() -> None:
    """Print the time of seven steps on the same batch."""
    learner = sv.BatchGD(7, 0.5, activation="relu", start=0.1)
    sv.predict(TANH, learner, alpha=2.0)
    found = min(seconds(lambda: sv.predict(TANH, learner, alpha=2.0)) for _ in range(2))
    print(f"seven steps on one batch, 8 x 2^16 samples: {found:.2f} s warm (asked 0.5)")


def main() -> None:
    """Print the table."""
    with jax.enable_x64(True):
        report_chain(TANH, ONE, 1.0, runs=1, blocks=20)
        report_chain(STAIRCASE, EIGHT, 5.0, runs=4, blocks=4)
    report_flow("one neuron, smooth", TANH, ONE)
    report_flow("one neuron, look ahead with a kink", TANH, sv.Extragradient(0.5, start=0.05))
    report_batch()


if __name__ == "__main__":
    main()
