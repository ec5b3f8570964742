"""Two giant steps: the outliers that they leave in the first layer, and how the directions found align with the target.

Left, singular values of the first layer after two steps with rates p^a1 and p^a2. The second step finds
floor(a2/(1/2 - a1)) directions beyond that of the first, as far as the activation has them: here a cubic, up to two. At
this width the third is beside the bulk, which the steps themselves have widened by p^(a2 - 1/2). Right, the cosine of
directions with a target that has no linear part: a reused batch finds it, a fresh one does not. The closed formula
takes every unit to be shifted by its mean slope. It is not exact, and runs tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_points, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

ACTIVATION = "z + z**2/2 + z**3/6"
THIRD = "sin(2*z) - 2*exp(-1.5)*sin(z)"
SECOND = f"{THIRD} + (cos(z) - exp(-0.5))/2"
RATES = ((0.1, 0.3), (0.2, 0.4), (0.25, 0.4), (0.3, 0.45), (0.38, 0.45))
SHOWN = 4
ALPHA = 3.0
CURVES = {
    "second, k = 1": (SECOND, True, 1, "exponent 2, $k = 1$, reused"),
    "third, k = 2": (THIRD, True, 2, "exponent 3, $k = 2$, reused"),
    "fresh, k = 1": (SECOND, False, 1, "exponent 2, $k = 1$, fresh"),
}
"""Target, whether its batch is reused, which power, and its name; the exponents are information exponents."""
FIRST_RATE, SECOND_RATE = 0.42, 0.2


def model_of(target: str, width: float) -> Any:
    import solvable as sv

    return sv.TwoLayer(target, ACTIVATION, width)


def singular_values_of_run(first: float, second: float, d: int, seed: int) -> np.ndarray:
    """The largest singular values of the first layer of one run, as wide as there are inputs."""
    import solvable as sv
    from solvable.models.features.two_steps.outliers import measured_outliers
    from solvable.numerics.blas import single_thread

    with single_thread():
        run = sv.simulate(model_of(SECOND, 1.0), sv.TwoSteps(first, second), alpha=ALPHA, d=d, seed=seed)
        return measured_outliers(run.estimate.first, run.details["truth"], SHOWN).values


def alignment_of_run(name: str, alpha: float, d: int, seed: int) -> float:
    """The alignment of one run."""
    import solvable as sv
    from solvable.numerics.blas import single_thread

    target, reuse, k, _ = CURVES[name]
    with single_thread():
        steps = sv.TwoSteps(FIRST_RATE, SECOND_RATE, reuse)
        return sv.simulate(model_of(target, 2.0), steps, alpha=alpha, d=d, seed=seed)[f"alignment_{k}"]


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.features.two_steps.outliers import expected_outliers

    d, wide, seeds, few = effort.pick((150, 200, 6, 3), (500, 1200, 48, 3))
    ratios = effort.pick((ALPHA,), (0.75, 1.5, ALPHA))
    values: dict[str, Any] = {"alpha": np.geomspace(0.4, 5, 30), "ratios": np.array(ratios)}
    steps = [sv.TwoSteps(first, second) for first, second in RATES]
    plain = model_of(SECOND, 1.0)
    values["directions"] = [float(sv.predict(plain, step, alpha=ALPHA)["directions"]) for step in steps]
    values["expected"] = [expected_outliers(plain, step, ALPHA, wide).values for step in steps]
    tasks = [(first, second, wide, seed) for first, second in RATES for seed in range(few)]
    values["singular"] = np.reshape(in_processes(singular_values_of_run, tasks, effort), (len(RATES), few, SHOWN))
    for name, (target, reuse, k, _) in CURVES.items():
        for shift in ("exact", "mean"):
            learner = sv.TwoSteps(FIRST_RATE, SECOND_RATE, reuse, shift=shift)
            problem = model_of(target, 2.0)
            values[f"{name}, {shift}"] = sv.predict(problem, learner, alpha=values["alpha"])[f"alignment_{k}"]
            values[f"{name}, {shift} at 3"] = float(sv.predict(problem, learner, alpha=ALPHA)[f"alignment_{k}"])
            values[f"{name}, {shift} at 1"] = float(sv.predict(problem, learner, alpha=1.0)[f"alignment_{k}"])
        tasks = [(name, alpha, d, seed) for alpha in ratios for seed in range(seeds)]
        values[f"runs {name}"] = np.reshape(in_processes(alignment_of_run, tasks, effort), (len(ratios), seeds))
    sizes = {"alignments": {"d": [d], "seeds": [seeds]}, "singular values": {"d": [wide], "seeds": [few]}}
    return Material(values, sizes=sizes)


def draw(found: Material, verdicts):
    import matplotlib

    values, d = found.values, found.sizes["alignments"]["d"][0]
    wide = found.sizes["singular values"]["d"][0]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.15)
        left, right = figure.subplots(1, 2)
        for k in range(SHOWN):
            runs = values["singular"][:, :, k]
            error = runs.std(axis=1, ddof=1)
            label = f"runs at $p = d = {wide}$" if k == 0 else None
            draw_points(left, range(len(RATES)), runs.mean(axis=1), error, 1, label, ls="none", fmt="o")
        for place, expected in enumerate(values["expected"]):
            label = "theory at this width" if place == 0 else None
            left.hlines(expected, place - 0.3, place + 0.3, color=plots.COLORS[0], label=label)
        left.axhline(2.0, color="0.5", ls=":", lw=1.0, label="edge before the steps")
        names = [
            f"{first:g}, {second:g}\n({number:.0f})"
            for (first, second), number in zip(RATES, values["directions"], strict=True)
        ]
        left.set_xticks(range(len(RATES)), names, fontsize=6)
        left.set(yscale="log", xlabel="$a_1, a_2$ (directions beyond one step's)", ylabel="singular values")
        left.set_yticks([2, 5, 10, 20], ["2", "5", "10", "20"])
        left.minorticks_off()
        left.legend(fontsize=6, loc="upper left")
        for number, (name, (*_, label)) in enumerate(CURVES.items()):
            draw_theory(right, values["alpha"], values[f"{name}, exact"], number, label, linestyle="-")
            closed = "closed formula" if number == 0 else None
            if number < 2:
                draw_theory(right, values["alpha"], values[f"{name}, mean"], number, closed, linestyle=":", lw=1.0)
            runs = f"runs at $d = {d}$, $p = {2 * d}$" if number == 0 else None
            draw_runs(right, values["ratios"], values[f"runs {name}"], number, runs, ls="none")
        right.set(xscale="log", xlabel=r"$\alpha = n/d$", ylabel="cosine with the target", ylim=(-0.35, 0.8))
        right.set_xticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
        right.minorticks_off()
        right.legend(fontsize=5.5, loc="upper left", ncols=1)
    return figure


def _alignment(title: str, name: str) -> Claim:
    def runs(found: Material):
        return mean(found.values[f"runs {name}"][-1], found.sizes["alignments"]["d"][0])

    def theory(found: Material) -> float:
        # An integral that vanishes by symmetry is zero up to rounding.
        return round(found.values[f"{name}, exact at 3"], 12) + 0.0

    return Claim(title, None, None, theory, runs)


ENTRY = Entry(
    id="two-step-outliers",
    title="Outliers and alignments after two giant steps",
    sources=(sources.MONIRI,),
    shows="Left, the largest singular values of the first layer after two gradient steps with the rates p^a1 and p^a2 "
    "on the same 3 d samples, with the scatter of the runs: theory has up to two clear outliers, the others are the "
    "bulk, which the steps widen at this width. Right, the cosine of the directions of the second step with a target "
    "of information exponent two or three, on the batch of the first step or a fresh one; dotted the closed formula, "
    "which is not exact.",
    claims=(
        *(
            Claim(
                f"directions at a1 = {first:g}, a2 = {second:g}",
                f"floor({second:g}/(1/2 - {first:g}))",
                sources.MONIRI,
                lambda found, place=place: found.values["directions"][place],
                exact=number,
                second_hand=True,
            )
            for place, ((first, second), number) in enumerate(zip(RATES[:4], (0.0, 1.0, 1.0, 2.0), strict=True))
        ),
        Claim("closed formula, k = 1, alpha = 3", None, None, lambda found: found.values["second, k = 1, mean at 3"]),
        Claim("closed formula, k = 1, alpha = 1", None, None, lambda found: found.values["second, k = 1, mean at 1"]),
        Claim("closed formula, k = 2, alpha = 1", None, None, lambda found: found.values["third, k = 2, mean at 1"]),
        _alignment("reused, information exponent 2, k = 1, alpha = 3", "second, k = 1"),
        _alignment("reused, information exponent 3, k = 2, alpha = 3", "third, k = 2"),
        _alignment("fresh, information exponent 2, k = 1, alpha = 3", "fresh, k = 1"),
    ),
    gather=gather,
    draw=draw,
)
