"""Numerical error by a coarser rule: what fewer nodes change estimates the error of a quadrature."""

from __future__ import annotations

COARSER = 0.7
"""The fineness of the second rule, relative to the first, whose difference from it is the estimate."""
