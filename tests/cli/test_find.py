"""`solvable find`: a file in, directions in words or as JSON out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.cli.app import run


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A price that goes with the product of the signs of the first two of six columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    y = np.sign(X[:, 0] * X[:, 1]) + 0.1 * rng.standard_normal(1500)
    path = tmp_path_factory.mktemp("find") / "data.csv"
    rows = "\n".join(",".join(f"{value:.6g}" for value in row) for row in np.c_[X, y])
    path.write_text(f"a,b,c,d,e,f,price\n{rows}\n")
    return path


def test_it_reports_directions_and_the_columns_they_go_with(file, capsys):
    assert run(["find", str(file), "--target", "price"]) == 0
    told = capsys.readouterr().out
    assert "2 directions stand out" in told and "information exponent 2" in told
    lines = [line for line in told.splitlines() if line.startswith("direction ")]
    assert len(lines) == 2 and all({"a", "b"} == {line.split()[k] for k in (4, 6)} for line in lines)


def test_json_and_options(file, capsys):
    assert run(["find", str(file), "--target", "price", "--directions", "1", "--drop", "f", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["directions"] == 2 and len(found["found"]) == 1 and found["samples_for_each_input"] == 300
    assert set(found["found"][0]["correlations"]) == set("abcde") and found["found"][0]["orders"] == 2


@pytest.mark.parametrize("arguments", [["--target", "cost"], ["--target", "price", "--directions", "0"]])
def test_what_is_refused(file, arguments, capsys):
    assert run(["find", str(file), *arguments]) == 2
    assert arguments[-2] in capsys.readouterr().err
