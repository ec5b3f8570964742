"""Empirical risk minimisation: a loss and a penalty on any data with two sides, its theory and its runs."""

from __future__ import annotations

from solvable.engine.erm.learner import ERM as ERM
