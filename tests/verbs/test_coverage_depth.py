"""Stated uncertainties are honest, of trees, of hierarchical targets seen by a kernel, and of two giant steps.

As `test_coverage_families.py`, against `reference/tree_degrees.py` and `reference/giant_steps.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
from reference.giant_steps import alignments
from reference.tree_degrees import Tree
from true_errors import COVERED, Draw, Point, assert_honest, judged, log_uniform

import solvable as sv

INNER = {
    "he2(z) + he3(z)": [0.0, math.sqrt(2), math.sqrt(6)],
    "he2(z)/2 + he4(z)/9": [0.0, math.sqrt(2) / 2, 0.0, math.sqrt(24) / 9],
    "z + he2(z)": [1.0, math.sqrt(2)],
}
"""Coefficients of the orthonormal Hermite polynomials."""
OUTER: dict[str, Callable[[float], float]] = {
    "tanh(3*z)": lambda h: math.tanh(3 * h),
    "sin(z) + z/2": lambda h: math.sin(h) + h / 2,
    "abs(z) + z/3": lambda h: abs(h) + h / 3,
    "z**3 - z": lambda h: h**3 - h,
}


@functools.cache
def reference_tree(inner: str, outer: str) -> Tree:
    return Tree(INNER[inner], OUTER[outer])


def tree(layers: int | None) -> Draw:
    """A kernel, or a network of so many hidden layers."""

    def draw(rng) -> Point:
        inner, outer = str(rng.choice(list(INNER))), str(rng.choice(list(OUTER)))
        branches, exponent = int(rng.integers(1, 4)), float(rng.uniform(0.3, 0.8))
        model = sv.TreeTarget(branches, exponent, inner, outer)
        degree = int(rng.integers(1, 7))
        learner = sv.Kernel(degree) if layers is None else sv.Layerwise(layers, degree)

        def truth(model, learner, kappa, found) -> dict[str, float]:
            known = reference_tree(inner, outer)
            if layers is None:
                learned = known.learned(min(math.floor(kappa), degree))
            else:
                Q = min(math.floor(kappa / exponent), degree) if kappa > 1 + exponent else 0
                learned = known.learned(Q) if layers == 1 else known.read(Q, branches)
            share = min(max(learned / known.variance, 0.0), 1.0)
            found = {"generalization_error": known.variance - learned, "squared_overlap": share}
            return found | ({"second_layer": known.known(Q)} if layers == 2 else {})

        return model, learner, {"kappa": rng.uniform(0.5, 6.5, 2)}, truth

    return draw


def unseen(rng) -> Point:
    """A kernel on squares of features: the error is the variance of the label, one."""
    model = sv.HierarchicalTarget(float(rng.uniform(0.7, 2)), features=int(rng.integers(1, 50)))

    def truth(model, learner, alpha, found) -> dict[str, float]:
        return {"generalization_error": 2 * float(np.sum(model.amplitudes(model.features) ** 2)), "cosine": 0.0}

    return model, sv.Kernel(int(rng.integers(2, 5))), {"alpha": log_uniform(rng, 0.1, 1000, 2)}, truth


SLOPES: dict[str, list[Callable[[np.ndarray], np.ndarray]]] = {
    "2*z + z**2/2 + z**3/6": [lambda u: 2 + u + u**2 / 2, lambda u: 1 + u, np.ones_like, np.zeros_like],
    "sin(z + 0.5)": [
        lambda u: np.cos(u + 0.5),
        lambda u: -np.sin(u + 0.5),
        lambda u: -np.cos(u + 0.5),
        lambda u: np.sin(u + 0.5),
    ],
    "2*z + z**2/2": [lambda u: 2 + u, np.ones_like, np.zeros_like, np.zeros_like],
}
"""Derivatives of activations."""
LABELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh(z) + 0.3": lambda z: np.tanh(z) + 0.3,
    "sin(z)": np.sin,
    "cos(2*z) + sin(z + 0.5)": lambda z: np.cos(2 * z) + np.sin(z + 0.5),
    "z + z**2/2": lambda z: z + z**2 / 2,
}


def two_steps(rng) -> Point:
    activation, target = str(rng.choice(list(SLOPES))), str(rng.choice(list(LABELS)))
    noise = float(log_uniform(rng, 0.01, 1)) if rng.random() < 0.5 else 0.0
    learner = sv.TwoSteps(float(rng.uniform(0.2, 0.38)), float(rng.uniform(0.1, 0.45)), bool(rng.random() < 0.5))

    def truth(model, learner, alpha, found) -> dict[str, float]:
        slopes = [slope for slope in SLOPES[activation][: learner.order() + 1] if np.any(slope(np.ones(1)))]
        each, share = alignments(LABELS[target], slopes, alpha, learner.reuse, noise)
        return {"squared_overlap": share} | {f"alignment_{k}": value for k, value in enumerate(each)}

    model = sv.TwoLayer(target, activation, 1.0, noise)
    return model, learner, {"alpha": log_uniform(rng, 0.2, 10, 2)}, truth


DRAWS: dict[str, tuple[Draw, int]] = {
    "tree, kernel": (tree(None), 100),
    "tree, one layer": (tree(1), 100),
    "tree, two layers": (tree(2), 100),
    "hierarchical, kernel": (unseen, 20),
    "two steps": (two_steps, 60),
}
QUICK = ("tree, two layers", "hierarchical, kernel", "two steps")


@pytest.mark.parametrize("name", QUICK)
def test_a_few_uncertainties_cover_the_true_error(name):
    found = judged(DRAWS[name][0], 6, seed=1)
    assert found.covered >= COVERED, found.worst


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_uncertainties_cover_the_true_error_and_are_not_huge(name):
    assert_honest(name, *DRAWS[name])
