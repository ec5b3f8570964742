"""Two trees of the library side by side: `python benchmarks/compare_trees.py BEFORE_SRC AFTER_SRC [--repeat 3]`.

Each case runs in fresh processes, the trees in turn, so that what else the machine does hits both. Cold is the first
call in a process, imports and compilation included; warm the best of a few later calls, at other values of the axis
where the first would be remembered. Times are CPU seconds, the least over the repeats, and `--wall` shows wall time
instead. Ratios above 1 mean that the second tree is faster. `--only TEXT` picks cases.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM_CALLS = 3
Call = Callable[[float], Any]
"""A call whose axis is moved by the given factor."""


def cases() -> dict[str, Call]:
    """The timed calls by name. Nothing is computed until one is called."""
    import solvable as sv

    Index, bayes, amp = sv.MultiIndex, sv.BayesOptimal(), sv.AMP()
    outliers = Index("z", noise=0.1, contamination=sv.Contamination(0.3, slope=0.0, noise=5.0))
    network = sv.QuadraticNetwork(rho=0.5, noise=0.25)

    def erm(loss: Any, penalty: Any = 0.1, solver: str = "direct") -> sv.ERM:
        return sv.ERM(loss, penalty, solver=solver)

    def point(model: Any, learner: Any, alpha: float) -> Call:
        return lambda factor: sv.predict(model, learner, throw=False, alpha=alpha * factor)

    def curve(model: Any, learner: Any, low: float, high: float, count: int) -> Call:
        return lambda factor: sv.predict(model, learner, alpha=factor * np.linspace(low, high, count))

    def run(model: Any, learner: Any, alpha: float, d: int) -> Call:
        return lambda factor: sv.simulate(model, learner, d=d, seed=0, alpha=alpha)

    huber, square = sv.losses.Huber(1.0), sv.losses.Square()
    return {
        "point abs(z), Bayes": point(Index("abs(z)"), bayes, 0.8),
        "point relu(z) noise 0.1, Bayes": point(Index("relu(z)", noise=0.1), bayes, 1.0),
        "curve of 100, abs(z), AMP": curve(Index("abs(z)"), amp, 0.1, 2.0, 100),
        "curve of 30, z**2 noise, Bayes": curve(Index("z**2", noise=0.25), bayes, 0.2, 3.0, 30),
        "curve of 30, z sparse, Bayes": curve(Index("z", noise=0.01, prior="gauss-bernoulli:0.2"), bayes, 0.1, 1, 30),
        "curve of 30, abs(z), spectral": curve(Index("abs(z)"), sv.Spectral(), 0.2, 2.0, 30),
        "curve of 30, sign(z1*z2), AMP": curve(Index("sign(z1*z2)"), amp, 1.0, 6.0, 30),
        "curve of 30, staircase r=3, AMP": curve(Index("z1**2 + sign(z1*z2*z3)"), amp, 0.3, 4.0, 30),
        "point generic r=2, AMP": point(Index("z1*z2 + 0.3*z1**3"), amp, 1.0),
        "curve of 30, Huber outliers": curve(outliers, erm(huber), 0.5, 6.0, 30),
        "curve of 30, logistic": curve(Index("sign(z)"), erm(sv.losses.Logistic()), 0.5, 6.0, 30),
        "curve of 100, ridge": curve(outliers, erm(square), 0.1, 6.0, 100),
        "curve of 30, network, Bayes": curve(network, bayes, 0.02, 0.6, 30),
        "curve of 30, network, nuclear": curve(network, sv.NuclearNorm(0.2), 0.02, 0.6, 30),
        "curve of 100, network, lazy": curve(network, sv.Lazy(0.1), 0.02, 0.6, 100),
        "curve of 30, sequence, Bayes": curve(sv.BilinearSequence(rho=0.5, noise=0.1), bayes, 0.1, 1.0, 30),
        "run abs(z), AMP d=1000": run(Index("abs(z)"), amp, 1.5, 1000),
        "run sign(z1*z2), AMP d=500": run(Index("sign(z1*z2)"), amp, 5.0, 500),
        "run Huber, message passing d=500": run(outliers, erm(huber, solver="gamp"), 3.0, 500),
        "run Huber, direct d=500": run(outliers, erm(huber), 3.0, 500),
        "run abs(z), spectral d=500": run(Index("abs(z)"), sv.Spectral(), 2.0, 500),
        "run network, AMP d=60": run(network, amp, 0.5, 60),
        "run network, nuclear d=40": run(network, sv.NuclearNorm(0.2), 0.45, 40),
        "run network, lazy d=40": run(network, sv.Lazy(0.1), 0.45, 40),
        "run sequence, AMP d=24": run(sv.BilinearSequence(rho=0.5, noise=0.1), amp, 0.6, 24),
        "thresholds abs(z)": lambda factor: sv.thresholds(Index("abs(z)")),
        "thresholds staircase r=3": lambda factor: sv.thresholds(Index("z1**2 + sign(z1*z2*z3)")),
        "thresholds network": lambda factor: sv.thresholds(network),
        "diagnose he4(z)": lambda factor: sv.diagnose("he4(z)"),
        "diagnose z1*z2 + 0.3*z1**3": lambda factor: sv.diagnose("z1*z2 + 0.3*z1**3"),
        "optimize Huber scale, penalty": lambda factor: sv.optimize(
            outliers, erm(huber), over=("scale", "penalty"), alpha=10.0 * factor
        ),
    }


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """CPU and wall seconds of a call."""
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def measure(name: str) -> None:
    """In a fresh process: print the times of the first call and the best of the later ones."""
    cold = timed(lambda: cases()[name](1.0))
    call = cases()[name]
    later = [timed(lambda i=i: call(1.0 + 0.01 * i)) for i in range(1, WARM_CALLS + 1)]
    print(json.dumps({"cold": cold, "warm": [min(column) for column in zip(*later, strict=True)]}))


def in_tree(source: Path, name: str) -> dict[str, list[float]] | None:
    """The times of a case with the library of a source folder; None if it fails there."""
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", name]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    if found.returncode:
        print(f"{name} fails in {source}: {found.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(found.stdout.splitlines()[-1])


def compare(name: str, trees: tuple[Path, Path], repeat: int, clock: int) -> str:
    """A row of the table: the trees in turn, the least time of each."""
    times: dict[tuple[int, str], list[float]] = {}
    for _ in range(repeat):
        for tree, source in enumerate(trees):
            for kind, found in (in_tree(source, name) or {}).items():
                times.setdefault((tree, kind), []).append(found[clock])
    row = f"{name:34}"
    for kind in ("cold", "warm"):
        before, after = (min(times.get((tree, kind), [float("nan")])) for tree in (0, 1))
        row += f" {before:9.3f} {after:9.3f} {before / after if after else float('nan'):6.2f}"
    return row


def main() -> None:
    """Read the command line and print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="SRC", help="the source folders before and after")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the names of the cases to time")
    parser.add_argument("--wall", action="store_true", help="wall time in place of CPU time")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure)
    if len(options.trees) != 2:
        print("two source folders are compared: compare_trees.py BEFORE_SRC AFTER_SRC")
        return None
    for tree in options.trees:
        if not (tree / "solvable").is_dir():
            parser.error(f"{tree} has no folder 'solvable'")
    trees = (options.trees[0].resolve(), options.trees[1].resolve())
    titles = "".join(f" {f'{kind} A':>9} {f'{kind} B':>9} {'A/B':>6}" for kind in ("cold", "warm"))
    print(f"{'seconds, ' + ('wall' if options.wall else 'CPU'):34}{titles}")
    for name in cases():
        if options.only in name:
            print(compare(name, trees, options.repeat, int(options.wall)), flush=True)
    return None


if __name__ == "__main__":
    main()
