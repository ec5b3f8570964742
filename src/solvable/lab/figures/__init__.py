"""Figures and headline numbers of the field: what was published, what we compute, what we simulate.

`solvable reproduce` lists the entries and makes them. An entry is a module of `entries` with an `ENTRY`.
"""

from __future__ import annotations
