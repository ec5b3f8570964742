"""Make the toy models of `tests/toys/` importable, also in the worker processes that tests start, and compile once.

What one process of a test run compiles serves the others, and later runs: workers, commands, documentation.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.hookimpl(tryfirst=True)  # before the processes of the tests read the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` the tests of a family or room run in one process, where they share what is compiled."""
    for item in items:
        folder = item.path.parent.relative_to(HERE).parts[:2]  # models/matrix/nuclear goes with models/matrix
        item.add_marker(pytest.mark.xdist_group("/".join(folder) or "tests"))
