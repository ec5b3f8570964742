"""Linear algebra on one thread: for many small products, where waking further threads costs more than the products."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def _libraries() -> Any:
    """The BLAS libraries of this process; looking for them takes longer than a small run, so it is done once."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be found too)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def single_thread() -> Any:
    """A context in which BLAS uses one thread; its rounding is then the same in any process."""
    return _libraries().limit(limits=1)
