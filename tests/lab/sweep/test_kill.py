"""Sweeps that are killed at any moment: only the points in flight are lost, and no process stays behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy
from toys.axes import OnlineRegression
from toys.chain import CALLS, Chain
from toys.learners import alive, children, records, results, start, wait_until

import solvable as sv
from solvable.lab.sweep.sealed import read_sealed
from solvable.lab.sweep.status import status

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs to see processes and threads")
SWEEP = """
import sys, warnings
from toys import learners as sweep_toys, ridge as toy
import numpy as np, xarray, solvable as sv
from solvable.lab.sweep.gather import open

def sweep(folder, workers, seconds, alphas):
    alpha = np.linspace(0.2, 3, int(alphas))
    learners = [sweep_toys.Slow(float(seconds)), toy.Ridge()]
    sv.sweep(toy.Regression(), learners, store=folder, alpha=alpha, noise=[0.1, 0.2], d=10, seeds=4,
             workers=int(workers))

def together(folder, workers, seconds, seeds):
    from toys import axes, chain
    sv.sweep(axes.OnlineRegression(), chain.Chain(seconds=float(seconds)), store=folder, alpha=[0.5, 1.0, 2.0],
             d=10**6, seeds=int(seeds), workers=int(workers))
"""
ONCE = (
    SWEEP
    + """
if __name__ == "__main__":
    sweep(*sys.argv[1:])
    print("finished")
"""
)
# A process that has imported everything and forks a sweep for each line it reads: starting anew takes seconds.
NURSERY = (
    SWEEP
    + """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
warnings.simplefilter("ignore")
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        kind, *arguments = line.split("|")
        globals()[kind](*arguments)
        os._exit(0)
    print(child, flush=True)
"""
)


def sweep(folder, workers, seconds, alphas):
    return start(ONCE, str(folder), str(workers), str(seconds), str(alphas))


def uninterrupted(folder, alphas):
    sv.sweep(
        toy.Regression(),
        [sweep_toys.Slow(0.0), toy.Ridge()],
        store=folder,
        alpha=np.linspace(0.2, 3, alphas),
        noise=[0.1, 0.2],
        d=10,
        seeds=4,
    )
    return by_computation(folder)


def by_computation(folder):
    """The results by what was computed: the same whatever the time that the slow learner was told to take."""
    found = {}
    for result, point in results(folder).values():
        point["learner"].pop("seconds", None)
        found[str(point)] = result
    return found


def count(folder: Path) -> int:
    return len(list(folder.glob("points/*/*.json")))


class Forked:
    """Sweeps in one process each, forked from one that has imported everything."""

    def __init__(self):
        self.parent = start(NURSERY, stdin=subprocess.PIPE, extra={"OPENBLAS_NUM_THREADS": "1"})

    def __call__(self, *arguments, kind="sweep") -> int:
        self.parent.stdin.write("|".join(map(str, (kind, *arguments))) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def end(self):
        self.parent.communicate(timeout=1800)


class Started:
    """Sweeps as a user starts them."""

    def __init__(self):
        self.processes = []

    def __call__(self, *arguments) -> int:
        self.processes.append(sweep(*arguments))
        return self.processes[-1].pid

    def end(self):
        for process in self.processes:
            process.communicate(timeout=1800)


@pytest.fixture(scope="module")
def forked():
    starter = Forked()
    yield starter
    starter.end()


def killed_five_times(folder, starter, workers, alphas, seconds, random):
    """Start, kill, start again; each time what is there is whole, and nothing of it is computed again."""
    total, kept = alphas * 20, {}
    for _ in range(5):
        process = starter(folder, workers, seconds, alphas)
        target = count(folder) + random.randrange(1, total // 8)
        wait_until(lambda p=process, t=target: not alive(p) or count(folder) >= t, 1800)
        time.sleep(random.random() * 0.05)
        assert alive(process)
        left = children(process)
        os.kill(process, signal.SIGKILL)  # and only that one: its workers must notice by themselves
        assert wait_until(lambda p=process, w=left: not any(map(alive, [p, *w])), 1800), "workers outlive their sweep"
        wait_until(lambda: not status(folder).running)  # threads that wait for the disk end a moment later
        here = {path: path.stat().st_mtime_ns for path in folder.glob("points/*/*.json")}
        for path in here:
            assert read_sealed(path)["id"] == path.stem
        assert all(here[path] == modified for path, modified in kept.items()), "a finished point was computed again"
        kept = here
        found = status(folder)
        assert (found.done, found.failed, found.running, found.set_aside) == (len(here), 0, False, 0)
        assert found.left == total - len(here) > 0
    process = starter(folder, workers, seconds, alphas)
    assert wait_until(lambda: not alive(process), 1800)
    assert all(path.stat().st_mtime_ns == modified for path, modified in kept.items())
    found = status(folder)
    assert (found.points, found.done, found.left, found.failed) == (total, total, 0, 0)
    assert len(records(folder)) == total


def test_killed_five_times_at_random_moments(tmp_path, forked):
    killed_five_times(tmp_path / "killed", forked, 1, 10, 0.01, random.Random(0))
    assert by_computation(tmp_path / "killed") == uninterrupted(tmp_path / "whole", 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_five_times_with_workers(tmp_path, seed):
    starter = Started()
    killed_five_times(tmp_path / "killed", starter, 1 + seed % 3, 10, 0.02, random.Random(seed + 10))
    starter.end()
    assert by_computation(tmp_path / "killed") == uninterrupted(tmp_path / "whole", 10)


def test_points_are_there_as_soon_as_they_are_done(tmp_path, forked):
    """A killed sweep in one process loses the point in flight and what is on its way to the disk, no more."""
    process = forked(tmp_path, 1, 0.3, 10)
    assert wait_until(lambda: count(tmp_path) >= 4, 1800)
    os.kill(process, signal.SIGKILL)
    written = sorted(path.stat().st_mtime for path in tmp_path.glob("points/*/*.json"))
    assert np.median(np.diff(written)) > 0.1, "one by one, not in batches"


def test_runs_that_are_made_together_are_killed_and_resumed(tmp_path, forked):
    process = forked(tmp_path / "killed", 1, 0.3, 80, kind="together")
    assert wait_until(lambda: count(tmp_path / "killed") >= 3 + 16 * 3, 1800)
    os.kill(process, signal.SIGKILL)
    assert wait_until(lambda: not alive(process) and not status(tmp_path / "killed").running, 1800)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").glob("points/*/*.json")}
    assert status(tmp_path / "killed").left > 0
    CALLS.clear()
    for folder in (tmp_path / "killed", tmp_path / "whole"):
        sv.sweep(OnlineRegression(), Chain(seconds=0.3), store=folder, alpha=[0.5, 1.0, 2.0], d=10**6, seeds=80)
    assert all(path.stat().st_mtime_ns == modified for path, modified in kept.items())
    assert len(CALLS) <= 4 + 5 and results(tmp_path / "killed") == results(tmp_path / "whole")


def test_a_task_with_some_of_its_points_missing_is_one_call_for_what_is_needed(tmp_path):
    def run(alpha, seeds):
        CALLS.clear()
        sv.sweep(OnlineRegression(), Chain(), store=tmp_path, alpha=alpha, d=10**6, seeds=seeds)
        return CALLS

    assert run([0.5, 2.0], 6) == [(10**6, [0.5, 2.0], 6)]
    before = results(tmp_path)
    assert run([0.5, 2.0], 6) == []
    assert run([0.5, 1.0, 2.0], 6) == [(10**6, [1.0], 6)]  # a longer grid
    assert run([0.5, 1.0, 2.0], 8) == [(10**6, [0.5, 1.0, 2.0], 2)]  # more seeds
    lost = [(2, 0.5), (4, 2.0)]  # as if killed before they were written
    for id, record in records(tmp_path).items():
        if (record["point"].get("seed"), record["point"]["axes"]["alpha"]) in lost:
            (tmp_path / "points" / id[:2] / f"{id}.json").unlink()
    assert run([0.5, 1.0, 2.0], 8) == [(10**6, [0.5, 2.0], 2)]
    after = results(tmp_path)
    assert before.items() <= after.items() and len(after) == 3 * (1 + 8)


@pytest.mark.parametrize(
    # While they work, and while the workers start: then Python sometimes loses an interruption, on a loaded machine.
    ("workers", "done"),
    [(1, 3), (2, 0), (2, 3)],
)
@pytest.mark.slow
def test_an_interruption_ends_the_command_at_once_and_its_workers_too(tmp_path, workers, done):
    interrupted(tmp_path, workers, done)


@pytest.mark.slow
def test_an_interruption_does_not_depend_on_how_the_tests_were_started(tmp_path):
    """As in the background of a shell, where an interruption is ignored, and inherited so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        interrupted(tmp_path, 1, 3)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)


def test_an_interruption_is_noted_and_keeps_what_is_done(tmp_path, monkeypatch):
    """In this process, where the slow learner is interrupted in its first sleep."""
    monkeypatch.setattr(sweep_toys.time, "sleep", _interrupted)
    learners = [toy.Ridge(), sweep_toys.Slow(600.0)]
    with pytest.raises(KeyboardInterrupt):
        sv.sweep(toy.Regression(), learners, store=tmp_path, alpha=[1.0, 2.0, 3.0], progress=False)
    found = status(tmp_path)
    assert (found.done, found.failed, found.left, found.running) == (3, 0, 3, False)
    assert "stopped (KeyboardInterrupt)" in (tmp_path / "sweep.log").read_text()


def _interrupted(seconds):
    raise KeyboardInterrupt


def interrupted(tmp_path, workers, done):
    command = [
        "from solvable.cli.app import run",
        "import sys",
        "from toys import learners, ridge",
        "if __name__ == '__main__': sys.exit(run(sys.argv[1:]))",
    ]
    (tmp_path / "sweep.toml").write_text(
        '[model]\nname = "regression"\n[[learner]]\nname = "ridge"\n[[learner]]\nname = "slow"\nseconds = 600.0\n'
        "[axes]\nalpha = [1.0, 2.0, 3.0]\n"
    )
    store = tmp_path / "store"
    arguments = ["sweep", str(tmp_path / "sweep.toml"), "--store", str(store), "--workers", str(workers)]
    process = start("\n".join(command), *arguments)
    log = store / "sweep.log"
    assert wait_until(lambda: log.exists() and (workers == 1 or len(children(process.pid)) > workers), 1800)
    assert wait_until(lambda: count(store) >= done, 1800)
    left = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=1800)  # far less than a point takes
    assert process.returncode == 130 and "Traceback" not in errors
    assert wait_until(lambda: not any(map(alive, left)), 1800)
    found = status(store)
    assert "stopped (KeyboardInterrupt)" in log.read_text() and (found.done, found.left) == (done, 6 - done)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_killed_sweep_takes_its_workers_with_it(tmp_path, forked, how):
    process = forked(tmp_path, 2, 5.0, 2)
    assert wait_until(lambda: len(children(process)) > 2, 1800)
    time.sleep(0.5)
    left = children(process)
    os.kill(process, how)
    assert wait_until(lambda: not any(map(alive, [process, *left])), 1800)
