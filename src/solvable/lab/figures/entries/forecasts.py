"""Forecasts of learning curves against measured ones, on data shipped with scikit-learn.

From a random quarter of the rows the error is forecast up to nine tenths of all of them, and measured there by training
on random parts and testing on the rest. The forecast in the figure is that of one quarter, with its interval; the
numbers are means over many quarters, so that what is left of them is the error of the method, not that of few rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.drawing import draw_points, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

SETTINGS = {
    "diabetes": ("diabetes", "ridge", "diabetes, ridge regression"),
    "cancer": ("breast_cancer", "laplace", "breast cancer, Laplace kernel"),
    "digits": ("digits", "laplace", "odd digits, Laplace kernel"),
    "smooth": ("digits", "rbf", "odd digits, Gaussian kernel"),
}
"""Data set, kernel and title."""


def learner_of(name: str) -> Any:
    """The learner of a data set."""
    import solvable as sv

    kernel = SETTINGS[name][1]
    return sv.LinearRidge() if kernel == "ridge" else sv.KernelRidge(kernel)


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs without constant columns, of mean zero and variance one, and labels of variance one."""
    from sklearn import datasets

    data = SETTINGS[name][0] if name in SETTINGS else name
    found = getattr(datasets, f"load_{data}")()
    X, y = np.asarray(found.data, dtype=float), np.asarray(found.target, dtype=float)
    X, y = X[:, np.ptp(X, axis=0) > 0], y % 2 if data == "digits" else y
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def forecast_of_quarter(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Sizes, forecast errors, ends of the interval and penalties from a random quarter of the rows."""
    import solvable as sv

    X, y = data_of(name)
    total = len(y)
    rows = np.random.default_rng([seed, 1]).permutation(total)[: total // 4]
    kept = np.ptp(X[rows], axis=0) > 0
    n = np.unique(np.geomspace(total // 16, 0.9 * total, 9).astype(int))
    found = sv.forecast(X[rows][:, kept], y[rows], learner_of(name), n=n, check=False)
    return found.n, found.error, found.low, found.high, found.penalty


def errors_of_split(name: str, n: np.ndarray, penalty: np.ndarray, seed: int) -> list[float]:
    """The error on the other rows of training on n random ones."""
    from solvable.lab.forecast.samples import Samples

    X, y = data_of(name)
    samples, rng = Samples(X, y, learner_of(name)), np.random.default_rng([seed, 2])
    order = rng.permutation(len(y))
    return [samples.error(order[: int(k)], order[int(k) :], float(p), rng) for k, p in zip(n, penalty, strict=True)]


def gather(effort: Effort) -> Material:
    values: dict[str, Any] = {}
    names = list(SETTINGS)[: effort.pick(2, 4)]
    quarters = effort.pick(4, 24)
    splits = effort.pick(6, 48)
    for name in names:
        parts = in_processes(forecast_of_quarter, [(name, seed) for seed in range(quarters)], effort)
        n, penalty = parts[0][0], np.exp(np.mean([np.log(part[4]) for part in parts], axis=0))
        runs = in_processes(errors_of_split, [(name, n, penalty, seed) for seed in range(splits)], effort)
        values[name] = {
            "n": n,
            "forecasts": np.array([part[1] for part in parts]),
            "low": np.array([part[2] for part in parts]),
            "high": np.array([part[3] for part in parts]),
            "runs": np.array(runs).T,
            "rows": len(data_of(name)[1]) // 4,
        }
    return Material(values)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        columns = 2
        lines = math.ceil(len(found.values) / columns)
        figure = new_figure(1.7, 0.95 * lines)
        panels = np.ravel(figure.subplots(lines, columns))
        for ax, (name, part) in zip(panels, found.values.items(), strict=True):
            ax.fill_between(part["n"], part["low"][0], part["high"][0], color=plots.COLORS[0], alpha=0.2, lw=0)
            ax.plot(part["n"], part["forecasts"][0], color=plots.COLORS[0], label="forecast, 95 % interval")
            label = f"mean of {len(part['forecasts'])} forecasts"
            ax.plot(part["n"], part["forecasts"].mean(axis=0), color=plots.COLORS[0], ls="--", lw=0.8, label=label)
            scatter = part["runs"].std(axis=1, ddof=1) / np.sqrt(part["runs"].shape[1])
            draw_points(ax, part["n"], part["runs"].mean(axis=1), scatter, 1, "measured", ls="none")
            ax.axvline(part["rows"], color="0.5", ls=":", lw=1.0, label="rows at hand")
            ax.set_title(SETTINGS[name][2], fontsize=7)
            ax.set(xscale="log", yscale="log", xlabel="$n$, rows to train on")
            ax.set_xticks(
                [part["n"][0], part["rows"], part["n"][-1]],
                [str(int(k)) for k in (part["n"][0], part["rows"], part["n"][-1])],
            )
            ax.minorticks_off()
            low, high = part["low"][0].min(), part["high"][0].max()
            ticks = [t for t in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0) if 0.8 * low < t < 1.2 * high]
            ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
        for ax in panels[::columns]:
            ax.set_ylabel("mean squared error / variance")
        panels[0].legend(fontsize=5.5)
    return figure


def _claims(name: str) -> list[Claim]:
    """At the last n but one the mean of the forecasts and the measured error; and how often an interval holds it."""

    def inside(found: Material) -> float:
        part = found.values.get(name)
        if part is None:
            return np.nan
        measured = part["runs"].mean(axis=1)
        return float(np.mean((part["low"] < measured) & (measured < part["high"])))

    def forecast(found: Material) -> float:
        return float(found.values[name]["forecasts"][:, -2].mean()) if name in found.values else np.nan

    def measured(found: Material) -> Estimate:
        """With the standard errors of both, since the forecasts scatter as well."""
        if name not in found.values:
            return Estimate(np.nan, np.nan)
        parts = found.values[name]["runs"][-2], found.values[name]["forecasts"][:, -2]
        errors = [part.std(ddof=1) / np.sqrt(len(part)) for part in parts]
        return Estimate(float(parts[0].mean()), float(np.hypot(*errors)), len(parts[1]) - 1)

    return [
        Claim(
            f"{SETTINGS[name][2]}: error at n = 0.64 of the rows",
            None,
            None,
            forecast,
            measured,
        ),
        Claim(f"{SETTINGS[name][2]}: share of intervals that hold", None, None, inside),
    ]


ENTRY = Entry(
    id="forecasts",
    title="Forecasts of learning curves on real data",
    sources=(sources.DEFILIPPIS,),
    shows="The error of ridge regression on data shipped with scikit-learn, forecast from a random quarter of the "
    "rows, with its interval, against the error measured by training on more of them. Labels have variance one.",
    claims=tuple(claim for name in SETTINGS for claim in _claims(name)),
    gather=gather,
    draw=draw,
)
