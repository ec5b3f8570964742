"""Places or meaning: which minimum of the risk of an attention layer is the lower one, and what each of them knows.

The label's attention is a mixture of meaning and places. From few samples the minimum of the risk attends to places,
from more to meaning: a first-order transition in the number of samples. Runs descend from weights along p and from w*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.verdict import finite_size

SHARE, VARIANCE, PENALTY = 0.3, 0.25, 0.01
PLACE = float(np.sqrt(np.log(1.5) / 2))
"""Whose attention is [[.6, .4], [.4, .6]]."""
ALPHA = 2.0
"""Where numbers are quoted."""
STARTS = ("positional", "semantic")
OVERLAPS = {"positional": "positional_overlap", "semantic": "cosine"}
METRICS = ("cosine", "positional_overlap", "generalization_error", "training_loss", "risk")
ORDER = ("theta", "m", "q", "V")
_TABLE = (
    "the table of the authors' code averages over four dimensions by a cubature of degree seven. Ours is converged to "
    "the digits that the uncertainty says, and one step of the equations by random draws leads back to it."
)


def pair(start: str) -> tuple[Any, Any]:
    """The model, and the learner that means this branch."""
    import solvable as sv

    return sv.PositionalSemantic(SHARE, PLACE, VARIANCE), sv.ERM(penalty=PENALTY, start=start)


def gather(effort: Effort) -> Material:
    import solvable as sv

    fine = np.array(effort.pick((1.0, 1.5, 2.0), (0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 2.0, 2.5)))
    sizes = effort.pick((500,), (200, 600))
    seeds = effort.pick(6, 16)
    values: dict[Any, Any] = {"alpha": fine}
    few = np.array(effort.pick((1.0, 1.5, 2.0), (0.85, 1.15, 1.3, 1.5, 2.0, 2.5)))
    values["run_alpha"] = few
    for start in STARTS:
        values[start] = sv.predict(*pair(start), alpha=fine, throw=False)
        for d in sizes:
            tasks = [(start, float(alpha), d, seed) for alpha in few for seed in range(seeds)]
            found = np.reshape(in_processes(run, tasks, effort), (len(few), seeds, len(METRICS)))
            values[start, d] = dict(zip(METRICS, np.moveaxis(found, -1, 0), strict=True))
    return Material(values, sizes={"descent": {"d": list(sizes), "seeds": [seeds] * len(sizes)}})


def run(start: str, alpha: float, d: int, seed: int) -> list[float]:
    """The metrics of one run, of the same data from either start; nothing where it left for the other minimum."""
    import solvable as sv

    found = sv.simulate(*pair(start), alpha=alpha, d=d, seed=seed)
    other = OVERLAPS["semantic" if start == "positional" else "positional"]
    stayed = found.converged and found[OVERLAPS[start]] > found[other]
    return [found[name] if stayed else np.nan for name in METRICS]


def quoted(found: Material, start: str, name: str) -> float:
    """A metric or an order parameter of the theory where numbers are quoted."""
    place = int(np.argmin(np.abs(found.values["alpha"] - ALPHA)))
    prediction = found.values[start]
    return float((prediction.order_parameters if name in ORDER else prediction.metrics)[name][place])


def of_runs(found: Material, start: str, name: str) -> Estimate:
    """The mean of the runs there, at the largest size."""
    d = max(found.sizes["descent"]["d"])
    place = int(np.argmin(np.abs(found.values["run_alpha"] - ALPHA)))
    return mean(found.values[start, d][name][place], d)


def transition(found: Material) -> float:
    """Where the risks of both branches are equal, by a cubic spline through those of the same alpha."""
    alpha = found.values["alpha"]
    above, below = (found.values[start]["risk"] for start in STARTS)
    gap = CubicSpline(alpha, above - below)
    roots = [root for root in gap.roots(extrapolate=False) if gap.derivative()(root) > 0]
    return float(roots[-1]) if roots else np.nan


def transition_of_runs(found: Material) -> Estimate:
    """Where the mean gap of the risks of the same data changes sign at the largest size, on a line between two alpha.

    The error is that of the gap at the nearer one over the slope.
    """
    d = max(found.sizes["descent"]["d"])
    alpha = found.values["run_alpha"]
    gaps = found.values["positional", d]["risk"] - found.values["semantic", d]["risk"]
    means = np.nanmean(gaps, axis=1)
    ends = [k for k in range(len(alpha) - 1) if means[k] < 0 <= means[k + 1]]
    if not ends:
        return Estimate(np.nan, np.nan)
    k = ends[0]
    slope = (means[k + 1] - means[k]) / (alpha[k + 1] - alpha[k])
    near = gaps[k if -means[k] < means[k + 1] else k + 1]
    near = near[np.isfinite(near)]
    error = near.std(ddof=1) / np.sqrt(len(near)) / slope
    return Estimate(float(alpha[k] - means[k] / slope), float(error), len(near) - 1, finite_size(d))


def left(found: Material) -> Estimate:
    """The share of runs from p, where numbers are quoted, that left for the semantic minimum."""
    d = max(found.sizes["descent"]["d"])
    place = int(np.argmin(np.abs(found.values["run_alpha"] - ALPHA)))
    gone = np.isnan(found.values["positional", d]["risk"][place])
    share, count = float(gone.mean()), len(gone)
    return Estimate(share, float(np.sqrt(max(share * (1 - share), 1 / count) / count)), count - 1)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.3, 1.15)
        axes = figure.subplots(1, 3)
        change, sizes = transition(found), found.sizes["descent"]["d"]
        alpha, few = found.values["alpha"], found.values["run_alpha"]
        for number, start in enumerate(STARTS):
            theory = found.values[start]
            for ax, name, scale in zip(
                axes, (OVERLAPS[start], "generalization_error", "risk"), (1, 1e3, 1e3), strict=True
            ):
                y = np.where(theory.converged, scale * theory[name], np.nan)
                lower = alpha <= change if start == "positional" else alpha >= change
                label = {"positional": "places ($p$)", "semantic": "meaning ($w^*$)"}[start]
                draw_theory(ax, alpha, y, number, None, linestyle=":")
                draw_theory(ax, *_up_to(alpha, y, change, lower), number, f"{label}, minimum", linestyle="-")
                for which, d in enumerate(sizes):
                    look = {} if which == len(sizes) - 1 else {"alpha": 0.4}
                    values = scale * found.values[start, d][name]
                    text = f"runs, $d = {d}$" if number == 0 else None
                    draw_runs(ax, few, values, number, text, linestyle="none", **look)
        for ax, label in zip(
            axes, ("cosine with $p$ or $w^*$", r"test error $\times 10^3$", r"risk$/d \times 10^3$"), strict=True
        ):
            ax.axvline(change, color="grey", linestyle="--", linewidth=0.9)
            ax.set(xlabel=r"$\alpha = n/d$", ylabel=label)
        axes[0].plot([], [], color="0.3", linestyle=":", label="other branch")
        axes[0].set(ylim=(0, 1.05))
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5)
    return figure


def _up_to(alpha: np.ndarray, y: np.ndarray, change: float, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The kept part of a line, with its end at the transition."""
    if not np.isfinite(change):
        return alpha[kept], y[kept]
    x = np.sort(np.append(alpha[kept], change))
    known = np.isfinite(y)
    return x, np.interp(x, alpha[known], y[known])


def _published(start: str, name: str, text: str) -> Claim:
    return Claim(
        f"{start} branch at alpha = {ALPHA:g}: {name}",
        text,
        sources.CUI_ATTENTION,
        lambda found: quoted(found, start, "generalization_error" if name == "error" else name),
        known_wrong=_TABLE,
        second_hand=True,
    )


def _by_runs(start: str, name: str) -> Claim:
    return Claim(
        f"{start} branch at alpha = {ALPHA:g}: {name.replace('_', ' ')}",
        None,
        None,
        lambda found: quoted(found, start, name),
        lambda found: of_runs(found, start, name),
    )


ENTRY = Entry(
    id="positional-semantic",
    title="Places or meaning: two minima of the risk of attention",
    sources=(sources.CUI_ATTENTION,),
    shows="The two minima of the risk of an attention layer with a ridge of 0.01, whose labels attend by meaning with "
    "a weight of 0.7 and by place with 0.3: what they know, their test errors, and their risks. The lower one is drawn "
    "solid; left of the dashed line it knows the places of tokens, right of it their meaning. Runs that left the "
    "minimum below their start for the other one are set aside.",
    claims=(
        _published("semantic", "q", "0.11415"),
        _published("semantic", "V", "12.33"),
        _published("semantic", "theta", "0.15856"),
        _published("semantic", "error", "0.002793"),
        _published("positional", "q", "0.0500"),
        _published("positional", "m", "0.2586"),
        _published("positional", "V", "11.04"),
        _published("positional", "error", "0.00698"),
        *(_by_runs(start, name) for start in STARTS for name in (OVERLAPS[start], "generalization_error", "risk")),
        Claim(f"share of runs from p at alpha = {ALPHA:g} that left for w*", None, None, None, left),
        Claim("alpha at which the minimum turns semantic", None, None, transition, transition_of_runs),
    ),
    gather=gather,
    draw=draw,
)
