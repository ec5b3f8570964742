"""One bibliography: every key is well formed, and every theory and algorithm of the package names its sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import solvable as sv
import solvable.models  # noqa: F401  (fills the registry)
from solvable.core import registry
from solvable.core.bibliography import BIBLIOGRAPHY, Publication, cite

SOURCE = Path(sv.__file__).parent
TABLES = {name: getattr(registry, name) for name in ("_theories", "_simulations", "_thresholds", "_pair_thresholds")}
ENTRIES = [
    pytest.param(entry, id=f"{table.strip('_')}-{'-'.join(cls.__name__ for cls in key)}")
    for table, entries in TABLES.items()
    for key, entry in [(key if isinstance(key, tuple) else (key,), entry) for key, entry in entries.items()]
    if all(cls.__module__.startswith("solvable.") for cls in key) and entry.function.__module__.startswith("solvable.")
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_everything_registered_by_the_package_names_its_sources(entry):
    assert entry.references and all(key in BIBLIOGRAPHY for key in entry.references)


def test_there_is_something_to_check():
    assert len(ENTRIES) >= 15


@pytest.mark.parametrize("key", BIBLIOGRAPHY)
def test_keys_are_author_year_word(key):
    publication = BIBLIOGRAPHY[key]
    assert re.fullmatch(r"[a-z]+(\d{4})[a-z]+", key) and str(publication.year) in key
    word = re.sub(r"[a-z]+\d{4}", "", key)
    plain = publication.title.lower().replace("é", "e").replace("-", "")
    assert word in plain and list(BIBLIOGRAPHY) == sorted(BIBLIOGRAPHY)


def test_docstrings_cite_what_there_is():
    key = r"[a-z]+\d{4}[a-z]+"
    brackets = [b for path in SOURCE.rglob("*.py") for b in re.findall(rf"\[({key}(?:,\s+{key})*)\]", path.read_text())]
    assert {key for inside in brackets for key in re.split(r",\s+", inside)} <= set(BIBLIOGRAPHY)


def test_a_citation_is_a_line_to_read():
    assert cite("erba2024bilinear") == (
        "Erba, Troiani, Biggio, Maillard, Zdeborová, Bilinear sequence regression (2024), arXiv:2410.18858"
    )
    assert cite(Publication("Me, You", "Ours", 2030)) == "Me, You, Ours (2030)"
    assert Publication("Me, You", "Ours", 2030).short == "Me and You 2030"
    assert BIBLIOGRAPHY["erba2024bilinear"].short == "Erba et al. 2024"
    with pytest.raises(ValueError, match="'nobody1900'"):
        cite("nobody1900")
