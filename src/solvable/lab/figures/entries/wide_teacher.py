r"""Wide teachers whose amplitudes fall like a power: features are learned one by one, and the error falls like a power.

Every feature that is learned costs $\Delta d/n$, and what is not learned yet is left in the error: while there are
features left it falls like $n^{1/(2\beta) - 1}$, then like 1/n. A student of fewer neurons than can be learned
stops at what it leaves out; a wider one gains nothing. Networks trained by Adam are best near that width, above the
Bayes-optimal error. The two laws are in the abstract of the publication; other numbers were not seen in print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

CUBIC, NOISE = "he3(z)/sqrt(6)", 0.1
LAWS: dict[str, tuple[float, float, float]] = {
    "beta = 1": (1.0, math.inf, -0.5),
    "beta = 3/4": (0.75, math.inf, -1 / 3),
    "k = 1000": (1.0, 1000, -1.0),
}
"""Exponent, width, and the power of n that the error falls with in the end."""
FAR = (1e7, 1e8)
"""Where these powers are read off."""
WIDTH = 20_000
TABLE = {1e3: (10, 30, WIDTH), 1e4: (10, 30, 100, WIDTH), 1e5: (10, 30, 100, 300, WIDTH)}
"""n/d, and the widths of students of which the error is quoted."""
SHOWN = 6
TRAINED: dict[str, Any] = {"exponent": 1.0, "width": 20, "activation": "tanh(2*z)", "noise": 0.02}
"""The teacher of the networks that Adam trains."""
RATIOS = (20.0, 80.0, 320.0)
METRIC = "generalization_error"


def gather(effort: Effort) -> Material:
    values = {
        "laws": {name: _law(beta, k, effort.pick(40, 400)) for name, (beta, k, _) in LAWS.items()},
        "overlaps": _overlaps(effort.pick(60, 1500)),
        "sizes": {alpha: _against_width(alpha, effort.pick(20, 200)) for alpha in TABLE},
        "transition": _transition(),
    }
    values |= {"trained": {alpha: _trained(alpha, effort) for alpha in RATIOS}}
    d, seeds, _ = _size(effort)
    return Material(values, sizes={"adam": {"d": [d], "seeds": [seeds]}})


def _size(effort: Effort) -> tuple[int, int, tuple[int, ...]]:
    """Dimension, seeds, and widths of the networks that are trained."""
    return effort.pick((10, 2, (2, 8)), (40, 8, (1, 2, 3, 4, 6, 8, 12, 16, 20, 32)))


def _law(exponent: float, width: float, count: int) -> dict[str, np.ndarray]:
    """The error against n/d."""
    import solvable as sv

    alpha = np.unique(np.append(np.geomspace(1.0, FAR[1], count), FAR))
    return {"alpha": alpha, "error": error(sv.WideTeacher(exponent, width, CUBIC, NOISE), alpha)}


def error(model: Any, alpha: Any, width: float = math.inf) -> np.ndarray:
    """The Bayes-optimal error of students of some width."""
    import solvable as sv

    learner = sv.BayesOptimal() if math.isinf(width) else sv.BayesStudent(int(width))
    return np.asarray(sv.predict(model, learner, alpha=np.asarray(alpha, float))[METRIC])


def _overlaps(count: int) -> dict[str, np.ndarray]:
    """Those of the strongest features, and the n/d at which each is learned."""
    import solvable as sv

    model = sv.WideTeacher(1.0, math.inf, CUBIC, NOISE)
    edges = [float(value) for value in sv.thresholds(model).values()][:SHOWN]
    sides = [edge * side for edge in edges for side in (1 - 1e-7, 1 + 1e-7)]
    alpha = np.unique(np.concatenate([np.geomspace(1.0, 150.0, count), sides]))
    found = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    return {"alpha": alpha, "overlap": np.asarray(found["overlap"])[:, :SHOWN], "edges": np.array(edges)}


def _against_width(alpha: float, count: int) -> dict[str, Any]:
    """The error against the width of the student, and the number of features that can be learned."""
    import solvable as sv

    model = sv.WideTeacher(1.0, WIDTH, CUBIC, NOISE)
    widths = np.unique(np.round(np.geomspace(1, WIDTH, count)).astype(int).tolist() + list(TABLE[alpha]))
    learned = float(sv.predict(model, sv.BayesOptimal(), alpha=alpha)["effective_width"])
    return {
        "width": widths,
        "error": np.array([float(error(model, alpha, int(width))) for width in widths]),
        "learned": learned,
    }


def _transition() -> dict[str, float]:
    import solvable as sv

    return dict(sv.thresholds(sv.WideTeacher(1.0, math.inf, CUBIC, NOISE), sv.BayesOptimal()))


def _trained(alpha: float, effort: Effort) -> dict[str, Any]:
    """The errors (width, seed) of networks trained by Adam, and those of theory."""
    import solvable as sv

    model = sv.WideTeacher(**TRAINED)
    d, seeds, widths = _size(effort)
    steps = effort.pick(150, 1500)
    tasks = [(model, sv.AdamStudent(width, steps), alpha, d, seed, METRIC) for width in widths for seed in range(seeds)]
    runs = np.reshape(in_processes(error_of_run, tasks, effort), (len(widths), seeds))
    fine = np.arange(1, max(widths) + 1)
    best = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    return {
        "widths": np.array(widths),
        "runs": runs,
        "theory_widths": fine,
        "theory": np.array([float(error(model, alpha, int(width))) for width in fine]),
        "best": float(best[METRIC]),
        "learned": float(best["effective_width"]),
    }


def error_of_run(model: Any, learner: Any, alpha: float, d: int, seed: int, metric: str) -> float:
    """The error of one network; early stopping chooses it, whether or not the loss still fell in the end."""
    from solvable.lab.grid.results import run_once

    return float(run_once(model, learner, d, seed, {"alpha": alpha})[metric])


def slope(found: Material, name: str) -> float:
    """The power of n with which the error falls in the end."""
    law = found.values["laws"][name]
    low, high = (float(law["error"][np.argmin(np.abs(law["alpha"] - at))]) for at in FAR)
    return math.log(high / low) / math.log(FAR[1] / FAR[0])


def at_width(alpha: float, width: int) -> Callable[[Material], float]:
    """The error of a student of that width."""

    def found(material: Material) -> float:
        sizes = material.values["sizes"][alpha]
        return float(sizes["error"][np.searchsorted(sizes["width"], width)])

    return found


def best_of_runs(alpha: float) -> Callable[[Material], Estimate]:
    """The mean error of the networks of the best width."""

    def found(material: Material) -> Estimate:
        trained, (d,) = material.values["trained"][alpha], material.sizes["adam"]["d"]
        return mean(trained["runs"][np.argmin(trained["runs"].mean(axis=1))], d)

    return found


def best_width(alpha: float) -> Callable[[Material], Estimate]:
    """The mean over seeds of the width, of those tried, at which the network of the seed is best."""

    def found(material: Material) -> Estimate:
        trained = material.values["trained"][alpha]
        return mean(trained["widths"][np.argmin(trained["runs"], axis=0)], material.sizes["adam"]["d"][0])

    return found


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.2, 1.9)
        (laws, overlaps), (sizes, trained) = figure.subplots(2, 2)
        _draw_laws(laws, found)
        _draw_overlaps(overlaps, found)
        _draw_sizes(sizes, found)
        _draw_trained(trained, found)
    return figure


def _draw_laws(ax, found: Material) -> None:
    labels = (r"$\beta = 1$, any width", r"$\beta = 3/4$, any width", r"$\beta = 1$, $k = 1000$")
    for number, (label, (name, (_, _, power))) in enumerate(zip(labels, LAWS.items(), strict=True)):
        law = found.values["laws"][name]
        draw_theory(ax, law["alpha"], law["error"], number, label)
        x = np.array([3e5, FAR[1]])
        shown = {-0.5: "-1/2", -1 / 3: "-1/3", -1.0: "-1"}[power]
        y = 2.2 * law["error"][-1] * (x / x[-1]) ** power
        ax.plot(x, y, color="0.6", linewidth=0.8)
        ax.annotate(f"${shown}$", (x[-1], y[-1]), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_xlim(0.7, 1.5e9)
    ax.set(xscale="log", yscale="log", xlabel="$n/d$", ylabel="generalization error")
    ax.set(title=rf"cubic features, noise {NOISE:g}")
    ax.legend(loc="lower left")


def _draw_overlaps(ax, found: Material) -> None:
    known = found.values["overlaps"]
    for j in range(SHOWN):
        draw_theory(ax, known["alpha"], known["overlap"][:, j], j, f"{j + 1}", linestyle="-")
        ax.axvline(known["edges"][j], color=plots.COLORS[j], linestyle=":", linewidth=0.8)
    ax.set(xscale="log", xlabel="$n/d$", ylabel="overlap of a feature", ylim=(-0.02, 1.02))
    ax.set(title=r"features are learned one by one, $\beta = 1$")
    ax.legend(title="feature", loc="upper left")


def _draw_sizes(ax, found: Material) -> None:
    for number, (alpha, known) in enumerate(found.values["sizes"].items()):
        draw_theory(ax, known["width"], known["error"], number, rf"$n/d = 10^{round(math.log10(alpha))}$")
        at = known["error"][-1]
        ax.plot(known["learned"], at, "o", color=plots.COLORS[number], mfc="white", label=None)
    ax.plot([], [], "o", color="0.3", mfc="white", label="features learned")
    ax.set(xscale="log", yscale="log", xlabel="width of the student", ylabel="generalization error")
    ax.set(title=rf"Bayes-optimal students, $\beta = 1$, $k = {WIDTH}$")
    ax.legend()


def _draw_trained(ax, found: Material) -> None:
    (d,) = found.sizes["adam"]["d"]
    for number, (alpha, known) in enumerate(found.values["trained"].items()):
        draw_theory(ax, known["theory_widths"], known["theory"], number, f"Bayes-optimal, $n/d = {alpha:g}$")
        draw_runs(ax, known["widths"], known["runs"], number, f"Adam, $d = {d}$")
        ax.axvline(known["learned"], color=plots.COLORS[number], linestyle=":", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="width of the student", ylabel="generalization error")
    ax.set(title=rf"trained networks, $\tanh(2z)$, $k = {TRAINED['width']}$, noise {TRAINED['noise']:g}")
    ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    ax.minorticks_off()
    ax.legend(fontsize=6)


def _claims() -> list[Claim]:
    found = [
        Claim("transition of a cubic feature, kappa", None, None, lambda f: _value(f, "kappa_information_theoretic")),
        Claim("spinodal of a cubic feature, kappa", None, None, lambda f: _value(f, "kappa_spinodal")),
    ]
    texts = {"beta = 1": "1/(2 beta) - 1", "beta = 3/4": "1/(2 beta) - 1", "k = 1000": "-1"}
    found += [
        Claim(
            f"power of n in the error, {name}",
            texts[name],
            sources.BARBIER_NGUYEN,
            lambda found, name=name: slope(found, name),
            exact=power,
            tolerance=0.02,
            second_hand=True,
        )
        for name, (_, _, power) in LAWS.items()
    ]
    found += [
        Claim(
            f"error at n/d = {alpha:g}, " + ("any width" if width == WIDTH else f"student of width {width}"),
            None,
            None,
            at_width(alpha, width),
        )
        for alpha, widths in TABLE.items()
        for width in widths
    ]
    found += [
        Claim(
            f"features learned at n/d = {alpha:g}",
            None,
            None,
            lambda found, alpha=alpha: found.values["sizes"][alpha]["learned"],
        )
        for alpha in TABLE
    ]
    for alpha in RATIOS:
        # The Bayes-optimal error and width are bounds and guides of what Adam does, not its theory.
        found += [
            Claim(f"Bayes-optimal error, tanh(2z), n/d = {alpha:g}", None, None, lambda f, a=alpha: _of(f, a, "best")),
            Claim(f"features learned, tanh(2z), n/d = {alpha:g}", None, None, lambda f, a=alpha: _of(f, a, "learned")),
            Claim(f"least error of Adam, n/d = {alpha:g}", None, None, None, best_of_runs(alpha)),
            Claim(f"best width of Adam, n/d = {alpha:g}", None, None, None, best_width(alpha)),
        ]
    return found


def _value(found: Material, name: str) -> float:
    return float(found.values["transition"][name])


def _of(found: Material, alpha: float, name: str) -> float:
    return float(found.values["trained"][alpha][name])


ENTRY = Entry(
    id="wide-teacher",
    title="Wide teachers whose features fall like a power",
    sources=(sources.BARBIER_NGUYEN,),
    shows="The Bayes-optimal error against samples, with the powers it falls with; overlaps of the strongest features, "
    "which jump one after the other; the error of students of limited width, which is as good as any from as many "
    "neurons on as there are features to learn; and networks trained by Adam, stopped on samples set aside, beside the "
    "Bayes-optimal error (a bound, not their theory); dotted: the number of features that can be learned.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
