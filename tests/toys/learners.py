"""Learners of the toy model for sweeps: slow ones, ones that raise, and ones that take their process with them.

They live in a module of their own so that worker processes can import them. `results` reads a store for comparisons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from toys import ridge as toy

import solvable as sv

TESTS = Path(__file__).parents[1]


class Slow(sv.Learner):
    """Ridge regression that takes its time, in theory and in simulation."""

    seconds: float = 0.02


class Raising(sv.Learner):
    """Raises where `alpha` is above `limit`; `kind` says what."""

    limit: float = 1.5
    kind: str = eqx.field(default="plain", static=True)


class Deadly(sv.Learner):
    """Ends its process where `alpha` is above `limit`."""

    limit: float = 1.5


class Strange(sv.Learner):
    """Values that JSON has no numbers for."""


class Plain(sv.Model):
    """A model without axes."""

    noise: float = 0.25
    axes = ()
    scaling = "no samples"
    definitions = {"overlap": "a number"}

    def sample(self, rng, d):
        return sv.Data(rng.standard_normal((d, d)), rng.standard_normal(d), np.ones((d, 1)))


class Silent(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ERRORS = {
    "plain": lambda: ArithmeticError("too\nmany   samples"),
    "huge": lambda: RuntimeError("x" * 1_000_000),
    "unencodable": lambda: ValueError("lone \udc80 surrogate, \0 and \x1b[31m"),
    "silent": lambda: Silent(),
    "exit": lambda: SystemExit(3),
    "memory": lambda: MemoryError(),
}


@sv.theory(toy.Regression, Slow, vectorized=False)
def _(model, learner, alpha):
    time.sleep(learner.seconds)
    metrics, m = toy.ridge(alpha, float(model.noise), 0.5, np)
    return sv.Prediction(metrics, {"resolvent": m})


@sv.simulation(toy.Regression, Slow)
def _(model, learner, data, rng):
    time.sleep(learner.seconds)
    return toy.score(np.linalg.solve(data.X.T @ data.X + np.eye(data.X.shape[1]), data.X.T @ data.y), data.truth[:, 0])


@sv.theory(toy.Regression, Raising, vectorized=False)
def _(model, learner, alpha):
    if alpha > learner.limit:
        raise ERRORS[learner.kind]()
    return sv.Prediction({"overlap": 0.5})


@sv.simulation(toy.Regression, Raising)
def _(model, learner, data, rng):
    if len(data.y) > learner.limit * data.X.shape[1]:
        raise ERRORS[learner.kind]()
    return sv.Outcome({"overlap": 0.5})


@sv.theory(toy.Regression, Deadly, vectorized=False)
def _(model, learner, alpha):
    if alpha > learner.limit:
        os._exit(3)
    return sv.Prediction({"overlap": alpha / 2})


@sv.theory(toy.Regression, Strange, vectorized=False)
def _(model, learner, alpha):
    values = {"overlap": np.nan, "estimation_error": np.inf, "matrix": np.array([[1.0, -np.inf], [np.nan, 0.1]])}
    return sv.Prediction(values, status=sv.Status.MAX_STEPS)


@sv.simulation(toy.Regression, Strange)
def _(model, learner, data, rng):
    return sv.Outcome({"overlap": np.nan, "estimation_error": -np.inf})


@sv.theory(Plain, toy.Ridge, vectorized=False)
def _(model, learner):
    return sv.Prediction({"overlap": float(model.noise) * float(learner.penalty)})


@sv.simulation(Plain, toy.Ridge)
def _(model, learner, data, rng):
    return sv.Outcome({"overlap": float(np.mean(data.X))})


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Every record of a store, by id."""
    found = {}
    for path in sorted(Path(folder, "points").rglob("*.json")):
        record = json.loads(path.read_bytes().partition(b"\n")[2])
        assert path.name.startswith(record["id"])
        found[record["id"]] = record
    return found


def results(folder: Path) -> dict[str, Any]:
    """What a store holds without what may differ from run to run: times and versions."""
    found = {}
    for id, record in records(folder).items():
        result = dict(record.get("result") or {"message": record["error"]["message"]})
        result.pop("seconds", None)
        found[id] = (result, record["point"])
    return found


DISPOSITIONS = """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
"""


def start(
    code: str, *arguments: str, script: Path | None = None, extra: dict[str, str] | None = None, **options: Any
) -> subprocess.Popen[str]:
    """A Python process of its own, and of its own group, that runs the code or script with these modules at hand.

    Code begins with signals as a terminal gives them, whoever started the tests: in the background of a shell, or under
    `nohup`, some are ignored, and a process inherits that.
    """
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    what = ["-c", DISPOSITIONS + code] if script is None else [str(script)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | (extra or {}) | {"PYTHONPATH": path}
    command = [sys.executable, *what, *arguments]
    return subprocess.Popen(command, env=environment, start_new_session=True, **(pipes | options))


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in found if _state(child)[1:] == [str(pid)] and alive(child)]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    return _state(pid)[:1] not in (["Z"], ["X"], [])


def _state(pid: int) -> list[str]:
    """The state of a process and who started it; nothing if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_until(condition, seconds: float = 1800.0) -> bool:
    """Wait for a condition, and say whether it came true; the limit is for what hangs, not for what is slow."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
