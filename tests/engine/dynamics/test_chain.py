"""The reduced chain: the law of d-dimensional runs, the flow as its limit, and runs that do not depend on company."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.engine.dynamics.chain import chain
from solvable.models.index.dynamics.sgd import move_of

MODEL = sv.MultiIndex("tanh(z)")
ALPHA = np.array([1.0, 3.0])


def samples(model, learner, d, seeds, alpha=ALPHA):
    found = sv.learning_curve(model, learner, alpha=alpha, d=d, seeds=seeds, progress=False, marks={})
    return found.simulation("cosine").values[0]


@pytest.mark.slow
def test_runs_average_to_the_flow():
    learner = sv.OnlineSGD(0.5, "erf", start=0.05)
    exact = sv.predict(MODEL, learner, alpha=ALPHA)["cosine"]
    for d, seeds in ((300, 96), (3000, 48)):
        found = samples(MODEL, learner, d, seeds)
        error = found.std(1, ddof=1) / np.sqrt(seeds)
        assert np.all(np.abs(found.mean(1) - exact) < 4 * error + 1 / d)


@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(sv.OnlineSGD(0.8, "tanh", start=0.3), marks=pytest.mark.slow),
        pytest.param(sv.RepeatedSGD(0.5, "tanh", start=0.3, spherical=False), marks=pytest.mark.slow),
        pytest.param(sv.Extragradient(0.5, "tanh", start=0.3, extrapolation=0.4), marks=pytest.mark.slow),
    ],
)
def test_the_law_is_that_of_the_weights(learner):
    """Means and spreads of 128 runs of each kind at d = 20, where finite size matters."""
    model = sv.MultiIndex("z + 0.3*z**2", noise=0.1)
    reduced = samples(model, learner, 20, 128)
    full = samples(model, learner.with_field("reduced", False), 20, 128)
    for one, other in zip(reduced, full, strict=True):
        spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 128)
        assert abs(one.mean() - other.mean()) < 4 * spread
        assert 0.6 < one.std() / other.std() < 1.67  # of 128: 3.5 standard errors


@pytest.mark.parametrize("width", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_run_does_not_depend_on_its_company_nor_on_where_it_is_seen(width):
    learner = sv.OnlineSGD(0.3, "tanh", width=width, start="random" if width > 1 else 0.1)
    move, rates = move_of(learner)

    def overlaps(seeds, counts):
        rngs = [np.random.default_rng(seed) for seed in seeds]
        starts = [learner.first_overlaps(1, 50, rng) for rng in rngs]
        with jax.enable_x64(True):
            return chain(MODEL.target, 0.0, move, rates, 50, starts, np.array(counts), rngs)

    for together, alone in zip(overlaps(range(5), [50, 150]), overlaps([4], [150]), strict=True):
        np.testing.assert_array_equal(together[4, 1], alone[0, 0])


def test_any_dimension_costs_the_same():
    """Nothing of size d is made: a dimension that no weights would fit."""
    found = sv.simulate(MODEL, sv.OnlineSGD(0.5, "erf", start=0.05), alpha=[1e-9], d=10**12)
    assert found["cosine"][0] == pytest.approx(0.05, abs=1e-4)


def test_a_dimension_without_room_is_refused():
    with pytest.raises(ValueError, match="d = 3 is not allowed: d must be at least 4"):
        sv.simulate(MODEL, sv.OnlineSGD(0.5, start=0.1), alpha=1.0, d=3)


def test_near_copies_of_the_weights_are_refused():
    with pytest.raises(sv.NotSimulable, match="reduced=True"):
        learner = sv.Extragradient(0.5, similarity=0.5, reduced=False, start=0.1)
        sv.simulate(MODEL, learner, alpha=1.0, d=30)


@pytest.mark.slow
def test_near_copies_average_to_the_flow():
    model = sv.MultiIndex("z + 0.5*he2(z)", noise=0.1)
    learner = sv.Extragradient(0.5, "tanh", extrapolation=0.8, similarity=0.7, start=0.2)
    exact = sv.predict(model, learner, alpha=ALPHA)
    found = samples(model, learner, 1000, 96)
    error = found.std(1, ddof=1) / np.sqrt(96) + exact.uncertainty["cosine"]
    assert np.all(np.abs(found.mean(1) - exact["cosine"]) < 4 * error + 1e-3)
