"""A progress bar that shows itself only when there is something to wait for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0


@contextmanager
def progress_bar(
    total: int, description: str, enabled: bool = True, stream: Any = None
) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` pieces of work.

    The bar appears on `stream` (standard error) once the work has lasted longer than a second, and only if that is a
    terminal; otherwise nothing is ever written.
    """
    stream = sys.stderr if stream is None else stream
    if not enabled or not stream.isatty():
        yield lambda: None
        return
    bar = _Bar(total, description, stream)
    try:
        yield bar.advance
    finally:
        bar.stop()


@contextmanager
def stage(description: str, enabled: bool = True, stream: Any = None) -> Iterator[None]:
    """Show what is being done while it lasts, if `stream` (standard error) is a terminal."""
    stream = sys.stderr if stream is None else stream
    if not enabled or not stream.isatty():
        yield
        return
    from rich.console import Console

    with Console(file=stream).status(description):
        yield


def rate(done: int, seconds: float) -> str:
    """How fast pieces of work are done: so many a second, or so many seconds for one where that is slow."""
    if done <= 0 or seconds <= 0:
        return ""
    speed = done / seconds
    return f"{speed:.3g}/s" if speed >= 1 else f"{1 / speed:.3g} s each"


class _Bar:
    def __init__(self, total: int, description: str, stream: Any):
        self.total, self.description, self.stream = total, description, stream
        self.done = 0
        self.start = time.monotonic()
        self._shown: Any = None
        self._task: Any = None

    def advance(self) -> None:
        self.done += 1
        if self._shown is None and time.monotonic() - self.start > PATIENCE and self.done < self.total:
            self._show()
        if self._shown is not None:
            self._shown.update(self._task, completed=self.done, rate=self._rate())

    def stop(self) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _rate(self) -> str:
        return rate(self.done, time.monotonic() - self.start)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        words, speed = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
        columns = (words, BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
        self._shown = Progress(*columns, console=Console(file=self.stream), transient=True)
        options = {"total": self.total, "completed": self.done, "rate": self._rate()}
        self._task = self._shown.add_task(self.description, **options)
        self._shown.start()
