"""One function of many items on a few threads."""

from __future__ import annotations

import concurrent.futures
import contextvars
from collections.abc import Callable, Iterable
from typing import TypeVar

from solvable.core.deadline import check_time

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Iterable[Item], threads: int = 2) -> list[Result]:
    """What the function makes of every item. The threads know the caller's limit of time, and stop when it is over."""

    def run(item: Item) -> Result:
        check_time()
        return function(item)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        # A context serves one thread at a time, so that each item has a copy.
        tasks = [pool.submit(contextvars.copy_context().run, run, item) for item in items]
        try:
            return [task.result() for task in tasks]
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
