r"""A matrix and a tensor with a common factor: the staircase, the plane of both noises, and factors of unequal sizes.

As the noise of the matrix falls message passing finds u and v, then x and y. Where the tensor has little noise the
second step ends in a jump, and posterior means would find x and y at more noise than message passing needs: a hard
phase. Maximum likelihood on both parts at once needs a much better matrix for either step; a curriculum, matrix first,
takes both steps where message passing does. We have seen no number of these settings in print: the equations were
derived anew, and runs are what they are held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import mean, vanishing
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate, Runs

NOISE = 0.3
"""The noise of the tensor in the staircase, small enough for a fold."""
JOINT = 0.5
"""That at which the step of maximum likelihood is read off runs."""
UNEQUAL, UNEQUAL_NOISE = (1.0, 2.0, 0.5, 1.5), 0.25
QUOTED = (0.5, 0.1)
"""The two noises at which all four overlaps are quoted."""
FIRM, UNEQUAL_FIRM = (0.2, 0.5), 0.6
"""Noises of the matrix at which runs of the staircase and of unequal sizes are quoted: there are more of them."""
STEPS = 100
"""Where a factor is not found maximum likelihood never settles: its runs are ended here."""
NAMES = {
    "bayes": "Bayes optimal",
    "amp": "message passing",
    "maximum-likelihood": "maximum likelihood",
    "curriculum": "curriculum",
}
FACTORS = "uvxy"
RIGHT = 1.15


def gather(effort: Effort) -> Material:
    import solvable as sv

    d, seeds, many = effort.pick((24, 3, 3), (120, 12, 48))
    passing, joint = sv.AMP(max_steps=effort.pick(40, 200)), sv.MaximumLikelihood(max_steps=effort.pick(40, STEPS))
    equal, unequal = sv.MatrixTensor(1.0, NOISE), sv.MatrixTensor(1.0, UNEQUAL_NOISE, UNEQUAL)
    fine = effort.pick(31, 231)
    runs: dict[str, Any] = {"d": d, "executor": effort.executor, "progress": effort.progress, "marks": {}}
    places = effort.pick([0.2, 0.4, 0.5, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.66, 0.72, 0.8, 0.9, 1.05])
    learners = [sv.BayesOptimal(), passing, joint, sv.Curriculum()]
    edges = [v for model in (equal, unequal) for v in sv.thresholds(model).values()]
    edges += list(sv.thresholds(equal, joint).values())
    # Points on both sides of every step, so that a jump is drawn upright.
    sides = np.array([side * edge for edge in edges if math.isfinite(edge) for side in (1 - 1e-6, 1 + 1e-6)])
    others = 1.5 * np.array(places)[:-1]
    grid = np.unique(np.concatenate([np.linspace(0.02, 1.6, fine), sides, places, others]))
    curve = sv.learning_curve
    curves = {
        "theory": curve(equal, learners, matrix_noise=grid[grid < RIGHT], marks={}, progress=effort.progress),
        "runs": curve(equal, learners[1:], matrix_noise=places, seeds=seeds, **runs),
        "firm": curve(equal, learners[1:], matrix_noise=FIRM, seeds=many, **runs),
        "unequal_theory": curve(unequal, [sv.AMP()], matrix_noise=grid, marks={}, progress=effort.progress),
        "unequal": curve(unequal, [passing], matrix_noise=others, seeds=seeds, **runs),
        "unequal_firm": curve(unequal, [passing], matrix_noise=[UNEQUAL_FIRM], seeds=many, **runs),
        "quoted": curve(sv.MatrixTensor(*QUOTED), [passing], matrix_noise=QUOTED[:1], seeds=many, **runs),
        "joint": curve(
            sv.MatrixTensor(1.0, JOINT),
            [joint],
            matrix_noise=effort.pick([0.42, 0.5, 0.58], [0.4, 0.43, 0.46, 0.49, 0.52, 0.55, 0.58, 0.61]),
            seeds=effort.pick(3, 32),
            **runs,
        ),
    }
    fold = fold_ends()
    values = {"plane": _plane(effort.pick(30, 240), fold), "steps": _steps(NOISE), "fold": fold}
    counts = {name: found.dataset.sizes["seed"] for name, found in curves.items() if "theory" not in name}
    sizes = {name: {"d": [d], "seeds": [count]} for name, count in counts.items()}
    return Material(values, curves, sizes)


def _steps(noise: float) -> dict[str, float]:
    """The noises of the matrix at which something changes, of message passing and (with `joint_`) of both at once."""
    import solvable as sv

    model = sv.MatrixTensor(1.0, noise)
    found = {name: float(value) for name, value in sv.thresholds(model).items()}
    joint = sv.thresholds(model, sv.MaximumLikelihood())
    return found | {f"joint_{name}": float(value) for name, value in joint.items()}


def _plane(count: int, fold: float) -> dict[str, np.ndarray]:
    """The same over a range of noises of the tensor."""
    noise = np.unique(np.concatenate([np.linspace(0.004, 0.996, count), fold + np.array([-1e-4, 0.0])]))
    found = [_steps(value) for value in noise]
    return {"tensor_noise": noise} | {name: np.array([one[name] for one in found]) for name in found[0]}


def fold_ends() -> float:
    """The noise of the tensor from which on the second step does not end in a jump, by bisection."""
    import solvable as sv
    from solvable.numerics.roots import halving

    def smooth(noise: float) -> bool:
        found = sv.thresholds(sv.MatrixTensor(1.0, noise))
        return found["algorithmic"] >= found["tensor_step"]

    return float(halving(smooth, 0.2, 0.5, 40).high)


def theory_at(name: str, number: int, noise: float, factor: str) -> Callable[[Material], float]:
    """The squared overlap that theory gives a factor."""

    def found(material: Material) -> float:
        values = material.curves[name].theory(f"squared_overlap_{factor}").isel(learner=number)
        return float(values.sel(matrix_noise=noise, method="nearest"))

    return found


def runs_at(name: str, number: int, noise: float, factor: str) -> Callable[[Material], Estimate]:
    """The mean of the runs."""

    def found(material: Material) -> Estimate:
        values = material.curves[name].simulation(f"squared_overlap_{factor}").isel(learner=number)
        return mean(values.sel(matrix_noise=noise, method="nearest").values, material.sizes[name]["d"][0])

    return found


def joint_step(found: Material) -> Estimate:
    """Where the squared overlap of u that maximum likelihood finds vanishes, extrapolated from smaller noise."""
    values = found.curves["joint"].simulation("squared_overlap_u").isel(learner=0).transpose("matrix_noise", "seed")
    (d,) = found.sizes["joint"]["d"]
    return vanishing(Runs(d, values["matrix_noise"].values, values.values), 0.12, 0.6)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.2, 1.9)
        (u, plane), (x, unequal) = figure.subplots(2, 2)
        _draw_staircase(u, found, "u")
        _draw_staircase(x, found, "x")
        u.legend(loc="upper right", bbox_to_anchor=(1.02, 1.06))
        _draw_plane(plane, found, verdicts)
        _draw_unequal(unequal, found)
    return figure


def _draw_staircase(ax, found: Material, factor: str) -> None:
    theory = found.curves["theory"].theory(f"squared_overlap_{factor}")
    runs = found.curves["runs"].simulation(f"squared_overlap_{factor}").transpose("learner", "matrix_noise", "seed")
    (d,) = found.sizes["runs"]["d"]
    for number, label in enumerate(NAMES.values()):
        look = {"linewidth": 2.6, "alpha": 0.45} if number == 0 else {}
        draw_theory(ax, theory["matrix_noise"], theory.isel(learner=number), number, label, **look)
        if number:
            of_runs = f"runs at $d = {d}$" if number == 1 else None
            draw_runs(ax, runs["matrix_noise"], runs.isel(learner=number - 1), number, of_runs)
    ax.set(xlabel=r"noise of the matrix, $\Delta_m$", ylabel=f"squared overlap of ${factor}$")
    step = "matrix" if factor == "u" else "tensor"
    ax.set(xlim=(0, RIGHT), ylim=(-0.02, 1.02), title=rf"{step} step, $\Delta_t = {NOISE:g}$")


def _draw_plane(ax, found: Material, verdicts) -> None:
    plane = found.values["plane"]
    t = plane["tensor_noise"]
    fold = t < found.values["fold"]
    end = np.minimum(plane["information_theoretic"], 2.0)
    ax.fill_betweenx(t[fold], plane["algorithmic"][fold], end[fold], color="0.85", linewidth=0, label="hard phase")
    ax.axvline(plane["matrix_step"][0], color=plots.COLORS[0], label="$u, v$ by message passing")
    draw_theory(ax, plane["tensor_step"], t, 1, r"$x, y$ by it, $1 - \Delta_t$")
    draw_theory(ax, plane["information_theoretic"][fold], t[fold], 6, "$x, y$ by the posterior", linestyle="-")
    draw_theory(ax, plane["spinodal"][fold], t[fold], 6, "spinodal", linestyle=":")
    draw_theory(ax, plane["joint_matrix_noise"], t, 2, "$u, v$ by maximum likelihood", linestyle="-")
    draw_theory(ax, plane["joint_tensor_step"], t, 2, "$x, y$ by it", linestyle="--")
    known = [verdict.simulated for verdict in verdicts if verdict.claim.name == JOINT_NAME]
    if known and known[0] is not None and np.isfinite(known[0].value):
        ax.errorbar(known[0].value, JOINT, xerr=3 * known[0].error, fmt="x", color="black", label="runs, 3 s.e.")
    ax.set(xlim=(0, 1.75), ylim=(0, 1), title="where factors are found, equal sizes")
    ax.set(xlabel=r"noise of the matrix, $\Delta_m$", ylabel=r"noise of the tensor, $\Delta_t$")
    ax.legend(loc="upper right", bbox_to_anchor=(1.03, 1.03), fontsize=6)


def _draw_unequal(ax, found: Material) -> None:
    theory, runs, (d,) = found.curves["unequal_theory"], found.curves["unequal"], found.sizes["unequal"]["d"]
    for number, factor in enumerate(FACTORS):
        line = theory.theory(f"squared_overlap_{factor}").isel(learner=0)
        values = runs.simulation(f"squared_overlap_{factor}").isel(learner=0).transpose("matrix_noise", "seed")
        draw_theory(ax, line["matrix_noise"], line, number, f"${factor}$")
        draw_runs(ax, values["matrix_noise"], values, number, f"runs at $d = {d}$" if number == 0 else None)
    sizes = ", ".join(f"{ratio:g}" for ratio in UNEQUAL)
    ax.set(xlabel=r"noise of the matrix, $\Delta_m$", ylabel="squared overlap of message passing")
    ax.set(xlim=(0, 1.6), ylim=(-0.02, 1.02), title=rf"sizes {sizes}, $\Delta_t = {UNEQUAL_NOISE:g}$")
    ax.legend()


JOINT_NAME = f"maximum likelihood, matrix step at tensor noise {JOINT:g}"


def _claims() -> list[Claim]:
    quoted = [
        Claim(
            f"message passing, squared overlap of {factor} at noises {QUOTED[0]:g}, {QUOTED[1]:g}",
            None,
            None,
            theory_at("quoted", 0, QUOTED[0], factor),
            runs_at("quoted", 0, QUOTED[0], factor),
        )
        for factor in FACTORS
    ]
    names = {
        "tensor_step": "tensor step of message passing",
        "algorithmic": "jump of message passing",
        "information_theoretic": "jump of posterior means",
        "spinodal": "spinodal",
    }
    steps = [
        Claim(f"{label}, tensor noise {NOISE:g}", None, None, lambda found, name=name: found.values["steps"][name])
        for name, label in names.items()
    ]
    plane = [
        Claim("tensor noise above which there is no jump", None, None, lambda found: found.values["fold"]),
        Claim(
            JOINT_NAME,
            None,
            None,
            lambda found: float(_steps(JOINT)["joint_matrix_noise"]),
            joint_step,
        ),
    ]
    staircase = [
        Claim(
            f"{label}, squared overlap of {factor} at noises {noise:g}, {NOISE:g}",
            None,
            None,
            theory_at("theory", 1 + number, noise, factor),
            runs_at("firm", number, noise, factor),
        )
        for number, label in enumerate(list(NAMES.values())[1:])
        for noise in FIRM
        for factor in "ux"
        if not (number == 1 and factor == "x" and noise == 0.5)  # theory finds nothing there: no size to compare
    ]
    sizes = ", ".join(f"{ratio:g}" for ratio in UNEQUAL)
    unequal = [
        Claim(
            f"sizes {sizes}, squared overlap of {factor} at noises {UNEQUAL_FIRM:g}, {UNEQUAL_NOISE:g}",
            None,
            None,
            theory_at("unequal_theory", 0, UNEQUAL_FIRM, factor),
            runs_at("unequal_firm", 0, UNEQUAL_FIRM, factor),
        )
        for factor in FACTORS
    ]
    return quoted + steps + plane + staircase + unequal


ENTRY = Entry(
    id="matrix-tensor",
    title="A matrix and a tensor with a common factor",
    sources=(sources.TABANELLI,),
    shows="Left: how well the shared factor u and a factor x of the tensor are found as the noise of the matrix falls, "
    "by posterior means, message passing, joint maximum likelihood, and the matrix first. Right: where each is found "
    "in the plane of both noises, and four factors of unequal sizes. Runs of maximum likelihood that find nothing do "
    f"not settle and are ended after {STEPS} steps; those of message passing after 200.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
