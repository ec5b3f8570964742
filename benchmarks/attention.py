"""Attention of few directions: an average of state evolution at several depths, and the closed thresholds' rule.

python benchmarks/attention.py
"""

from __future__ import annotations

import time

import equinox as eqx
import jax
import numpy as np

from solvable.channels.losses.quadrature import panel
from solvable.channels.sequence.indexed_layers import IndexedLayersChannel
from solvable.channels.sequence.layers import LayersChannel
from solvable.channels.sequence.untied import UntiedChannel
from solvable.models.attention.positional.scores import AttentionScores


def seconds(function, repeats: int = 2) -> float:
    """CPU seconds of a call once compiled."""
    function()
    start = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - start) / repeats


def scores_with_places() -> None:
    """The averages of one step of the equations of `PositionalSemantic`."""
    with jax.enable_x64(True):
        law = AttentionScores(*(np.float64(number) for number in (0.3, 0.45, 0.25)))
        jax.block_until_ready(_moments(law, np.array([0.6, 0.2]), np.float64(0.5), np.float64(50.0)))


@eqx.filter_jit
def _moments(law, m, q, V):
    return law.moments(m, q, V, panel())


def main() -> None:
    two = LayersChannel(2, 2, 1.0)
    rows = [(f"two layers, V = (1, {v})", lambda v=v: two.average(np.diag([1.0, v]), 1.0)) for v in (0.5, 0.1, 0.03)]
    rows += [
        ("three layers, V = (1, 1, 0.5)", lambda: LayersChannel(3, 2, 1.0).average(np.diag([1.0, 1.0, 0.5]), 1.0)),
        ("untied, V = (0.5, 0.7)", lambda: UntiedChannel(2).average(np.diag([0.5, 0.7]), 1.0)),
        *(
            (
                f"two layers of extensive rank, V = {v}",
                lambda v=v: IndexedLayersChannel(2, 2, 1.0, 1.0).average(np.diag(v), 1.0),
            )
            for v in ((0.8, 0.5), (0.5, 0.05))
        ),
        ("scores with places", scores_with_places),
        ("last layer's threshold", lambda: two.linearisation(np.zeros((2, 2)), np.eye(2))),
    ]
    for name, function in rows:
        print(f"{name:45s}{seconds(function):8.2f} s")


if __name__ == "__main__":
    main()
