"""A study of one target: everything the house knows about it, in one folder."""

from __future__ import annotations

from solvable.lab.study.run import Study, study

__all__ = ["Study", "study"]
