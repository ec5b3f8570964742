"""The loop of a sweep: hand out points, keep what comes back, and go on when workers die.

Points that share what is compiled or tabulated stay with one worker: a task holds points of one group, a worker is
given no task ahead, and the next task of a group goes out when the one before has come back, so that the worker that is
free takes it. A task computes for at most `BUDGET` seconds and returns what it has, and that is written at once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any

from solvable.lab.sweep.crews import Crew, WorkersLost
from solvable.lab.sweep.points import Point
from solvable.lab.sweep.store import PointStore
from solvable.lab.sweep.worker import NotLoaded, versions
from solvable.lab.sweep.writer import Writer

BUDGET = 0.2
"""Seconds after which a task hands over what it has."""
PATIENCE = 2.0
"""Seconds after which the loop looks for new workers, and for tasks that were cancelled, which nobody tells it of."""
ATTEMPTS = 3
"""A point is tried with others of its group, then by itself, then while nothing else runs; then it has failed."""


@dataclasses.dataclass
class Task:
    """Points on their way, of one group; `alone` if nothing else may run beside them."""

    points: list[Point]
    alone: bool = False


class Queue:
    """The points left, by group, and those whose worker died: once, to be tried singly, or twice, to be tried alone."""

    def __init__(self, points: Iterable[Point]):
        self.groups: dict[int, deque[Point]] = {}
        for point in points:
            self.groups.setdefault(point.group, deque()).append(point)
        self.singly: deque[Point] = deque()
        self.alone: deque[Point] = deque()

    def __bool__(self) -> bool:
        return bool(self.groups or self.singly or self.alone)

    def take(self, busy: set[int], width: int, batch: int) -> Task | None:
        """The next task of `width` workers: from a group that nobody works on, or else from the one with most left.

        None if the next point has to wait until nobody works on anything.
        """
        if self.singly:
            return Task([self.singly.popleft()])
        if self.alone:
            return None if busy else Task([self.alone.popleft()], alone=True)
        free = (group for group in self.groups if group not in busy)
        group = next(free, None)
        if group is None:
            group = max(self.groups, key=lambda g: len(self.groups[g]))
        left = self.groups[group]
        # Where workers have to share a group it is cut finer towards its end, so that they end together.
        share = -(-len(left) // (2 * width)) if len(self.groups) < width else len(left)
        points = [left.popleft() for _ in range(min(batch, share))]
        if not left:
            del self.groups[group]
        return Task(points)

    def put_back(self, points: list[Point]) -> None:
        """Points that a task had no time for: next of their group."""
        for point in reversed(points):
            self.groups.setdefault(point.group, deque()).appendleft(point)


def execute(points: list[Point], store: PointStore, crew: Crew, advance: Callable[[bool | None], object]) -> None:
    """Compute the points and keep each; `advance` is told of every point whether it failed.

    A point that another process has done in the meantime is not computed again: `advance` is then told None.
    """
    with Writer(store) as writer:
        _Loop(points, store, crew, advance, writer).run()


class _Loop:
    def __init__(self, points, store: PointStore, crew: Crew, advance: Callable[[bool | None], object], writer: Writer):
        self.queue = Queue(points)
        self.store, self.crew, self.advance, self.writer = store, crew, advance, writer
        self.running: dict[Future[Any], Task] = {}
        self.deaths: Counter[str] = Counter()

    def run(self) -> None:
        try:
            while self.queue or self.running:
                self._hand_out()
                if self.running:
                    done, rest = wait(self.running, PATIENCE, FIRST_COMPLETED)
                    self._collect([*done, *(future for future in rest if future.cancelled())])
        finally:
            for future in self.running:
                future.cancel()

    def _hand_out(self) -> None:
        width = self.crew.width()
        while self.queue and len(self.running) < width and not any(task.alone for task in self.running.values()):
            busy = {task.points[0].group for task in self.running.values()}
            task = self.queue.take(busy, width, self.crew.batch)
            if task is None:
                return
            task.points = [point for point in task.points if not self._done_elsewhere(point)]
            if task.points:
                try:
                    self.running[self.crew.submit(task.points, BUDGET)] = task
                except BrokenExecutor as error:  # it broke while nobody was looking
                    self.queue.put_back(task.points)
                    self._broken(error)

    def _done_elsewhere(self, point: Point) -> bool:
        if not self.store.has(point.id):
            return False
        self.advance(None)
        return True

    def _collect(self, done: Iterable[Future[Any]]) -> None:
        broken: Exception | None = None
        for future in done:
            task = self.running.pop(future)
            try:
                records = future.result()
            except BrokenExecutor as error:
                broken = error
                self._died(task, error)
            except CancelledError as error:
                raise WorkersLost(_lost(error)) from error
            except NotLoaded:
                raise  # so it would be with every point
            except Exception as error:  # the worker died, or the points could not be sent to it
                self.store.log(f"a task was lost ({type(error).__name__}: {error}); its points are tried again")
                self._died(task, error)
            else:
                self._came_back(task, records)
        if broken is not None:
            self._broken(broken)

    def _came_back(self, task: Task, records: list[dict[str, Any]]) -> None:
        for point, record in zip(task.points, records, strict=False):
            self._keep(point, record)
        self.queue.put_back(task.points[len(records) :])

    def _died(self, task: Task, error: Exception) -> None:
        """The worker died with this task: its points are tried again, until one is found guilty."""
        for point in task.points:
            self.deaths[point.id] += 1
            if self.deaths[point.id] < ATTEMPTS:
                last = self.deaths[point.id] == ATTEMPTS - 1
                (self.queue.alone if last else self.queue.singly).append(point)
            else:
                message = f"no worker could compute it, {ATTEMPTS} times: {type(error).__name__}: {error}"
                self._keep(point, {"point": point.describe(), "error": {"message": message}, "provenance": versions()})

    def _broken(self, error: Exception) -> None:
        """An executor breaks as a whole: every task that is not back yet is lost, and a new executor is needed."""
        for future, task in list(self.running.items()):
            del self.running[future]
            if future.done() and not future.cancelled() and future.exception() is None:
                self._came_back(task, future.result())
            else:
                self._died(task, error)
        self.store.log(f"a worker died ({error}); its points are tried again")
        if not self.crew.renew():
            raise WorkersLost(_lost(error)) from error

    def _keep(self, point: Point, record: dict[str, Any]) -> None:
        failed = "error" in record
        self.writer.put(point.id, record, failed)
        if failed:
            self.store.log(f"point {point.id} failed: {record['error']['message']}")
        self.advance(failed)


def _lost(error: BaseException) -> str:
    return (
        f"the executor broke ({type(error).__name__}: {error}). What was done is kept: "
        "start the workers again and rerun the sweep to continue."
    )
