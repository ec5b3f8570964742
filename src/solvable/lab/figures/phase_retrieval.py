"""Phase retrieval, y = |z|: exact curves of Bayes-optimal learning, AMP and the spectral method, with simulations.

Run as `python -m solvable.lab.figures.phase_retrieval --out out`; writes the figure (PNG), the data (netCDF) and prints
the thresholds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import solvable as sv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEARNERS = (sv.BayesOptimal(), sv.AMP(), sv.Spectral())
SIMULATED = (sv.AMP(), sv.Spectral())


def compute(
    d: int = 1000, seeds: int = 8, executor: concurrent.futures.Executor | None = None
) -> tuple[sv.Curve, sv.Curve]:
    """The exact curves on a fine grid, and AMP and spectral simulations of dimension d on a coarse one."""
    model = sv.MultiIndex("abs(z)")
    exact = sv.learning_curve(model, LEARNERS, alpha=np.linspace(0.02, 1.6, 317))
    alpha = np.array([0.3, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5])
    return exact, sv.learning_curve(model, SIMULATED, alpha=alpha, d=d, seeds=seeds, executor=executor)


def draw(exact: sv.Curve, simulated: sv.Curve) -> Figure:
    """Theory as lines with its thresholds, simulation as markers with standard errors."""
    import matplotlib
    from matplotlib.figure import Figure

    from solvable.lab import plots

    with matplotlib.rc_context(plots.STYLE):
        figure = Figure(figsize=(1.35 * plots.WIDTH, 1.2 * plots.HEIGHT), layout="constrained")
        ax = figure.add_subplot()
        exact.plot("squared_overlap", ax)
        simulated.plot("squared_overlap", ax, parts=["simulation"])
    return figure


def main() -> None:
    """Compute, draw and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure and the data")
    parser.add_argument("--d", type=int, default=1000, help="dimension of the simulations")
    parser.add_argument("--seeds", type=int, default=8, help="simulations a point")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as executor:
        exact, simulated = compute(arguments.d, arguments.seeds, executor)
    exact.save(arguments.out / "phase_retrieval_theory.nc")
    simulated.save(arguments.out / "phase_retrieval_simulation.nc")
    draw(exact, simulated).savefig(arguments.out / "phase_retrieval.png", dpi=200)
    print(sv.diagnose("abs(z)"))
    print(sv.thresholds(sv.MultiIndex("abs(z)")))
    print(simulated.agreement("squared_overlap", resolution=sv.AMP().tolerance))
    print(f"figure and data written to {arguments.out}/")


if __name__ == "__main__":
    main()
