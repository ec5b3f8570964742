"""The folder of a sweep: one sealed file a point, which any number of processes may write at the same time.

    points/3f/3f02...json            the result of a point
    points/3f/3f02...failed.json     what it raised instead
    plans/<id>.json, latest.json     which points belong to a sweep, and which sweep was started last
    damaged/                         files set aside because their content is not what was written
    temporary/                       files not finished yet
    store.json                       makes the folder a store
    sweep.log                        what happened when

Ids are hexadecimal, so that no name leads out of the folder, and nothing goes through a link. Nothing here needs NumPy
or JAX, so that the status of a large store is told at once.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from solvable.core.errors import SolvableError
from solvable.lab.sweep.claim import FOLDERS, claim, has_plan, is_marked
from solvable.lab.sweep.sealed import (
    Damaged,
    is_folder,
    is_regular,
    naming,
    open_regular,
    read_sealed,
    sync_folder,
    write_all,
    write_sealed,
)
from solvable.lab.sweep.shapes import check_latest, check_plan, check_record, is_plan_id, is_point_id

DONE, FAILED, EMPTIED = "done", "failed", "emptied"
_RESULT, _ERROR = ".json", ".failed.json"
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
            claim(self.folder)
        elif not (is_folder(self.plans) and (is_marked(self.folder) or has_plan(self.folder))):
            what = "does not exist" if not self.folder.exists() else "is not the store of a sweep"
            raise StoreError(f"{folder} {what}; `solvable sweep FILE.toml --store {folder}` makes one.")
        for name in FOLDERS:
            if os.path.lexists(self.folder / name) and not is_folder(self.folder / name):
                raise StoreError(_not_ours(self.folder / name, "a folder"))

    def write(self, id: str, record: dict[str, Any], failed: bool = False) -> None:
        """Keep what a point gave, or the error it raised. A result takes the place of an earlier error."""
        path = self._path(id, failed)
        if path.parent not in self._known:
            with suppress(FileExistsError):
                os.mkdir(path.parent)
            if not is_folder(path.parent):
                raise StoreError(_not_ours(path.parent, "a folder"))
            self._known.add(path.parent)
        write_sealed(path, {"id": id} | record, self.temporary)
        if not failed:
            self._path(id, failed=True).unlink(missing_ok=True)

    def read(self, id: str, failed: bool = False) -> dict[str, Any] | None:
        """What was kept of a point, or None. A damaged file is set aside and counts as none."""
        path = self._path(id, failed)
        if path.parent not in self._known and not is_folder(path.parent):
            return None
        return self._read(path, lambda content: check_record(content, id, failed))

    def has(self, id: str) -> bool:
        """Whether a point has a result."""
        return is_regular(self._path(id))

    def states(self) -> dict[str, str]:
        """`done`, `failed` or `emptied` for every point in the folder, from the names and sizes of the files alone."""
        found: dict[str, str] = {}
        for folder in _folders(self.points):
            with os.scandir(folder) as entries:
                for entry in entries:
                    id, rest = _named(entry.name, folder)
                    if rest == _RESULT:
                        found[id] = DONE if _size(entry) else EMPTIED
                    elif rest == _ERROR:
                        found.setdefault(id, FAILED)
        return found

    def checked_states(self) -> dict[str, str]:
        """The same from reading every file; the damaged ones are set aside and do not count."""
        found: dict[str, str] = {}
        for folder in _folders(self.points):
            for name in sorted(os.listdir(folder)):  # an error, ".failed.json", before the result that replaced it
                id, rest = _named(name, folder)
                if rest and self.read(id, failed=rest == _ERROR) is not None:
                    found[id] = FAILED if rest == _ERROR else DONE
        return found

    def save_plan(self, id: str, content: dict[str, Any]) -> None:
        """Keep the plan of a sweep as the one started last."""
        write_sealed(self._plan(id), content, self.temporary)
        write_sealed(self.latest, {"plan": id}, self.temporary)
        sync_folder(self.plans)
        sync_folder(self.folder)

    def latest_plan(self) -> dict[str, Any]:
        """The plan of the sweep that was started last; `StoreError` if there is none."""
        latest = self._read(self.latest, check_latest)
        ids = [path.stem for path in sorted(self.plans.glob("*.json"), key=_age) if is_plan_id(path.stem)]
        if latest is not None:
            ids.insert(0, latest["plan"])
        for id in ids:
            content = self._read(self._plan(id), lambda content, id=id: check_plan(content, id))
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
        path = self.folder / "sweep.log"
        try:
            handle = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except Damaged:
            raise StoreError(_not_ours(path, "a file")) from None
        with naming(path):
            try:
                write_all(handle, line.encode(errors="backslashreplace"))
            finally:
                os.close(handle)

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the store's lock together with all who hold it; yields whether another process had it before."""
        try:
            import fcntl

            file = open_regular(self.folder / "lock", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except (ImportError, OSError, Damaged):  # no such locks on this system, or a file that cannot be written
            yield False
            return
        try:
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
        finally:
            with suppress(OSError):
                os.close(file)  # which frees the lock

    def _path(self, id: str, failed: bool = False) -> Path:
        if not is_point_id(id):
            raise StoreError(f"{id!r:.80} is not the id of a point: it must be 32 hexadecimal digits.")
        return self.points / id[:2] / f"{id}{_ERROR if failed else _RESULT}"

    def _plan(self, id: str) -> Path:
        if not is_plan_id(id):
            raise StoreError(f"{id!r:.80} is not the id of a sweep: it must be 16 hexadecimal digits.")
        return self.plans / f"{id}.json"

    def _read(self, path: Path, check: Callable[[dict[str, Any]], None]) -> dict[str, Any] | None:
        try:
            return _content(path, check)
        except FileNotFoundError:
            return None
        except Damaged as error:
            self._set_aside(path, check, str(error))
            return None

    def _set_aside(self, path: Path, check: Callable[[dict[str, Any]], None], reason: str) -> None:
        """Move a damaged file to `damaged/`, and say so, once. Of a link the link itself is moved."""
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
            _content(aside, check)
        except Damaged:
            with suppress(OSError, StoreError):  # it is set aside, whether that can be logged or not
                self.log(f"{name} is damaged ({reason}): set aside as damaged/{aside.name}")
            self.report(f"{name} is damaged ({reason}): set aside; a rerun of the sweep computes it again.")
        else:
            os.replace(aside, path)  # it was damaged when it was read, and another process has just written it anew


def _content(path: Path, check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    content = read_sealed(path)
    check(content)
    return content


def _not_ours(path: Path, what: str) -> str:
    return f"{path} is not {what} of a store, perhaps a link: nothing is written there. Move it away and try again."


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if is_folder(path)) if is_folder(parent) else []


def _named(name: str, folder: Path) -> tuple[str, str]:
    """The id of a point and the ending of its file; no ending if the name is not one that a sweep gives."""
    id, dot, rest = name.partition(".")
    ours = dot + rest in (_RESULT, _ERROR) and is_point_id(id) and id[:2] == folder.name
    return (id, dot + rest) if ours else (id, "")


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0  # another process has just set it aside


def _age(path: Path) -> float:
    try:
        return -os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0
