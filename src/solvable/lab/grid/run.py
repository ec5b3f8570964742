"""The loop that computes tasks: hand them out, keep what comes back, and go on when workers die.

Points that share what is compiled or tabulated stay with one worker: a batch holds tasks of one group, a worker is
given no batch ahead, and the next batch of a group goes out when the one before has come back, so that the worker that
is free takes it. A batch is computed for at most `BUDGET` seconds and returns what it has, and that is kept at once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from queue import Empty, SimpleQueue
from typing import Any

from solvable.lab.grid.crews import Crew, WorkersLost
from solvable.lab.grid.points import Point, Task
from solvable.lab.grid.worker import NotLoaded, versions

BUDGET = 0.2
"""Seconds after which a batch hands over what it has."""
PATIENCE = 2.0
"""Seconds after which the loop looks for new workers."""
ATTEMPTS = 3
"""A task is tried with others of its group, then by itself, then seed by seed while nothing else runs; then it has
failed."""


class Keeper:
    """Who keeps the records of points, by their ids: this one for as long as it lives."""

    after_loss = ""
    """What to tell when the workers are lost."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}

    def has(self, id: str) -> bool:
        """Whether the result of a point is there, perhaps from another process."""
        return id in self.records

    def put(self, id: str, record: dict[str, Any], failed: bool) -> None:
        """Keep what a point gave, or the error it raised."""
        self.records[id] = record

    def log(self, message: str) -> None:
        """Note what happened."""


def execute(
    tasks: Iterable[Task],
    crew: Crew,
    keeper: Keeper,
    advance: Callable[[bool | None], object],
    here: Iterable[tuple[Task, Callable[[Task], list[dict[str, Any]]]]] = (),
) -> None:
    """Compute the tasks and keep what each point gave; `advance` is told of every point whether it failed.

    A point that another process has done in the meantime is not computed again: `advance` is then told None. The tasks
    `here`, each with what computes it, are for this process, while the others work; what they raise is raised.
    """
    _Loop(tasks, crew, keeper, advance).run(here)


@dataclasses.dataclass
class Batch:
    """Tasks on their way, of one group; `alone` if nothing else may run beside them."""

    tasks: list[Task]
    alone: bool = False

    @property
    def group(self) -> int:
        """The group of its tasks."""
        return self.tasks[0].first.group


class Queue:
    """The tasks left, by group, and those whose worker died: once, to be tried singly, or twice, to be tried alone."""

    def __init__(self, tasks: Iterable[Task]):
        self.groups: dict[int, deque[Task]] = {}
        for task in tasks:
            self.groups.setdefault(task.first.group, deque()).append(task)
        self.singly: deque[Task] = deque()
        self.alone: deque[Task] = deque()

    def __bool__(self) -> bool:
        return bool(self.groups or self.singly or self.alone)

    def take(self, busy: Counter[int], width: int, batch: int) -> Batch | None:
        """The next batch for `width` workers: of a group that nobody works on, or else of the one with most left.

        None if the next task has to wait until nobody works on anything.
        """
        if self.singly:
            return Batch([self.singly.popleft()])
        if self.alone:
            return None if busy else Batch([self.alone.popleft()], alone=True)
        free = (group for group in self.groups if group not in busy)
        group = next(free, None)
        if group is None:
            group = max(self.groups, key=lambda g: len(self.groups[g]))
        left = self.groups[group]
        # Where workers have to share a group it is cut finer towards its end, so that they end together.
        share = -(-len(left) // (2 * width)) if len(self.groups) < width else len(left)
        tasks = [left.popleft() for _ in range(min(batch, share))]
        if not left:
            del self.groups[group]
        return Batch(tasks)

    def put_back(self, tasks: list[Task]) -> None:
        """Tasks that a batch had no time for: next of their group."""
        for task in reversed(tasks):
            self.groups.setdefault(task.first.group, deque()).appendleft(task)

    def clear(self) -> None:
        """Leave what is left."""
        self.groups.clear()
        self.singly.clear()
        self.alone.clear()


class _Loop:
    def __init__(
        self, tasks: Iterable[Task], crew: Crew, keeper: Keeper, advance: Callable[[bool | None], object]
    ) -> None:
        self.queue = Queue(tasks)
        self.crew, self.keeper, self.advance = crew, keeper, advance
        self.running: dict[Future[Any], Batch] = {}
        self.back: SimpleQueue[Future[Any]] = SimpleQueue()
        self.busy: Counter[int] = Counter()
        self.deaths: Counter[Task] = Counter()

    def run(self, here: Iterable[tuple[Task, Callable[[Task], list[dict[str, Any]]]]]) -> None:
        try:
            if self.crew.elsewhere:
                self._hand_out()
            for task, results_of in here:
                for point, result in zip(task.points, results_of(task), strict=True):
                    self._keep(point, {"result": result})
            while self.queue or self.running:
                self._hand_out()
                if self.running:
                    self._collect(self._arrived())
        finally:
            for future in self.running:
                future.cancel()

    def _hand_out(self) -> None:
        width = self.crew.width()
        while self.queue and len(self.running) < width and not self._one_alone():
            batch = self.queue.take(self.busy, width, self.crew.batch)
            if batch is None:
                return
            batch.tasks = [task for task in batch.tasks if not self._done_elsewhere(task)]
            if batch.tasks:
                try:
                    future = self.crew.submit(batch.tasks, BUDGET)
                except BrokenExecutor as error:  # it broke while nobody was looking
                    self.queue.put_back(batch.tasks)
                    self._broken(error)
                else:
                    self.running[future] = batch
                    self.busy[batch.group] += 1
                    future.add_done_callback(self.back.put)

    def _one_alone(self) -> bool:
        """Whether a batch is on its way that nothing may run beside; there is nothing else on its way then."""
        return len(self.running) == 1 and next(iter(self.running.values())).alone

    def _taken(self, future: Future[Any]) -> Batch:
        """A batch that is no longer on its way."""
        batch = self.running.pop(future)
        self.busy -= Counter([batch.group])  # which leaves no zeros behind
        return batch

    def _done_elsewhere(self, task: Task) -> bool:
        if not all(self.keeper.has(point.id) for point in task.points):
            return False
        for _ in task.points:
            self.advance(None)
        return True

    def _arrived(self) -> list[Future[Any]]:
        """The batches that have come back, were cancelled or lost; after a while perhaps none."""
        found: list[Future[Any]] = []
        try:
            found.append(self.back.get(timeout=PATIENCE))
            while True:
                found.append(self.back.get_nowait())
        except Empty:
            return [future for future in found if future in self.running]

    def _collect(self, done: Iterable[Future[Any]]) -> None:
        broken: Exception | None = None
        for future in done:
            batch = self._taken(future)
            try:
                found = future.result()
            except BrokenExecutor as error:
                broken = error
                self._died(batch, error)
            except CancelledError as error:
                raise self._lost(error) from error
            except NotLoaded:
                raise  # so it would be with every point
            except Exception as error:  # the worker died, or the points could not be sent to it
                self.keeper.log(f"a task was lost ({type(error).__name__}: {error}); its points are tried again")
                self._died(batch, error)
            else:
                self._came_back(batch, found)
        if broken is not None:
            self._broken(broken)

    def _came_back(self, batch: Batch, found: list[list[dict[str, Any]]]) -> None:
        for task, records in zip(batch.tasks, found, strict=False):
            for point, record in zip(task.points, records, strict=True):
                self._keep(point, record)
        self.queue.put_back(batch.tasks[len(found) :])

    def _died(self, batch: Batch, error: Exception) -> None:
        """The worker died with this batch: its tasks are tried again, until one is found guilty."""
        for task in batch.tasks:
            self.deaths[task] += 1
            if self.deaths[task] < ATTEMPTS - 1:
                self.queue.singly.append(task)
                continue
            if self.deaths[task] == ATTEMPTS - 1:
                for part in task.alone:
                    self.deaths[part] = ATTEMPTS - 1
                    self.queue.alone.append(part)
                continue
            message = f"no worker could compute it, {ATTEMPTS} times: {type(error).__name__}: {error}"
            for point in task.points:
                self._keep(point, {"point": point.describe(), "error": {"message": message}, "provenance": versions()})

    def _broken(self, error: Exception) -> None:
        """An executor breaks as a whole: every batch that is not back yet is lost, and a new executor is needed."""
        for future in list(self.running):
            batch = self._taken(future)
            if future.done() and not future.cancelled() and future.exception() is None:
                self._came_back(batch, future.result())
            else:
                self._died(batch, error)
        self.keeper.log(f"a worker died ({error}); its points are tried again")
        if not self.crew.renew():
            raise self._lost(error) from error

    def _keep(self, point: Point, record: dict[str, Any]) -> None:
        failed = "error" in record
        self.keeper.put(point.id, record, failed)
        if failed:
            self.keeper.log(f"point {point.id} failed: {record['error']['message']}")
        self.advance(failed)

    def _lost(self, error: BaseException) -> WorkersLost:
        return WorkersLost(f"the executor broke ({type(error).__name__}: {error}).{self.keeper.after_loss}")
