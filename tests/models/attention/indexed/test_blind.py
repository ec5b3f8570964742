"""Message passing on attention layers against message passing that was written apart, from the equations alone."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from tests.reference.attention_layer import Softmax, error_of_message_passing, left_over, scores

RHO = 0.5


def test_the_other_equations_have_the_known_error():
    """The fixed point of softmax labels of two tokens at alpha = 0.1, where V = 4 alpha / qhat."""
    assert left_over(1.0198982, RHO) == pytest.approx(0.392196, abs=3e-5)


def test_the_other_inversion_shows_what_the_labels_show():
    rng = np.random.default_rng(0)
    S = rng.standard_normal((10, 10))
    h = scores(rng.standard_normal((5, 3, 10)), S + S.T)
    left = Softmax(h, 0.7).h - h
    np.testing.assert_allclose(left, left[:, :1, :1] * np.ones((1, 3, 3)), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "output", "alpha", "d"),
    [
        (2, "softmax", 0.1, 60),
        (2, "softmax", 0.1, 100),
        (3, "hardmax", 0.2, 24),
        (3, "hardmax", 0.2, 40),
        (4, "hardmax", 0.1, 24),
        (4, "hardmax", 0.1, 40),
    ],
)
def test_two_ways_of_message_passing_end_at_one_error(tokens, output, alpha, d):
    """Each with its own data; the error of finite size, of order 1/(alpha d), is common to both."""
    runs, steps = 4, 50
    model = sv.AttentionIndexed(RHO, tokens, output)
    learner = sv.AMP(max_steps=steps)
    ours = [float(sv.simulate(model, learner, alpha=alpha, d=d, seed=s)["estimation_error"]) for s in range(runs)]
    others = [error_of_message_passing(RHO, tokens, output, alpha, d, seed, steps) for seed in range(runs)]
    error = np.hypot(np.std(ours, ddof=1), np.std(others, ddof=1)) / np.sqrt(runs)
    theory = float(sv.predict(model, sv.BayesOptimal(), alpha=alpha)["estimation_error"])
    assert abs(np.mean(ours) - np.mean(others)) < 4 * error
    for found in (ours, others):
        assert abs(np.mean(found) - theory) < 4 * np.std(found, ddof=1) / np.sqrt(runs) + 0.5 / (alpha * d)
