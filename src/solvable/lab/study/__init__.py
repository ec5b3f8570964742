"""A study of one target: everything the house knows about it, in one folder."""

from __future__ import annotations

from solvable.lab.study.findings import Study
from solvable.lab.study.run import study

__all__ = ["Study", "study"]
