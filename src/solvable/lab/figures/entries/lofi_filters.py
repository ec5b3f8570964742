"""The filters that labels pick from images, and what ten of them are worth.

Filters are the eigenvectors of the label-weighted covariance of patches. The comparison keeps the random neurons of one
layer and changes which channels are read: the ten that the labels pick, the ten that shuffled labels pick (directions
of large variance), ten of the neurons as they are, or all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.digits import TASKS, digits, ridge_error, split
from solvable.lab.figures.drawing import new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

SHOWN = 8
READ = {
    "picked": "picked by labels",
    "shuffled": "picked by shuffled labels",
    "ten": "ten neurons",
    "all": "all 200 neurons",
}
SIZES = (200, 1000)
FIRST = "odd or even"


def errors(n: int, seed: int) -> list[float]:
    """The test errors of the ways to read the same layer of random neurons."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    with single_thread():
        X, y = digits(FIRST)
        train, test = split(len(y), n, seed)
        shuffled = np.random.default_rng([seed, 3]).permutation(y[train])
        found = []
        for name in READ:
            lazy = {"ten": 10, "all": 200}
            model = sv.estimators.ConvolutionalLoFi(
                None if name in lazy else 10, width=lazy.get(name, 200), random_state=seed
            )
            model.fit(X[train], shuffled if name == "shuffled" else y[train])
            found.append(ridge_error(model.transform(X[train]), y[train], model.transform(X[test]), y[test]))
        return found


def gather(effort: Effort) -> Material:
    import solvable as sv

    filters: dict[str, Any] = {}
    for task in TASKS:
        X, y = digits(task)
        model = sv.estimators.ConvolutionalLoFi(features=SHOWN, random_state=0)
        model.fit(X, y)
        filters[task] = {"filters": model.filters_[..., 0], "eigenvalues": model.filter_eigenvalues_}
    seeds = effort.pick(2, 6)
    sizes = effort.pick(SIZES[:1], SIZES)
    found = in_processes(errors, [(n, seed) for n in sizes for seed in range(seeds)], effort)
    return Material(
        {"filters": filters, "errors": dict(zip(sizes, np.array(found).reshape(len(sizes), seeds, -1), strict=True))}
    )


def draw(found: Material, verdicts):
    import matplotlib

    values = found.values
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.4, 0.95)
        parts: Any = figure.subfigures(1, 2, width_ratios=(1.5, 1))
        left, right = parts
        grid = left.subplots(len(TASKS), SHOWN, squeeze=False)
        for row, (task, part) in zip(grid, values["filters"].items(), strict=True):
            for ax, image, value in zip(row, part["filters"], part["eigenvalues"], strict=True):
                most = np.abs(image).max()
                ax.imshow(image, cmap="RdBu_r", vmin=-most, vmax=most)
                ax.set_title(f"{value / abs(part['eigenvalues'][0]):+.2f}", fontsize=6, pad=2)
                ax.set(xticks=[], yticks=[])
            row[0].set_ylabel(task, fontsize=7)
        left.suptitle("filters that labels pick, with their eigenvalues over the size of the first", fontsize=7)
        ax = right.subplots()
        for number, (n, part) in enumerate(values["errors"].items()):
            places = np.arange(len(READ)) + 0.2 * number
            scatter = part.std(axis=0, ddof=1) / np.sqrt(len(part))
            ax.errorbar(
                places,
                part.mean(axis=0),
                scatter,
                fmt=plots.MARKERS[number],
                color=plots.COLORS[number],
                mfc="white",
                label=f"$n = {n}$",
            )
        ax.set_xticks(np.arange(len(READ)) + 0.1, [name.replace(" ", "\n", 1) for name in READ.values()], fontsize=6)
        ax.set(ylabel="mean squared test error", ylim=(0, None))
        ax.set_title(FIRST, fontsize=7)
        ax.legend(fontsize=6)
    return figure


def _error(n: int, number: int):
    """The mean error of a way to read the layer, from n samples."""

    def estimate(found: Material) -> Estimate:
        if n not in found.values["errors"]:
            return Estimate(np.nan, np.nan)
        points = found.values["errors"][n][:, number]
        return Estimate(float(points.mean()), float(points.std(ddof=1) / np.sqrt(len(points))), len(points) - 1)

    return estimate


ENTRY = Entry(
    id="lofi-filters",
    title="Filters that labels pick from images",
    sources=(sources.DANDI_LOFI,),
    shows="Eigenvectors of the label-weighted covariance of the 3 x 3 patches of digits, for two tasks, and the error "
    "of a ridge regression on the channels of one layer of 200 random convolutions: those that the labels pick, those "
    "of shuffled labels, ten of the neurons, and all of them.",
    claims=tuple(
        Claim(f"error at n = {n}, {name}", None, None, None, _error(n, number))
        for n in SIZES
        for number, name in enumerate(READ.values())
    ),
    gather=gather,
    draw=draw,
)
