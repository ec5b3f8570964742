"""The diagnosis of a target: how hard it is to learn, and what is learned when."""

from __future__ import annotations

from solvable.models.index.diagnosis.diagnosis import CorrelationalStep, Diagnosis, Step, diagnose

__all__ = ["CorrelationalStep", "Diagnosis", "Step", "diagnose"]
