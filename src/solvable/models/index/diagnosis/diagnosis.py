"""How hard a target is, and what is learned when: the answer before any learning.

Gradient methods on the label see the information exponent [arous2021online], in several directions the leaps of a
staircase [abbe2023sgd]; methods that may transform the label see the generative exponent [damian2024computational].
Message passing learns one step of the staircase after the other, each above a threshold of its own
[troiani2024fundamental]; with one projection there is one step, above alpha_weak = 1/E[G^2]
[mondelli2017fundamental, barbier2019optimal].
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.channels import GenericChannel, LevelSetChannel, ScalarChannel, channel_of
from solvable.channels.base import TargetChannel
from solvable.channels.exponents import generative_exponent, label_spectrum, threshold, weak_recovery
from solvable.channels.factory import MOST_PROJECTIONS, refuse_tiny_noise
from solvable.core.deadline import time_limit
from solvable.core.programs import drop_programs
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.solvers.branches import Branches
from solvable.engine.solvers.staircase import staircase
from solvable.models.index.diagnosis.text import report
from solvable.models.index.dynamics.escape import quotes
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.errors import COARSER
from solvable.targets.adapted import relevant_directions
from solvable.targets.admissible import check_admissible
from solvable.targets.hermite import hermite_coefficients, hermite_tensor, information_exponent
from solvable.targets.leap import best_correlational_samples, leap, one_pass_samples
from solvable.targets.rotate import rotate
from solvable.targets.symmetry import symmetries
from solvable.targets.target import Target

_REPORTED_DEGREE = {1: 8, 2: 6, 3: 4, 4: 4}
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
    numerical error estimate of `alpha_weak`. `descent` says, with constants, after how many samples a single neuron
    leaves its start: by one pass of SGD, and with every sample seen twice where that needs fewer.
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
    descent: dict[str, str] = dataclasses.field(default_factory=dict)

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


def diagnose(
    target: str | Target | TargetChannel | Callable[..., Any] | MultiIndex,
    noise: float = 0.0,
    seconds: float | None = None,
) -> Diagnosis:
    """How hard a target of up to four projections is to learn: exponents, class, and what is learned when.

    `target` is anything `MultiIndex` takes (text, a function, a named channel) or a `MultiIndex` itself. A diagnosis
    that is not done after `seconds` is given up with a `TimeLimitError`, as soon as the compiled part that is running
    ends.
    """
    with time_limit(seconds):
        model = target if isinstance(target, MultiIndex) else MultiIndex(target, noise=noise)
        found = _diagnosed(model)
        told = {name: str(quote) for name, quote in quotes(model, found.information_exponent).items()}
        return dataclasses.replace(found, descent=told)


def _diagnosed(model: MultiIndex) -> Diagnosis:
    drop_programs()
    if model.projections == 1:
        return _in_one_direction(model)
    check_admissible(model.target)
    relevant = relevant_directions(model.target)
    inner = model.target if relevant.shape[1] == model.projections else rotate(model.target, relevant)
    reduced = MultiIndex(inner, noise=float((model.named_channel or model).noise))
    found = _in_one_direction(reduced) if relevant.shape[1] == 1 else _in_several_directions(reduced)
    return dataclasses.replace(
        found,
        target=model.target.name,
        staircase=[dataclasses.replace(s, directions=relevant @ s.directions) for s in found.staircase],
        csq_staircase=[dataclasses.replace(s, directions=relevant @ s.directions) for s in found.csq_staircase],
        hermite=hermite_of(model.target),
        symmetries=list(symmetries(model.target).names),
    )


def _in_one_direction(model: MultiIndex) -> Diagnosis:
    """One projection: a staircase of one step, from the law of the label and the Hermite expansion alone."""
    channel = model.channel
    assert isinstance(channel, ScalarChannel)
    coefficients = hermite_coefficients(model.target, _SEARCHED_DEGREE)
    information = information_exponent(coefficients)
    noiseless = LevelSetChannel(channel.landscape)
    generative = generative_exponent(noiseless)
    alpha = weak_recovery(channel)
    error = abs(threshold(channel.label_law(COARSER)) - alpha) + 1e-12 if 0 < alpha < np.inf else 0.0
    kind = {1: "trivial", 2: "easy"}.get(int(min(generative, 3)), "hard")
    return _diagnosis(
        model,
        [Step(np.eye(1), alpha, kind, error)],
        [(np.eye(1), information)],
        # Beyond the degree searched in the label law, the information exponent still bounds it.
        generative_exponent=min(generative, information),
        exponent=min(generative, information),
        label_spectrum=label_spectrum(noiseless, _REPORTED_DEGREE[1]),
        hermite={(k,): float(c) for k, c in enumerate(coefficients[: _REPORTED_DEGREE[1] + 1])},
        symmetries=["z -> -z"] if model.target.is_even() else [],
    )


def _in_several_directions(model: MultiIndex) -> Diagnosis:
    """A target that depends on all of its projections: the staircase of state evolution."""
    target, noise = model.target, float(model.noise)
    if target.projections <= MOST_PROJECTIONS:
        channel = channel_of(target, noise)
    else:
        refuse_tiny_noise(target, noise)
        channel = GenericChannel(target, noise)
    steps = [Step(s.directions, s.alpha, s.kind, s.error) for s in staircase(Branches(PosteriorOutput(channel)))]
    correlational = leap(target).steps
    noiseless = GenericChannel(target)
    exponent = min(generative_exponent(noiseless), correlational[0][1] if correlational else math.inf)
    return _diagnosis(
        model,
        steps,
        correlational,
        generative_exponent={"trivial": 1.0, "easy": 2.0}.get(steps[0].kind, max(exponent, 3.0)),
        exponent=exponent,
        label_spectrum=label_spectrum(noiseless),
    )


def _diagnosis(
    model: MultiIndex,
    steps: list[Step],
    correlational: list[tuple[np.ndarray, float]],
    exponent: float,
    hermite: dict[tuple[int, ...], float] | None = None,
    symmetries: list[str] | None = None,
    **more: Any,
) -> Diagnosis:
    """A diagnosis from its two staircases: that of AMP, and the (directions, leap) of correlational learners."""
    largest = max((cost for _, cost in correlational), default=math.inf)
    return Diagnosis(
        target=repr(model.named_channel) if model.named_channel else model.target.name,
        noise=model.noise,
        verdict=steps[0].kind,
        information_exponent=correlational[0][1] if correlational else math.inf,
        leap_exponent=largest,
        alpha_weak=steps[0].alpha,
        staircase=steps,
        csq_staircase=[CorrelationalStep.of(directions, cost) for directions, cost in correlational],
        hermite=hermite or {},
        symmetries=symmetries or [],
        sample_exponents=_sample_exponents(largest, exponent, steps),
        uncertainty=steps[0].error,
        **more,
    )


def _sample_exponents(leap: float, generative: float, steps: list[Step]) -> dict[str, str]:
    """How many samples all directions take: by one-pass SGD, the best method linear in the label, and AMP."""
    hard = [s for s in steps if s.kind == "hard"]
    amp = "d" if not hard else "unknown"
    if hard and len(hard) == len(steps) and math.isfinite(generative):
        amp = best_correlational_samples(generative)
    return {"online SGD": one_pass_samples(leap), "best CSQ": best_correlational_samples(leap), "AMP": amp}


def hermite_of(target: Target) -> dict[tuple[int, ...], float]:
    """The Hermite coefficients of a target of several projections, in order of their degree."""
    tensor = hermite_tensor(target, _REPORTED_DEGREE[target.projections])
    ordered = sorted(tensor.coefficients.items(), key=lambda item: (sum(item[0]), tuple(-k for k in item[0])))
    return {k: float(c) if abs(c) > tensor.floor else 0.0 for k, c in ordered}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
