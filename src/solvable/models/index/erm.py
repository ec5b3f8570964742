"""Empirical risk minimisation on index models: that of the engine."""

from __future__ import annotations

from solvable.core.registry import simulation, theory, thresholds_of
from solvable.engine.erm import ERM
from solvable.engine.erm.run import run_erm
from solvable.engine.erm.theory import empirical_risk
from solvable.engine.erm.thresholds import erm_thresholds
from solvable.models.index.multi_index import MultiIndex

theory(MultiIndex, ERM)(empirical_risk)
simulation(MultiIndex, ERM)(run_erm)
thresholds_of(MultiIndex, ERM)(erm_thresholds)
