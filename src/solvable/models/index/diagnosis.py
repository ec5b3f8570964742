"""How hard a target is, and what is learned when: the answer before any learning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.channels import Channel, LevelSetChannel, ScalarChannel
from solvable.channels.exponents import MAX_ORDER, generative_exponent, label_spectrum, threshold, weak_recovery
from solvable.models.index.diagnosis_text import report
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.hermite import hermite_coefficients, information_exponent
from solvable.targets.leap import best_correlational_samples, one_pass_samples
from solvable.targets.target import Target

_REPORTED_DEGREE = 8
_SEARCHED_DEGREE = 64


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the staircase: `directions` (r x k orthonormal columns) learned above `alpha`, known up to `error`.

    `kind` is "trivial" (as soon as the steps before are), "easy" (above alpha, in a few iterations) or "hard" (never at
    n = alpha d).
    """

    directions: np.ndarray
    alpha: float
    kind: str
    error: float = 0.0


@dataclasses.dataclass(frozen=True)
class CorrelationalStep:
    """One step of the staircase of methods linear in the label: `directions` found by a leap of order `leap`.

    `online_sgd` and `best_csq` say how many samples that takes, by one pass of SGD and by the best such method.
    """

    directions: np.ndarray
    leap: float
    online_sgd: str
    best_csq: str

    @classmethod
    def of(cls, directions: np.ndarray, leap: float) -> CorrelationalStep:
        """The step of a leap of the given order."""
        return cls(directions, leap, one_pass_samples(leap), best_correlational_samples(leap))


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What a target asks of a learner.

    `verdict` is trivial, easy or hard for learning anything from n = alpha d samples by AMP and other statistical-query
    methods; `alpha_weak` the threshold (0 where trivial, infinite where hard). `staircase` says what is learned when,
    `csq_staircase` the same for gradient methods that use the label linearly, whose largest leap is `leap_exponent`
    and whose first is `information_exponent`; `generative_exponent` rules methods that may transform the label.
    `hermite` maps multi-indices to orthonormal coefficients E[g h_k]; `symmetries` names the changes of z that leave g
    as it is; `sample_exponents` how many samples each kind of method takes for all directions; `uncertainty` is a
    numerical error estimate of `alpha_weak`.
    """

    target: str
    noise: float
    verdict: str
    information_exponent: float
    leap_exponent: float
    generative_exponent: float
    alpha_weak: float
    staircase: list[Step]
    csq_staircase: list[CorrelationalStep]
    hermite: dict[tuple[int, ...], float]
    label_spectrum: np.ndarray
    symmetries: list[str]
    sample_exponents: dict[str, str]
    uncertainty: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinite numbers are written "inf", multi-indices as "k1,k2"."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("staircase", "csq_staircase"):
            steps = [{f.name: getattr(s, f.name) for f in dataclasses.fields(s)} for s in fields[name]]
            fields[name] = [{k: v.tolist() if k == "directions" else _plain(v) for k, v in s.items()} for s in steps]
        fields["hermite"] = {",".join(map(str, k)): v for k, v in self.hermite.items()}
        fields["label_spectrum"] = self.label_spectrum.tolist()
        return {name: _plain(value) for name, value in fields.items()}

    def __str__(self) -> str:
        return report(self)


def diagnose(target: str | Target | Channel | Callable[..., Any] | MultiIndex, noise: float = 0.0) -> Diagnosis:
    """How hard a target of up to four projections is to learn: exponents, class, and what is learned when.

    `target` is anything `MultiIndex` takes (text, a function, a named channel) or a `MultiIndex` itself.
    """
    model = target if isinstance(target, MultiIndex) else MultiIndex(target, noise=noise)
    if model.projections > 1:
        from solvable.models.index.multi_diagnosis import diagnose_several

        return diagnose_several(model)
    channel = model.channel
    noiseless = LevelSetChannel(channel.landscape)
    coefficients = hermite_coefficients(model.target, _SEARCHED_DEGREE)
    information = information_exponent(coefficients)
    # Beyond the degree searched in the label law, the information exponent still bounds it.
    generative = generative_exponent(noiseless)
    exponent = min(generative, information)
    verdict = {1: "trivial", 2: "easy"}.get(int(min(generative, 3)), "hard")
    alpha_weak = weak_recovery(channel)
    error = _threshold_error(channel, alpha_weak)
    steps = [Step(np.eye(1), alpha_weak, verdict, error)]
    return Diagnosis(
        target=repr(model.named_channel) if model.named_channel else model.target.name,
        noise=model.noise,
        verdict=verdict,
        information_exponent=information,
        leap_exponent=information,
        generative_exponent=exponent,
        alpha_weak=alpha_weak,
        staircase=steps,
        csq_staircase=[CorrelationalStep.of(np.eye(1), information)],
        hermite={(k,): float(c) for k, c in enumerate(coefficients[: _REPORTED_DEGREE + 1])},
        label_spectrum=label_spectrum(noiseless, min(_REPORTED_DEGREE, MAX_ORDER)),
        symmetries=["z -> -z"] if model.target.is_even() else [],
        sample_exponents=sample_exponents(information, exponent, steps),
        uncertainty=error,
    )


def sample_exponents(leap: float, generative: float, steps: list[Step]) -> dict[str, str]:
    """How many samples all directions take: by one-pass SGD, the best method linear in the label, and AMP."""
    hard = [s for s in steps if s.kind == "hard"]
    amp = "d" if not hard else "unknown"
    if hard and len(hard) == len(steps) and math.isfinite(generative):
        amp = best_correlational_samples(generative)
    return {"online SGD": one_pass_samples(leap), "best CSQ": best_correlational_samples(leap), "AMP": amp}


def _threshold_error(channel: ScalarChannel, alpha_weak: float) -> float:
    """What fewer nodes change in alpha_weak."""
    if not 0 < alpha_weak < np.inf:
        return 0.0
    return abs(threshold(channel.label_law(0.7)) - alpha_weak) + 1e-12


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
