"""The architecture page is true: its layers are those that are enforced, and every file and name on it exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from test_imports import LAYERS, SOURCE

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
ROOT = Path(__file__).parents[1]


def rooms() -> list[set[str]]:
    """The lines of the picture from the bottom up, each with the rooms that stand on it."""
    picture = PAGE.split("```")[1]
    known = {name.removeprefix("solvable.") for name in LAYERS}
    lines = [set(re.findall(r"\w+", line)) & known for line in picture.splitlines() if re.match(r"   \w", line)]
    return lines[::-1]


def test_the_picture_has_every_room_on_its_layer():
    for height, line in enumerate(rooms()):
        for room in line:
            assert LAYERS[f"solvable.{room}"] == height, room
    assert set().union(*rooms()) == {name.removeprefix("solvable.") for name in LAYERS}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/<>]+/(?:[\w]+\.py|))`", PAGE))))
def test_every_file_on_the_page_exists(path):
    if "<" in path:
        path = path.split("<")[0]
    assert (SOURCE / path).exists() or (ROOT / path).exists(), path


@pytest.mark.parametrize(("path", "names"), re.findall(r"^\d\. `([\w/]+\.py)`: (.*(?:\n   .*)*)", PAGE, re.MULTILINE))
def test_what_a_step_of_a_walk_names_is_there(path, names):
    """The first name in code on each step of the two walks is defined in the file that the step is about."""
    first = re.search(r"`(\w+)`", names)
    if first is not None:
        module = importlib.import_module(
            "solvable." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        )
        assert hasattr(module, first.group(1)) or hasattr(getattr(module, "TwoSided", None), first.group(1))
