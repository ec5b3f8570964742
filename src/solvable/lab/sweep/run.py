"""The loop of a sweep: hand out points, keep what comes back, and go on when workers die.

Points that share what is compiled or tabulated stay with one worker: a task holds points of one group, a worker is
given no task ahead, and the next task of a group goes out when the one before has come back, so that the worker that is
free takes it. A task computes for at most `BUDGET` seconds and returns what it has, and that is written at once.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any

from solvable.core.errors import SolvableError
from solvable.lab.sweep.crews import Crew
from solvable.lab.sweep.points import Point
from solvable.lab.sweep.store import PointStore
from solvable.lab.sweep.worker import compute, versions

BUDGET = 0.5
"""Seconds after which a task hands over what it has."""
BATCH = 64
"""The most points in a task."""
ATTEMPTS = 3
"""How often a point may take its worker with it before it counts as failed."""


class WorkersLost(SolvableError, RuntimeError):
    """The executor broke and cannot be replaced; the store keeps what was done."""


@dataclasses.dataclass
class Task:
    """Points on their way, of one group; `alone` if nothing else may run beside them."""

    points: list[Point]
    alone: bool = False


class Queue:
    """The points left, by group, and those that must run alone because their worker died."""

    def __init__(self, points: Iterable[Point]):
        self.groups: dict[int, deque[Point]] = {}
        for point in points:
            self.groups.setdefault(point.group, deque()).append(point)
        self.suspects: deque[Point] = deque()

    def __bool__(self) -> bool:
        return bool(self.groups or self.suspects)

    def take(self, busy: set[int], width: int) -> Task | None:
        """The next task of `width` workers: from a group that nobody works on, or else from the one with most left."""
        if self.suspects:
            return Task([self.suspects.popleft()], alone=True)
        if not self.groups:
            return None
        free = (group for group in self.groups if group not in busy)
        group = next(free, None)
        if group is None:
            group = max(self.groups, key=lambda g: len(self.groups[g]))
        left = self.groups[group]
        # Where workers have to share a group it is cut finer towards its end, so that they end together.
        share = -(-len(left) // (2 * width)) if len(self.groups) < width else len(left)
        points = [left.popleft() for _ in range(min(BATCH, share))]
        if not left:
            del self.groups[group]
        return Task(points)

    def put_back(self, points: list[Point]) -> None:
        """Points that a task had no time for: next of their group."""
        for point in reversed(points):
            self.groups.setdefault(point.group, deque()).appendleft(point)


def execute(points: list[Point], store: PointStore, crew: Crew, advance: Callable[[bool], object]) -> None:
    """Compute the points and keep each; `advance` is told of every point whether it failed.

    A point that another process has done in the meantime is not computed again.
    """
    _Loop(points, store, crew, advance).run()


class _Loop:
    def __init__(self, points: list[Point], store: PointStore, crew: Crew, advance: Callable[[bool], object]):
        self.queue = Queue(points)
        self.store, self.crew, self.advance = store, crew, advance
        self.running: dict[Future[Any], Task] = {}
        self.deaths: dict[str, int] = {}

    def run(self) -> None:
        try:
            while self.queue or self.running:
                self._hand_out()
                if self.running:
                    done, _ = wait(self.running, return_when=FIRST_COMPLETED)
                    self._collect(done)
        finally:
            for future in self.running:
                future.cancel()

    def _hand_out(self) -> None:
        width = self.crew.width()
        while self.queue and len(self.running) < width and not self._occupied():
            task = self.queue.take({task.points[0].group for task in self.running.values()}, width)
            if task is None:
                return
            if task.alone and self.running:  # wait until the others are back
                self.queue.suspects.extendleft(task.points)
                return
            task.points = [point for point in task.points if not self._done_elsewhere(point)]
            if task.points:
                try:
                    self.running[self.crew.executor.submit(compute, task.points, BUDGET)] = task
                except BrokenExecutor as error:  # it broke while nobody was looking
                    self.queue.put_back(task.points)
                    self._renew(error)

    def _occupied(self) -> bool:
        return any(task.alone for task in self.running.values())

    def _done_elsewhere(self, point: Point) -> bool:
        if not self.store.has(point.id):
            return False
        self.advance(False)
        return True

    def _collect(self, done: Iterable[Future[Any]]) -> None:
        broken: Exception | None = None
        for future in done:
            task = self.running.pop(future)
            try:
                records = future.result()
            except BrokenExecutor as error:
                broken = error
                self._suspect(task, error)
            except CancelledError as error:
                raise WorkersLost(_lost(error)) from error
            except Exception as error:  # the worker died, or the points could not be sent to it
                self._suspect(task, error)
            else:
                for point, record in zip(task.points, records, strict=False):
                    self._keep(point, record)
                self.queue.put_back(task.points[len(records) :])
        if broken is not None:
            for task in self.running.values():  # a pool breaks as a whole
                self._suspect(task, broken)
            self.running.clear()
            self._renew(broken)

    def _suspect(self, task: Task, error: Exception) -> None:
        """The worker died with this task: its points are tried again, each alone, until one is found guilty."""
        if not task.alone:
            self.queue.suspects.extend(task.points)
            return
        (point,) = task.points
        self.deaths[point.id] = self.deaths.get(point.id, 1) + 1
        if self.deaths[point.id] < ATTEMPTS:
            self.queue.suspects.append(point)
            return
        message = f"no worker could compute it, {ATTEMPTS} times: {type(error).__name__}: {error}"
        self._keep(point, {"point": point.describe(), "error": {"message": message}, "provenance": versions()})

    def _renew(self, error: Exception) -> None:
        self.store.log(f"a worker died ({error}); its points are tried again")
        if not self.crew.renew():
            raise WorkersLost(_lost(error)) from error

    def _keep(self, point: Point, record: dict[str, Any]) -> None:
        failed = "error" in record
        self.store.write(point.id, record, failed)
        if failed:
            self.store.log(f"point {point.id} failed: {record['error']['message']}")
        self.advance(failed)


def _lost(error: BaseException) -> str:
    return (
        f"the executor broke ({type(error).__name__}: {error}). What was done is kept: "
        "start the workers again and rerun the sweep to continue."
    )
