"""The figure of a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvable.lab import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from solvable.lab.forecast.verb import Forecast


def draw(found: Forecast, ax: Axes | None = None, number: int = 0, label: str = "forecast") -> Axes:
    """The error with its interval, the rows there are as a dotted line, and measured errors as markers."""
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(plots.WIDTH, plots.HEIGHT), layout="constrained").add_subplot()
        color = plots.COLORS[number]
        ax.fill_between(found.n, found.low, found.high, color=color, alpha=0.2, linewidth=0, label="95 % interval")
        ax.plot(found.n, found.error, color=color, label=label)
        ax.axvline(found.rows, color="0.5", linestyle=":", linewidth=1.0, label=f"{found.rows} rows at hand")
        if found.checks:
            at, measured, error = zip(*((c.n, c.measured, c.standard_error) for c in found.checks), strict=True)
            ax.errorbar(at, measured, np.nan_to_num(error), fmt="o", color="black", mfc="white", label="measured")
        ax.set(xscale="log", yscale="log", xlabel="$n$, samples", ylabel="mean squared error")
        ax.legend()
    return ax
