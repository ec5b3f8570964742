"""Make the toy models of `tests/toys/` importable, also in the worker processes that tests start, and compile once.

What one process of a test run compiles serves the others, and later runs: workers, commands, documentation.
"""

from __future__ import annotations

import collections
import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from solvable.core import programs

HERE = Path(__file__).parent
YOUNG = 300_000
"""How many objects are made between two collections: tracing makes many, and few of them are garbage."""
sys.path.insert(0, str(HERE))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
programs.MOST = 256  # tests go through hundreds of targets, and what is dropped must be compiled again


def pytest_collection_finish() -> None:
    """What is loaded now stays: garbage collection, a tenth of the time of tests otherwise, need not look at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before the processes of the tests read the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Thin out sampled tests, and name the groups of `--dist loadgroup`.

    Of a test marked `sampled(n)` the quick set runs n cases, spread evenly from the first to the last; the others are
    slow. The tests of a family or room run in one process, where they share what is compiled.
    """
    cases = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for listed in cases.values():
        marker = listed[0].get_closest_marker("sampled")
        kept = {round(place) for place in np.linspace(0, len(listed) - 1, min(marker.args[0], len(listed)))}
        for index, item in enumerate(listed):
            if index not in kept:
                item.add_marker(pytest.mark.slow)
    for item in items:
        folder = item.path.parent.relative_to(HERE).parts[:2]  # models/matrix/nuclear goes with models/matrix
        item.add_marker(pytest.mark.xdist_group("/".join(folder) or "tests"))
