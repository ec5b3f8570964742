"""The commands about sweeps: sweep, status, gather."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toys import learners as sweep_toys  # noqa: F401  (registers the toy models)

import solvable as sv
from solvable.cli.app import run

FILE = """
[model]
name = "regression"
noise = [0.1, 0.2]
[[learner]]
name = "ridge"
[[learner]]
name = "raising"
limit = 1.5
[axes]
alpha = {start = 0.5, stop = 2.0, num = 4}
[simulation]
d = 10
seeds = 2
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE)
    return str(path)


def call(capsys, *arguments):
    code = run(list(arguments))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_sweep_status_and_gather(capsys, tmp_path, file):
    store, data, figure = str(tmp_path / "a store"), tmp_path / "results.nc", tmp_path / "figure.png"
    code, out, err = call(capsys, "sweep", file, "--store", store)
    assert (code, err) == (0, "")
    first, errors, where = out.splitlines()
    assert first.startswith("48 points: 0 were done, 48 computed in ") and first.endswith(" s, 6 failed")
    assert errors == f"the errors: solvable status '{store}'" and "solvable gather" in where

    code, out, _ = call(capsys, "status", store)
    assert code == 0 and out.startswith("48 points: 42 done, 6 failed, 0 left\n")
    assert out.count("failed: raising, alpha = 2") == 5 and "too many samples" in out
    code, out, _ = call(capsys, "status", store, "--json", "--verify")
    found = json.loads(out)
    assert (found["points"], found["done"], found["failed"], found["left"], found["read"]) == (48, 42, 6, 0, True)

    code, out, err = call(capsys, "gather", store, "--out", str(data), "--out", str(figure), "--metric", "overlap")
    assert (code, err) == (0, "") and out == f"written: {data}\nwritten: {figure}\n"
    assert figure.read_bytes().startswith(b"\x89PNG")
    loaded = sv.Curve.load(data)
    assert loaded.axes == ("noise", "alpha") and loaded.dataset.identical(sv.open(store).dataset)

    code, out, _ = call(capsys, "sweep", file, "--store", store, "--json")
    found = json.loads(out)
    assert (found["planned"], found["before"], found["computed"], found["failed"]) == (48, 42, 0, 6)
    code, out, _ = call(capsys, "sweep", file, "--store", store, "--retry-failed", "--json")
    found = json.loads(out)
    assert (found["before"], found["computed"], found["failed"]) == (42, 6, 6)


def test_the_file_and_the_arguments_of_python_give_the_same_points(capsys, tmp_path, file):
    call(capsys, "sweep", file, "--store", str(tmp_path / "store"))
    from toys import ridge as toy

    learners = [toy.Ridge(), sweep_toys.Raising(limit=1.5)]
    alpha = np.linspace(0.5, 2.0, 4)
    sv.sweep(toy.Regression(), learners, store=tmp_path / "store", noise=[0.1, 0.2], alpha=alpha, d=10, seeds=2)
    assert "42 were done, 0 computed" in (tmp_path / "store/sweep.log").read_text().splitlines()[-1]


def test_an_unfinished_sweep_is_gathered_as_far_as_it_is(capsys, tmp_path, file):
    store = tmp_path / "store"
    call(capsys, "sweep", file, "--store", str(store))
    for path in list(store.glob("points/*/*.json"))[::2]:
        path.unlink()
    code, out, _ = call(capsys, "status", str(store), "--json")
    found = json.loads(out)
    assert found["left"] == 24 and found["done"] + found["failed"] == 24
    assert call(capsys, "gather", str(store), "--out", str(tmp_path / "a.nc"))[0] == 0
    for path in store.glob("points/*/*.json"):
        path.unlink()
    code, out, err = call(capsys, "gather", str(store), "--out", str(tmp_path / "b.nc"))
    assert code == 2 and out == "" and "no point of it has been computed" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[model\n", "is not a TOML file"),
        (FILE.replace("ridge", "rigde"), "learner = 'rigde' is not allowed"),
        (FILE.replace("noise", "nose"), "model.nose = [0.1, 0.2] is not allowed"),
        (FILE.replace("seeds = 2", "seeds = 0"), "seeds = 0 is not allowed"),
        (FILE.replace("d = 10", "d = 1"), "simulation.d = 1 is not allowed"),
        (FILE.replace("num = 4", "num = 0"), "axes.alpha.num = 0 is not allowed"),
        (FILE.replace("[axes]", "[axis]"), "unknown key 'axis' in the file"),
        ("", "the file needs a table [model]"),
    ],
)
def test_bad_files(capsys, tmp_path, content, message):
    path = tmp_path / "sweep.toml"
    path.write_text(content)
    code, out, err = call(capsys, "sweep", str(path), "--store", str(tmp_path / "store"))
    assert code == 2 and out == "" and message in err and len(err.splitlines()) == 1
    assert not (tmp_path / "store").exists()


def test_bad_folders_and_arguments(capsys, tmp_path, file):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/data.csv").write_text("mine")
    for arguments, message in [
        (["sweep", "nowhere.toml", "--store", "s"], "nowhere.toml"),
        (["sweep", str(tmp_path), "--store", "s"], "directory"),
        (["sweep", file], "--store"),
        (["sweep", file, "--store", str(tmp_path / "mine")], "a new or empty folder"),
        (["sweep", file, "--store", file], "store must be a folder"),
        (["sweep", file, "--store", str(tmp_path / "s"), "--workers", "0"], "--workers"),
        (["sweep", file, "--store", str(tmp_path / "s"), "--workers", "2", "--scheduler", "tcp://x"], "exclude"),
        (["status", str(tmp_path / "nowhere")], "does not exist"),
        (["status", str(tmp_path / "mine")], "is not the store of a sweep"),
        (["gather", str(tmp_path / "mine"), "--out", str(tmp_path / "a.nc")], "is not the store of a sweep"),
        (["gather", str(tmp_path / "mine"), "--out", "a.txt"], "--out"),
        (["gather", str(tmp_path / "mine")], "--out"),
    ]:
        code, out, err = call(capsys, *arguments)
        assert code == 2 and out == "" and message in err and len(err.splitlines()) == 1, (arguments, err)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["data.csv"]


def test_a_bad_metric_is_named(capsys, tmp_path, file):
    call(capsys, "sweep", file, "--store", str(tmp_path / "store"))
    code, _, err = call(capsys, "gather", str(tmp_path / "store"), "--out", "a.png", "--metric", "beauty")
    assert code == 2 and "metric = 'beauty' is not allowed" in err
