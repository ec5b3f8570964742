"""Two-bit parity, y = sign(z1 z2): nothing is learned below alpha = pi^2/4, both directions together above it.

Run as `python -m solvable.lab.figures.parity --out out`; writes the figure (PNG), the data (netCDF) and prints the
thresholds.
"""

from __future__ import annotations

import numpy as np

import solvable as sv
from solvable.lab.figures.recipe import Recipe

RECIPE = Recipe(
    name="parity",
    target="sign(z1*z2)",
    metric="overlap",
    learners=(sv.BayesOptimal(), sv.AMP()),
    simulated=(sv.AMP(),),
    alpha=np.concatenate([np.linspace(0.2, 2.4, 5), np.linspace(2.47, 6.0, 40)]),
    simulated_alpha=(1.5, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5),
    d=500,
)

if __name__ == "__main__":
    RECIPE.main(__doc__)
