"""The figure of a study: learning curves with their thresholds, and the kernel baseline beside them."""

from __future__ import annotations

import io
import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from solvable.lab import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from solvable.lab.curve import Curve
    from solvable.lab.study.findings import Study

_SHOWN = 0.02
"""The baseline is drawn up to the degree that leaves less than this part of the variance, or as far as it is known."""


def draw(study: Study) -> Figure:
    """Overlaps against alpha on the left, errors against log n / log d on the right."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(plots.STYLE):
        figure = Figure(figsize=(2.1 * plots.WIDTH, 1.15 * plots.HEIGHT), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        study.exact.plot("overlap", left)
        study.simulated.plot("overlap", left, parts=["simulation"])
        left.set_ylim(-0.04, 1.04)
        handles, labels = left.get_legend_handles_labels()
        if len(labels) > 4:  # below both panels there is room for them
            left.get_legend().remove()
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
        draw_baseline(right, study)
        figure.suptitle(_title(study), fontsize=8, parse_math=False)
    return figure


def _title(study: Study) -> str:
    noise = f" + noise of variance {study.diagnosis.noise:g}" if study.diagnosis.noise else ""
    return textwrap.fill(f"y = {study.diagnosis.target}{noise}", 110, max_lines=2)


def image(figure: Figure, kind: str) -> bytes:
    """The figure as the content of a file, the same for the same figure."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(plots.STYLE):
        figure.savefig(buffer, format=kind, dpi=200, metadata={"CreationDate": None} if kind == "pdf" else None)
    return buffer.getvalue()


def draw_baseline(ax: Axes, study: Study) -> None:
    """The kernel's error as a staircase in kappa = log n / log d, and how far AMP comes at kappa = 1, n = alpha d."""
    errors = study.kernel_errors
    color = plots.COLORS[study.exact.learners.index("amp")]
    alpha, reached = reached_by_amp(study.exact)
    small = np.nonzero(errors < _SHOWN * errors[0])[0]
    last = max(int(small[0]) if small.size else len(errors) - 1, 3)
    levels = errors[: last + 1]
    ax.stairs(levels, np.arange(last + 2), baseline=None, color=plots.COLORS[2], linewidth=1.4, label="kernel")
    ax.plot([1, 1], [errors[0], reached], color=color, linewidth=1.4)
    ax.plot([1, last + 1], [reached, reached], ":", color=color, linewidth=1.0)
    label = rf"AMP, theory, $n = {alpha:.3g}\,d$"
    ax.plot([1], [reached], "s", color=color, mfc="white", mew=0.9, label=label, clip_on=False, zorder=3)
    exponent = study.diagnosis.generative_exponent
    if study.diagnosis.verdict == "hard" and math.isfinite(exponent) and exponent / 2 <= last + 1:
        label = rf"$n = d^{{{exponent / 2:g}}}$: best known"
        ax.axvline(exponent / 2, color="0.45", linewidth=0.7, linestyle="--", label=label)
    ax.set_xlim(0, last + 1)
    ax.set_ylim(bottom=-0.04 * errors[0], top=1.12 * errors[0])
    ax.set_xlabel(r"$\kappa = \log n \, / \, \log d$")
    ax.set_ylabel("generalization error")
    ax.legend()


def reached_by_amp(exact: Curve) -> tuple[float, float]:
    """The largest alpha of the exact curve where theory converged, and AMP's generalization error there."""
    error = exact.theory("generalization_error").sel(learner="amp")
    solved = error.where(exact.dataset["status"].sel(learner="amp") == 0).dropna("alpha")
    return float(solved["alpha"][-1]), float(solved[-1])
