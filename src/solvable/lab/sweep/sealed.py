"""Small JSON files that notice damage: a digest of the body stands in the first line.

A file is written under a temporary name, synced to the disk and renamed, so that its name never stands for half of it.
Nothing is read or written through a link, and nothing but a regular file is opened: a pipe would keep its reader
waiting.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_MARK = b"solvable sha256 "
_UNFINISHED = re.compile(r"\d+-[0-9a-f]{12}")
_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Damaged(Exception):
    """A file whose content is not what was written."""


def write_sealed(path: Path, content: dict[str, Any], temporary: Path) -> None:
    """Write JSON content so that after a crash the file is there whole, or not at all.

    `temporary` is a folder on the same file system; the name of the unfinished file there tells the process. The new
    name itself reaches the disk a little later, unless `sync_folder` is called: a power cut can cost the file.
    """
    body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    sealed = _MARK + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    unfinished = temporary / f"{os.getpid()}-{secrets.token_hex(6)}"
    try:
        with naming(path):
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFUL, 0o666)
            try:
                write_all(handle, sealed)
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(unfinished, path)
    except BaseException:
        unlink_quietly(unfinished)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path to an error of the system that does not name any, as that of a write."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def is_unfinished(name: str) -> bool:
    """Whether a name has the form that `write_sealed` gives to files that are not finished."""
    return _UNFINISHED.fullmatch(name) is not None


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a sealed file; `Damaged` says what is wrong with it."""
    raw = _read(path)
    if not raw:
        raise Damaged("the file is empty")
    first, newline, body = raw.partition(b"\n")
    if not newline or not first.startswith(_MARK):
        raise Damaged("the first line, which holds the digest, is not what was written")
    if hashlib.sha256(body).hexdigest().encode() != first[len(_MARK) :]:
        raise Damaged("the content does not match the digest in the first line")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"the content is not JSON that was written here ({type(error).__name__})") from None
    if not isinstance(content, dict):
        raise Damaged("the content is not a table")
    return content


def open_regular(path: Path, flags: int) -> int:
    """A file descriptor of a regular file; `Damaged` if the path is a link, a pipe or anything else."""
    if is_link(path):  # also where the system cannot refuse to follow one
        raise Damaged("it is a link")
    try:
        handle = os.open(path, flags | _CAREFUL, 0o666)
    except OSError:
        if os.path.lexists(path) and not is_regular(path):
            raise Damaged("it is not a regular file") from None
        raise
    try:
        with naming(path):
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Damaged("it is not a regular file")
    except BaseException:
        os.close(handle)
        raise
    return handle


def write_all(handle: int, content: bytes) -> None:
    """Write all of the content: the system may take a part of it only, as when the disk is nearly full."""
    while content:
        content = content[os.write(handle, content) :]


def is_regular(path: str | Path) -> bool:
    """Whether a path is a file, and not a link to one."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: str | Path) -> bool:
    """Whether a path is a folder, and not a link to one."""
    return stat.S_ISDIR(_mode(path))


def is_link(path: str | Path) -> bool:
    """Whether a path is a link, wherever it leads."""
    return stat.S_ISLNK(_mode(path))


def _mode(path: str | Path) -> int:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _read(path: Path) -> bytes:
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        return file.read()


def unlink_quietly(path: Path) -> None:
    """Remove a file if that is possible: what happened before matters more."""
    with suppress(OSError):
        os.unlink(path)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash, where the system can do that."""
    if os.name == "nt":
        return  # folders cannot be opened there; the rename itself is journalled
    with naming(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
