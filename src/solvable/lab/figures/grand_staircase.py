"""The grand staircase of y = z1^2 + sign(z1 z2 z3): z1 is learned first, and only then z2 and z3 can be.

Above alpha = 0.575 the square gives z1 away, at alpha = 1.400 it is recovered completely, and once it is known what
remains is the parity of z2 and z3, learned above alpha = pi^2/4. Run as
`python -m solvable.lab.figures.grand_staircase --out out`; writes the figure (PNG), the data (netCDF) and prints the
thresholds.
"""

from __future__ import annotations

import numpy as np

import solvable as sv
from solvable.lab.figures.recipe import Recipe

RECIPE = Recipe(
    name="grand_staircase",
    target="z1**2 + sign(z1*z2*z3)",
    metric="overlap",
    learners=(sv.AMP(),),
    simulated=(sv.AMP(),),
    alpha=np.concatenate(
        [
            np.linspace(0.1, 0.55, 4),
            np.linspace(0.576, 1.399, 24),
            np.linspace(1.402, 2.46, 4),
            np.linspace(2.47, 6.0, 24),
        ]
    ),
    simulated_alpha=(0.4, 0.8, 1.1, 1.7, 2.2, 3.0, 3.5, 4.0, 5.0, 5.8),
    d=500,
)

if __name__ == "__main__":
    RECIPE.main(__doc__)
