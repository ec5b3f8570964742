"""Files that are replaced together: all of them or none, whatever interrupts the writing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from solvable.lab.files import write_together

NAMES = ("data.nc", "figure.png", "report.md")


def texts(folder):
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def writers(text):
    return {name: lambda path: path.write_text(text) for name in NAMES}


def test_files_are_written_and_replaced(tmp_path):
    assert write_together(tmp_path, writers("old")) == [tmp_path / name for name in NAMES]
    write_together(tmp_path, writers("new"))
    assert texts(tmp_path) == dict.fromkeys(NAMES, "new")


def test_a_file_that_the_new_set_does_not_have_is_removed(tmp_path):
    write_together(tmp_path, writers("old"))
    (tmp_path / "mine.txt").write_text("untouched")
    assert write_together(tmp_path, writers("new") | {"data.nc": None}) == [tmp_path / name for name in NAMES[1:]]
    assert texts(tmp_path) == {"figure.png": "new", "mine.txt": "untouched", "report.md": "new"}


def test_a_writer_that_fails_changes_nothing(tmp_path):
    write_together(tmp_path, writers("old"))

    def fail(path):
        path.write_text("half of")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_together(tmp_path, writers("new") | {"report.md": fail})
    assert texts(tmp_path) == dict.fromkeys(NAMES, "old")


def test_a_killed_run_leaves_the_earlier_files_whole(tmp_path):
    write_together(tmp_path, writers("old"))
    code = f"""
import sys, time
from pathlib import Path
from solvable.lab.files import write_together

def stall(path):
    path.write_text("half of")
    print("writing", flush=True)
    time.sleep(60)

names = {NAMES!r}
writers = {{name: lambda path: path.write_text("new") for name in names[:2]}} | {{names[2]: stall}}
write_together(Path({str(tmp_path)!r}), writers)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={"PYTHONPATH": ":".join(sys.path)}
    ) as run:
        assert run.stdout is not None and run.stdout.readline() == b"writing\n"
        run.send_signal(signal.SIGKILL)
        run.wait()
    left = texts(tmp_path)
    assert {name: left[name] for name in NAMES} == dict.fromkeys(NAMES, "old")
    assert all(name.removesuffix(".part") in NAMES for name in left)
    write_together(tmp_path, writers("newer"))
    assert texts(tmp_path) == dict.fromkeys(NAMES, "newer")
