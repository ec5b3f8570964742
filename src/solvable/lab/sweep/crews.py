"""Who computes the points: this process, a pool of processes, a Dask cluster, or any executor a user brings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter
from solvable.lab.sweep.worker import prepare


class Crew:
    """An executor, how many tasks it is given at a time, and, where it can be replaced when it breaks, how."""

    def __init__(self, executor: Executor, width: Callable[[], int], make: Callable[[], Executor] | None = None):
        self.executor = executor
        self.width = width
        self._make = make

    def renew(self) -> bool:
        """Start again with a new executor after this one has broken; False if it is not ours to replace."""
        if self._make is None:
            return False
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._make()
        return True


class Inline(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def crew(workers: int = 1, scheduler: str | None = None, executor: Executor | None = None) -> Iterator[Crew]:
    """The crew that the arguments ask for; what it starts is ended with it.

    **Arguments:** `workers`, the number of processes (1 computes here); `scheduler`, the address of a Dask scheduler;
    `executor`, any `concurrent.futures` executor. At most one of them is given.
    """
    workers = check_count("workers", workers, least=1)
    if sum([workers > 1, scheduler is not None, executor is not None]) > 1:
        raise ValueError("workers, scheduler and executor exclude each other: give one of them.")
    if executor is not None:
        if not isinstance(executor, Executor):
            raise bad_parameter("executor", executor, "a concurrent.futures executor")
        yield Crew(executor, _width_of(executor))
    elif scheduler is not None:
        with _dask(scheduler) as found:
            yield found
    elif workers == 1:
        yield Crew(Inline(), lambda: 1)
    else:
        others = set(active_children())
        pool = Crew(process_pool(workers), lambda: workers, lambda: process_pool(workers))
        try:
            yield pool
        except BaseException:  # do not wait for tasks whose results nobody will keep
            for process in set(active_children()) - others:
                process.terminate()
            raise
        finally:
            pool.executor.shutdown(wait=True, cancel_futures=True)


def process_pool(workers: int) -> Executor:
    """A pool of processes that keep to one thread each and end with this one, however that ends.

    They are fresh processes: forking one that has loaded JAX can deadlock.
    """
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=prepare)


@contextmanager
def _dask(address: str) -> Iterator[Crew]:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a scheduler needs Dask: install the extra `cluster`, solvable[cluster].") from None
    try:
        client = Client(address, timeout="20s")
    except (OSError, TimeoutError, ValueError) as error:
        raise bad_parameter("scheduler", address, f"the address of a running Dask scheduler ({error})") from None
    with client:
        yield Crew(client.get_executor(pure=False), _width_of_client(client))


def _width_of(executor: Executor) -> Callable[[], int]:
    """How many tasks at a time: the threads of a Dask cluster now, or else as many as this machine has cores."""
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        return _width_of_client(client)
    return lambda: os.cpu_count() or 1


def _width_of_client(client: Any) -> Callable[[], int]:
    """The threads of the cluster, asked at most once a second: workers come and go."""
    import time

    seen = [0.0, 1]

    def width() -> int:
        if time.monotonic() - seen[0] > 1:
            seen[:] = [time.monotonic(), max(1, sum(client.nthreads().values()))]
        return int(seen[1])

    return width
