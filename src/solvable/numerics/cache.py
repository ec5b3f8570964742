"""Values computed once and kept, by the exact bits of the arrays that they are a function of.

Keys are never rounded and the computation sees the arrays in one memory layout: a value that is kept has the bits that
computing it anew would give, so that no result depends on what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Cache(Generic[T]):
    """`compute` of some arrays, at most `most` values; when there are more, all are dropped."""

    def __init__(self, compute: Callable[..., T], most: int):
        self._compute, self._most = compute, most
        self._values: dict[tuple, T] = {}

    def __call__(self, *arrays: np.ndarray) -> T:
        # Adding zero makes every zero positive: equal arrays have equal bits.
        plain = [np.ascontiguousarray(array, float) + 0.0 for array in arrays]
        key = tuple((array.shape, array.tobytes()) for array in plain)
        found = self._values.get(key)
        if found is None:
            found = self._compute(*plain)
            if len(self._values) >= self._most:
                self._values.clear()
            self._values[key] = found
        return found

    @property
    def values(self) -> list[T]:
        """The values that are kept now."""
        return list(self._values.values())
