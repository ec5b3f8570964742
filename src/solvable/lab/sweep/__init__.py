"""Sweeps: grids of points computed by any executor, each kept in a file of its own as soon as it is done."""

from __future__ import annotations
