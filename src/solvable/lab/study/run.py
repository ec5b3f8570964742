"""One command from a typed target to an answer: diagnosis, exact curves, simulations, baseline, figure and report."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from solvable.core.checks import check_count, real_array
from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.verbs import POINT_FAILURES, thresholds
from solvable.lab.curve import Agreement, Curve
from solvable.lab.files import write_together
from solvable.lab.grids import learning_curve
from solvable.lab.progress import stage
from solvable.lab.study.baseline import kernel_errors
from solvable.lab.study.plan import (
    QUICK,
    Deadline,
    Effort,
    affordable_size,
    exact_grid,
    last_alpha,
    simulated_grid,
    trial_time,
)
from solvable.models.index import MultiIndex
from solvable.models.index.diagnosis import Diagnosis, diagnose

JUDGED = ("overlap", "generalization_error")


@dataclasses.dataclass(frozen=True)
class Study:
    """What is known about one target, and the files it was written to.

    `exact` holds the theory of Bayes-optimal learning and AMP on a fine grid, `simulated` AMP at dimension `d` on a
    coarse one (None if there was no time for a single run), `kernel_errors` what a kernel method leaves unlearned at
    n = d^kappa for kappa between k and k + 1.
    """

    model: MultiIndex
    diagnosis: Diagnosis
    thresholds: dict[str, float]
    exact: Curve
    simulated: Curve | None
    kernel_errors: np.ndarray
    d: int
    seeds: int
    files: tuple[Path, ...] = ()

    @property
    def agreement(self) -> list[Agreement]:
        """How far theory and simulation are apart, for each metric judged.

        Deviations are counted in standard errors; a dimension d shifts a metric by about 1/d of its size, which is
        added in quadrature.
        """
        found = []
        if self.simulated is None:
            return found
        for metric in JUDGED:
            scale = float(np.nanmax(np.abs(self.exact.theory(metric).values)))
            try:
                found.append(self.simulated.agreement(metric, resolution=scale / self.d))
            except ValueError:  # fewer than two runs at every point
                continue
        return found

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values for JSON."""
        return {
            "diagnosis": self.diagnosis.to_dict(),
            "thresholds": dict(self.thresholds),
            "d": self.d,
            "seeds": self.seeds,
            "agreement": [dataclasses.asdict(found) for found in self.agreement],
            "kernel_errors": self.kernel_errors,
            "files": [str(path) for path in self.files],
        }

    def __str__(self) -> str:
        marks = [f"  {name.replace('_', ' '):24s}{value:.6g}" for name, value in self.thresholds.items()]
        compared = [f"AMP at d = {self.d}, {self.seeds} runs at each point", *(f"  {one}" for one in self.agreement)]
        written = [f"written: {path}" for path in self.files]
        return "\n".join([str(self.diagnosis), "thresholds in alpha = n/d", *marks, *compared, *written])


def study(
    target: str | MultiIndex | Callable[..., Any],
    noise: float = 0.0,
    out: str | Path = "out",
    d: int | None = None,
    seeds: int | None = None,
    alpha: Sequence[float] | None = None,
    quick: bool = False,
    executor: Executor | None = None,
    workers: int = 1,
    progress: bool = True,
) -> Study:
    """Everything about one target, written to a folder: figure, data, and a report in Markdown and HTML.

    **Arguments:** `target`, anything `MultiIndex` takes, or a `MultiIndex`; `noise`, the variance of the label's noise;
    `out`, the folder, made if need be; `d` and `seeds`, the dimension and the number of runs of AMP at each point (500
    and 8 where that takes less than a minute, smaller for slow targets); `alpha`, where to simulate (a few ratios
    around the thresholds unless told); `quick`, for less of everything; `executor`, any `concurrent.futures` executor
    for the runs, with its number of `workers`.

    **Returns:** a `Study`. Files are replaced together at the end, so an interrupted study leaves an earlier one whole.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise bad_parameter("out", str(out), "a folder, or the name of a new one")
    d = d if d is None else check_count("d", d, least=2)
    seeds = seeds if seeds is None else check_count("seeds", seeds, least=1)
    ratios = None if alpha is None else np.unique(real_array("alpha", alpha))
    if ratios is not None and not (ratios.size and np.all(ratios > 0)):
        raise bad_parameter("alpha", alpha, "one or several positive numbers")
    effort = QUICK if quick else Effort()
    model = target if isinstance(target, MultiIndex) else MultiIndex(target, noise=noise)
    if executor is None:
        with ThreadPoolExecutor(1) as alone:
            found = _compute(model, d, seeds, ratios, effort, alone, 1, progress)
    else:
        found = _compute(model, d, seeds, ratios, effort, executor, workers, progress)
    with stage("figure and report", progress):
        return _written(found, folder)


def _compute(model, d, seeds, ratios, effort, executor, workers, progress) -> Study:
    start = time.monotonic()
    for _ in range(workers):
        executor.submit(load_models)  # processes start and import while this one diagnoses
    with stage("diagnosis and thresholds", progress):
        diagnosis = diagnose(model)
        known = _thresholds(model, diagnosis)
        marks = sorted({*known.values(), *(step.alpha for step in diagnosis.staircase)})
    with stage("choice of the grid", progress):
        top = last_alpha(model, marks)
        ratios = simulated_grid(top, marks, effort.points) if ratios is None else ratios
        top = max(top, 1.02 * float(ratios[-1]))
        asked = d is not None and seeds is not None
        trial = None if asked else executor.submit(trial_time, model, (float(np.median(ratios)), float(ratios[-1])))
        grid = exact_grid(model, top, marks, ratios, effort.after(time.monotonic() - start))
    exact = learning_curve(model, [BayesOptimal(), AMP()], progress=progress, alpha=grid)
    effort = effort.after(time.monotonic() - start)
    with stage("trial run", progress):
        size = (0, 0) if trial is None else _size(trial, len(ratios), effort, workers)
    d, seeds = d or size[0], seeds or size[1]
    # Runs that were asked for are made, however long they take.
    in_time = executor if asked else Deadline(executor, effort.seconds)
    try:
        simulated = learning_curve(model, AMP(), d, seeds, in_time, progress, alpha=ratios)
    except TimeoutError:
        simulated = None
    return Study(model, diagnosis, known, exact, simulated, kernel_errors(model.target), d, seeds)


def _thresholds(model: MultiIndex, diagnosis: Diagnosis) -> dict[str, float]:
    """The thresholds of the model; where they cannot be computed, those of the staircase."""
    try:
        return thresholds(model)
    except POINT_FAILURES:
        later = {f"step_{i}": step.alpha for i, step in enumerate(diagnosis.staircase[1:], start=2)}
        return {"weak_recovery": diagnosis.alpha_weak} | later


def _size(trial: Future, points: int, effort: Effort, workers: int) -> tuple[int, int]:
    """The size of the runs after the time of one; the smallest if that one takes too long to wait for."""
    try:
        return affordable_size(trial.result(timeout=effort.run_seconds / 3), points, effort, workers)
    except TimeoutError:
        return effort.sizes[-1]


def _written(study: Study, folder: Path) -> Study:
    from solvable.lab.study.document import to_html, to_markdown
    from solvable.lab.study.figure import draw, image
    from solvable.lab.study.report import report

    figure = draw(study)
    png, pdf = image(figure, "png"), image(figure, "pdf")
    blocks = report(study, png)
    writers: dict[str, Callable[[Path], object] | None] = {"theory.nc": study.exact.save}
    writers["simulation.nc"] = None if study.simulated is None else study.simulated.save
    writers["study.png"] = lambda path: path.write_bytes(png)
    writers["study.pdf"] = lambda path: path.write_bytes(pdf)
    writers["report.md"] = lambda path: path.write_text(to_markdown(blocks), encoding="utf-8")
    page = to_html(blocks, f"Study of {study.diagnosis.target}")
    writers["report.html"] = lambda path: path.write_text(page, encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    return dataclasses.replace(study, files=tuple(write_together(folder, writers)))


def load_models() -> None:
    """Import what a run needs, in a process that waits for its first."""
    import solvable.models  # noqa: F401
