"""What a run of a tree target costs, a cell of d = 64 and n = 4096, by learner: seconds of CPU time.

`unit` is the product of the inputs with themselves weighted by the labels, from which the first layer is read off;
every learner is given as a multiple of it, beside its seconds. A cell should be below 5 s.
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv

SIZE, KAPPA = 64, 2.0
MODEL = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6")
LEARNERS = {
    "kernel of degree 2": sv.Kernel(2),
    "kernel of degree 3": sv.Kernel(3),
    "one layer": sv.Layerwise(1),
    "two layers": sv.Layerwise(2),
    "one layer, descent": sv.Layerwise(1, training="gradient"),
    "two layers, descent": sv.Layerwise(2, training="gradient"),
    "two layers at once": sv.JointTraining(2),
    "three layers at once": sv.JointTraining(3),
}


def seconds(learner: sv.Learner) -> float:
    """CPU seconds of a run, with what is compiled already there."""
    sv.simulate(MODEL, learner, d=SIZE, seed=0, kappa=KAPPA)
    start = time.process_time()
    sv.simulate(MODEL, learner, d=SIZE, seed=1, kappa=KAPPA)
    return time.process_time() - start


def unit() -> float:
    """CPU seconds of the weighted product."""
    data = MODEL.sample(np.random.default_rng(0), SIZE, kappa=KAPPA)
    found = []
    for _ in range(20):
        start = time.process_time()
        (data.X * data.y[:, None]).T @ data.X
        found.append(time.process_time() - start)
    return float(np.median(found))


if __name__ == "__main__":
    product = unit()
    print(f"{'unit':24}{product * 1e3:9.2f} ms")
    for name, learner in LEARNERS.items():
        taken = seconds(learner)
        print(f"{name:24}{taken:9.2f} s{taken / product:12.0f} units", flush=True)
