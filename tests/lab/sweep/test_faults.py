"""Every call to the system that a store makes fails once: it is told, nothing is lost, and a rerun completes."""

from __future__ import annotations

import errno
import os
import shutil
import warnings

import pytest
from toys import ridge as toy
from toys.learners import results

import solvable as sv
from solvable.cli.errors import FULL, explain, guarded
from solvable.lab.grid.request import make_plan
from solvable.lab.sweep.status import status
from solvable.lab.sweep.verb import run_sweep

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
CALLS = ("open", "write", "fsync", "replace", "mkdir", "unlink", "close", "lstat", "fstat", "listdir", "scandir")
pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs to see whose a descriptor is")


PLAN = make_plan(MODEL, RIDGE, None, None, False, {"alpha": [0.5, 1.0]})


def run(folder):
    return run_sweep(PLAN, folder, progress=False)


class Faults:
    """Counts the calls that concern a folder, and lets one of them fail."""

    def __init__(self, monkeypatch, folder, which=None, full=errno.ENOSPC):
        self.folder, self.which, self.full = str(folder), which, full
        self.made: list[str] = []
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name, call):
        def wrapped(path, *arguments, **options):
            if not self._concerns(path):
                return call(path, *arguments, **options)
            self.made.append(name)
            if len(self.made) - 1 != self.which:
                return call(path, *arguments, **options)
            if name == "close":
                call(path)  # an error of a close leaves nothing open
            where = () if isinstance(path, int) else (str(path),)
            raise OSError(self.full, os.strerror(self.full), *where)

        return wrapped

    def _concerns(self, path):
        try:
            return str(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path).startswith(self.folder)
        except OSError:
            return False


def counted(folder, monkeypatch, work):
    with monkeypatch.context() as patch:
        faults = Faults(patch, folder)
        work(folder)
    return len(faults.made), set(faults.made)


def attempt(folder, monkeypatch, which):
    """Run with one failing call; the error, if it came through."""
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Faults(patch, folder, which)
        try:
            run(folder)
        except OSError as error:
            return error
    return None


every_third_call = pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])


@every_third_call
def test_each_call_of_a_new_store_fails_once(tmp_path, monkeypatch, first):
    calls, kinds = counted(tmp_path / "whole", monkeypatch, run)
    expected = results(tmp_path / "whole")
    assert kinds >= {"open", "write", "fsync", "replace", "mkdir", "lstat"} and calls > 60
    told = 0
    for which in range(first, calls, 3):
        folder = tmp_path / str(which)
        error = attempt(folder, monkeypatch, which)
        if error is not None:
            told += 1
            assert error.errno == errno.ENOSPC and str(folder) in str(error.filename)
        run(folder)
        assert results(folder) == expected and status(folder).set_aside == 0
        assert sv.open(folder)["overlap"].notnull().all()
    assert told > calls // 6


@every_third_call
def test_each_call_of_a_repair_fails_once(tmp_path, monkeypatch, first):
    """A damaged point, a damaged index, and files of the user's in the store."""
    source = tmp_path / "source"
    run(source)
    expected = results(source)
    sorted(source.glob("points/*/*.json"))[0].write_bytes(b"damaged")
    (source / "latest.json").write_bytes(b"")
    mine = [source / name for name in ("notes.txt", "temporary/thesis.tex", "damaged/old.json", "points/mine.txt")]
    for path in mine:
        path.write_text("mine")

    def repaired(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(folder)

    calls, _ = counted(shutil.copytree(source, tmp_path / "whole"), monkeypatch, repaired)
    for which in range(first, calls, 3):
        folder = shutil.copytree(source, tmp_path / str(which))
        attempt(folder, monkeypatch, which)
        repaired(folder)
        assert all((folder / path.relative_to(source)).read_text() == "mine" for path in mine)
        assert results(folder) == expected


def test_a_full_disk_is_told_as_one_with_the_path_and_a_code_of_its_own(tmp_path, monkeypatch, capsys):
    run(tmp_path / "whole")
    for call in ("write", "fsync", "replace", "mkdir"):
        folder = tmp_path / call
        with monkeypatch.context() as patch:
            faults = Faults(patch, folder)
            patch.setattr(os, call, _always_full)
            assert guarded(lambda folder=folder: run(folder)) == FULL, faults.made
        told = capsys.readouterr().err
        assert told.startswith("solvable: the disk is full: ") and told.count("\n") == 1
        assert str(folder) in told and "No space left on device" in told and "run the command again" in told


def _always_full(path, *arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *(() if isinstance(path, int) else (str(path),)))


def test_other_errors_of_a_disk_are_not_called_full():
    assert explain(OSError(errno.EIO, "Input/output error", "x"))[1] != FULL
    assert explain(OSError(errno.EDQUOT, "Disk quota exceeded", "x"))[1] == FULL
