"""One command from a typed target to an answer: diagnosis, exact curves, simulations, baseline, figure and report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.core.checks import check_count, real_array
from solvable.core.errors import bad_parameter
from solvable.lab.curve.files import save_dataset
from solvable.lab.files import write_together
from solvable.lab.grid.crews import check_executor
from solvable.lab.progress import stage
from solvable.lab.study.compute import compute
from solvable.lab.study.findings import Study
from solvable.lab.study.plan import QUICK, Effort
from solvable.models.index import MultiIndex


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
    and at least 16 where that takes about a minute, smaller for slow targets); `alpha`, where to simulate (a few ratios
    away from AMP's thresholds unless told); `quick`, for less of everything; `executor`, any `concurrent.futures`
    executor for the runs, with its number of `workers`.

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
            found = compute(model, d, seeds, ratios, effort, alone, 1, progress)
    else:
        check_executor(executor)
        found = compute(model, d, seeds, ratios, effort, executor, workers, progress)
    with stage("figure and report", progress):
        return _written(found, folder)


def _written(study: Study, folder: Path) -> Study:
    from solvable.lab.study.document import to_html, to_markdown
    from solvable.lab.study.figure import draw, image
    from solvable.lab.study.report import report

    figure = draw(study)
    png, pdf = image(figure, "png"), image(figure, "pdf")
    blocks = report(study, png)
    writers: dict[str, Callable[[Path], object] | None] = {"theory.nc": partial(save_dataset, study.exact.dataset)}
    writers["simulation.nc"] = None if study.simulated is None else partial(save_dataset, study.simulated.dataset)
    writers["study.png"] = lambda path: path.write_bytes(png)
    writers["study.pdf"] = lambda path: path.write_bytes(pdf)
    writers["report.md"] = lambda path: path.write_text(to_markdown(blocks), encoding="utf-8")
    page = to_html(blocks, f"Study of {study.diagnosis.target}")
    writers["report.html"] = lambda path: path.write_text(page, encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    return dataclasses.replace(study, files=tuple(write_together(folder, writers)))
