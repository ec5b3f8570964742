"""The spread of the overlap between instances, from one run."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.fluctuations import deviations, overlap_covariance


def test_linear_labels_in_closed_form():
    """Labels y = z: g ~ N(0, 1/V), G = -1/V and V = 1 - alpha give a variance of 2 alpha / d."""
    alpha, d, n = 0.4, 500, 200_000
    V = np.array([[1 - alpha]])
    g = np.random.default_rng(0).standard_normal((n, 1)) / np.sqrt(V)
    # The sums run over n samples that stand for alpha d of them.
    found = overlap_covariance(g, np.full((n, 1, 1), -1 / V[0, 0]), V, round(n / alpha))
    assert found is not None
    assert found[0, 0, 0, 0] * (n / alpha) / d == pytest.approx(2 * alpha / d, rel=0.02)


def test_nothing_is_said_of_a_fixed_point_that_is_none():
    g, V = np.random.default_rng(0).standard_normal((300, 1)), np.array([[0.5]])
    assert overlap_covariance(g, np.full((300, 1, 1), -2.0), V, 200) is None
    assert overlap_covariance(100 * g, np.full((300, 1, 1), -0.5), V, 200) is None
    assert overlap_covariance(g, np.full((300, 1, 1), np.nan), V, 200) is None


def test_directions_can_be_exchanged_and_flipped():
    rng = np.random.default_rng(1)
    g, G = rng.standard_normal((400, 2)) * [1.0, 0.2], np.tile(np.diag([-0.6, -0.3]), (400, 1, 1))
    found = overlap_covariance(g, G, 0.8 * np.eye(2), 300)
    assert found is not None
    plain, turned = deviations(found, np.eye(2)), deviations(found, np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert plain[0, 0] > 2 * plain[1, 1] > 0
    np.testing.assert_allclose(turned, plain[::-1, ::-1])


def test_a_run_tells_its_spread_and_a_run_that_goes_on_does_not():
    model = sv.MultiIndex("sign(z)")
    found, cut = (sv.simulate(model, sv.AMP(max_steps=steps), alpha=1.0, d=200, seed=0) for steps in (600, 3))
    # 0.015 between instances at d = 500, and the inverse root of d.
    assert 0.5 < found.details["spread"]["overlap"] / (0.015 * np.sqrt(500 / 200)) < 2
    assert np.isnan(cut.details["spread"]["overlap"])
    both = sv.simulate(sv.MultiIndex("sign(z1*z2)"), sv.AMP(), alpha=6.0, d=150, seed=0)
    assert set(both.details["spread"]) == {"overlap_1", "overlap_2"}
    other = sv.simulate(sv.MultiIndex("sign(z)", prior="rademacher"), sv.AMP(), alpha=1.0, d=100, seed=0)
    assert np.isnan(other.details["spread"]["overlap"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "target, alpha, metric",
    [("sign(z)", 1.0, "overlap"), ("z", 0.5, "overlap"), ("abs(z)", 0.9, "overlap"), ("sign(z1*z2)", 5.0, "overlap_1")],
)
def test_the_spread_is_that_between_instances(target, alpha, metric):
    """Within a factor of two, and 20 % for the error of a standard deviation of 40 runs."""
    model = sv.MultiIndex(target)
    runs = [sv.simulate(model, sv.AMP(), alpha=alpha, d=400, seed=seed) for seed in range(40)]
    settled = [run for run in runs if run.converged]
    found = np.std([run[metric] for run in settled], ddof=1)
    expected = np.nanmedian([run.details["spread"][metric] for run in settled])
    assert len(settled) > 25 and 1 / 2.4 < expected / found < 2.4
