"""`solvable study` from the command line: one call, one folder, and one line for bad input."""

from __future__ import annotations

import json

import pytest

from solvable.cli.app import run

SMALL = ["--d", "40", "--seeds", "2", "--alpha", "0.3,1.6", "--quick", "--workers", "1"]


@pytest.fixture
def solvable(capsys):
    def call(*arguments):
        code = run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.slow
def test_study_writes_a_folder(solvable, tmp_path):
    code, out, err = solvable("study", "abs(z)", "--out", str(tmp_path / "a" / "b"), *SMALL)
    assert (code, err) == (0, "") and out.startswith("y = abs(z): easy")
    assert f"written: {tmp_path / 'a' / 'b' / 'report.html'}" in out


def test_study_as_json(solvable, tmp_path, monkeypatch):
    asked = {}

    class Found:
        def to_dict(self):
            return {"files": ["a"]}

    def study(*arguments):
        asked["arguments"] = arguments
        return Found()

    monkeypatch.setattr("solvable.lab.study.study", study)
    code, out, err = solvable("study", "abs(z)", "--out", str(tmp_path), "--json", *SMALL)
    assert (code, err) == (0, "") and json.loads(out) == {"files": ["a"]}
    assert asked["arguments"][:5] == ("abs(z)", 0.0, str(tmp_path), 40, 2)


def test_help(solvable):
    code, out, _ = solvable("study", "--help")
    assert code == 0 and "Example: solvable study" in out and "--json" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["abs(w)"], "unknown name 'w'"),
        (["abs(z)", "--noise=-1"], "noise = -1.0 is not allowed"),
        (["abs(z)", "--d", "1"], "d must be an integer of at least 2"),
        (["abs(z)", "--alpha", "x"], "--alpha = 'x' is not allowed"),
        (["abs(z)", "--alpha", "0"], "alpha must be one or several positive numbers"),
        (["abs(z)", "--workers", "0"], "Invalid value for '--workers'"),
        (["abs(z)", "--out", "{file}"], "out must be a folder, or the name of a new one"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(solvable, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    arguments = [argument.format(file=tmp_path / "file") for argument in arguments]
    code, out, err = solvable("study", *arguments, *([] if "--workers" in arguments else ["--workers", "1"]))
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
