"""The folder of a sweep: one sealed file a point, which any number of processes may write at the same time.

    points/3f/3f02...json            the result of a point
    points/3f/3f02...failed.json     what it raised instead
    plans/<id>.json, latest.json     which points belong to a sweep, and which sweep was started last
    damaged/                         files set aside because their content is not what was written
    temporary/                       files not finished yet
    sweep.log                        what happened when

Nothing here needs NumPy or JAX, so that the status of a large store is told at once.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from solvable.core.errors import SolvableError, bad_parameter
from solvable.lab.sweep.sealed import Damaged, read_sealed, sync_folder, write_sealed

DONE, FAILED, EMPTIED = "done", "failed", "emptied"
_RESULT, _ERROR = ".json", ".failed.json"
_FORGOTTEN = 3600.0
"""Unfinished files older than this, in seconds, were left by a process that was killed."""
_LONGEST = 1000
"""The most characters of a line in the log."""


class StoreError(SolvableError, ValueError):
    """A folder that is not a store of a sweep, or holds no sweep."""


class PointStore:
    """The results of points, by id. `report` is told of each file that is set aside; by default it is a warning."""

    def __init__(self, folder: str | Path, create: bool = False, report: Callable[[str], object] | None = None):
        self.folder = Path(folder).absolute()  # also if the working directory changes
        self.points, self.plans = self.folder / "points", self.folder / "plans"
        self.damaged, self.temporary = self.folder / "damaged", self.folder / "temporary"
        self.latest = self.folder / "latest.json"
        self.report = report or (lambda message: warnings.warn(message, RuntimeWarning, stacklevel=4))
        self._known: set[Path] = set()
        if create:
            self._create()
        elif not self.plans.is_dir():
            what = "does not exist" if not self.folder.exists() else "is not the store of a sweep"
            raise StoreError(f"{folder} {what}; `solvable sweep FILE.toml --store {folder}` makes one.")

    def write(self, id: str, record: dict[str, Any], failed: bool = False) -> None:
        """Keep what a point gave, or the error it raised. A result takes the place of an earlier error."""
        path = self._path(id, _ERROR if failed else _RESULT)
        if path.parent not in self._known:
            path.parent.mkdir(exist_ok=True)
            self._known.add(path.parent)
        write_sealed(path, {"id": id} | record, self.temporary)
        if not failed:
            self._path(id, _ERROR).unlink(missing_ok=True)

    def read(self, id: str, failed: bool = False) -> dict[str, Any] | None:
        """What was kept of a point, or None. A damaged file is set aside and counts as none."""
        return self._read(self._path(id, _ERROR if failed else _RESULT), id)

    def has(self, id: str) -> bool:
        """Whether a point has a result."""
        return self._path(id, _RESULT).exists()

    def states(self) -> dict[str, str]:
        """`done`, `failed` or `emptied` for every point in the folder, from the names and sizes of the files alone."""
        found: dict[str, str] = {}
        for folder in _folders(self.points):
            with os.scandir(folder) as entries:
                for entry in entries:
                    id, _, rest = entry.name.partition(".")
                    if rest == _RESULT[1:]:
                        found[id] = DONE if _size(entry) else EMPTIED
                    elif rest == _ERROR[1:]:
                        found.setdefault(id, FAILED)
        return found

    def checked_states(self) -> dict[str, str]:
        """The same from reading every file; the damaged ones are set aside and do not count."""
        found: dict[str, str] = {}
        for folder in _folders(self.points):
            for name in sorted(os.listdir(folder)):  # an error, ".failed.json", before the result that replaced it
                id, _, rest = name.partition(".")
                if rest in (_RESULT[1:], _ERROR[1:]) and self.read(id, failed=rest == _ERROR[1:]) is not None:
                    found[id] = FAILED if rest == _ERROR[1:] else DONE
        return found

    def save_plan(self, id: str, content: dict[str, Any]) -> None:
        """Keep the plan of a sweep as the one started last."""
        write_sealed(self.plans / f"{id}.json", content, self.temporary)
        write_sealed(self.latest, {"plan": id}, self.temporary)
        sync_folder(self.plans)
        sync_folder(self.folder)

    def latest_plan(self) -> dict[str, Any]:
        """The plan of the sweep that was started last; `StoreError` if there is none."""
        latest = self._read(self.latest)
        ids = [path.stem for path in sorted(self.plans.glob("*.json"), key=_age)]
        if latest is not None:
            ids.insert(0, latest["plan"])
        for id in ids:
            content = self._read(self.plans / f"{id}.json", id)
            if content is not None:
                return content
        raise StoreError(f"{self.folder} holds no sweep; run `solvable sweep` again with its file to restore it.")

    def set_aside(self) -> int:
        """How many files lie in `damaged/`."""
        return len(os.listdir(self.damaged)) if self.damaged.is_dir() else 0

    def log(self, message: str) -> None:
        """Add a line to `sweep.log`: one write, so that lines of several processes do not mix."""
        text = " ".join(message[: 10 * _LONGEST].split())[:_LONGEST]
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} [{os.getpid()}] {text}\n"
        with open(self.folder / "sweep.log", "ab", buffering=0) as file:
            file.write(line.encode(errors="backslashreplace"))

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the store's lock together with all who hold it; yields whether another process had it before."""
        try:
            import fcntl

            file = open(self.folder / "lock", "ab")  # noqa: SIM115 - closed below, which frees the lock
        except (ImportError, OSError):  # no such locks on this system, or a folder that cannot be written
            yield False
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken = False
            except BlockingIOError:
                taken = True
            except OSError:  # a file system without locks
                yield False
                return
            fcntl.flock(file, fcntl.LOCK_SH)  # does not wait long: nobody keeps the other kind
            yield taken

    def _create(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise bad_parameter("store", str(self.folder), "a folder")
        ours = (self.points, self.plans, self.damaged, self.temporary)
        found = set(self.folder.iterdir()) if self.folder.is_dir() else set()
        begun = found <= {*ours, self.folder / "sweep.log", self.folder / "lock"}  # perhaps killed before it had a plan
        if not begun and not (self.plans.is_dir() and (self.points.is_dir() or self.latest.exists())):
            takes = "a new or empty folder, or the store of an earlier sweep"
            raise bad_parameter("store", str(self.folder), takes)
        for folder in ours:
            folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        for unfinished in self.temporary.iterdir():
            try:
                if now - unfinished.stat().st_mtime > _FORGOTTEN:
                    unfinished.unlink()
            except FileNotFoundError:
                continue  # another process has just finished it

    def _path(self, id: str, ending: str) -> Path:
        return self.points / id[:2] / f"{id}{ending}"

    def _read(self, path: Path, id: str | None = None) -> dict[str, Any] | None:
        try:
            return _content(path, id)
        except FileNotFoundError:
            return None
        except (Damaged, ValueError) as error:
            self._set_aside(path, id, str(error))
            return None

    def _set_aside(self, path: Path, id: str | None, reason: str) -> None:
        """Move a damaged file to `damaged/`, and say so, once."""
        aside = self.damaged / f"{path.name}.{secrets.token_hex(3)}"
        name = path.relative_to(self.folder)
        try:
            self.damaged.mkdir(exist_ok=True)
            os.replace(path, aside)
        except FileNotFoundError:
            return  # another process was first
        except OSError as error:
            self.report(f"{name} is damaged ({reason}) and could not be set aside: {error}.")
            return
        try:
            _content(aside, id)
        except (Damaged, ValueError):
            self.log(f"{name} is damaged ({reason}): set aside as damaged/{aside.name}")
            self.report(f"{name} is damaged ({reason}): set aside; a rerun of the sweep computes it again.")
        else:
            os.replace(aside, path)  # it was damaged when it was read, and another process has just written it anew


def _content(path: Path, id: str | None) -> dict[str, Any]:
    content = read_sealed(path)
    if id is not None and content.get("id") != id:
        raise Damaged("it holds the result of another point")
    return content


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0  # another process has just set it aside


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
