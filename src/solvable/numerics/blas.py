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
    """A context in which BLAS uses one thread; its rounding is then the same in any process.

    Who hands work to threads that enter this context holds it meanwhile: with libraries whose limit is that of the
    process, threads would lift it for each other, or leave it behind.
    """
    return _libraries().limit(limits=1)
