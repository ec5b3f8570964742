"""What a store has: points done, failed and left, told from the names of its files, without loading NumPy or JAX."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from solvable.lab.sweep.store import DONE, FAILED, PointStore

READ_ALL = 10_000
"""Stores of at most this many points are read completely, so that damage is told; larger ones when asked to."""
SHOWN = 5


@dataclasses.dataclass(frozen=True)
class SweepStatus:
    """The state of the sweep that was started last.

    `thresholds_done` of `thresholds` are counted apart from the points; `other` are files of earlier configurations;
    `set_aside` counts damaged files moved away; `read` says whether every file was read; `running` whether a process
    holds the store; `errors` are the messages of the first few failed points.
    """

    id: str
    started: str
    points: int
    done: int
    failed: int
    left: int
    thresholds: int
    thresholds_done: int
    other: int
    set_aside: int
    read: bool
    running: bool
    errors: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.points} points: {self.done} done, {self.failed} failed, {self.left} left"]
        if self.thresholds:
            lines.append(f"thresholds: {self.thresholds_done} of {self.thresholds} done")
        lines.append(f"sweep {self.id}, started {self.started}" + (", running now" if self.running else ""))
        if self.other:
            lines.append(f"{self.other} points of other configurations")
        if self.set_aside:
            lines.append(f"{self.set_aside} damaged files set aside in damaged/; a rerun computes their points again")
        if not self.read:
            lines.append("files were counted, not read: --verify reads them and checks their digests")
        lines += [f"failed: {message}" for message in self.errors]
        return "\n".join(lines)


def status(folder: str | Path, verify: bool | None = None) -> SweepStatus:
    """The state of a store. `verify` reads every file; by default stores of up to 10 000 points are read."""
    store = PointStore(folder)
    plan = store.latest_plan()
    states = store.states()
    read = len(states) <= READ_ALL if verify is None else verify
    if read:
        states = store.checked_states()
    points = {id for id in (*plan["theory"], *plan["runs"]) if id}
    marks = set(plan["marks"])
    failed = [id for id in (*points, *marks) if states.get(id) == FAILED]
    done = sum(states.get(id) == DONE for id in points)
    raised = sum(states.get(id) == FAILED for id in points)
    with store.held() as running:
        pass
    return SweepStatus(
        id=plan["id"],
        started=plan["started"],
        points=len(points),
        done=done,
        failed=raised,
        left=len(points) - done - raised,
        thresholds=len(marks),
        thresholds_done=sum(states.get(id) == DONE for id in marks),
        other=len(states.keys() - points - marks),
        set_aside=store.set_aside(),
        read=read,
        running=running,
        errors=tuple(_error(store, id) for id in sorted(failed)[:SHOWN]),
    )


def _error(store: PointStore, id: str) -> str:
    record = store.read(id, failed=True)
    if record is None:
        return f"{id}: its record is damaged"
    point = record["point"]
    where = [f"{name} = {value:g}" for name, value in point.get("axes", {}).items()]
    where += [f"{key} = {point[key]}" for key in ("d", "seed") if key in point]
    who = point["learner"]["name"] if "learner" in point else "thresholds"
    return f"{', '.join([who, *where])}: {record['error']['message']}"
