"""A diagnosis as a readable report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from solvable.channels.exponents import MAX_ORDER
from solvable.core.digits import rounded, with_error

if TYPE_CHECKING:
    from solvable.models.index.diagnosis import Diagnosis, Step

_TERMS = 6


def report(found: Diagnosis) -> str:
    """One screen: verdict, thresholds, exponents, staircases, symmetries and leading coefficients."""
    noise = f" + N(0, {found.noise:g})" if found.noise else ""
    lines = [
        f"y = {found.target}{noise}: {found.verdict}",
        f"  {_meaning(found)}",
        f"  weak-recovery threshold   {with_error(found.alpha_weak, found.uncertainty)}",
        f"  information exponent      {_exponent(found.information_exponent)}   (gradient methods on the label)",
        f"  generative exponent       {_exponent(found.generative_exponent)}   (after any transformation of it)",
    ]
    several = len(found.staircase[0].directions) > 1
    if several:
        lines.append(f"  leap exponent             {_exponent(found.leap_exponent)}   (largest step of these methods)")
    counts = ", ".join(f"{name}: {count}" for name, count in found.sample_exponents.items())
    lines.append(f"  samples for all           {counts}")
    if found.descent:
        told = ", ".join(f"{name}: {count}" for name, count in found.descent.items())
        lines.append(f"  a neuron escapes by       {told}")
    if several:
        lines.append("  learned by AMP, in order")
        lines += [f"    {step_line(step)}" for step in found.staircase]
        lines.append("  learned by methods linear in the label, in order")
        for s in found.csq_staircase:
            samples = f"online SGD {s.online_sgd}, best {s.best_csq}"
            lines.append(f"    {directions_text(s.directions):32s} leap {_exponent(s.leap)}: {samples}")
    if found.symmetries:
        lines.append(f"  unchanged under           {'; '.join(found.symmetries)}")
    terms = [f"{v:+.4f} h{','.join(map(str, k))}" for k, v in found.hermite.items() if abs(v) > 1e-6]
    lines.append(
        f"  Hermite coefficients      {' '.join(terms[:_TERMS]) or 'none'}{' ...' if len(terms) > _TERMS else ''}"
    )
    return "\n".join(lines)


def step_line(step: Step) -> str:
    """A step of the staircase in words."""
    when = {
        "trivial": "at any alpha > 0" if step.alpha == 0 else f"at once, above alpha = {step.alpha:.6g}",
        "easy": f"above alpha = {with_error(step.alpha, step.error)}",
        "hard": "not from n = alpha d samples",
    }[step.kind]
    return f"{directions_text(step.directions):32s} {step.kind}, {when}"


def directions_text(directions: np.ndarray) -> str:
    """The directions (r x k) as combinations of z1..zr."""
    names = ["z"] if len(directions) == 1 else [f"z{i + 1}" for i in range(len(directions))]
    return ", ".join(_combination(column, names) for column in directions.T)


def _combination(column: np.ndarray, names: list[str]) -> str:
    text = ""
    for value, name in zip(column, names, strict=True):
        if abs(value) < 1e-6:
            continue
        size = "" if abs(abs(value) - 1) < 1e-6 else f"{abs(value):.3g} "
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        text += f"{sign}{size}{name}"
    return text


def _meaning(found: Diagnosis) -> str:
    if found.verdict == "trivial":
        return "learned at any alpha > 0, in one step of AMP"
    if found.verdict == "easy":
        return f"learned for n > {rounded(found.alpha_weak, found.uncertainty)} d samples"
    if math.isfinite(found.generative_exponent):
        return f"not learned from n = alpha d; n of order d^{found.generative_exponent / 2:g} is needed"
    return "no trace of it in the labels up to the degree searched: not learned by any known method"


def _exponent(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else f"> {MAX_ORDER}"
