"""The command that reproduces figures: its list, its errors, and what it prints."""

from __future__ import annotations

import json

import pytest
import typer

from solvable.cli.errors import guarded
from solvable.cli.reproduce import reproduce
from solvable.lab.figures.entry import Claim, Entry, Material, Source

SOURCE = Source("Nobody", "Nothing", 1900, "nowhere")


def small(id, computed):
    def draw(found, verdicts):
        from matplotlib.figure import Figure

        return Figure()

    claims = (Claim("number", "1.25", SOURCE, lambda found: found.values["number"]),)
    return Entry(
        id, f"The {id} one", (SOURCE,), "A number.", claims, lambda effort: Material({"number": computed}), draw
    )


@pytest.fixture
def solvable(capsys, monkeypatch):
    """Run the command in this process, on two small entries."""
    known = {"right": small("right", 1.2501), "wrong": small("wrong", 1.3)}
    monkeypatch.setattr("solvable.lab.figures.registry.all_entries", lambda: known)
    app = typer.Typer()
    app.command()(reproduce)
    app.callback()(lambda: None)
    command = typer.main.get_command(app)

    def call(*arguments):
        code = guarded(lambda: command.main(args=["reproduce", *arguments], standalone_mode=False))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_list(solvable):
    code, out, err = solvable()
    assert code == 0 and err == ""
    for words in (["id", "title", "source"], ["right", "The right one", "Nobody 1900"], ["wrong", "The wrong one"]):
        assert any(all(word in line for word in words) for line in out.splitlines())
    code, out, _ = solvable("--json")
    assert code == 0 and json.loads(out)[0] == {
        "id": "right",
        "title": "The right one",
        "sources": ["Nobody, Nothing (1900), nowhere"],
        "claims": ["number"],
    }


def test_an_id_that_is_not_there(solvable, tmp_path):
    code, out, err = solvable("left", "--out", str(tmp_path))
    assert code == 2 and out == "" and err.count("\n") == 1
    assert "'left' is not allowed: id must be all, or one of: right, wrong" in err


def test_one_entry(solvable, tmp_path):
    code, out, _ = solvable("right", "--out", str(tmp_path / "new"), "--workers", "1")
    assert code == 0 and out.splitlines()[0] == "right: published 1.25, computed 1.2501: agrees"
    assert (tmp_path / "new" / "right.png").exists() and not (tmp_path / "new" / "index.md").exists()


def test_a_number_that_differs_gives_exit_code_1(solvable, tmp_path):
    code, out, _ = solvable("wrong", "--out", str(tmp_path), "--workers", "1")
    assert code == 1 and "wrong: published 1.25, computed 1.3000: differs" in out


def test_all_of_them_with_a_gallery(solvable, tmp_path):
    code, out, _ = solvable("all", "--out", str(tmp_path), "--workers", "1", "--quick", "--json")
    found = json.loads(out)
    assert code == 1 and [entry["id"] for entry in found] == ["right", "wrong"]
    assert [entry["expected"] for entry in found] == [True, False] and found[0]["claims"][0]["verdict"] == "agrees"
    page = (tmp_path / "index.md").read_text()
    assert "## The right one" in page and "## The wrong one" in page


def test_a_folder_that_cannot_be_is_refused_before_anything_is_computed(solvable, tmp_path):
    (tmp_path / "taken").write_text("")
    code, _, err = solvable("right", "--out", str(tmp_path / "taken"))
    assert code == 2 and "out must be a folder" in err
