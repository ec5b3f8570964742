"""Make the toy models of `tests/toys/` importable, also in the worker processes that tests start, and compile once.

What one process of a test run compiles serves the others, and later runs: workers, commands, documentation.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
