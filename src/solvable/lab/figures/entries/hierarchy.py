"""How hard some targets of the literature are: their class, exponents and weak-recovery thresholds.

Nothing is simulated here: classes and exponents say how the number of samples must grow with the dimension, and the
thresholds of some of these targets are simulated by other entries.
"""

from __future__ import annotations

import math

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

TARGETS = (
    "sign(z)",
    "he3(z)",
    "z1 + z1*z2",
    "he2(z)",
    "z1**2 + sign(z1*z2*z3)",
    "z1*z2",
    "he4(z)",
    "he4(z1) + sign(z1*z2*z3)",
    "sign(z1*z2)",
    "sign(z1*z2*z3)",
    "z**2*exp(-z**2)",
)
QUICK = tuple(target for target in TARGETS if not target.startswith("he4(z1)"))  # the only slow one


def gather(effort: Effort) -> Material:
    import solvable as sv

    return Material({target: sv.diagnose(target) for target in effort.pick(QUICK, TARGETS)})


def draw(found: Material, verdicts):
    """A bar for each threshold, and class and exponents beside it."""
    import matplotlib

    colors = {"trivial": plots.COLORS[2], "easy": plots.COLORS[0], "hard": plots.COLORS[1]}
    diagnoses = list(found.values.values())
    end = 1.25 * max(d.alpha_weak for d in diagnoses if math.isfinite(d.alpha_weak))
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.8, 0.35 + 0.085 * len(diagnoses))
        bars, table = figure.subplots(1, 2, sharey=True, width_ratios=(1.3, 1))
        for row, diagnosis in enumerate(diagnoses):
            alpha, color = diagnosis.alpha_weak, colors[diagnosis.verdict]
            hard = math.isinf(alpha)
            bars.barh(row, end if hard else alpha, height=0.6, color=color, alpha=0.35 if hard else 1.0)
            text = "at no ratio" if hard else f"{alpha:.4g}" if alpha else "at any ratio"
            bars.text(0.03 + (0 if hard else alpha), row, text, va="center", fontsize=7)
            exponents = (diagnosis.information_exponent, diagnosis.leap_exponent, diagnosis.generative_exponent)
            table.text(0, row, diagnosis.verdict, va="center", ha="center", fontsize=7, color=color, weight="bold")
            for column, exponent in enumerate(exponents, 1):
                table.text(column, row, f"{exponent:g}", va="center", ha="center", fontsize=7)
        for column, head in enumerate(("class", "information\nexponent", "leap", "generative\nexponent")):
            table.text(column, -0.75, head, va="bottom", ha="center", fontsize=6)
        bars.set_yticks(range(len(diagnoses)), list(found.values), parse_math=False, family="monospace", fontsize=7)
        bars.set_ylim(len(diagnoses) - 0.5, -0.6)
        bars.set_xlim(0, end)
        bars.set_xlabel(r"weak recovery, $\alpha = n/d$")
        bars.spines["left"].set_visible(False)
        bars.tick_params(axis="y", length=0)
        table.set_xlim(-0.5, 3.5)
        table.set_axis_off()
    return figure


def _of(target: str, field: str):
    return lambda found: getattr(found.values[target], field)


ENTRY = Entry(
    id="hierarchy",
    title="How hard targets are: classes, exponents and thresholds",
    sources=(sources.TROIANI, sources.DAMIAN, sources.BEN_AROUS, sources.ABBE, sources.MONDELLI_MONTANARI),
    shows="Bars: the ratio of samples to dimension above which message passing learns something. Green targets are "
    "learned at any ratio, red ones at none. The leap is that of methods that use the label linearly.",
    claims=(
        Claim(
            "he2(z), weak recovery",
            "1/2",
            sources.MONDELLI_MONTANARI,
            _of("he2(z)", "alpha_weak"),
            exact=0.5,
        ),
        Claim(
            "sign(z1*z2), weak recovery",
            "pi^2/4",
            sources.TROIANI,
            _of("sign(z1*z2)", "alpha_weak"),
            exact=math.pi**2 / 4,
        ),
        Claim(
            "z1**2 + sign(z1*z2*z3), weak recovery",
            "0.575",
            sources.TROIANI,
            _of("z1**2 + sign(z1*z2*z3)", "alpha_weak"),
        ),
        Claim(
            "sign(z1*z2*z3), weak recovery",
            "infinite",
            sources.TROIANI,
            _of("sign(z1*z2*z3)", "alpha_weak"),
            exact=math.inf,
        ),
        Claim(
            "he3(z), information exponent",
            "3",
            sources.BEN_AROUS,
            _of("he3(z)", "information_exponent"),
            exact=3.0,
            second_hand=True,
        ),
        Claim(
            "he3(z), generative exponent",
            "1",
            sources.DAMIAN,
            _of("he3(z)", "generative_exponent"),
            exact=1.0,
            second_hand=True,
        ),
        Claim(
            "he4(z), generative exponent",
            "2",
            sources.DAMIAN,
            _of("he4(z)", "generative_exponent"),
            exact=2.0,
            second_hand=True,
        ),
        Claim(
            "z**2*exp(-z**2), generative exponent",
            "4",
            sources.DAMIAN,
            _of("z**2*exp(-z**2)", "generative_exponent"),
            exact=4.0,
            second_hand=True,
        ),
        Claim("z1 + z1*z2, leap", "1", sources.ABBE, _of("z1 + z1*z2", "leap_exponent"), exact=1.0, second_hand=True),
    ),
    gather=gather,
    draw=draw,
)
