"""The report of a study in plain language, as blocks that become Markdown and HTML."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

import numpy as np

from solvable.core.digits import rounded
from solvable.core.version import installed_version
from solvable.lab.study.comparison import comparison
from solvable.lab.study.document import Block, Code, Heading, Line, Listing, Paragraph, Picture, Table
from solvable.lab.study.figure import reached_by_amp
from solvable.models.index.diagnosis.text import directions_text
from solvable.priors import Gaussian

if TYPE_CHECKING:
    from solvable.lab.curve import Curve
    from solvable.lab.study.findings import Study
    from solvable.models.index.diagnosis import Diagnosis

_THRESHOLDS = {
    "weak_recovery": "AMP begins to learn",
    "algorithmic": "AMP becomes as good as Bayes-optimal learning",
    "information_theoretic": "Bayes-optimal learning leaves AMP behind, up to the algorithmic threshold",
    "specialization": "directions that the target does not distinguish come apart",
}
_LEARNERS = {"online SGD": "one-pass SGD", "best CSQ": "best method linear in the label"}
_NO_HARD_PHASE = "AMP begins to learn, and is as good as Bayes-optimal learning everywhere"


def report(study: Study, png: bytes) -> list[Block]:
    """The whole report; `png` is the figure."""
    return [
        Heading(["What it takes to learn ", Code(study.diagnosis.target)], level=1),
        *_answer(study),
        Picture("study.png", _caption(study), png),
        *(Paragraph([remark]) for remark in study.remarks),
        *_steps(study.diagnosis),
        *_thresholds(study),
        *comparison(study),
        *_reproduce(study),
    ]


def _answer(study: Study) -> list[Block]:
    found = study.diagnosis
    noise = f" + sqrt({found.noise:g}) xi" if found.noise else ""
    many = study.model.target.projections
    inputs = "one hidden direction" if many == 1 else f"{many} hidden directions"
    setting: Line = [
        "Labels are ",
        Code(f"y = {found.target}{noise}"),
        f", a function of {inputs} of Gaussian inputs of dimension d, learned from n = alpha d samples.",
    ]
    start = rounded(found.alpha_weak, found.uncertainty)
    meaning = {
        "trivial": "The target is trivial: AMP learns from any number of samples proportional to d, in its first step.",
        "easy": f"The target is easy: AMP starts to learn at n = {start} d samples.",
        "hard": "The target is hard: no number of samples proportional to d suffices for AMP or any other known "
        f"efficient method; {exponent_in_words(found.generative_exponent)}. AMP's curve is flat.",
    }[found.verdict]
    return [Paragraph(setting), Paragraph([meaning, _unlearned(study), " ", _against_kernels(study)])]


def _unlearned(study: Study) -> str:
    """The directions that stay hidden although others are learned."""
    hidden = [step.directions for step in study.diagnosis.staircase if step.kind == "hard"]
    if not hidden or study.diagnosis.verdict == "hard":
        return ""
    return f" Of its directions, {directions_text(np.concatenate(hidden, axis=1))} stay hidden from it."


def _against_kernels(study: Study) -> str:
    """How far AMP comes with n = alpha d, and what a method that learns degree by degree needs to come as far."""
    errors = study.kernel_errors
    alpha, reached = reached_by_amp(study.exact)
    left = reached / errors[0]
    kernel = "a kernel or random-feature method"
    if left > 0.995:
        learns = errors < 0.995 * errors[0]
        upto = f"up to {_samples(learns)} samples" if learns.any() else f"at any {_looked_at(errors)}"
        return f"{kernel[0].upper()}{kernel[1:]} learns nothing {upto}."
    amp = "learns it completely" if left < 1e-4 else f"explains all but {100 * left:.2g}% of the variance of the label"
    enough = errors <= max(reached, 1e-9 * errors[0])
    needed = f"needs more than {_samples(enough)} samples to do as well"
    if not enough.any():
        needed = f"does not do as well at any {_looked_at(errors)}"
    return f"At alpha = {alpha:.3g} AMP {amp}; {kernel} {needed}."


def _samples(enough: np.ndarray) -> str:
    """The power of d that a kernel method must exceed, given whether each degree is enough."""
    degree = int(np.argmax(enough))
    return "d" if degree == 1 else f"d^{degree}"


def _looked_at(errors: np.ndarray) -> str:
    return f"power of d that was looked at, up to d^{len(errors)}"


def _caption(study: Study) -> str:
    each = ", for each direction k," if study.exact.has_entries("overlap") else ""
    runs = f"; markers: AMP at d = {study.d}, {_markers(study.simulated)}"
    return (
        f"Left: overlap with the truth{each} against alpha = n/d, theory as lines{runs}; dotted: thresholds. "
        "Right: generalization error of a kernel method against kappa = log n / log d, and what AMP reaches at "
        "kappa = 1."
    )


def _markers(simulated: Curve) -> str:
    """What the markers are."""
    settled = simulated.settled.values
    mean = f"mean and standard error of the {'runs' if settled.all() else 'runs that settled'}"
    return mean if settled.all() else f"{mean}; crosses: the others, one by one"


def _steps(found: Diagnosis) -> list[Block]:
    """Which directions are learned, in which order, from how many samples, and by whom."""
    rows = [
        [
            str(i),
            directions_text(step.directions),
            ratio_in_words(step.alpha, step.error),
            error_in_words(step.error),
            step.kind,
        ]
        for i, step in enumerate(found.staircase, start=1)
    ]
    return [
        Heading(["What is learned when"]),
        Table(["step of AMP", "directions", "learned from alpha", "numerical error", "kind"], rows),
        Paragraph([_symmetries(found)]),
        Heading(["Who needs how many samples"]),
        Table(["learner", "samples", "because"], _learners(found)),
    ]


def _symmetries(found: Diagnosis) -> str:
    if not found.symmetries:
        return "The target has no symmetry: every direction is determined with its sign."
    return f"The target does not change under {'; '.join(found.symmetries)}. Overlaps are taken up to that."


def _learners(found: Diagnosis) -> list[list[str]]:
    order = ", then ".join(f"{directions_text(s.directions)} (leap {_number(s.leap)})" for s in found.csq_staircase)
    reasons = {"online SGD": f"it learns {order}", "best CSQ": "the same leaps"}
    amp = f"generative exponent {_number(found.generative_exponent)}"
    rows = [
        [_LEARNERS.get(name, name), samples, reasons.get(name, amp)] for name, samples in found.sample_exponents.items()
    ]
    leaves = "one neuron leaves its start"
    return rows + [[f"{leaves}, {name}", samples, "the flow of its overlap"] for name, samples in found.descent.items()]


def _number(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "beyond the degrees searched"


def _thresholds(study: Study) -> list[Block]:
    errors = {step.alpha: step.error for step in study.diagnosis.staircase}
    shared: dict[float, list[str]] = {}
    for name, value in study.thresholds.items():
        shared.setdefault(value, []).append(name)
    rows = [
        [
            " = ".join(name.replace("_", " ") for name in names),
            ratio_in_words(value, errors.get(value, 0.0)),
            error_in_words(errors.get(value, 0.0)),
            _meaning(study, value, names),
        ]
        for value, names in sorted(shared.items())
    ]
    return [Heading(["Thresholds"]), Table(["threshold", "alpha", "numerical error", "meaning"], rows)]


def _meaning(study: Study, value: float, names: list[str]) -> str:
    if math.isinf(value):
        return "never, at n = alpha d"
    if {"algorithmic", "information_theoretic"} <= set(names):
        return _NO_HARD_PHASE
    kind, _, number = names[0].partition("_")
    if kind == "step":
        return f"AMP begins to learn {directions_text(study.diagnosis.staircase[int(number) - 1].directions)}"
    return _THRESHOLDS.get(names[0], "")


def _reproduce(study: Study) -> list[Block]:
    files = [Code("theory.nc"), " and ", Code("simulation.nc")]
    written = f"Written by solvable {installed_version()}. The data are in "
    beside = Paragraph([written, *files, ", read with ", Code("solvable.Curve.load"), "."])
    return [Heading(["How to reproduce this"]), Listing(_command(study)), beside]


def _command(study: Study) -> str:
    """The command line, or a line of Python where the model cannot be typed."""
    alphas = [float(alpha) for alpha in study.simulated.dataset["alpha"].values]
    text, model = study.model.target.text, study.model
    if text is None or model.named_channel is not None or type(model.prior) is not Gaussian:
        return f"sv.study({model}, d={study.d}, seeds={study.seeds}, alpha={alphas})"
    noise = f"--noise {model.noise} " if model.noise else ""
    listed = f"--alpha {','.join(map(str, alphas))} "
    return f"solvable study {noise}--d {study.d} --seeds {study.seeds} {listed}-- {shlex.quote(text)}"


def ratio_in_words(alpha: float, error: float = 0.0) -> str:
    """A threshold in alpha = n/d, to the digits that its error leaves."""
    if alpha == 0:
        return "any alpha > 0"
    return rounded(alpha, error) if math.isfinite(alpha) else "no alpha"


def error_in_words(error: float) -> str:
    """A numerical error estimate, or nothing where the value is exact."""
    return f"{error:.0e}" if error > 0 else ""


def exponent_in_words(generative_exponent: float) -> str:
    """The samples that a hard target needs."""
    if math.isfinite(generative_exponent):
        return f"n of order d^{generative_exponent / 2:g} is needed"
    return "no power of d that was looked at is enough"
