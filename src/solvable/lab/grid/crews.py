"""Who computes the tasks: this process, a pool of processes, a Dask cluster, or any executor a user brings."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from solvable.core.checks import check_count
from solvable.core.errors import ComputationError, bad_parameter
from solvable.lab.grid.points import Task
from solvable.lab.grid.worker import LIMITS, compute, compute_packed, compute_sent, prepare
from solvable.numerics.blas import single_thread

BATCH = 64
"""The most tasks that another process is sent at a time; what is computed here is handed over one by one."""
EVERYTHING = 2**31


class WorkersLost(ComputationError):
    """The executor broke and cannot be replaced."""


class Crew:
    """An executor, and how many batches (`width`), of how many tasks (`batch`), it is given at a time.

    `make` is how it is replaced when it breaks, where that is ours to do.
    """

    def __init__(
        self,
        executor: Executor,
        width: Callable[[], int],
        batch: int = BATCH,
        call: Callable[..., Any] = compute,
        make: Callable[[], Executor] | None = None,
    ):
        self.executor = executor
        self.width, self.batch = width, batch
        self._call, self._make = call, make

    @property
    def elsewhere(self) -> bool:
        """Whether others work while this process does something else."""
        return not isinstance(self.executor, Inline)

    def submit(self, tasks: list[Task], budget: float) -> Future[list[list[dict[str, Any]]]]:
        """Have the tasks computed, as many as `budget` seconds allow."""
        if self._call is not compute_packed:
            return self.executor.submit(self._call, tasks, budget)
        try:
            packed = pickle.dumps(tasks)
        except Exception as error:
            what = f"the points of this sweep cannot be sent to worker processes ({type(error).__name__}: {error})"
            raise ValueError(f"{what}. Use workers=1, or classes and values that can be pickled.") from error
        return self.executor.submit(self._call, packed, budget)

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


def simple_crew(executor: Executor | None = None) -> Crew:
    """This process, or an executor that is given everything at once, each task by itself."""
    if executor is None:
        return Crew(Inline(), lambda: 1, batch=1)
    check_executor(executor)
    return Crew(executor, lambda: EVERYTHING, batch=1, call=_call_of(executor))


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
        check_executor(executor)
        with single_thread():  # its threads, or its processes, take the cores
            yield Crew(executor, _width_of(executor), call=_call_of(executor))
    elif scheduler is not None:
        with _dask(scheduler) as found:
            yield found
    elif workers == 1:
        yield simple_crew()
    else:
        others = set(active_children())

        def make() -> Executor:
            return _started(process_pool(workers))

        pool = Crew(process_pool(workers), lambda: workers, call=compute_packed, make=make)
        try:
            _started(pool.executor)
            yield pool
        except BaseException:  # do not wait for tasks whose results nobody will keep
            for process in set(active_children()) - others:
                if isinstance(process, _LimitedProcess):
                    process.terminate()
            raise
        finally:
            pool.executor.shutdown(wait=True, cancel_futures=True)


def check_executor(executor: Any) -> None:
    """Refuse what is not an executor, and pools that fork this process: once JAX has run, their workers hang."""
    if not isinstance(executor, Executor):
        raise bad_parameter("executor", executor, "a concurrent.futures executor")
    start_method = getattr(getattr(executor, "_mp_context", None), "get_start_method", lambda: None)()
    if start_method == "fork":
        raise ValueError(
            "executor forks this process, and JAX does not survive that: a worker would wait for ever. Use "
            'ProcessPoolExecutor(..., mp_context=multiprocessing.get_context("spawn")), or workers= of a sweep.'
        )


def process_pool(workers: int) -> Executor:
    """A pool of processes that keep to one thread each and end with this one, however that ends.

    They are fresh processes: forking one that has loaded JAX can deadlock.
    """
    return ProcessPoolExecutor(workers, mp_context=_LimitedSpawn(), initializer=prepare)


@contextmanager
def pool_of(workers: int) -> Iterator[Executor | None]:
    """A pool of processes for as long as it is needed, or None for a single worker."""
    if workers == 1:
        yield None
        return
    with process_pool(workers) as pool:
        yield pool


class _LimitedProcess(SpawnProcess):
    """Starts with the limits on threads in its environment: they are read when a library is loaded, however early.

    Until it is prepared, an interruption waits, instead of ending its imports with a traceback.
    """

    def start(self) -> None:
        before = {name: os.environ.get(name) for name in LIMITS}
        os.environ.update(LIMITS)
        try:
            with _interruptions_wait():
                super().start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def _interruptions_wait() -> Iterator[None]:
    """Block the signal of an interruption in this thread; a process started meanwhile has it blocked too."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting that would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _LimitedSpawn(SpawnContext):
    Process = _LimitedProcess


def _started(pool: Executor) -> Executor:
    """The pool, once one of its processes is up: one that cannot start must not be taken for a point that kills it."""
    try:
        pool.submit(os.getpid).result()
    except BrokenExecutor:
        raise WorkersLost(
            "the worker processes end as soon as they start; their messages are above. In a script, call the sweep "
            'under `if __name__ == "__main__":`, because each worker imports the script.'
        ) from None
    return pool


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
        yield Crew(client.get_executor(pure=False), _width_of_client(client), call=compute_sent)


def _width_of(executor: Executor) -> Callable[[], int]:
    """How many tasks at a time: the threads of a Dask cluster now, the workers of a pool, or the cores here."""
    client = _client_of(executor)
    if client is not None:
        return _width_of_client(client)
    sizes = (getattr(executor, name, None) for name in ("num_workers", "_max_workers"))  # of MPI, and of most others
    known = next((size for size in sizes if isinstance(size, int) and size > 0), os.cpu_count() or 1)
    return lambda: known


def _call_of(executor: Executor) -> Callable[..., Any]:
    return compute if _client_of(executor) is None else compute_sent


def _client_of(executor: Executor) -> Any:
    """The Dask client behind an executor, if there is one."""
    client = getattr(executor, "_client", None)
    return client if hasattr(client, "nthreads") else None


def _width_of_client(client: Any) -> Callable[[], int]:
    """The threads of the cluster, asked at most once a second: workers come and go."""
    seen = [0.0, 1]

    def width() -> int:
        if time.monotonic() - seen[0] > 1:
            seen[:] = [time.monotonic(), max(1, sum(client.nthreads().values()))]
        return int(seen[1])

    return width
