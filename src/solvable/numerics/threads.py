"""One function of many items on a few threads."""

from __future__ import annotations

import concurrent.futures
import contextvars
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from solvable.core.deadline import check_time

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Iterable[Item], threads: int = 2) -> list[Result]:
    """What the function makes of every item. The threads know the caller's limit of time, and stop when it is over."""

    stopped = threading.Event()

    def run(item: Item) -> Result:
        if stopped.is_set():
            raise concurrent.futures.CancelledError
        try:
            check_time()
            return function(item)
        except BaseException:
            stopped.set()  # at once, since the caller may be waiting for an item that takes long
            raise

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        # A context serves one thread at a time, so that each item has a copy.
        tasks = [pool.submit(contextvars.copy_context().run, run, item) for item in items]
        try:
            concurrent.futures.wait(tasks)
        finally:
            stopped.set()
    errors = (task.exception() for task in tasks)
    for error in errors:
        if error is not None and not isinstance(error, concurrent.futures.CancelledError):
            raise error
    return [task.result() for task in tasks]
