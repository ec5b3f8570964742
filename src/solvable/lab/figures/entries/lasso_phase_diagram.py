"""Which sparse weights the lasso recovers from labels without noise, beside what is possible.

The map is the error of theory as the strength vanishes: the estimate is then the one of least l1 norm that fits the
labels, and exact from Donoho and Tanner's curve on. Runs are of that limit, a linear programme; their threshold is the
alpha where half of them are exact up to rounding, extrapolated in the dimension (see `estimators`). Bayes-optimal
message passing, which knows the law of the weights, needs fewer samples, and as many as there are weights that are not
zero would do.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.drawing import new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate, Runs, jump

METRIC = "estimation_error"
SIMULATED = {0.05: 0.204, 0.2: 0.511, 0.4: 0.75, 0.6: 0.89}
"""The density of the weights in the runs, and around which alpha they are made."""
RECOVERED = 1e-8
"""The error below which the weights are recovered up to rounding."""
LOWEST = 0.02
"""Where the map begins in alpha."""
LEAST, MOST = 1e-6, 1.0
"""The ends of the colour scale."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    cells = effort.pick(16, 48)
    middles = (np.arange(cells) + 0.5) / cells
    up = LOWEST + (1 - LOWEST) * middles
    curve = sv.phase_diagram(
        model(0.5), learner(), ("rho", middles), ("alpha", up), METRIC, marks=False, progress=effort.progress
    )
    rho = np.linspace(0.005, 0.995, 100)
    coarse = np.array(effort.pick((0.05, 0.3, 0.8), (0.01, 0.03, 0.07, *np.arange(0.15, 0.96, 0.1), 0.99)))
    values = {
        "rho": rho,
        "recovery": np.array([recovery(density) for density in rho]),
        "coarse": coarse,
        "algorithmic": np.array(in_processes(algorithmic, [(float(density),) for density in coarse], effort)),
    }
    d, seeds = effort.pick(((40, 120), (16, 8)), ((60, 240), (80, 24)))
    width = effort.pick(np.arange(-0.12, 0.121, 0.04), np.arange(-0.12, 0.121, 0.03))
    for density, middle in SIMULATED.items():
        # The transition is the narrower the fewer the weights.
        ratios = (middle + width * np.sqrt(middle * (1 - middle)) * 1.5).round(4)
        values[f"runs_{density:g}"] = [
            runs(density, ratios, size, count, effort) for size, count in zip(d, seeds, strict=True)
        ]
    sizes = {"least_norm": {"d": list(d), "seeds": list(seeds)}}
    return Material(values, {"theory": curve}, sizes)


def model(rho: float):
    """Labels z without noise, of weights of which a share rho is not zero."""
    import solvable as sv

    return sv.MultiIndex("z", prior=sv.priors.GaussBernoulli(rho))


def learner():
    """The least l1 norm."""
    import solvable as sv

    return sv.ERM(sv.losses.Square(), sv.Lasso(0.0))


def recovery(rho: float) -> float:
    """Donoho and Tanner's threshold."""
    import solvable as sv

    return float(sv.thresholds(model(rho), learner())["recovery"])


def algorithmic(rho: float) -> float:
    """The threshold of Bayes-optimal message passing."""
    import solvable as sv

    return float(sv.thresholds(model(rho))["algorithmic"])


def runs(rho: float, ratios: np.ndarray, d: int, seeds: int, effort: Effort) -> Runs:
    """Minus the errors of runs at one density and dimension."""
    tasks = [(rho, float(alpha), d, seed) for alpha in ratios for seed in range(seeds)]
    found = in_processes(error_of_run, tasks, effort)
    return Runs(d, np.asarray(ratios), -np.reshape(found, (len(ratios), seeds)))


def error_of_run(rho: float, alpha: float, d: int, seed: int) -> float:
    """The error of the weights of least l1 norm that fit all labels of one data set."""
    import solvable as sv

    found = sv.simulate(model(rho), learner(), alpha=alpha, d=d, seed=seed)
    return found[METRIC] if found.converged else float("nan")


def boundary(rho: float, found: Material) -> Estimate:
    """The threshold of the runs."""
    return jump(found.values[f"runs_{rho:g}"], above=-RECOVERED)


def draw(found: Material, verdicts):
    import matplotlib
    from matplotlib.colors import LogNorm

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.45, 1.35)
        ax = figure.add_subplot()
        curve = found.curves["theory"]
        theory = curve.theory(METRIC).where(curve.dataset["status"] == 0).isel(learner=0)
        edges = [np.linspace(low, 1.0, theory.sizes[name] + 1) for name, low in (("rho", 0.0), ("alpha", LOWEST))]
        cells = np.maximum(np.ma.masked_invalid(theory.transpose("alpha", "rho").values), LEAST)
        ax.set_facecolor("0.8")
        mesh = ax.pcolormesh(*edges, cells, norm=LogNorm(LEAST, MOST), cmap="cividis", rasterized=True)
        figure.colorbar(mesh, ax=ax, label="estimation error of the lasso", extend="min")
        ax.plot(found.values["rho"], found.values["recovery"], color="white", label="lasso (Donoho and Tanner)")
        known = np.concatenate([[0.0], found.values["coarse"], [1.0]])
        needed = np.concatenate([[0.0], found.values["algorithmic"], [1.0]])
        ax.plot(known, needed, color="black", linestyle="--", label="Bayes-optimal message passing")
        ax.plot([0, 1], [0, 1], color="black", linestyle=":", label=r"possible: $\alpha = \rho$")
        _draw_boundaries(ax, found, verdicts)
        ax.set(
            xlim=(0, 1),
            ylim=(LOWEST, 1),
            xlabel=r"share of weights that are not zero, $\rho$",
            ylabel=r"$\alpha = n/d$",
        )
        legend = figure.legend(loc="outside upper center", ncols=2, facecolor="0.75", frameon=True, edgecolor="none")
        legend.get_frame().set_alpha(1.0)
    return figure


def _draw_boundaries(ax, found: Material, verdicts) -> None:
    """The thresholds of the runs, with bars of three standard errors."""
    known = [verdict.simulated for verdict in verdicts if verdict.simulated is not None]
    sizes = " and ".join(map(str, found.sizes["least_norm"]["d"]))
    ax.errorbar(
        list(SIMULATED),
        [one.value for one in known],
        [3 * one.error for one in known],
        fmt="o",
        color=plots.COLORS[1],
        mfc="white",
        mew=0.9,
        elinewidth=0.9,
        label=f"half of the runs at $d =$ {sizes}, 3 s.e.",
        zorder=4,
    )


ENTRY = Entry(
    id="lasso-phase-diagram",
    title="What the lasso recovers, and what is possible",
    sources=(sources.DONOHO_TANNER,),
    shows="The error of the weights of least l1 norm that fit all labels y = z, the limit of a vanishing lasso, over "
    "the share of weights that are not zero and the number of samples, with the curve above which they are exact, that "
    "of Bayes-optimal message passing, and the number of weights that are not zero.",
    claims=tuple(
        Claim(
            f"recovery, rho = {rho:g}",
            None,
            None,
            lambda found, rho=rho: recovery(rho),
            partial(boundary, rho),
        )
        for rho in SIMULATED
    ),
    gather=gather,
    draw=draw,
)
