"""Linear algebra on one thread: for many small products, where waking further threads costs more than the products."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_inside = 0
_before: dict[Any, int] = {}
_own = threading.local()


@functools.cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS libraries of this process; looking for them takes longer than a small run, so it is done once."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be found too)
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().lib_controllers)


@contextmanager
def single_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; its rounding is then the same in any process.

    The limit of most libraries is that of the process. It is set by the first that enters, in whatever thread, and
    lifted by the last that leaves: no thread lifts it for another, and none leaves it behind. With OpenMP each thread
    has a limit of its own, which it sets and lifts for itself.
    """
    global _inside
    if getattr(_own, "inside", False):  # this thread has it already
        yield
        return
    with _lock:
        threads = {library: library.num_threads for library in _libraries() if _of_thread(library)}
        if _inside == 0:
            _before.update({library: library.num_threads for library in _libraries() if not _of_thread(library)})
            _set(dict.fromkeys(_before, 1))
        _set(dict.fromkeys(threads, 1))
        _inside, _own.inside = _inside + 1, True
    try:
        yield
    finally:
        with _lock:
            _inside, _own.inside = _inside - 1, False
            _set(threads)
            if _inside == 0:
                _set(_before)
                _before.clear()


def _of_thread(library: Any) -> bool:
    return library.user_api == "openmp" or getattr(library, "threading_layer", None) == "openmp"


def _set(limits: dict[Any, int]) -> None:
    for library, number in limits.items():
        library.set_num_threads(number)
        # A library may take orders from the thread that gave the first one only, until that thread lets it go.
        getattr(type(library), "clear_controlling_thread", lambda: None)()
