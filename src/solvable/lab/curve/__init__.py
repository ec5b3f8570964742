"""Curves: predictions and outcomes over a grid, their parts, their agreement and their files."""

from solvable.lab.curve.curve import Agreement, Curve, over_seeds

__all__ = ["Agreement", "Curve", "over_seeds"]
