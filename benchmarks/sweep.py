"""Sweeps: two workers against one, what keeping a point costs, and how fast a large store tells its status."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import solvable as sv
from solvable.lab.grid.request import make_plan
from solvable.lab.sweep.store import PointStore
from solvable.lab.sweep.verb import run_sweep


def workers(folder: Path, seeds: int = 120) -> None:
    """The same runs by one process and by two, whose start, of some seconds, is counted too."""
    seconds = {}
    for count in (1, 2):
        plan = make_plan(sv.MultiIndex("abs(z)"), sv.AMP(), 600, seeds, False, {"alpha": [0.8, 1.0]})
        begin = time.perf_counter()
        run_sweep(plan, Path(tempfile.mkdtemp(dir=folder)), workers=count)
        seconds[count] = time.perf_counter() - begin
    one, two = seconds[1], seconds[2]
    print(f"{2 * seeds} runs of d = 600: one process {one:.1f} s, two workers {two:.1f} s, ratio {one / two:.2f}")


def overhead(folder: Path, count: int = 500) -> None:
    """A sweep of predictions against the same predictions in a loop, warm."""
    model, learner = sv.MultiIndex("abs(z)"), sv.AMP()
    grid = np.linspace(0.6, 1.0, count)
    sv.predict(model, learner, alpha=0.5)
    begin = time.perf_counter()
    for alpha in grid:
        sv.predict(model, learner, alpha=float(alpha))
    bare = time.perf_counter() - begin
    plan = make_plan(model, learner, None, 1, False, {"alpha": grid})
    begin = time.perf_counter()
    run_sweep(plan, folder / "theory")
    kept = time.perf_counter() - begin
    print(f"a predicted point: {1e3 * bare / count:.2f} ms bare, {1e3 * (kept - bare) / count:.2f} ms more in a sweep")


def large_store(folder: Path, count: int = 100_000) -> None:
    """`solvable status` of a store with many points, in a fresh process."""
    store = PointStore(folder / "large", create=True)
    ids = [hashlib.sha256(str(i).encode()).hexdigest()[:32] for i in range(count)]
    for id in ids:
        path = store.points / id[:2] / f"{id}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 700)
    plan = {"id": "large", "started": "now", "theory": ids, "runs": [], "marks": []}
    store.save_plan("large", plan)
    command = [sys.executable, "-m", "solvable", "status", str(store.folder)]
    for _ in range(2):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"status of {count} points: {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        workers(Path(temporary))
        overhead(Path(temporary))
        large_store(Path(temporary))
