"""Files that belong together and are replaced together, so that an interrupted run never spoils a finished one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path


def partial_name(path: Path) -> Path:
    """The name that a file has until it is whole. It is refused where it is a link: that would be written through."""
    partial = path.with_name(f"{path.name}.part")
    if os.path.lexists(partial) and (partial.is_symlink() or not partial.is_file()):
        raise FileExistsError(errno.EEXIST, "it is a link or no file, and nothing is written through it", str(partial))
    return partial


def write_together(folder: Path, writers: Mapping[str, Callable[[Path], object] | None]) -> list[Path]:
    """Write each file under a temporary name; only once all are complete, give them their names.

    A name without a writer is a file of an earlier run that this one does not have: it is removed. A run that is killed
    while it writes leaves the earlier files as they were, and `.part` files that the next run overwrites. A writer that
    raises takes the `.part` files with it.
    """
    partial = {name: partial_name(folder / name) for name, write in writers.items() if write is not None}
    try:
        for name, write in writers.items():
            if write is not None:
                write(partial[name])
        for name in writers:
            if name in partial:
                os.replace(partial[name], folder / name)
            else:
                (folder / name).unlink(missing_ok=True)
    finally:
        for path in partial.values():
            path.unlink(missing_ok=True)
    return [folder / name for name in partial]
