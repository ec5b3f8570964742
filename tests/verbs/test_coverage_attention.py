"""Stated uncertainties are honest, of labels that are read by draws: attention of several layers or scores, sequences.

As `test_coverage_families.py`, against several times the draws made of other seeds (`reference/sampled_labels.py`),
finer rules (`reference/finer_places.py`), or closed forms. A point takes from seconds to a minute, so that there are
few; of the information of a label, whose error is what is uncertain in all of them, there are more. Measured at seed 0,
as numbers, covered share and median ratio (a dash: ten or fewer are above rounding), of some rows at fewer points than
they have here:

| row | measured |
|---|---|
| hardmax of several tokens | 40, 95 %, 0.33 |
| functions of scores | 40, 100 %, 0.42 |
| labels of one layer | 80, 100 %, 0.22 |
| one layer, several directions | 7, 100 %, - |
| one layer, untied | 12, 100 %, 0.25 |
| sequences | 4, 100 %, - |
| several layers of extensive rank | 6, 100 %, - |
| information: one layer of two directions, untied, sequences | 16 each, 94 %, 94 %, 100 %, 0.46, 0.23, 0.24 |

The last row without the error of the better rule, a third to a half of that stated, which the tests add.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reference import finer_places
from reference import sampled_labels as drawn
from true_errors import COVERED, HUGE, Draw, Point, assert_honest, judged, log_uniform

import solvable as sv


def either(rng) -> Any:
    return (sv.BayesOptimal(), sv.AMP())[rng.integers(2)]


def largest(h: np.ndarray) -> np.ndarray:
    return h.argmax(-1)


def above(h: np.ndarray) -> np.ndarray:
    return np.sign(h[:, 0, 1])


def shown(h: np.ndarray) -> np.ndarray:
    return h


def hardmax(rng) -> Point:
    """Three and four tokens by their table; untied ones of up to nine by quadrature."""
    tied, rho = bool(rng.random() < 0.4), float(log_uniform(rng, 0.1, 2))
    tokens = int(rng.integers(3, 5) if tied else rng.integers(2, 10))
    model = sv.AttentionIndexed(rho, tokens, "hardmax", tied=tied)
    return model, either(rng), {"alpha": log_uniform(rng, 0.02, 1, 4)}, drawn.scaled(drawn.hardmax)


def function_of_scores(rng) -> Point:
    """A sign of one score, all scores with noise, and hardmax, whose information is known."""
    rho, kind = float(log_uniform(rng, 0.2, 2)), rng.integers(3)
    alpha = {"alpha": log_uniform(rng, 0.05, 1, 4)}
    if kind == 0:
        model = sv.AttentionIndexed(rho, 2, above, tied=False)
        return model, either(rng), alpha, drawn.scaled(drawn.sign_of_score)
    if kind == 1:
        model = sv.AttentionIndexed(rho, 2, shown, tied=False, noise=float(log_uniform(rng, 0.1, 2)))
        return model, either(rng), alpha, drawn.scaled(drawn.noisy_scores)
    model = sv.AttentionIndexed(rho, int(rng.integers(2, 5)), largest, tied=False)
    return model, either(rng), alpha, drawn.scaled(drawn.hardmax)


def turned(rng) -> Point:
    """One layer of several directions."""
    rank = int(rng.integers(2, 4))
    tokens = rank + int(rng.integers(1, 3))
    weak, strong = rank / (tokens * (tokens + 1)), rank / (tokens * rank - rank * (rank - 1) / 2)
    model = sv.DeepAttention(1, tokens, rank=rank)
    return model, either(rng), {"alpha": rng.uniform(1.3 * weak, 0.9 * strong, 1)}, drawn.overlaps(4)


def untied(rng) -> Point:
    tokens = int(rng.integers(2, 5))
    model = sv.DeepAttention(1, tokens, tied=False)
    return model, either(rng), {"alpha": rng.uniform(0.45, 0.9, 1) / (tokens - 1)}, drawn.overlaps(4)


def layers(rng) -> Point:
    """Two and three layers of one direction, two of two, tied and not."""
    count, kind = int(rng.integers(2, 4)), rng.integers(3)
    if kind == 0:
        model = sv.DeepAttention(count, 2, float(rng.uniform(0.5, 3)))
        return model, either(rng), {"alpha": rng.uniform(0.6, 0.9, 1) * count / 2}, drawn.overlaps(2)
    if kind == 1:
        model = sv.DeepAttention(2, 3, float(rng.uniform(1, 3)), rank=2)
    else:
        model = sv.DeepAttention(2, 3, float(rng.uniform(1, 3)), tied=False)
    strong = model.directions / model.numbers
    return model, sv.AMP(), {"alpha": rng.uniform(0.6, 0.9, 1) * strong}, drawn.overlaps(2)


def sequence(rng) -> Point:
    targets = ("z1[1]*z1[2]", "z1[1] + z1[2]**2", "abs(z1[1] - z1[2])", "sign(z1[1] + z1[2])")
    target = targets[rng.integers(len(targets))]
    noise = 0.0 if target.startswith("sign") else float(log_uniform(rng, 0.03, 0.5))
    return sv.SequenceIndex(target, 2, noise=noise), either(rng), {"alpha": rng.uniform(0.5, 3, 1)}, drawn.overlaps(4)


def two_projections(rng) -> Point:
    target = ("z1[1]*z1[2] + z2[1]", "z1[1]*z2[2]")[rng.integers(2)]
    model = sv.SequenceIndex(target, 2, noise=float(log_uniform(rng, 0.05, 0.5)))
    return model, sv.AMP(), {"alpha": rng.uniform(0.8, 3, 1)}, drawn.overlaps(2)


def deep_indexed(rng) -> Point:
    """Two layers of extensive rank, and up to three Gaussian ones."""
    gaussian = bool(rng.random() < 0.3)
    count = int(rng.integers(2, 4)) if gaussian else 2
    rho = math.inf if gaussian else float(log_uniform(rng, 0.2, 2))
    model = sv.DeepAttentionIndexed(rho, count, 2, float(rng.uniform(1, 3)))
    return model, either(rng), {"alpha": rng.uniform(0.05, 0.2, 1)}, drawn.overlaps(2)


def places(rng) -> Point:
    """Both minima of the risk of attention with places, and the lower one."""
    start = (None, "semantic", "positional")[rng.integers(3)]
    numbers = rng.uniform(0.1, 0.7), rng.uniform(0.4, 1.2), rng.uniform(0.2, 1)
    learner = sv.ERM(penalty=sv.Ridge(float(log_uniform(rng, 0.01, 0.1))), start=start)
    model = sv.PositionalSemantic(*map(float, numbers))
    return model, learner, {"alpha": rng.uniform(0.5, 8, 4)}, finer_places.metrics


def one_label(rng) -> Point:
    """The errors of labels, where overlaps are exact but for the uncertainty of one layer's table."""
    tokens = int(rng.integers(2, 6))
    alpha = {"alpha": log_uniform(rng, 1.1 / (tokens * (tokens + 1)), 0.95 / tokens, 4)}
    return sv.DeepAttention(1, tokens), either(rng), alpha, drawn.label_error


DRAWS: dict[str, tuple[Draw, int]] = {
    "hardmax of several tokens": (hardmax, 40),
    "functions of scores": (function_of_scores, 40),
    "one layer, several directions": (turned, 8),
    "one layer, untied": (untied, 8),
    "several layers": (layers, 4),
    "sequences": (sequence, 8),
    "sequences of two projections": (two_projections, 3),
    "several layers of extensive rank": (deep_indexed, 10),
    "labels of one layer": (one_label, 40),
    "attention with places": (places, 40),
}
CHANNELS: dict[str, tuple[Callable, int, float]] = {
    "one layer of two directions": (lambda rng: sv.DeepAttention(1, int(rng.integers(3, 5)), rank=2), 20, 4),
    "one layer of three directions": (lambda rng: sv.DeepAttention(1, 4, rank=3), 8, 4),
    "one untied layer": (lambda rng: sv.DeepAttention(1, int(rng.integers(2, 4)), tied=False), 20, 4),
    "two layers": (lambda rng: sv.DeepAttention(2, 3, float(rng.uniform(0.5, 3))), 8, 4),
    "two layers of two directions": (lambda rng: sv.DeepAttention(2, 3, rank=2), 6, 2),
    "two untied layers": (lambda rng: sv.DeepAttention(2, 2, tied=False), 6, 2),
    "sequences": (lambda rng: sv.SequenceIndex("z1[1] + z1[2]**2", 2, float(log_uniform(rng, 0.03, 0.5))), 12, 4),
    "two layers of extensive rank": (lambda rng: sv.DeepAttentionIndexed(0.5, 2, 3, float(rng.uniform(1, 3))), 6, 2),
}
"""Models, how many V, and how much finer the better rule is."""


def test_a_few_uncertainties_cover_the_true_error():
    found = judged(one_label, 12, seed=1)
    assert found.covered >= COVERED, found.worst


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_uncertainties_cover_the_true_error_and_are_not_huge(name):
    assert_honest(name, *DRAWS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANNELS)
def test_the_information_of_labels_is_known_as_well_as_stated(name):
    """The better rule has an error of its own, which is added."""
    make, count, fineness = CHANNELS[name]
    rng, ratios = np.random.default_rng(0), []
    for _ in range(count):
        channel = make(rng).channel
        levels = rng.uniform(0.05, 1, channel.projections // channel.turned)
        V = np.diag(np.repeat(levels, channel.turned))
        found = channel.information(V[None])
        better, own = drawn.information(channel, V, fineness)
        ratios.append(np.abs(found.information[0] - better).max() / (float(found.error[0]) + own))
    print(f"{name}: {np.mean(np.array(ratios) <= 1):.0%} covered, median ratio {np.median(ratios):.2g}")
    assert np.mean(np.array(ratios) <= 1) >= COVERED and np.median(ratios) >= HUGE
