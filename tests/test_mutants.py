"""The list of mistakes that tests must notice is true to the tree; `make mutants` tries them."""

from __future__ import annotations

import pytest
from mutants import MUTANTS, TREE, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mistake_has_its_place_and_its_tests(mutant):
    compile(mutated(mutant), mutant.file, "exec")
    assert (TREE / mutant.tests).exists()


def test_names_are_different():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
