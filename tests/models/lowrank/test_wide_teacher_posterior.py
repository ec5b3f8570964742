"""The Bayes-optimal theory of wide teachers against samples of the posterior, at sizes that a sampler can reach.

The theory is the limit of many features and of infinite dimension. Both limits are taken apart: at a given width the
overlap of the chains tends, as d grows, to that of a theory of finite width, and this to the theory as the width grows.
The chains start at the teacher: all of this tests the informative solution, not which one is preferred.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from reference.wide_teacher_posterior import Posterior, sample_posterior
from reference.wide_teacher_width import overlap_at_width

import solvable as sv

pytestmark = pytest.mark.slow

CUBIC, TANH = "he3(z)/sqrt(6)", "tanh(2*z)"
CASES = {CUBIC: (16, 6.0, 0.5), TANH: (10, 20.0, 0.1)}
"""Width, n / (d k), noise."""
SIZES = {CUBIC: (24, 48), TANH: (12, 24)}
SETS, LENGTH = 6, {"burn": 80, "steps": 120}


@functools.cache
def chains(activation: str, d: int) -> list[Posterior]:
    width, ratio, noise = CASES[activation]
    n = round(ratio * d * width)
    return [sample_posterior(d, width, activation, noise, n, seed, **LENGTH) for seed in range(SETS)]


@functools.cache
def theory(activation: str, width: int) -> sv.Prediction:
    _, ratio, noise = CASES[activation]
    return sv.predict(sv.WideTeacher(0.0, width, activation, noise), sv.BayesOptimal(), alpha=ratio * width)


def mean(values: list[float]) -> tuple[float, float]:
    """With its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize(("activation", "d"), [(name, d) for name, sizes in SIZES.items() for d in sizes])
def test_chains_settle_and_know_each_other_as_well_as_the_truth(activation, d):
    """Under the true law the truth is one more sample of the posterior: both overlaps are equal but for the scatter."""
    found = chains(activation, d)
    assert all(chain.accepted > 0.4 for chain in found)
    drift, drift_error = mean([chain.halves[0] - chain.halves[1] for chain in found])
    excess, excess_error = mean([chain.overlap - chain.between for chain in found])
    assert abs(drift) < 4 * drift_error
    assert abs(excess) < 4 * excess_error


@functools.cache
def limits(activation: str) -> dict[str, tuple[float, float]]:
    """Overlap and error at this width and infinite dimension, each with its error."""
    width, ratio, noise = CASES[activation]
    predicted = theory(activation, width)
    q, missing = float(predicted["overlap"][0]), float(predicted["nonlinear_error"])
    if activation == CUBIC:
        q, error = overlap_at_width(width, ratio, noise, samples=16_000)
        return {"overlap": (q, error), "error": (1 - q**3, 3 * error)}
    # One of k directions is the linear part, which regression finds: nothing of it is missing at n/d this large.
    share = 1 - 1 / width
    return {
        "overlap": (1 - (1 - q) * share, 0.0),
        "error": (missing * share + float(predicted.order_parameters["linear_error"]), 0.0),
    }


@pytest.mark.parametrize("name", ["overlap", "error"])
@pytest.mark.parametrize("activation", [CUBIC, TANH])
def test_chains_tend_to_the_theory_of_their_width(activation, name):
    """What is missing falls with d at least like 1/d and at most like 1/d^2, which bounds the limit from two sizes."""
    (small, small_error), (large, large_error) = (
        mean([getattr(chain, name) for chain in chains(activation, d)]) for d in SIZES[activation]
    )
    limit, limit_error = limits(activation)[name]
    ends = [large + share * (large - small) for share in (1 / 3, 1.0)]
    error = 4 * np.sqrt(small_error**2 + 4 * large_error**2 + limit_error**2)
    assert min(ends) - error < limit < max(ends) + error


def test_a_finite_width_tends_to_the_theory():
    """The deviation is of the order of 1/k: that at four times the width is no more than half of it."""
    _, ratio, noise = CASES[CUBIC]
    limit = float(theory(CUBIC, 64)["overlap"][0])
    (narrow, narrow_error), (wide, wide_error) = (
        overlap_at_width(width, ratio, noise, samples) for width, samples in ((16, 16_000), (64, 4_000))
    )
    assert limit - narrow > 4 * narrow_error
    assert abs(limit - wide) < (limit - narrow) / 2 + 3 * wide_error
