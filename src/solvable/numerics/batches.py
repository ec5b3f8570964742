"""Compiled functions on arrays of any length, without compiling for each length anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BATCH = 32


def in_batches(function: Callable[..., Any], *arrays: np.ndarray, batch: int = BATCH) -> tuple[np.ndarray, ...]:
    """The outputs of a compiled function of arrays of one length, evaluated `batch` entries at a time.

    A single entry is given alone, so that it costs no more than it must; the last batch is filled up with copies. So
    the function is compiled for two lengths at most. It returns one array or a tuple of them, of leading length.
    """
    count = len(arrays[0])
    if count == 1:
        return _arrays(function(*arrays))
    parts = []
    for start in range(0, count, batch):
        index = np.minimum(np.arange(start, start + batch), count - 1)
        kept = min(batch, count - start)
        parts.append([part[:kept] for part in _arrays(function(*(array[index] for array in arrays)))])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _arrays(found: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.array(part) for part in (found if isinstance(found, (tuple, list)) else (found,)))
