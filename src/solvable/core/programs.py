"""Compiled programs of JAX, which it keeps for ever: dropped when many targets have come and gone.

A new target brings up to ten megabytes of programs that no other target uses. They are counted where targets are first
looked at, and dropped all at once when a verb begins, so that a process that uses a few targets never compiles anything
twice.
"""

from __future__ import annotations

import threading

MOST = 32
"""How many new targets may bring their programs before all are dropped."""

_lock = threading.Lock()
_new = 0


def count_target() -> None:
    """A target is looked at that was not known before, or is known no longer."""
    global _new
    with _lock:
        _new += 1


def drop_programs() -> None:
    """Drop all compiled programs if many targets have come since that was done last; what is used again is compiled."""
    global _new
    with _lock:
        due = _new > MOST
        _new = 0 if due else _new
    if due:
        import jax

        jax.clear_caches()
