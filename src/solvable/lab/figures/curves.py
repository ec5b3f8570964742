"""Learning curves of one model as the material of an entry: theory on a fine grid, runs on a coarse one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.lab.figures.entry import Effort, Material
from solvable.lab.figures.estimators import Estimate, Runs, continuous_onset, jump
from solvable.lab.verdict import finite_size

if TYPE_CHECKING:
    import xarray as xr

    from solvable.core.model import Learner, Model
    from solvable.lab.curve import Curve

NEAR = 1e-3
"""How near to a threshold theory is computed, relatively."""


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Runs of one or several learners at each alpha of a grid, at each dimension d with its number of seeds."""

    name: str
    learners: Sequence[Learner]
    alpha: Sequence[float] | np.ndarray
    d: Sequence[int]
    seeds: Sequence[int]


def gather_curves(
    model: Model,
    learners: Sequence[Learner],
    alpha: np.ndarray,
    simulations: Sequence[Simulation],
    effort: Effort,
    marked: Sequence[str] | None = None,
) -> Material:
    """Thresholds as values, the curve `theory`, and for each simulation and dimension a curve `NAME_dD`.

    `marked` names the thresholds to draw, all unless told.
    """
    from solvable.lab.grid.curves import learning_curve
    from solvable.verbs.thresholds import thresholds

    known = {name: float(value) for name, value in thresholds(model).items()}
    marks = known if marked is None else {name: known[name] for name in marked}
    # Points on both sides of a threshold, so that a jump is drawn upright on any grid.
    sides = [side * value for value in marks.values() for side in (1 - NEAR, 1 + NEAR) if alpha[0] < value < alpha[-1]]
    alpha = np.unique(np.concatenate([alpha, sides]))
    curves = {"theory": learning_curve(model, learners, alpha=alpha, marks=marks, progress=effort.progress)}
    sizes: dict[str, Any] = {}
    for simulation in simulations:
        curves |= gather_runs(model, simulation, effort, marks)
        sizes[simulation.name] = {"d": list(simulation.d), "seeds": list(simulation.seeds)}
    return Material(known, curves, sizes)


def gather_runs(model: Model, simulation: Simulation, effort: Effort, marks: dict[str, float]) -> dict[str, Curve]:
    """The curve `NAME_dD` of a simulation at each of its dimensions."""
    from solvable.lab.grid.curves import learning_curve

    curves = {}
    for d, seeds in zip(simulation.d, simulation.seeds, strict=True):
        curves[f"{simulation.name}_d{d}"] = learning_curve(
            model,
            simulation.learners,
            alpha=np.asarray(simulation.alpha),
            d=d,
            seeds=seeds,
            executor=effort.executor,
            progress=effort.progress,
            marks=marks,
        )
    return curves


def runs_of(
    material: Material,
    name: str,
    metric: str,
    reduce: Callable[[xr.DataArray], xr.DataArray] | None = None,
) -> list[Runs]:
    """What the first learner of a simulation gave, at each dimension; `reduce` makes a matrix metric a scalar."""
    found = []
    for d in material.sizes[name]["d"]:
        curve = material.curves[f"{name}_d{d}"]
        outcomes = curve.simulation(metric).isel(learner=0)
        outcomes = outcomes if reduce is None else reduce(outcomes)
        found.append(Runs(d, curve.dataset["alpha"].values, outcomes.transpose("alpha", "seed").values))
    return found


def largest(material: Material, name: str) -> Curve:
    """The runs of a simulation at its largest dimension."""
    return material.curves[f"{name}_d{max(material.sizes[name]['d'])}"]


def mean_at(material: Material, name: str, metric: str, alpha: float, learner: int = 0) -> Estimate:
    """The mean over the runs of a simulation at its largest dimension, of one learner at one of its alpha."""
    runs = largest(material, name)
    return mean(runs.simulation(metric).isel(learner=learner).sel(alpha=alpha), runs.sizes[0])


def onset(model: Model, learner: Learner, metric: str, low: float, high: float, least: float = 1e-6) -> float:
    """Where a metric of the theory, zero at alpha = `low`, first exceeds `least`, by bisection."""
    from solvable.numerics.roots import halving
    from solvable.verbs.predict import predict

    return halving(lambda alpha: float(predict(model, learner, alpha=alpha)[metric]) > least, low, high, 40).high


def vanishing(runs: Runs, low: float, high: float) -> Estimate:
    """Where an error that falls continuously with alpha reaches zero: `continuous_onset` read from right to left."""
    found = continuous_onset(Runs(runs.d, -runs.alpha[::-1], runs.values[::-1]), low, high)
    return dataclasses.replace(found, value=-found.value)


def matrix_jump(runs: Sequence[Runs], above: float) -> Estimate:
    """`jump` for runs that learn a symmetric matrix of size d from n = alpha d^2 samples.

    It has d (d + 1) / 2 unknowns: d^2 stands for the dimension, and n / (d (d + 1)) for alpha, which is the same for
    d to infinity and takes out most of the shift at finite d.
    """
    return jump([Runs(part.d**2, part.alpha * part.d / (part.d + 1), part.values) for part in runs], above)


def growth(model: Model, alpha: Sequence[float], d: int, seeds: int, effort: Effort) -> Runs:
    """By what factor one step of the linearised message passing multiplies small overlaps, in runs at dimension d.

    It is the leading eigenvalue of the asymmetric spectral method; of several blocks, the mean.
    """
    tasks = [(model, float(ratio), d, seed) for ratio in alpha for seed in range(seeds)]
    found = in_processes(growth_of_run, tasks, effort)
    return Runs(d, np.array(alpha, dtype=float), np.reshape(found, (len(alpha), seeds)))


def in_processes(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], effort: Effort) -> list[Any]:
    """What a function of a module gives for each tuple of arguments, computed by the executor if there is one."""
    spread = map if effort.executor is None else effort.executor.map
    return list(spread(function, *zip(*tasks, strict=True)))


def growth_of_run(model: Model, alpha: float, d: int, seed: int) -> float:
    """The growth factor of one run, on one BLAS thread so that its rounding is the same in any process."""
    from solvable.core.learners import Spectral
    from solvable.numerics.blas import single_thread
    from solvable.verbs.simulate import simulate

    with single_thread():
        details = simulate(model, Spectral("asymmetric"), alpha=alpha, d=d, seed=seed).details
    return float(np.mean([np.real(block[0]) for block in details["eigenvalues"]]))


def metric_of_run(model: Model, learner: Learner, alpha: float, d: int, seed: int, metric: str) -> float:
    """A metric of one run; NaN where the algorithm found no minimum."""
    from solvable.lab.grid.results import run_once

    outcome = run_once(model, learner, d, seed, {"alpha": alpha})
    return float(outcome[metric]) if outcome.converged else np.nan


def mean(values: Any, d: int) -> Estimate:
    """The mean of independent runs at dimension d with its standard error; NaN is a run that gave nothing."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if values.size < 2:
        return Estimate(np.nan, np.nan)
    error = float(values.std(ddof=1) / np.sqrt(values.size))
    return Estimate(float(values.mean()), error, values.size - 1, finite_size(d))


def lowest(x: Any, values: Any, d: int) -> Estimate:
    """Where the mean of curves is lowest: `values[i, k]` is what run k at dimension d gave at x[i].

    The minimum is that of a cubic spline through the means, its standard error that of the jackknife over the runs. The
    same runs are needed at every x, so that what a run adds to its whole curve does not move the minimum. It is NaN
    where the lowest mean is the first or the last one.
    """
    values = np.asarray(values, dtype=float)
    count = values.shape[1]
    drawn = np.array([_lowest_of(x, np.delete(values, k, axis=1).mean(axis=1)) for k in range(count)])
    error = np.sqrt((count - 1) / count * np.sum((drawn - drawn.mean()) ** 2))
    return Estimate(_lowest_of(x, values.mean(axis=1)), float(error), count - 1, finite_size(d))


def _lowest_of(x: Any, means: np.ndarray) -> float:
    from scipy.interpolate import CubicSpline

    if not np.isfinite(means).all() or np.argmin(means) in (0, len(means) - 1):
        return float("nan")
    spline = CubicSpline(x, means)
    places = spline.derivative().roots(extrapolate=False)
    return float(places[np.argmin(spline(places))])
