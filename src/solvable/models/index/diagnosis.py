"""How hard a target is, and what is learned when: the answer before any learning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.channels import Channel, LevelSetChannel
from solvable.channels.exponents import MAX_ORDER, generative_exponent, label_spectrum, weak_recovery
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.hermite import hermite_coefficients, information_exponent
from solvable.targets.target import Target

_REPORTED_DEGREE = 8
_SEARCHED_DEGREE = 64


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the staircase: `directions` (r x k orthonormal columns) learned above `alpha`.

    `kind` is "trivial" (any alpha > 0), "easy" (above alpha, in a few iterations) or "hard" (never at n = alpha d).
    """

    directions: np.ndarray
    alpha: float
    kind: str


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What a target asks of a learner.

    `verdict` is trivial, easy or hard for learning from n = alpha d samples by AMP and other statistical-query
    methods; `alpha_weak` the threshold (0 where trivial, infinite where hard). `information_exponent` and
    `leap_exponent` rule gradient methods that use the label linearly; `generative_exponent` those that may transform
    it. `hermite` maps multi-indices to orthonormal coefficients E[g h_k]; `uncertainty` is a numerical error estimate
    of `alpha_weak`.
    """

    target: str
    noise: float
    verdict: str
    information_exponent: float
    leap_exponent: float
    generative_exponent: float
    alpha_weak: float
    staircase: list[Step]
    hermite: dict[tuple[int, ...], float]
    label_spectrum: np.ndarray
    uncertainty: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinite numbers are written "inf", multi-indices as "k1,k2"."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["staircase"] = [
            {"directions": s.directions.tolist(), "alpha": _plain(s.alpha), "kind": s.kind} for s in self.staircase
        ]
        fields["hermite"] = {",".join(map(str, k)): v for k, v in self.hermite.items()}
        fields["label_spectrum"] = self.label_spectrum.tolist()
        return {name: _plain(value) for name, value in fields.items()}

    def __str__(self) -> str:
        noise = f" + N(0, {self.noise:g})" if self.noise else ""
        meaning = {
            "trivial": "learned at any alpha > 0, in one step of AMP",
            "easy": f"learned for n > {self.alpha_weak:.6g} d samples",
            "hard": f"not learned from n = alpha d; n of order d^{self.generative_exponent / 2:g} is needed"
            if math.isfinite(self.generative_exponent)
            else "no trace of it in the labels up to the degree searched: not learned by any known method",
        }[self.verdict]
        terms = [f"{v:+.4f} h{k[0]}" for k, v in self.hermite.items() if abs(v) > 1e-6]
        return "\n".join(
            [
                f"y = {self.target}{noise}: {self.verdict}",
                f"  {meaning}",
                f"  weak-recovery threshold   {self.alpha_weak:.6g}",
                f"  information exponent      {_exponent(self.information_exponent)}   (gradient methods on the label)",
                f"  generative exponent       {_exponent(self.generative_exponent)}   (after any transformation of it)",
                f"  Hermite coefficients      {' '.join(terms[:6]) or 'none'}{' ...' if len(terms) > 6 else ''}",
            ]
        )


def diagnose(target: str | Target | Channel | Callable[..., Any] | MultiIndex, noise: float = 0.0) -> Diagnosis:
    """How hard a target is to learn: exponents, class, and weak-recovery threshold.

    `target` is anything `MultiIndex` takes (text, a function, a named channel) or a `MultiIndex` itself.
    """
    model = target if isinstance(target, MultiIndex) else MultiIndex(target, noise=noise)
    channel = model.channel
    noiseless = LevelSetChannel(channel.landscape)
    coefficients = hermite_coefficients(model.target, _SEARCHED_DEGREE)
    information = information_exponent(coefficients)
    exponent = generative_exponent(noiseless)
    verdict = {1: "trivial", 2: "easy"}.get(int(min(exponent, 3)), "hard")
    alpha_weak = weak_recovery(channel)
    return Diagnosis(
        target=repr(model.named_channel) if model.named_channel else model.target.name,
        noise=model.noise,
        verdict=verdict,
        information_exponent=information,
        leap_exponent=information,
        # Beyond the degree searched in the label law, the information exponent still bounds it.
        generative_exponent=min(exponent, information),
        alpha_weak=alpha_weak,
        staircase=[Step(np.eye(1), alpha_weak, verdict)],
        hermite={(k,): float(c) for k, c in enumerate(coefficients[: _REPORTED_DEGREE + 1])},
        label_spectrum=label_spectrum(noiseless, min(_REPORTED_DEGREE, MAX_ORDER)),
        uncertainty=_threshold_error(channel, alpha_weak),
    )


def _threshold_error(channel: Channel, alpha_weak: float) -> float:
    """What fewer nodes change in alpha_weak."""
    if not 0 < alpha_weak < np.inf:
        return 0.0
    law = channel.label_law(0.7)
    return abs(float(1 / np.sum(law.weight * law.G**2)) - alpha_weak) + 1e-12


def _exponent(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else f"> {MAX_ORDER}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
