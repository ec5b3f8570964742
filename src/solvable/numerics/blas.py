"""Linear algebra on one thread: for many small products, where waking further threads costs more than the products."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@functools.cache
def _libraries() -> Any:
    """The BLAS libraries of this process; looking for them takes longer than a small run, so it is done once."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be found too)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Limit:
    """The one limit of the process, in force as long as anybody holds it: threads must not lift it for each other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.limiter: Any = None


_limit = _Limit()


@contextmanager
def single_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; its rounding is then the same in any process."""
    with _limit.lock:
        if not _limit.holders:
            _limit.limiter = _libraries().limit(limits=1)
        _limit.holders += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.holders -= 1
            if not _limit.holders:
                _limit.limiter.restore_original_limits()
