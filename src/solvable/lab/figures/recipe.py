"""What the figures of learning curves share: exact curves on a fine grid, simulations on a coarse one, one command."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import solvable as sv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One figure: a target, what is drawn of it, the learners solved and those simulated, each with its grid."""

    name: str
    target: str
    metric: str
    learners: Sequence[sv.Learner]
    simulated: Sequence[sv.Learner]
    alpha: np.ndarray
    simulated_alpha: Sequence[float]
    d: int

    @property
    def model(self) -> sv.MultiIndex:
        """The model of the target, without noise."""
        return sv.MultiIndex(self.target)

    def compute(
        self, d: int, seeds: int, executor: concurrent.futures.Executor | None = None
    ) -> tuple[sv.Curve, sv.Curve]:
        """The exact curves on the fine grid, and simulations of dimension d on the coarse one."""
        exact = sv.learning_curve(self.model, self.learners, alpha=self.alpha)
        runs = sv.learning_curve(
            self.model, self.simulated, alpha=self.simulated_alpha, d=d, seeds=seeds, executor=executor
        )
        return exact, runs

    def draw(self, exact: sv.Curve, simulated: sv.Curve) -> Figure:
        """Theory as lines with its thresholds, simulation as markers with standard errors."""
        import matplotlib
        from matplotlib.figure import Figure

        from solvable.lab import plots

        with matplotlib.rc_context(plots.STYLE):
            figure = Figure(figsize=(1.35 * plots.WIDTH, 1.2 * plots.HEIGHT), layout="constrained")
            ax = figure.add_subplot()
            exact.plot(self.metric, ax)
            simulated.plot(self.metric, ax, parts=["simulation"])
        return figure

    def main(self, description: str | None, arguments: Sequence[str] | None = None) -> None:
        """The command: compute, draw, write and report."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure and the data")
        parser.add_argument("--d", type=int, default=self.d, help="dimension of the simulations")
        parser.add_argument("--seeds", type=int, default=8, help="simulations a point")
        asked = parser.parse_args(arguments)
        asked.out.mkdir(parents=True, exist_ok=True)
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as executor:
            exact, simulated = self.compute(asked.d, asked.seeds, executor)
        exact.save(asked.out / f"{self.name}_theory.nc")
        simulated.save(asked.out / f"{self.name}_simulation.nc")
        self.draw(exact, simulated).savefig(asked.out / f"{self.name}.png", dpi=200)
        print(sv.diagnose(self.target))
        print(sv.thresholds(self.model))
        print(simulated.agreement(self.metric, resolution=sv.AMP().tolerance))
        print(f"figure and data written to {asked.out}/")
