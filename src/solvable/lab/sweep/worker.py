"""What a worker process does: keep to one thread, leave when its parent has gone, and compute points.

The module imports nothing heavy, so that the limits on threads are set before the libraries they are for are loaded.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.lab.sweep.points import Point

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NPROC": "1",  # how many threads XLA starts
}


def prepare() -> None:
    """Make this process a worker: the initializer of a process pool."""
    import signal

    os.environ.update(ONE_THREAD)
    # An interruption from the keyboard reaches every process of the group: end at once, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _leave_with_parent()


def compute(points: list[Point], budget: float) -> list[dict[str, Any]]:
    """The records of the points, in order, of as many as `budget` seconds allow but at least of one."""
    begin = time.perf_counter()
    records: list[dict[str, Any]] = []
    for point in points:
        if records and time.perf_counter() - begin > budget:
            break
        records.append(record(point))
    return records


def record(point: Point) -> dict[str, Any]:
    """What is kept of a point: what it is, its result or the error it raised, and where the numbers come from."""
    import traceback

    begin = time.perf_counter()
    found: dict[str, Any] = {"point": point.describe()}
    try:
        from solvable.lab.sweep.results import result_of

        found["result"] = result_of(point)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        found["error"] = {"message": " ".join(text.split()), "traceback": traceback.format_exc()}
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found["provenance"] = versions() | {"seconds": time.perf_counter() - begin, "finished": finished}
    return found


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
