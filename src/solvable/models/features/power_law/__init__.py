"""Features with power-law eigenvalues and a target with power-law coefficients."""

from __future__ import annotations

from solvable.models.features.power_law import run, theory  # noqa: F401  (they fill the registry)
from solvable.models.features.power_law.exponents import optimal_exponents, scaling_exponents
from solvable.models.features.power_law.model import PowerLawFeatures

__all__ = ["PowerLawFeatures", "optimal_exponents", "scaling_exponents"]
