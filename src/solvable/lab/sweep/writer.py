"""Records on their way to the disk: most of a write is waiting for it, so a few threads wait side by side."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from solvable.lab.grid.run import Keeper
from solvable.lab.sweep.store import PointStore

THREADS = 8
"""How many records are written at a time; file systems finish such writes together."""


class Writer(Keeper):
    """Keeps records in a store while the next points are computed. A context: at its end everything is written."""

    after_loss = " What was done is kept: start the workers again and rerun the sweep to continue."

    def __init__(self, store: PointStore):
        self.store = store
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="store")
        self._waiting: deque[Future[None]] = deque()

    def has(self, id: str) -> bool:
        return self.store.has(id)

    def log(self, message: str) -> None:
        self.store.log(message)

    def put(self, id: str, record: dict[str, Any], failed: bool) -> None:
        """Begin to write a record. Raises what an earlier write has raised, such as that the disk is full."""
        while self._waiting and (len(self._waiting) >= THREADS or self._waiting[0].done()):
            self._waiting.popleft().result()
        self._waiting.append(self._threads.submit(self.store.write, id, record, failed))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._threads.shutdown(wait=True)
        if error is None:
            for write in self._waiting:
                write.result()
