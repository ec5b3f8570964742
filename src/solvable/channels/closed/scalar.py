"""What the closed forms of one projection share: they are what the generic channels must agree with, and cheaper."""

from __future__ import annotations

import numpy as np

from solvable.channels.scalar import Rows, ScalarChannel, pad_rows
from solvable.numerics.gaussian import ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import landscape
from solvable.targets.target import Target


class ClosedScalar(ScalarChannel):
    """A channel of one projection with a closed-form posterior, whose observation is the label itself."""

    formula: str

    def __init__(self):
        self.landscape = landscape(Target(self.formula))

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        edges = ladder_edges(self.landscape.edges, 8.5) if narrow else standard_edges(self.landscape.edges, 8.5)
        z, weight = panels(edges, round((8 if narrow else 24) * fineness), graded=not narrow)
        y = self.landscape.target.numpy(z[:, None])
        return pad_rows(Rows(z, weight * normal_density(z), y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise={self.noise:g})" if self.noise else f"{type(self).__name__}()"
