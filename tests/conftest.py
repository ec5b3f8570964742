"""Make the toy models of `tests/toys/` importable, also in the worker processes that tests start."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
