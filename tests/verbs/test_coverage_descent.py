"""Stated uncertainties are honest, of one pass of descent with several neurons, on several directions, on sequences.

As `test_coverage.py` for the index and matrix families, against the flows of `reference/overlap_flows.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reference import overlap_flows as flows
from scipy.special import erf
from true_errors import COVERED, Draw, Point, assert_honest, judged, log_uniform

import solvable as sv

Function = Callable[[np.ndarray], np.ndarray]


def by_gauss(nodes: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return lambda dimensions: flows.gauss(nodes, dimensions)


def by_ball(dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    return flows.ball(0.4, dimensions)


def soft(z: np.ndarray) -> np.ndarray:
    """erf(z/sqrt(2))."""
    return erf(z / np.sqrt(2))


def of_soft(z: np.ndarray) -> np.ndarray:
    return np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)


NEURONS: dict[str, tuple[Function, Function]] = {
    "sin(z)": (np.sin, np.cos),
    "erf": (soft, of_soft),
    "z + z**2/3": (lambda h: h + h**2 / 3, lambda h: 1 + 2 * h / 3),
}
SQUARE = (np.square, lambda h: 2 * h)
LABELS: dict[int, list[tuple[str, Function]]] = {
    1: [
        ("sin(z)", lambda z: np.sin(z[:, 0])),
        ("z + z**2", lambda z: z[:, 0] + z[:, 0] ** 2),
        ("erf(z/sqrt(2))", lambda z: soft(z[:, 0])),
    ],
    2: [
        ("z1*z2 + z1", lambda z: z[:, 0] * z[:, 1] + z[:, 0]),
        ("sin(z1) + z2**2/2", lambda z: np.sin(z[:, 0]) + z[:, 1] ** 2 / 2),
    ],
}
CLOSED: list[tuple[str, str, int, int, Function]] = [
    ("erf", "erf(z/sqrt(2))", 1, 2, lambda z: soft(z[:, 0])),
    ("erf", "erf(z1/sqrt(2)) - 0.5*erf(z2/sqrt(2))", 2, 1, lambda z: soft(z[:, 0]) - soft(z[:, 1]) / 2),
    ("z**2", "z1**2 + z2**2", 2, 2, lambda z: np.sum(z**2, axis=1)),
    ("z**2", "z**2", 1, 2, lambda z: z[:, 0] ** 2),
]
"""Of which all averages are known: neuron, label, directions and neurons."""


def sometimes(rng, low: float, high: float) -> float:
    """A number, or zero."""
    return float(log_uniform(rng, low, high)) if rng.random() < 0.5 else 0.0


def start(rng, p: int, r: int) -> Any:
    return rng.uniform(-0.4, 0.4, (p, r)).tolist()


def committee(rng) -> Point:
    """Averages in closed form; the reference has products of Gauss's rules, exact for squares."""
    name, target, r, p, g = CLOSED[rng.integers(len(CLOSED))]
    sigma, slope = SQUARE if name == "z**2" else NEURONS[name]
    learner = sv.OnlineSGD(
        float(rng.uniform(0.02, 0.25)), name, width=p, start=start(rng, p, r), spherical=bool(rng.random() < 0.6)
    )
    truth = flows.committee(g, sigma, slope, "once", by_gauss(10) if name == "z**2" else by_ball, 1e-11)
    model = sv.MultiIndex(target, noise=sometimes(rng, 0.01, 0.3))
    return model, learner, {"alpha": log_uniform(rng, 0.3, 5, 1)}, truth


def several(kind: str, p: int) -> Draw:
    """p neurons on one direction, or one neuron on two."""

    def draw(rng) -> Point:
        r = 3 - p
        target, g = LABELS[r][rng.integers(len(LABELS[r]))]
        name = str(rng.choice(list(NEURONS)))
        shared: dict[str, Any] = {"width": p, "start": start(rng, p, r), "spherical": bool(rng.random() < 0.6)}
        if kind == "ahead":
            shared["extrapolation"] = float(rng.uniform(-0.3, 0.5))
        kinds = {"once": sv.OnlineSGD, "ahead": sv.Extragradient, "twice": sv.RepeatedSGD}
        learner = kinds[kind](float(rng.uniform(0.02, 0.15)), name, **shared)
        # Averages over sampled fields are known to three digits, others to eight or more.
        rule, rtol = (by_gauss(18), 1e-7) if p == 2 and kind != "once" else (by_ball, 1e-10)
        if name == "z + z**2/3":  # steps make polynomials of high degree, which live far out
            rule = by_gauss(22)
        truth = flows.committee(g, *NEURONS[name], kind, rule, rtol)
        model = sv.MultiIndex(target, noise=sometimes(rng, 0.01, 0.3))
        return model, learner, {"alpha": log_uniform(rng, 0.3, 4, 1)}, truth

    return draw


def of_sums(rng) -> Point:
    """Attention that knows a sum over tokens."""
    name = str(rng.choice(list(NEURONS)))
    model = sv.SequenceSingleIndex(
        name if name != "erf" else "erf(z/sqrt(2))", int(rng.integers(1, 9)), noise=sometimes(rng, 0.01, 0.5)
    )
    learner = sv.SequenceSGD(float(rng.uniform(0.05, 0.4)), start=float(rng.uniform(0.1, 0.6)))
    truth = flows.sequence(lambda model, learner: flows.Sum(model, learner, *NEURONS[name]), 1e-11)
    return model, learner, {"alpha": log_uniform(rng, 0.5, 8, 1)}, truth


TOKENS: list[tuple[str, Function, bool]] = [
    ("sin(z)", lambda z: np.sin(z).sum(1) / np.sqrt(2), False),
    ("z + z**2/2", lambda z: (z + z**2 / 2).sum(1) / np.sqrt(2), False),
    ("z1 + z2**2/2", lambda z: z[:, 0] + z[:, 1] ** 2 / 2, True),
    ("sin(z1) + z2", lambda z: np.sin(z[:, 0]) + z[:, 1], True),
]


def of_neurons(rng) -> Point:
    """A neuron on two tokens, tied or plain."""
    name, kind = str(rng.choice(list(NEURONS))), str(rng.choice(["tied", "plain"]))
    target, f, joint = TOKENS[rng.integers(len(TOKENS))]
    each = joint and kind == "plain"
    first = tuple(map(float, rng.uniform(0.1, 0.5, 2))) if each else float(rng.uniform(0.1, 0.6))
    learner = sv.SequenceSGD(float(rng.uniform(0.05, 0.3)), kind, activation=name, start=first)
    truth = flows.sequence(lambda model, learner: flows.Neuron(model, learner, f, *NEURONS[name]), 1e-11)
    model = sv.SequenceSingleIndex(target, 2, noise=sometimes(rng, 0.01, 0.5))
    return model, learner, {"alpha": log_uniform(rng, 0.5, 8, 1)}, truth


def of_pairs(rng) -> Point:
    """Attention that knows a function of two tokens, which may have places."""
    target, f = [
        ("z1*z2", lambda z: z[:, :1] * z[:, 1:]),
        ("z1**3/6 + z2**2/2", lambda z: z[:, :1] ** 3 / 6 + z[:, 1:] ** 2 / 2),
    ][rng.integers(2)]
    places = bool(rng.random() < 0.5)
    shared = {"positional": float(rng.uniform(0, 0.6)), "place": float(rng.uniform(0.3, 1.2))}
    model = sv.SequenceSingleIndex(
        target, 2, noise=sometimes(rng, 0.01, 0.5), encoding=sometimes(rng, 0.1, 0.6), **(shared if places else {})
    )
    first = tuple(map(float, rng.uniform(0.1, 0.5, 2))) if places else float(rng.uniform(0.1, 0.6))
    learner = sv.SequenceSGD(float(rng.uniform(0.05, 0.3)), positions=places, start=first)
    truth = flows.sequence(lambda model, learner: flows.Attention(model, learner, f, 12), 1e-9)
    return model, learner, {"alpha": log_uniform(rng, 0.5, 4, 1)}, truth


DRAWS: dict[str, tuple[Draw, int]] = {
    "committee": (committee, 60),
    "two directions, one pass": (several("once", 1), 40),
    "two directions, a look ahead": (several("ahead", 1), 40),
    "two directions, twice": (several("twice", 1), 40),
    "two neurons, one pass": (several("once", 2), 12),
    "two neurons, a look ahead": (several("ahead", 2), 12),
    "two neurons, twice": (several("twice", 2), 12),
    "sums over tokens": (of_sums, 100),
    "a neuron on tokens": (of_neurons, 60),
    "pairs of tokens": (of_pairs, 20),
}


def test_a_few_uncertainties_cover_the_true_error():
    found = judged(of_sums, 4, seed=1)
    assert found.covered >= COVERED, found.worst


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_uncertainties_cover_the_true_error_and_are_not_huge(name):
    assert_honest(name, *DRAWS[name])
