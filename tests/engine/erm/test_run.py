"""Runs of empirical risk minimisation: both solvers find one minimum, and theory describes them step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import solvable as sv
from solvable.channels.losses import Huber, Logistic
from solvable.channels.losses.samples import SampleLoss
from solvable.engine.amp import amp
from solvable.engine.erm.direct import minimise
from solvable.engine.operators import Dense
from solvable.engine.sides import Evolution, Overlap
from solvable.engine.signals.separable import PenalisedSignal
from solvable.priors import Lasso, Ridge

L = sv.losses
OUTLIERS = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, slope=0.0, noise=5.0))
SIGNS = sv.MultiIndex("sign(z)")
SPARSE = sv.MultiIndex("z", noise=0.05, prior="gauss-bernoulli:0.2")
PAIRS = [
    (OUTLIERS, L.Square(), Ridge(0.1), 3.0),
    (OUTLIERS, L.Square(), Ridge(-0.3), 3.0),
    (OUTLIERS, L.Huber(1.0), Ridge(0.1), 3.0),
    (OUTLIERS, L.Huber(1.0), Ridge(-0.5), 8.0),
    (OUTLIERS, L.Absolute(), Ridge(0.3), 3.0),
    (OUTLIERS, L.Tukey(3.0), Ridge(0.1), 3.0),
    (OUTLIERS, L.Cosine(1.2), Ridge(0.2), 3.0),
    (SIGNS, L.Logistic(), Ridge(0.1), 3.0),
    (SIGNS, L.Hinge(), Ridge(0.1), 3.0),
    (SIGNS, L.Logistic(), Lasso(0.3), 3.0),
    (SPARSE, L.Square(), Lasso(0.15), 0.8),
    (SPARSE, L.Huber(0.5), Lasso(0.15), 0.8),
    (OUTLIERS, L.Tukey(3.0), Lasso(0.3), 3.0),
]
NAMES = [f"{loss!r}-{penalty!r}" for _, loss, penalty, _ in PAIRS]
COMPILED_FOR_ONE_TEST = {
    "Tukey(scale=3.0)-Ridge(strength=0.1)",
    "Logistic()-Ridge(strength=0.1)",
    "Absolute()-Ridge(strength=0.3)",
    "Hinge()-Ridge(strength=0.1)",
    "Cosine(scale=1.2)-Ridge(strength=0.2)",
    "Logistic()-Lasso(strength=0.3)",
    "Huber(scale=0.5)-Lasso(strength=0.15)",
    "Tukey(scale=3.0)-Lasso(strength=0.3)",
}


def both(model, loss, penalty, alpha, **settings):
    return [sv.simulate(model, sv.ERM(loss, penalty, solver), alpha=alpha, **settings) for solver in ("direct", "gamp")]


@pytest.mark.parametrize(
    ("model", "loss", "penalty", "alpha"),
    [
        pytest.param(*pair, id=name, marks=[pytest.mark.slow] * (name in COMPILED_FOR_ONE_TEST))
        for pair, name in zip(PAIRS, NAMES, strict=True)
    ],
)
def test_message_passing_finds_the_minimum(model, loss, penalty, alpha):
    direct, gamp = both(model, loss, penalty, alpha, d=200, seed=1)
    assert direct.converged and gamp.converged
    np.testing.assert_allclose(gamp.estimate, direct.estimate, atol=1e-4)
    assert {name: gamp[name] for name in gamp.metrics} == pytest.approx(direct.metrics, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "loss", "penalty", "alpha"), PAIRS, ids=NAMES)
@pytest.mark.parametrize(("d", "seeds"), [(200, 48), (600, 16)])
def test_runs_agree_with_theory(model, loss, penalty, alpha, d, seeds):
    learner = sv.ERM(loss, penalty)
    theory = sv.predict(model, learner, alpha=alpha)
    runs = [sv.simulate(model, learner, alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
    assert all(run.converged for run in runs)
    for name, value in theory.metrics.items():
        values = np.array([run[name] for run in runs])
        error = values.std(ddof=1) / np.sqrt(seeds)
        # The replicon of a smooth loss scatters little, and its bias of order 1/d shows.
        assert abs(values.mean() - value) < 4 * error + 2 * abs(value) / d, (name, value, values.mean(), error)


@pytest.mark.parametrize(
    ("model", "loss", "penalty", "alpha"),
    [
        pytest.param(OUTLIERS, Huber(1.0), Ridge(0.1), 3.0, marks=pytest.mark.slow),
        pytest.param(SIGNS, Logistic(), Ridge(0.1), 3.0, marks=pytest.mark.slow),
        pytest.param(SPARSE, Huber(0.5), Lasso(0.2), 1.0, marks=pytest.mark.slow),
    ],
)
def test_every_step_follows_state_evolution(model, loss, penalty, alpha):
    """Message passing without damping, from w = 0 and V = 1, against the iterated equations."""
    d, steps, seeds = 800, 6, 8
    path = np.empty((seeds, steps + 1, 2))
    evolution = Evolution(model.likelihood().with_loss(loss), PenalisedSignal.of(penalty, model.prior))
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 7])
        data = model.sample(rng, d, alpha=alpha)
        with jax.enable_x64(True):

            def keep(t, W, seed=seed, data=data):
                path[seed, t] = np.mean(W * data.truth), np.mean(W**2)

            zero = np.zeros((d, 1))
            output, signal = evolution.output.denoiser(data.y), evolution.signal.denoiser()
            amp(Dense(data.X), output, signal, zero, rng, damping=1.0, max_steps=steps, callback=keep)
    with jax.enable_x64(True):
        start = Overlap(*(np.full((1, 1), value) for value in (0.0, 1e-10, 1.0)))
        for t, state in enumerate(evolution.path(start, alpha, steps)):
            expected = [state.m[0, 0], state.q[0, 0]]
            mean, error = path[:, t].mean(0), path[:, t].std(0, ddof=1) / np.sqrt(seeds)
            assert np.all(np.abs(mean - expected) < 4 * error + 3 / d), (t, mean, error, expected)


def pinball(y, z):
    return jnp.maximum(0.3 * (y - z), -0.7 * (y - z))


def insensitive(y, z):
    return jnp.maximum(jnp.abs(y - z) - 0.2, 0.0)


def kinked_square(y, z):
    return jnp.abs(y - z) + (y - z) ** 2 / 2


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("absolute", Ridge(0.5)),
        ("absolute", Ridge(0.0)),
        ("absolute", Lasso(0.5)),
        pytest.param("hinge", Ridge(0.3), marks=pytest.mark.slow),
        ("hinge", Lasso(0.3)),
        pytest.param("huber:0.7", Lasso(0.4), marks=pytest.mark.slow),
        ("square", Lasso(0.4)),
        pytest.param(pinball, Lasso(0.1), marks=pytest.mark.slow),
        pytest.param(pinball, Ridge(0.0), marks=pytest.mark.slow),
        pytest.param(insensitive, Lasso(0.2), marks=pytest.mark.slow),
        pytest.param(kinked_square, Lasso(0.3), marks=pytest.mark.slow),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_minima_are_minima(loss, penalty):
    """No direction lowers the risk, for the solvers that have no closed form."""
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((150, 60)) / np.sqrt(60), rng.standard_normal(60)
    y = X @ w + 0.5 * rng.standard_normal(150)
    labels = np.sign(y) if loss == "hinge" else y
    loss = L.as_loss(loss)
    with jax.enable_x64(True):
        found = minimise(X, labels, loss, penalty)
        assert found.converged
        samples = SampleLoss(loss, labels)

        def risk(v):
            return samples.value(X @ v).sum() + penalty.value(v)

        least = risk(found.estimate)
        for size in (1e-1, 1e-3, 1e-5):
            for _ in range(20):
                assert risk(found.estimate + size * rng.standard_normal(60)) > least - 1e-7, size


def test_a_ridge_below_the_spectrum_is_not_marked_converged():
    outcome = sv.simulate(OUTLIERS, sv.ERM(L.Square(), Ridge(-5.0)), alpha=2.0, d=60, seed=0)
    assert not outcome.converged
    assert not sv.simulate(OUTLIERS, sv.ERM(L.Absolute(), Ridge(-1.0)), alpha=2.0, d=60, seed=0).converged


def test_a_run_is_reproducible():
    learner = sv.ERM(L.Huber(1.0), Ridge(0.1))
    first, second = (sv.simulate(OUTLIERS, learner, alpha=2.0, d=80, seed=5) for _ in range(2))
    assert first.metrics == second.metrics
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_labels_that_a_loss_cannot_take_are_refused():
    with pytest.raises(ValueError, match=r"loss = 'Hinge\(\)' is not allowed: .* it takes the labels -1 and 1"):
        sv.simulate(OUTLIERS, sv.ERM(L.Hinge(), 0.1), alpha=1.0, d=50)
    with pytest.raises(sv.NotSolvable, match="ERM is solved for one projection"):
        sv.simulate(sv.MultiIndex("z1*z2"), sv.ERM(L.Square(), 0.1), alpha=1.0, d=50)
