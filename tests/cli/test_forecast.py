"""`solvable forecast`: a file in, a table, JSON and a figure out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.cli.app import run


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    rows = np.column_stack([X, X @ [1.0, 0.5, 0.0] + rng.standard_normal(80)])
    path = tmp_path / "data.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,price", comments="")
    return path


def test_a_table_and_a_figure(file, tmp_path, capsys):
    figure = tmp_path / "curve.png"
    assert run(["forecast", str(file), "--target", "price", "--n", "40,800", "--out", str(figure)]) == 0
    out = capsys.readouterr().out
    assert "80 rows of 3 inputs" in out and "check from 20 rows" in out and figure.stat().st_size > 1000


def test_json(file, capsys):
    learner = "kernel-ridge:kernel=laplace,penalty=0.5"
    assert (
        run(["forecast", str(file), "--target", "price", "--learner", learner, "--n", "40", "--drop", "c", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["columns"] == 2 and found["learner"]["kernel"] == "laplace" and found["penalty"] == [0.5]
    assert run(["forecast", str(file), "--target", "price", "--learner", "random-features:penalty=1", "--p", "20"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "none"], "--target = 'none' is not allowed"),
        (["--target", "price", "--learner", "lasso"], "one of: linear-ridge, kernel-ridge, random-features"),
        (["--target", "price", "--n", "x"], "--n = 'x' is not allowed"),
        (["--target", "price", "--out", "x.txt"], "--out = 'x.txt' is not allowed"),
        (["--target", "price", "--learner", "random-features"], "random-features needs penalty"),
    ],
)
def test_bad_input(file, capsys, arguments, message):
    assert run(["forecast", str(file), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_power_laws_on_the_command_line(capsys):
    model = ["--model", "power-law-features", "--param", "capacity=1.5", "--param", "source=0.4", "--noise", "0.2"]
    learner = ["--learner", "random-features:penalty=0.1", "--param", "p=inf"]
    assert run(["predict", *model, *learner, "--param", "n=100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["bias"] > 0
