"""Who computes the points: any executor; workers that die, points that kill them, and points that raise."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy
from toys.axes import OnlineRegression
from toys.chain import Chain
from toys.learners import records, results, wait_until

import solvable as sv
from solvable.lab.grid import crews
from solvable.lab.grid.crews import WorkersLost, crew
from solvable.lab.grid.worker import compute_packed
from solvable.lab.sweep.status import status

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
LEARNERS = (RIDGE, toy.Mean())
GRID = np.array([0.5, 1.0, 2.0])
ARGUMENTS = {"alpha": GRID, "noise": [0.1, 0.2], "d": [10, 20], "seeds": 2}


def run(folder, learners=LEARNERS, **changes):
    return sv.sweep(MODEL, list(learners), store=folder, **(ARGUMENTS | changes))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    run(folder)
    return results(folder)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ThreadPoolExecutor(3),
        pytest.param(lambda: ProcessPoolExecutor(2, get_context("spawn")), marks=pytest.mark.slow),
    ],
)
def test_values_do_not_depend_on_the_executor(tmp_path, alone, make):
    with make() as executor:
        run(tmp_path, executor=executor)
        assert executor.submit(int, 5).result() == 5, "an executor that we were given is left running"
    assert results(tmp_path) == alone


@pytest.mark.slow
def test_a_worker_killed_from_outside_costs_nothing(tmp_path):
    def kill_one():
        wait_until(lambda: len(list(tmp_path.glob("points/*/*.json"))) > 2, 1800)
        os.kill(active_children()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    learners = [sweep_toys.Slow(0.02), RIDGE]
    run(tmp_path, learners, workers=2)
    assert active_children() == []
    killer.join()
    found = status(tmp_path)
    assert (found.done, found.failed, found.left) == (60, 0, 0)
    assert "a worker died" in (tmp_path / "sweep.log").read_text()
    run(tmp_path / "alone", learners)
    assert results(tmp_path) == results(tmp_path / "alone")


class Mortal(Executor):
    """A pool in this process that breaks where one of processes would: at tasks that end their worker."""

    def __init__(self, deadly: float):
        self.deadly, self.broken = deadly, False

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        if fn is compute_packed:
            axes = [point.axes for task in pickle.loads(args[0]) for point in task.points]
            self.broken |= any(at["alpha"] > self.deadly for at in axes)
        if self.broken:
            future.set_exception(BrokenProcessPool("a process ended"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_point_that_kills_its_worker_fails_alone(tmp_path, monkeypatch, processes):
    if not processes:
        monkeypatch.setattr(crews, "process_pool", lambda workers: Mortal(1.55))
    alpha = np.linspace(0.1, 1.6, 16)
    curve = sv.sweep(MODEL, sweep_toys.Deadly(limit=1.55), store=tmp_path, alpha=alpha, workers=2)
    found = status(tmp_path)
    assert (found.done, found.failed, found.left) == (15, 1, 0)
    (error,) = found.errors
    assert error.startswith("deadly, alpha = 1.6: no worker could compute it, 3 times: BrokenProcessPool")
    assert curve.dataset["status"].values[0].tolist() == [0] * 15 + [-3]
    np.testing.assert_array_equal(curve["overlap"][0, :15], alpha[:15] / 2)
    assert "a worker died" in (tmp_path / "sweep.log").read_text() and active_children() == []


class Selective(Mortal):
    """One that breaks at a seed, and says of how many seeds and points each task was."""

    def __init__(self, deadly: int):
        super().__init__(deadly)
        self.tasks = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        tasks = pickle.loads(args[0]) if fn is compute_packed else []
        self.tasks += [len(task.alone) for task in tasks]
        if any(point.seed == self.deadly for task in tasks for point in task.points):
            future.set_exception(BrokenProcessPool("a process ended"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_seed_that_kills_its_worker_fails_alone(tmp_path, monkeypatch):
    pool = Selective(5)
    monkeypatch.setattr(crews, "process_pool", lambda workers: pool)
    monkeypatch.setattr(pool, "shutdown", lambda **_: None)
    curve = sv.sweep(OnlineRegression(), Chain(), store=tmp_path, alpha=[0.5, 1.0], d=30, seeds=20, workers=2)
    lost = np.isnan(curve.simulation("estimation_error").values[0])
    assert lost.sum() == 2 and lost[:, 5].all()
    assert sorted(count for count in pool.tasks if count > 1) == [4, 16, 16]
    (error, _) = status(tmp_path).errors
    assert "seed = 5: no worker could compute it, 3 times" in error


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", sorted(sweep_toys.ERRORS))
def test_a_point_that_raises_is_kept_with_its_error(tmp_path, kind):
    curve = run(tmp_path, [sweep_toys.Raising(1.5, kind), RIDGE], d=10)
    assert (curve.dataset["status"].sel(learner="raising", alpha=2.0) == -3).all()
    assert (curve.dataset["status_simulation"].sel(learner="raising", alpha=2.0) == -3).all()
    assert (curve.dataset["status"].sel(learner="ridge") == 0).all()
    assert np.isnan(curve.simulation("overlap").sel(learner="raising", alpha=2.0)).all()
    messages = {
        "plain": "ArithmeticError: too many samples",
        "huge": "RuntimeError: " + "x" * 383 + "...",
        "unencodable": "ValueError: lone \\udc80 surrogate, \\0 and \x1b[31m",
        "silent": "Silent (without a readable message)",
        "exit": "SystemExit: 3",
        "memory": "MemoryError:",
    }
    runs = curve.dataset["failed"].sel(learner="raising", alpha=2.0).values
    assert set(runs.ravel()) == {messages[kind]}
    assert all(len(str(record)) < 50_000 for record in records(tmp_path).values())
    assert "failed" in str(status(tmp_path)) and status(tmp_path).failed == 6
    assert sv.Curve.load(curve.save(tmp_path / "curve.nc")).dataset["failed"].equals(curve.dataset["failed"])


def test_failed_points_are_tried_again_only_when_asked(tmp_path, monkeypatch):
    learner = sweep_toys.Raising(1.5, "plain")
    run(tmp_path, [learner], d=10)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/*.failed.json")}
    run(tmp_path, [learner], d=10)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/*.failed.json")}
    monkeypatch.setitem(sweep_toys.ERRORS, "plain", lambda: KeyError("another"))
    run(tmp_path, [learner], d=10, retry_failed=True)
    assert "KeyError: 'another'" in status(tmp_path).errors[0] and status(tmp_path).failed == 6
    path, _ = next(iter(before.items()))
    path.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="damaged"):
        run(tmp_path, [learner], d=10)
    assert status(tmp_path).failed == 6


class Breaking(Executor):
    """Works for a while, then breaks for good."""

    def __init__(self, calls: int, how):
        self.calls, self.how = calls, how

    def submit(self, fn, /, *args, **kwargs):
        self.calls -= 1
        if self.calls < 0:
            return self.how()
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _raised():
    raise BrokenExecutor("the cluster is gone")


def _failed():
    future = Future()
    future.set_exception(BrokenExecutor("the cluster is gone"))
    return future


def _cancelled():
    future = Future()
    future.cancel()
    return future


@pytest.mark.parametrize("how", [_raised, _failed, _cancelled])
def test_an_executor_that_is_not_ours_is_not_replaced(tmp_path, alone, how):
    with pytest.raises(WorkersLost, match="the executor broke .* What was done is kept"):
        run(tmp_path, executor=Breaking(1, how))
    found = status(tmp_path)
    assert found.done > 0 and found.left > 0 and found.failed == 0
    run(tmp_path)
    assert results(tmp_path) == alone


def test_bad_crews():
    for arguments, message in [
        ({"workers": 0}, "workers = 0 is not allowed"),
        ({"workers": 2.0}, "workers = 2.0 is not allowed"),
        ({"workers": 2, "executor": ThreadPoolExecutor(1)}, "exclude each other"),
        ({"executor": "threads"}, "executor = 'threads' is not allowed: .* a concurrent.futures executor"),
    ]:
        with pytest.raises(ValueError, match=message), crew(**arguments):
            pass


def test_the_width_of_a_pool_is_the_number_of_its_workers():
    with ThreadPoolExecutor(5) as pool, crew(executor=pool) as hands:
        assert hands.width() == 5
    with crew(executor=Breaking(0, _failed)) as hands:
        assert hands.width() == (os.cpu_count() or 1)
    assert crews.BATCH > 1


class OfDask(ThreadPoolExecutor):
    """As the executor of a Dask client looks from here: it says how many threads its workers have."""

    @property
    def _client(self):
        return self

    def nthreads(self):
        return {"one": 2, "two": 1}


def test_an_executor_of_a_cluster_is_as_wide_as_the_cluster(tmp_path, alone):
    with OfDask(3) as executor:
        with crew(executor=executor) as hands:
            assert hands.width() == 3
        run(tmp_path, executor=executor)
    assert results(tmp_path) == alone


def test_infinite_fields_are_kept(tmp_path):
    curve = run(tmp_path, [sweep_toys.Raising(limit=float("inf"))], d=10)
    assert status(tmp_path).failed == 0 and (curve["overlap"] == 0.5).all()


def test_threads_leave_the_linear_algebra_as_it_was(tmp_path):
    import scipy.linalg  # noqa: F401  (has a BLAS of its own)
    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2), ThreadPoolExecutor(3) as executor:
        before = [info["num_threads"] for info in threadpool_info()]
        run(tmp_path, [sweep_toys.Slow(0.003)], executor=executor)
        assert [info["num_threads"] for info in threadpool_info()] == before
