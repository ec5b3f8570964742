"""The computations of a study, to an extent that its reader can wait for."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.engine.kernel import Kernel
from solvable.lab.grid.curves import computed, learning_curve
from solvable.lab.grid.request import make_plan
from solvable.lab.progress import stage
from solvable.lab.study.findings import Study
from solvable.lab.study.places import nearby_change, simulated_grid, visible
from solvable.lab.study.plan import (
    Costs,
    Effort,
    affordable_size,
    exact_grid,
    last_alpha,
)
from solvable.models.index import MultiIndex
from solvable.models.index.diagnosis import Diagnosis, diagnose
from solvable.verbs.predict import POINT_FAILURES
from solvable.verbs.thresholds import thresholds

DEGREES = 6
"""How far the kernel baseline is computed."""

_SLOW_THRESHOLDS = "Only the thresholds of the staircase are given: finding the others takes minutes for this target."
_SLOW_BAYES = "Bayes-optimal learning is left out: computing it takes minutes for this target."
_SLOW_AMP = "Exact values are given at a few points only: each takes long for this target."


def compute(
    model: MultiIndex,
    d: int | None,
    seeds: int | None,
    ratios: np.ndarray | None,
    effort: Effort,
    executor: Executor,
    workers: int,
    progress: bool,
) -> Study:
    """Diagnosis, exact curves, simulations and baseline of a model; what is None is chosen here."""
    remarks = []
    for _ in range(workers):
        executor.submit(load_models)  # processes start and import while this one diagnoses
    costs = Costs.of(model)
    with stage("diagnosis and thresholds", progress):
        diagnosis = diagnose(model)
        known = _staircase(diagnosis)
        if costs.thresholds > effort.theory_seconds:
            remarks.append(_SLOW_THRESHOLDS)
        else:
            known = _thresholds(model, known)
        top = last_alpha(model, known.values(), costs)
    points = effort.points
    if costs.amp * points > effort.theory_seconds:
        points = max(3, int(effort.theory_seconds / costs.amp))
        remarks.append(_SLOW_AMP)
    asked = simulated_grid(top, visible(known), points) if ratios is None else ratios
    top = top if ratios is None else max(top, 1.02 * float(ratios[-1]))
    learners = [BayesOptimal(), AMP()]
    if costs.bayes * len(asked) > 2 * effort.theory_seconds:
        learners = [AMP()]
        remarks.append(_SLOW_BAYES)
    cost = costs.amp + (costs.bayes if len(learners) > 1 else 0.0)
    grid = exact_grid(top, known.values(), asked, int(effort.theory_seconds / cost))
    exact = learning_curve(model, learners, progress=progress, marks=known, alpha=grid)
    if ratios is None:
        fine = len(grid) > 2 * len(asked)  # otherwise the curve does not show how steep it is
        ratios = simulated_grid(top, visible(known), points, nearby_change(exact)) if fine else asked
    size = affordable_size(costs, len(ratios), effort, workers)
    d, seeds = d or size[0], seeds or size[1]
    runs = make_plan(model, AMP(), d, seeds, False, {"alpha": ratios}, lines=True)
    simulated = computed(runs, executor, progress, known)
    return Study(model, diagnosis, known, exact, simulated, kernel_errors(model), d, seeds, tuple(remarks))


def _staircase(diagnosis: Diagnosis) -> dict[str, float]:
    """The thresholds that the diagnosis has found, by the names that `thresholds` gives them."""
    later = {f"step_{i}": step.alpha for i, step in enumerate(diagnosis.staircase[1:], start=2) if step.kind == "easy"}
    return {"weak_recovery": diagnosis.alpha_weak} | later


def _thresholds(model: MultiIndex, otherwise: dict[str, float]) -> dict[str, float]:
    try:
        return otherwise | thresholds(model)
    except POINT_FAILURES:
        return otherwise


def load_models() -> None:
    """Import what a run needs, in a process that waits for its first."""
    import solvable.models  # noqa: F401


def kernel_errors(model: MultiIndex, degrees: int = DEGREES) -> np.ndarray:
    """What a kernel method or random features leave unlearned at n = d^kappa, k < kappa < k + 1, for k = 0, 1...

    They are the plateaus of `Kernel(degrees)` on the model.
    """
    found = thresholds(model, Kernel(degrees))
    return np.array([found[f"plateau_{k}"] for k in range(degrees + 1)])
