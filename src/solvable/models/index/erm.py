"""Empirical risk minimisation on index models: that of the engine."""

from __future__ import annotations

from solvable.core.registry import simulation, theory, thresholds_of
from solvable.engine.erm import ERM
from solvable.engine.erm.run import run_erm
from solvable.engine.erm.theory import empirical_risk
from solvable.engine.erm.thresholds import erm_thresholds
from solvable.models.index.multi_index import MultiIndex

THEORY = ("thrampoulidis2018precise", "loureiro2021learning", "vilucchio2023asymptotic", "hastie2022surprises")
RUNS = ("rangan2011generalized", "vilucchio2023asymptotic")
THRESHOLDS = ("cover1965geometrical", "candes2020phase", "donoho2009counting", "hastie2022surprises")

theory(MultiIndex, ERM, references=THEORY)(empirical_risk)
simulation(MultiIndex, ERM, references=RUNS)(run_erm)
thresholds_of(MultiIndex, ERM, references=THRESHOLDS)(erm_thresholds)
