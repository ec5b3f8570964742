"""Grids of points: what there is to compute, who computes it, and the curve it makes."""
