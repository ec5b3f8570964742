"""Whether what a sampler is about to make fits into the memory of this machine: asked before it is made."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from solvable.core.errors import bad_parameter

_UNKNOWN = 64e9
"""Bytes that a machine is taken to have where the system does not say."""


def check_memory(needed: float, what: str, name: str, value: Any) -> None:
    """Refuse the parameter `name` with a `ValueError` if `what` would take more bytes than the machine has."""
    most = memory()
    if not needed <= most:
        size = f"{needed:.0f} bytes ({1e-9 * needed:.3g} GB)" if needed < 1e18 else f"{needed:.3g} bytes"
        raise bad_parameter(name, value, f"smaller: {what} would take {size}, and there are {1e-9 * most:.3g} GB here")


@functools.cache
def memory() -> float:
    """The bytes of memory that this process may use: those of the machine, or of the container it runs in."""
    try:
        found = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        found = _UNKNOWN
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found = min(found, float(Path(limit).read_text()))
        except (OSError, ValueError):  # no container, or no limit
            continue
    return found
