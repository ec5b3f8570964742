"""What a worker process does: leave when its parent has gone, and compute tasks.

The module imports nothing heavy: `versions` and the errors serve commands that need no numerical library.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from solvable.core.errors import ComputationError

if TYPE_CHECKING:
    from solvable.lab.grid.points import Task

LIMITS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NPROC": "2",  # how many threads XLA starts
}
"""What a worker has in its environment: as many workers as cores leave about one thread for each.

XLA compiles other code for one thread than for several, whose last digits differ. With two, which it rarely uses at the
same time, a worker gives the same bits as a process that may use all cores (of which there are two or more).
"""

LONGEST = 400
"""The most characters of a message that is kept; the traceback has the rest."""
LONGEST_TRACEBACK = 20_000


class NotLoaded(ComputationError):
    """A worker process does not find the classes that its points are made of."""


def prepare() -> None:
    """Make this process a worker: the initializer of a process pool."""
    import signal

    # An interruption from the keyboard reaches every process of the group: end at once, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):  # it was blocked while this process started
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _leave_with_parent()


def compute(tasks: list[Task], budget: float) -> list[list[dict[str, Any]]]:
    """The records of the points of each task, in order: of as many tasks as `budget` seconds allow, at least of one."""
    begin = time.perf_counter()
    found: list[list[dict[str, Any]]] = []
    for task in tasks:
        if found and time.perf_counter() - begin > budget:
            break
        found.append(records(task))
    return found


def compute_sent(tasks: list[Task], budget: float) -> list[list[dict[str, Any]]]:
    """The same for tasks that have come from another process."""
    os.environ.setdefault("NPROC", LIMITS["NPROC"])  # XLA reads it when it computes for the first time
    return compute(tasks, budget)


def compute_packed(packed: bytes, budget: float) -> list[list[dict[str, Any]]]:
    """The same for pickled tasks. A pool whose worker cannot unpickle its arguments breaks without saying why."""
    import pickle

    try:
        tasks = pickle.loads(packed)
    except Exception as error:
        raise NotLoaded(
            f"a worker process cannot load the points ({type(error).__name__}: {error}). Models and learners of your "
            "own must be in a module, or in the script itself; those of a notebook or a prompt stay in its process."
        ) from None
    return compute_sent(tasks, budget)


def records(task: Task) -> list[dict[str, Any]]:
    """What is kept of each point: what it is, its result or the error it raised, and where the numbers come from."""
    begin = time.perf_counter()
    found: list[dict[str, Any]]
    try:
        from solvable.core.plain import to_json
        from solvable.lab.grid.results import results_of

        found = [{"result": to_json(result)} for result in results_of(task)]
    except (Exception, SystemExit) as error:
        if len(task.alone) > 1:  # what one seed raises is not the fault of those that were computed with it
            return [record for part in task.alone for record in records(part)]
        found = [{"error": _told(error)} for _ in task.points]
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    source = {"provenance": versions() | {"seconds": time.perf_counter() - begin, "finished": finished}}
    return [{"point": point.describe()} | one | source for point, one in zip(task.points, found, strict=True)]


def _told(error: BaseException) -> dict[str, str]:
    """An error as text that any file can hold: one line, and where it was raised."""
    import traceback

    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ raises
        text = f"{type(error).__name__} (without a readable message)"
    trace = traceback.format_exc()
    if len(trace) > LONGEST_TRACEBACK:
        trace = f"{trace[: LONGEST_TRACEBACK // 2]}\n...\n{trace[-LONGEST_TRACEBACK // 2 :]}"
    line = " ".join(text[: 10 * LONGEST].split())
    line = line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
    return {"message": _encodable(line), "traceback": _encodable(trace)}


def _encodable(text: str) -> str:
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    if not _versions:
        import platform
        from importlib.metadata import version

        from solvable.core.version import installed_version

        _versions.update({"solvable": installed_version(), "python": platform.python_version()})
        _versions.update({name: version(name) for name in ("numpy", "scipy", "jax")})
    return dict(_versions)


_versions: dict[str, str] = {}


def _leave_with_parent() -> None:
    """End this process when the one that started it has ended, even by a kill: no pool tells its workers."""
    import threading
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
