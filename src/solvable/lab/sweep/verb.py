"""`sv.sweep`: compute a grid of points, keeping each as soon as it is done, and go on where an earlier run stopped."""

from __future__ import annotations

import dataclasses
import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.lab.grid.crews import crew
from solvable.lab.grid.plan import Layout, Plan, points_of
from solvable.lab.grid.points import SCHEMA, Task
from solvable.lab.grid.request import make_plan
from solvable.lab.grid.run import execute
from solvable.lab.grid.worker import versions
from solvable.lab.progress import progress_bar
from solvable.lab.sweep.configuration import SEEDS, read_plan
from solvable.lab.sweep.store import FAILED, PointStore, StoreError
from solvable.lab.sweep.writer import Writer

if TYPE_CHECKING:
    from solvable.lab.curve import Curve


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a sweep ended: points planned, done before or by another process, computed now, and failed at any time."""

    planned: int
    before: int
    computed: int
    failed: int
    seconds: float

    def __str__(self) -> str:
        told = f"{self.planned} points: {self.before} were done, {self.computed} computed in {self.seconds:.1f} s"
        return f"{told}, {self.failed} failed" if self.failed else told


def sweep(
    model: Model | str | Path | Mapping[str, Any],
    learners: Learner | Sequence[Learner] | None = None,
    *,
    store: str | Path,
    d: int | Sequence[int] | None = None,
    seeds: int | Sequence[int] | None = None,
    thresholds: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    **axes: Any,
) -> Curve:
    """Predictions over a grid and, if `d` is given, runs of those dimensions, each kept in the folder `store`.

    A model without a size has runs if `seeds` are given.

    **Arguments:** `model` and `learners`, or instead of both a TOML file (or its tables) that describes the whole
    sweep; the model's axes and any field of the model or of the learners by keyword, where a list makes a grid axis;
    `d`, one dimension or several; `seeds`, how many runs a point or which (8 unless told); `thresholds`, whether to
    find those of each model too, which can take long; `workers`, processes on this machine, or `scheduler`, the address
    of a Dask scheduler, or any `concurrent.futures` `executor`; `retry_failed`, whether points that raised before are
    tried again.

    **Returns:** a `Curve` of all results, as `sv.open(store)` gives it at any time. Run again, also after a crash, it
    computes only what is missing. A point that raises is kept with its error. Two processes may share a store.
    """
    if isinstance(model, (str, Path, Mapping)):
        if learners is not None or d is not None or axes or thresholds or seeds is not None:
            raise ValueError("a sweep from a file takes its learners, axes, sizes and seeds from the file alone.")
        plan = read_plan(model)
    else:
        if learners is None:
            raise bad_parameter("learners", learners, "one learner or a list of them")
        plan = make_plan(model, learners, d, seeds, thresholds, axes, SEEDS)
    store = Path(store).absolute()  # also if a point changes the working directory
    run_sweep(plan, store, workers, scheduler, executor, retry_failed, progress)
    from solvable.lab.sweep.gather import open as open_store

    return open_store(store)


def run_sweep(
    plan: Plan,
    folder: str | Path,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> Summary:
    """Compute what a plan has left in a store, without gathering the results."""
    begin = time.perf_counter()
    layout = plan.layout()
    store = PointStore(folder, create=True)
    _check_schema(store)
    store.save_plan(layout.id, layout.content | {"id": layout.id, "versions": versions(), "started": _now()})
    with store.held() as shared:
        left, before, failed = _left(layout, store, retry_failed)
        planned = points_of(layout.tasks)
        store.log(f"sweep {layout.id}: {planned} points, {points_of(left)} to compute")
        if shared:  # another process works on this store: in another order the two seldom meet
            random.Random(os.getpid()).shuffle(left)
        counts: Counter[bool | None] = Counter()
        with progress_bar(points_of(left), "sweep", progress) as show:

            def advance(point_failed: bool | None) -> None:
                counts[point_failed] += 1
                show()

            if left:
                try:
                    with crew(workers, scheduler, executor) as hands, Writer(store) as writer:
                        execute(left, hands, writer, advance)
                except BaseException as error:
                    done = f"{sum(counts.values())} points done"
                    with suppress(OSError, StoreError):  # what stopped it matters more, perhaps that the disk is full
                        store.log(f"sweep {layout.id} stopped ({type(error).__name__}): {done}")
                    raise
        seconds = time.perf_counter() - begin
        computed = counts[False] + counts[True]
        summary = Summary(planned, before + counts[None], computed, failed + counts[True], seconds)
        store.log(f"sweep {layout.id} finished, {summary}")
    return summary


def _left(layout: Layout, store: PointStore, retry_failed: bool) -> tuple[list[Task], int, int]:
    """What to compute; and how many points were done or had failed before. Every file is read: damage shows here."""
    states = store.states()
    left: list[Task] = []
    failed = 0
    for task in layout.tasks:
        missing = []
        for point in task.points:
            state = states.get(point.id)
            if state == FAILED and not retry_failed and store.read(point.id, failed=True) is not None:
                failed += 1
            elif state is None or state == FAILED or store.read(point.id) is None:
                missing.append(point)
        if missing:
            left.append(dataclasses.replace(task, points=tuple(missing)))
    return left, points_of(layout.tasks) - points_of(left) - failed, failed


def _check_schema(store: PointStore) -> None:
    """Refuse what a newer version has written, and say that points of an older one do not count any more."""
    try:
        schema = store.latest_plan().get("schema", 1)
    except StoreError:
        return
    if schema > SCHEMA:
        raise StoreError(f"{store.folder} was written by a newer solvable (schema {schema}); upgrade to go on with it.")
    if schema < SCHEMA:
        store.report(
            f"{store.folder} has points of an earlier version of solvable, which are filed in another way: they stay "
            "where they are, and what this sweep needs of them is computed again."
        )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
