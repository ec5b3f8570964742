"""The diagnosis of a target of several projections: exponents, and the staircases of what is learned when."""

from __future__ import annotations

import dataclasses

from solvable.channels import Channel, GenericChannel, channel_of
from solvable.channels.exponents import generative_exponent, label_spectrum
from solvable.channels.factory import MOST_PROJECTIONS, refuse_tiny_noise
from solvable.engine.matrix_evolution import MatrixStateEvolution
from solvable.engine.staircase import staircase
from solvable.models.index.diagnosis import (
    CorrelationalStep,
    Diagnosis,
    Step,
    diagnose,
    sample_exponents,
)
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.adapted import relevant_directions
from solvable.targets.admissible import check_admissible
from solvable.targets.hermite import hermite_tensor
from solvable.targets.leap import leap
from solvable.targets.rotate import rotate
from solvable.targets.symmetry import symmetries
from solvable.targets.target import Target

_REPORTED_DEGREE = {2: 6, 3: 4, 4: 4}


def diagnose_several(model: MultiIndex) -> Diagnosis:
    """The diagnosis of a model with two to four projections."""
    target, noise = model.target, float(model.noise)
    check_admissible(target)
    relevant = relevant_directions(target)
    inner = target if relevant.shape[1] == target.projections else rotate(target, relevant)
    found = diagnose(MultiIndex(inner, noise=noise)) if relevant.shape[1] == 1 else _diagnose(inner, noise)
    return dataclasses.replace(
        found,
        target=target.name,
        staircase=[dataclasses.replace(s, directions=relevant @ s.directions) for s in found.staircase],
        csq_staircase=[dataclasses.replace(s, directions=relevant @ s.directions) for s in found.csq_staircase],
        hermite=_coefficients(target),
        symmetries=list(symmetries(target).names),
    )


def _diagnose(target: Target, noise: float) -> Diagnosis:
    """The diagnosis of a target that depends on all of its projections."""
    steps = [
        Step(s.directions, s.alpha, s.kind, s.error) for s in staircase(MatrixStateEvolution(_channel(target, noise)))
    ]
    correlational = leap(target)
    noiseless = GenericChannel(target)
    exponent = min(generative_exponent(noiseless), correlational.information_exponent)
    first = steps[0]
    return Diagnosis(
        target=target.name,
        noise=noise,
        verdict=first.kind,
        information_exponent=correlational.information_exponent,
        leap_exponent=correlational.exponent,
        generative_exponent={"trivial": 1.0, "easy": 2.0}.get(first.kind, max(exponent, 3.0)),
        alpha_weak=first.alpha,
        staircase=steps,
        csq_staircase=[CorrelationalStep.of(directions, cost) for directions, cost in correlational.steps],
        hermite={},
        label_spectrum=label_spectrum(noiseless),
        symmetries=[],
        sample_exponents=sample_exponents(correlational.exponent, exponent, steps),
        uncertainty=first.error,
    )


def _channel(target: Target, noise: float) -> Channel:
    if target.projections <= MOST_PROJECTIONS:
        return channel_of(target, noise)
    refuse_tiny_noise(target, noise)
    return GenericChannel(target, noise)


def _coefficients(target: Target) -> dict[tuple[int, ...], float]:
    tensor = hermite_tensor(target, _REPORTED_DEGREE[target.projections])
    zero = tensor.floor
    return {k: float(c) if abs(c) > zero else 0.0 for k, c in sorted(tensor.coefficients.items(), key=_order)}


def _order(item: tuple[tuple[int, ...], float]) -> tuple[int, tuple[int, ...]]:
    degree = item[0]
    return sum(degree), tuple(-k for k in degree)
