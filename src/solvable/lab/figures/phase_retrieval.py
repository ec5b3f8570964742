"""Phase retrieval, y = |z|: exact curves of Bayes-optimal learning, AMP and the spectral method, with simulations.

Run as `python -m solvable.lab.figures.phase_retrieval --out out`; writes the figure (PNG), the data (netCDF) and prints
the thresholds.
"""

from __future__ import annotations

import numpy as np

import solvable as sv
from solvable.lab.figures.recipe import Recipe

RECIPE = Recipe(
    name="phase_retrieval",
    target="abs(z)",
    metric="squared_overlap",
    learners=(sv.BayesOptimal(), sv.AMP(), sv.Spectral()),
    simulated=(sv.AMP(), sv.Spectral()),
    alpha=np.linspace(0.02, 1.6, 317),
    simulated_alpha=(0.3, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5),
    d=1000,
)

if __name__ == "__main__":
    RECIPE.main(__doc__)
