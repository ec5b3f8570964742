"""Several sweeps on one store at once, and the same numbers whoever computes them."""

from __future__ import annotations

import subprocess
import threading
import time

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy
from toys.learners import records, results, start

import solvable as sv
from solvable.lab.sweep.sealed import read_sealed
from solvable.lab.sweep.status import status
from solvable.lab.sweep.store import StoreError

CODE = """
import sys, time
from toys import learners as sweep_toys, ridge as toy
import numpy as np, xarray, solvable as sv
from solvable.lab.sweep.gather import open
print("ready", flush=True)
sys.stdin.readline()
sv.sweep(toy.Regression(), [sweep_toys.Slow(0.005), toy.Ridge()], store=sys.argv[1], alpha=np.linspace(0.2, 3, 20),
         d=10, seeds=2)
print("finished")
"""
LEARNERS = [sweep_toys.Slow(0.005), toy.Ridge()]


@pytest.mark.slow
def test_two_sweeps_at_once(tmp_path):
    both = [start(CODE, str(tmp_path / "shared"), stdin=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        out, errors = process.communicate(timeout=1800)
        assert out == "finished\n" and errors == ""
    found = status(tmp_path / "shared")
    assert (found.points, found.done, found.failed, found.set_aside, found.running) == (120, 120, 0, 0, False)
    for path in (tmp_path / "shared").glob("points/*/*.json"):
        assert read_sealed(path)["id"] == path.stem
    sv.sweep(toy.Regression(), LEARNERS, store=tmp_path / "alone", alpha=np.linspace(0.2, 3, 20), d=10, seeds=2)
    assert results(tmp_path / "shared") == results(tmp_path / "alone")
    lines = (tmp_path / "shared/sweep.log").read_text().splitlines()
    assert len(lines) == 4 and all("sweep " in line and line.startswith("20") for line in lines)


def test_two_different_sweeps_at_once_keep_apart(tmp_path):
    """Two threads, since what they share is the folder."""
    ridges = [toy.Ridge(0.1), toy.Ridge(0.2)]
    grids = [np.linspace(0.2, 2, 15), np.linspace(0.2, 2, 10)]
    errors = []

    def run(ridge, grid):
        try:
            sv.sweep(toy.Regression(), ridge, store=tmp_path, alpha=grid, d=10, seeds=2, progress=False)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in zip(ridges, grids, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(records(tmp_path)) == 15 * 3 + 10 * 3
    for ridge, grid in zip(ridges, grids, strict=True):
        curve = sv.sweep(toy.Regression(), ridge, store=tmp_path, alpha=grid, d=10, seeds=2)
        expected = [sv.predict(toy.Regression(), ridge, alpha=alpha)["overlap"] for alpha in grid]
        np.testing.assert_array_equal(curve["overlap"][0], expected)
        assert "0 computed" in (tmp_path / "sweep.log").read_text().splitlines()[-1]


def test_the_status_can_be_asked_all_the_time(tmp_path):
    stop, seen, errors = threading.Event(), [], []

    def ask():
        while not stop.is_set():
            try:
                seen.append(status(tmp_path / "store").done)
                sv.open(tmp_path / "store")
            except BaseException as error:
                if seen or not isinstance(error, StoreError):  # at first there is no store
                    errors.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    sv.sweep(toy.Regression(), LEARNERS, store=tmp_path / "store", alpha=np.linspace(0.2, 3, 10), d=10, seeds=1)
    stop.set()
    asker.join()
    assert errors == [] and seen == sorted(seen) and len(set(seen)) > 2


def test_points_done_by_another_process_meanwhile_are_not_computed_again(tmp_path, monkeypatch):
    """The other process is played by a learner that runs the whole sweep before its own first point is kept."""
    sv.sweep(toy.Regression(), toy.Ridge(), store=tmp_path / "other", alpha=[0.5, 1.0, 2.0])
    from solvable.lab.grid import run as run_module

    whole = run_module.Queue.take

    def take(self, *arguments):
        for path in (tmp_path / "other").glob("points/*/*.json"):
            target = tmp_path / "mine" / path.relative_to(tmp_path / "other")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
        return whole(self, *arguments)

    monkeypatch.setattr(run_module.Queue, "take", take)
    monkeypatch.setattr("solvable.lab.grid.crews.compute", None)  # nothing is left to compute
    sv.sweep(toy.Regression(), toy.Ridge(), store=tmp_path / "mine", alpha=[0.5, 1.0, 2.0])
    assert results(tmp_path / "mine") == results(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "learners", "d"),
    [
        (toy.Regression(), [toy.Ridge(0.3), toy.RidgeByHand(0.3), toy.Mean()], [40, 200]),
        (sv.MultiIndex("abs(z)"), [sv.BayesOptimal(), sv.AMP()], [60]),
        (sv.MultiIndex("z**2", noise=0.1), [sv.AMP(), sv.Spectral()], [60]),
    ],
)
def test_identical_bits_whatever_the_workers_and_the_order(tmp_path, model, learners, d):
    arguments = {"alpha": [0.6, 0.9, 1.4], "d": d, "seeds": 2}
    sv.sweep(model, learners, store=tmp_path / "one", **arguments)
    sv.sweep(model, learners, store=tmp_path / "two", workers=2, **arguments)
    for grid in ([1.4], [0.6, 1.4], [0.9, 1.4, 0.6]):  # in pieces and in another order
        sv.sweep(model, learners, store=tmp_path / "pieces", **(arguments | {"alpha": grid}))
    one = results(tmp_path / "one")
    assert len(one) >= 3 * len(learners)
    assert results(tmp_path / "two") == one and results(tmp_path / "pieces") == one


@pytest.mark.slow
def test_a_sweep_of_the_index_model_in_pieces(tmp_path):
    model, learner = sv.MultiIndex("abs(z)"), sv.AMP()
    sv.sweep(model, learner, store=tmp_path / "whole", alpha=[0.8, 1.5], d=60, seeds=2)
    for grid in ([1.5], [0.8], [0.8, 1.5]):
        curve = sv.sweep(model, learner, store=tmp_path / "pieces", alpha=grid, d=60, seeds=2)
    assert results(tmp_path / "whole") == results(tmp_path / "pieces")
    assert curve["overlap"].values[0, 1] == sv.predict(model, learner, alpha=1.5)["overlap"]


@pytest.mark.slow
def test_the_overhead_of_a_point_is_below_five_milliseconds_of_computing(tmp_path):
    model, learner, grid = toy.Regression(), toy.RidgeByHand(), np.linspace(0.1, 5, 400)
    sv.sweep(model, learner, store=tmp_path / "warm", alpha=[1.0])
    begin = time.process_time()
    for alpha in grid:
        sv.predict(model, learner, alpha=float(alpha))
    bare = time.process_time() - begin
    times = []
    for k in range(3):
        begin = time.process_time()
        sv.sweep(model, learner, store=tmp_path / str(k), alpha=grid, progress=False)
        times.append(time.process_time() - begin - bare)
    assert min(times) / len(grid) < 5e-3, f"{1e3 * min(times) / len(grid):.2f} ms a point"
