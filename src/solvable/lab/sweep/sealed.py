"""Small JSON files that notice damage: a digest of the body stands in the first line.

A file is written under a temporary name, synced to the disk and renamed, so that its name never stands for half of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

_MARK = b"solvable sha256 "


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
        with open(unfinished, "xb") as file:
            file.write(sealed)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a sealed file; `Damaged` says what is wrong with it."""
    raw = path.read_bytes()
    if not raw:
        raise Damaged("the file is empty")
    first, newline, body = raw.partition(b"\n")
    if not newline or not first.startswith(_MARK):
        raise Damaged("the first line, which holds the digest, is not what was written")
    if hashlib.sha256(body).hexdigest().encode() != first[len(_MARK) :]:
        raise Damaged("the content does not match the digest in the first line")
    return json.loads(body)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash, where the system can do that."""
    if os.name == "nt":
        return  # folders cannot be opened there; the rename itself is journalled
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
