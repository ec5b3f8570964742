"""Attention of few directions: an average of state evolution at several depths, and the closed thresholds' rule.

python benchmarks/attention.py
"""

from __future__ import annotations

import time

import numpy as np

from solvable.channels.sequence.indexed_layers import IndexedLayersChannel
from solvable.channels.sequence.layers import LayersChannel
from solvable.channels.sequence.untied import UntiedChannel


def seconds(function, repeats: int = 2) -> float:
    """CPU seconds of a call once compiled."""
    function()
    start = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - start) / repeats


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
        ("last layer's threshold", lambda: two.linearisation(np.zeros((2, 2)), np.eye(2))),
    ]
    for name, function in rows:
        print(f"{name:45s}{seconds(function):8.2f} s")


if __name__ == "__main__":
    main()
