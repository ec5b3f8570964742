"""The spectrum of features before and after a step: known edges, total mass, runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import solvable as sv
from solvable.models.features.one_step.bulk import Isotropic
from solvable.models.features.one_step.grid import spiked_grid
from solvable.models.features.one_step.ridge import Setting
from solvable.models.features.one_step.run import stepped_rows
from solvable.models.features.one_step.spectrum import spectrum_of
from solvable.models.features.two_layer.run import features, sphere_rows
from solvable.targets.target import Target

MODEL = sv.TwoLayer("sin(z)", "tanh", 0.8)


def spiked(activation, r, c, width, alpha):
    """The spectrum for a given spike and length of the rows."""
    with jax.enable_x64(True):
        grid = spiked_grid(Target(activation), Target("sin(z)"), np.array([r]), np.array([c]), 0.9)
        return spectrum_of(
            (Isotropic(jnp.ones(1), jnp.full(1, c)), grid, Setting(1.0, 1 / width, 0.0, 0.0), 0.9), alpha
        )


def mass(found):
    return found.zero + np.trapezoid(found.density, found.x)


def test_the_known_edge():
    """tanh, spike 1.5, rows of squared length 1.2: 3.04, and a top eigenvalue of 715 at n = 2000."""
    found = spiked("tanh(z)", 1.5, 1.2, 0.8, 2.0)
    assert found.edge == pytest.approx(3.04, abs=0.01)
    assert 2000 * found.diverging[0] == pytest.approx(715, abs=1)
    assert len(found.outliers) == 0
    assert mass(found) == pytest.approx(1.0, abs=2e-3)


def test_before_the_step_linear_features_are_a_product_of_wishart_matrices():
    """Trace of K/p: E[sigma^2] n/p; the mean of the density is that of the eigenvalues."""
    model = sv.TwoLayer("z", "z", 0.5)
    found = sv.feature_spectrum(model, sv.RandomFeatures(0.1), 2.0)
    assert len(found.diverging) == 0 and found.zero == 0
    assert np.trapezoid(found.density * found.x, found.x) == pytest.approx(2.0 / 0.5, rel=2e-3)
    few = sv.feature_spectrum(model, sv.RandomFeatures(0.1), 0.2)
    assert few.zero == pytest.approx(0.6)
    assert mass(few) == pytest.approx(1.0, abs=3e-3)


def test_without_a_step_the_features_are_frozen():
    x = np.linspace(0.1, 3.0, 40)
    still = sv.feature_spectrum(MODEL, sv.OneStep(0.1, 0.0, 2.0, bulk="isotropic"), 2.0, x=x)
    frozen = sv.feature_spectrum(MODEL, sv.RandomFeatures(0.1), 2.0, x=x)
    assert still.density == pytest.approx(frozen.density, abs=1e-9)
    assert still.edge == pytest.approx(frozen.edge, rel=1e-3)


@pytest.mark.slow
def test_a_finite_outlier():
    """An even activation varies more along the spike than elsewhere: its slope vanishes where others have theirs."""
    found = spiked("cos(z)", 0.6, 1.0, 5.0, 20.0)
    assert len(found.outliers) == 1 and found.outliers[0] > found.edge + 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.feature_spectrum(MODEL, sv.RandomFeatures(0.1), 0.0), "alpha = 0.0 is not allowed"),
        (lambda: sv.feature_spectrum(MODEL, sv.RandomFeatures(0.1), 1.0, x=[-1.0, 1.0]), "x = .* is not allowed"),
        (
            lambda: sv.feature_spectrum(sv.TwoLayer("z", "tanh", float("inf")), sv.RandomFeatures(0.1), 1.0),
            "width = inf is not allowed",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def eigenvalues(model, learner, alpha, d, seed):
    rng, truth = np.random.default_rng(seed), np.eye(d, 1)
    moved = isinstance(learner, sv.OneStep)
    W = stepped_rows(model, learner, truth, rng) if moved else sphere_rows(rng, model.units(d), d)
    Phi = features(model, W, rng.standard_normal((round(alpha * d), d)))
    return np.linalg.eigvalsh(Phi.T @ Phi)[::-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (MODEL, sv.RandomFeatures(0.1)),
        (MODEL, sv.OneStep(0.1, 3.0, 0.5)),
        (sv.TwoLayer("sin(z)", "relu", 1.2), sv.OneStep(0.1, 2.0, 2.0)),
        (MODEL, sv.OneStep(0.1, 3.0, 20.0, {1: 0.5, 2: 0.5}, bulk="isotropic")),
    ],
)
def test_the_density_is_that_of_runs_at_two_sizes(model, learner):
    """The largest distance of the distribution functions falls with d; so does that of the largest eigenvalue."""
    alpha = 2.0
    found = sv.feature_spectrum(model, learner, alpha)
    expected, K = found.zero + np.cumsum(found.density * np.gradient(found.x)), len(found.diverging)
    for d, seeds in ((100, 8), (300, 4)):
        runs = [eigenvalues(model, learner, alpha, d, seed) for seed in range(seeds)]
        bulk = np.sort(np.concatenate([run[K:] for run in runs]))
        counted = np.searchsorted(bulk, found.x) / len(bulk)
        assert np.max(np.abs(counted - expected)[found.x > 0.01]) < 3 / d + 0.015, d
        if K:
            top = np.array([run[0] for run in runs]) / (alpha * d)
            error = top.std(ddof=1) / np.sqrt(seeds)
            assert abs(top.mean() - found.diverging[0]) < 4 * error + 1.5 / d, d


@pytest.mark.slow
def test_the_finite_outlier_is_that_of_runs():
    found = spiked("cos(z)", 0.6, 1.0, 4.0, 40.0)
    for d in (60, 120):
        tops = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            W = sphere_rows(rng, 4 * d, d)
            W[:, 0] += 0.6
            Phi = np.cos(rng.standard_normal((40 * d, d)) @ W.T) / np.sqrt(4 * d)
            tops.append(np.linalg.eigvalsh(Phi.T @ Phi)[-3:-1])
        second, first = np.mean(tops, axis=0)
        assert first == pytest.approx(found.outliers[0], rel=0.05)
        assert second < found.edge * 1.02
