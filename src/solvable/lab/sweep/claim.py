"""Which folders are stores: only in those is anything renamed or removed.

A store has a sealed file `store.json` that says so, written before anything else. Stores of earlier versions do not
have it; they are known by the sealed plan of a sweep. A folder that is neither empty nor known is somebody else's.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from solvable.core.errors import bad_parameter
from solvable.lab.sweep.sealed import (
    Damaged,
    is_folder,
    is_regular,
    is_unfinished,
    read_sealed,
    unlink_quietly,
    write_sealed,
)
from solvable.lab.sweep.shapes import check_plan, is_plan_id

MARKER = "store.json"
FOLDERS = ("temporary", "plans", "points", "damaged")
_CONTENT = {"store": "points of a solvable sweep"}
_FORGOTTEN = 3600.0
"""Unfinished files older than this, in seconds, were left by a process that was killed."""


def claim(folder: Path) -> None:
    """Make a new or empty folder a store, or go on with one; the folder of somebody else is a `ValueError`."""
    if folder.exists() and not folder.is_dir():
        raise bad_parameter("store", str(folder), "a folder")
    folder.mkdir(parents=True, exist_ok=True)
    found = os.listdir(folder)
    marked = is_marked(folder)  # looked at after the list was made: another process may be at it too
    if not (marked or _is_begun(folder, found) or has_plan(folder)):
        takes = "a new or empty folder, or the store of an earlier sweep"
        raise bad_parameter("store", str(folder), takes)
    for name in FOLDERS:
        if not is_folder(folder / name):
            os.makedirs(folder / name, exist_ok=True)
            if not is_folder(folder / name):
                raise bad_parameter("store", str(folder), f"a store whose folder {name} is not a link")
        if not marked:  # with the first of the folders, in which the marker is written before it has its name
            write_sealed(folder / MARKER, _CONTENT, folder / "temporary")
            marked = True
    _forget_unfinished(folder / "temporary")


def is_marked(folder: Path) -> bool:
    """Whether a folder has the file that makes it a store."""
    try:
        return read_sealed(folder / MARKER) == _CONTENT
    except (Damaged, FileNotFoundError, NotADirectoryError):
        return False


def has_plan(folder: Path) -> bool:
    """Whether a folder holds the plan of a sweep, whole, under its id."""
    plans = folder / "plans"
    if not is_folder(plans):
        return False
    for name in os.listdir(plans):
        id, ending = name[:-5], name[-5:]
        if ending == ".json" and is_plan_id(id):
            try:
                check_plan(read_sealed(plans / name), id)
            except (Damaged, FileNotFoundError):
                continue
            return True
    return False


def _is_begun(folder: Path, found: list[str]) -> bool:
    """Whether there is nothing but empty folders with our names: a sweep was killed before it had a plan."""
    return all(name in FOLDERS and is_folder(folder / name) for name in found) and all(
        name == "temporary" and is_unfinished(file) and is_regular(folder / name / file)
        for name in found
        for file in os.listdir(folder / name)
    )


def _forget_unfinished(temporary: Path) -> None:
    now = time.time()
    for name in os.listdir(temporary):
        path = temporary / name
        try:
            if is_unfinished(name) and is_regular(path) and now - os.lstat(path).st_mtime > _FORGOTTEN:
                unlink_quietly(path)
        except FileNotFoundError:
            continue  # another process has just finished it
