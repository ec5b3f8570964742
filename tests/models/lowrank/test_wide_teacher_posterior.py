"""The Bayes-optimal theory of wide teachers against samples of the posterior, at sizes that a sampler can reach.

The chains start at the teacher, so that this is a test of the informative solution, not of which one is preferred. The
theory is of many weak features at n/d large; at these sizes it is off by the shares below, which is what was seen.
"""

from __future__ import annotations

import numpy as np
import pytest
from reference.wide_teacher_posterior import sample_posterior

import solvable as sv

CASES = [
    # activation, d, width, n/(d k), noise; how far overlap and error may be from theory, the latter relatively
    ("tanh(2*z)", 16, 10, 20.0, 0.1, 0.004, 0.2),
    ("he3(z)/sqrt(6)", 16, 8, 6.0, 0.5, 0.03, 0.3),
    ("he3(z)/sqrt(6)", 24, 16, 6.0, 0.5, 0.02, 0.3),
]


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "d", "width", "ratio", "noise", "overlap", "share"), CASES)
def test_samples_of_the_posterior_are_near_the_theory(activation, d, width, ratio, noise, overlap, share):
    n = round(ratio * d * width)
    theory = sv.predict(sv.WideTeacher(0.0, width, activation, noise), sv.BayesOptimal(), alpha=n / d)
    chains = [
        sample_posterior(d, np.full(width, width**-0.5), activation, noise, n, seed, steps=150, burn=100, leaps=10)
        for seed in range(3)
    ]
    assert all(chain.accepted > 0.4 for chain in chains)
    # Both halves of a chain say the same: it has settled.
    assert all(abs(np.log(chain.halves[0] / chain.halves[1])) < 0.3 for chain in chains)
    assert np.mean([chain.overlaps.mean() for chain in chains]) == pytest.approx(theory["overlap"][0], abs=overlap)
    assert np.mean([chain.error for chain in chains]) == pytest.approx(theory["generalization_error"], rel=share)
