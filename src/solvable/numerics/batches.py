"""Compiled functions on any number of rows, without compiling for each number anew: padded batches of one length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from solvable.core.deadline import check_time
from solvable.numerics.threads import each

BATCH = 32


def in_batches(
    function: Callable[..., Any], *rows: Any, batch: int = BATCH, alone: bool = True, threads: int = 1
) -> Any:
    """What a compiled function makes of rows, `batch` of them at a time, in double precision, as NumPy arrays.

    `rows` are arrays of one leading length, or pytrees of such arrays; the function returns arrays, or a pytree of
    them, with a row for each row. The last batch is filled up with copies of its last row, so that the function is
    compiled for one length. Unless `alone` is False a single row is given alone, which costs no more than it must. With
    several `threads` the first batch compiles the function and the others run at the same time. For one call on all
    rows give a rounded number of them as `batch`: `rounded_up` or `rounded_up_to_power`.
    """
    count = len(jax.tree.leaves(rows)[0])
    length = 1 if alone and count == 1 else batch

    def run(start: int) -> Any:
        check_time()
        with jax.enable_x64(True):  # each thread has a switch of its own
            found = function(*jax.tree.map(lambda leaf: _filled(leaf[start : start + length], length), rows))
            return jax.tree.map(lambda leaf: np.array(leaf)[: count - start], found)

    first, *others = range(0, max(count, 1), length)
    parts = [run(first)]
    parts += each(run, others, threads) if threads > 1 and len(others) > 1 else map(run, others)
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def in_blocks(function: Callable[[np.ndarray], np.ndarray], rows: int = 2000) -> Callable[[np.ndarray], np.ndarray]:
    """The same function of an array, so many rows of it at a time, where what it holds meanwhile is large."""

    def blockwise(inputs: np.ndarray) -> np.ndarray:
        starts = range(0, max(len(inputs), 1), rows)
        return np.concatenate([function(inputs[start : start + rows]) for start in starts])

    return blockwise


def rounded_up(count: int, multiple: int) -> int:
    """The smallest positive multiple that is not below `count`."""
    return max(1, -(-count // multiple)) * multiple


def rounded_up_to_power(count: int, least: int) -> int:
    """The smallest of `least`, 2 `least`, 4 `least`, .. that is not below `count`."""
    return least * 2 ** math.ceil(math.log2(max(count / least, 1)))


def _filled(rows: np.ndarray, length: int) -> np.ndarray:
    """The rows with copies of the last added, or as many rows of ones where there is none to copy."""
    if len(rows) == length:
        return rows
    last = rows[-1:] if len(rows) else np.ones((1, *rows.shape[1:]), rows.dtype)
    return np.concatenate([rows, np.repeat(last, length - len(rows), 0)])
