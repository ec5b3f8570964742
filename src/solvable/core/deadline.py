"""A limit on the time that a computation takes, looked at between its compiled parts, which nothing interrupts."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator
from typing import NamedTuple

from solvable.core.checks import real_number
from solvable.core.errors import TimeLimitError


class _Limit(NamedTuple):
    end: float
    seconds: float


_LIMIT: contextvars.ContextVar[_Limit | None] = contextvars.ContextVar("limit", default=None)


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Within this block `check_time` raises once `seconds` have passed; None is no limit. The sooner of two holds."""
    if seconds is None:
        yield
        return
    allowed: float = real_number("seconds", seconds, "a positive number of seconds, or None", lambda x: x > 0)
    limit, outer = _Limit(time.monotonic() + allowed, allowed), _LIMIT.get()
    token = _LIMIT.set(limit if outer is None else min(limit, outer))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def check_time() -> None:
    """Raise `TimeLimitError` if the time is over. To be called between parts that take a second or so at most."""
    limit = _LIMIT.get()
    if limit is not None and time.monotonic() > limit.end:
        raise TimeLimitError(
            f"this takes longer than the {limit.seconds:g} s it was given; allow more, or try a simpler target."
        )
