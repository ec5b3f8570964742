"""Attention with places: known values, equations by random draws, limits, runs, and where the minimum changes."""

from __future__ import annotations

import numpy as np
import pytest
from reference import attention_with_places as reference

import solvable as sv
from solvable.channels.losses.quadrature import panel
from solvable.engine.solvers.base import Thresholds
from solvable.models.attention.positional.model import attention
from solvable.models.attention.positional.run import descended, inner_products
from solvable.models.attention.positional.theory import at_zero, generalization_error, scores

PLACE = float(np.sqrt(np.log(1.5) / 2))  # whose attention to places is [[.6, .4], [.4, .6]]
MODEL = sv.PositionalSemantic(0.3, PLACE, 0.25)
ORDER = ("theta", "m", "q", "V")
BRANCHES = ("semantic", "positional")
ERRORS = ("generalization_error", "training_loss", "risk")


@pytest.fixture(scope="module")
def semantic():
    return sv.predict(MODEL, sv.ERM(penalty=0.01, start="semantic"), alpha=2.0)


@pytest.fixture(scope="module")
def positional():
    return sv.predict(MODEL, sv.ERM(penalty=0.01, start="positional"), alpha=2.0)


def moments(model, m, q, V):
    import jax

    with jax.enable_x64(True):
        return scores(model).moments(np.array(m), np.float64(q), np.float64(V), panel())


def test_the_semantic_branch(semantic):
    """The sheet's values to their digits; the authors' table, of a cubature of degree seven, is off by up to 3 %."""
    order = semantic.order_parameters
    assert order["q"] == pytest.approx(0.1148, abs=1e-4)
    assert order["theta"] == pytest.approx(0.1581, abs=1e-4)
    assert order["V"] == pytest.approx(12.68, abs=0.02)
    assert semantic["generalization_error"] == pytest.approx(0.002808, abs=2e-6)
    assert order["m"] < 1e-9 and order["replicon"] < 1 and abs(order["jumps"]) < 1e-3
    assert order["V"] == pytest.approx(12.33, rel=0.04) and abs(order["V"] - 12.33) > 0.3


@pytest.mark.slow
def test_the_positional_branch(positional):
    """The authors' table has q = .0500, m = .2586, V = 11.04 and mse = .00698."""
    order = positional.order_parameters
    assert order["m"] == pytest.approx(0.2586, rel=0.01) and order["q"] == pytest.approx(0.05, rel=0.03)
    assert positional["generalization_error"] == pytest.approx(0.00698, rel=0.01)
    # Of a finer rule, of steps 0.36 in place of 0.55.
    for name, value in (("m", 0.258225), ("q", 0.051070), ("V", 11.3703)):
        assert order[name] == pytest.approx(value, rel=4e-4)
    assert order["theta"] < 1e-9 and 0.03 < order["jumps"] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", BRANCHES)
def test_the_branches_solve_the_equations(name, request):
    """Put into one step of the equations by random draws, with a proximal step of its own."""
    order = request.getfixturevalue(name).order_parameters
    found, error = reference.image(MODEL, 0.01, 2.0, order, 40_000, seed=1)
    for k, parameter in enumerate(ORDER):
        scale = max(abs(order[parameter]), 0.1)
        assert abs(found[k] - order[parameter]) < 4 * error[k] + 1e-3 * scale, parameter


def test_a_step_agrees_with_random_draws():
    """Away from fixed points, with both overlaps: push, power and response of one step."""
    order = {"theta": 0.12, "m": 0.2, "q": 0.1, "V": 6.0}
    model, s2 = sv.PositionalSemantic(0.5, 0.8, 0.25), 0.25
    found = moments(model, [order["theta"] / s2, order["m"]], order["q"] / s2, order["V"] / s2)
    penalty, alpha = 0.02, 1.0
    V = 1 / (penalty + alpha * s2 * float(found.response))
    m_hat = alpha * np.array(
        [
            0.5 * float(found.semantic) + s2 * order["theta"] / s2 * float(found.response),
            float(found.places),
        ]
    )
    q = s2 * (np.sum(m_hat**2) + alpha * s2 * float(found.power)) * V**2
    ours = np.array([s2 * m_hat[0] * V, m_hat[1] * V, q, s2 * V])
    drawn, error = reference.image(model, penalty, alpha, order, 4000, seed=0)
    assert np.all(np.abs(ours - drawn) < 4 * error + 1e-4)


def test_symmetries_of_the_averages():
    one = moments(MODEL, [0.3, 0.2], 0.4, 40.0)
    for m, signs in (([-0.3, 0.2], (-1, 1)), ([0.3, -0.2], (1, -1)), ([-0.3, -0.2], (-1, -1))):
        other = moments(MODEL, m, 0.4, 40.0)
        assert float(other.semantic) == pytest.approx(signs[0] * float(one.semantic), rel=2e-3)
        assert float(other.places) == pytest.approx(signs[1] * float(one.places), rel=2e-3)
        assert float(other.response) == pytest.approx(float(one.response), rel=2e-3)
    assert abs(float(moments(MODEL, [0.0, 0.2], 0.4, 40.0).semantic)) < 1e-12
    assert abs(float(moments(MODEL, [0.3, 0.0], 0.4, 40.0).places)) < 1e-12


def test_without_samples_and_with_a_large_penalty_nothing_is_learned():
    untrained = sv.predict(MODEL, sv.ERM(penalty=0.01), alpha=0.0)
    heavy = sv.predict(MODEL, sv.ERM(penalty=10.0), alpha=2.0)
    for found in (untrained, heavy):
        assert found["cosine"] == found["positional_overlap"] == found.order_parameters["q"] == 0
        assert found["generalization_error"] == pytest.approx(untrained["generalization_error"], rel=1e-9)
    z = np.random.default_rng(0).standard_normal((200_000, 2))
    squares = 2 * 0.25 * np.sum((reference.labels(z, MODEL) - 0.5) ** 2, axis=1)
    error = squares.std() / np.sqrt(len(z))
    assert untrained["generalization_error"] == pytest.approx(squares.mean(), abs=4 * error)


def test_where_nothing_is_learned():
    law = scores(MODEL)
    assert at_zero(law, 1.0, 1.0) is not None and at_zero(law, 0.01, 2.0) is None


@pytest.mark.slow
def test_labels_without_places_have_no_positional_branch():
    model = sv.PositionalSemantic(0.0, PLACE, 0.25)
    none = sv.predict(model, sv.ERM(penalty=0.01, start="positional"), alpha=2.0, throw=False)
    assert none.status == sv.Status.UNSTABLE and none["positional_overlap"] < 1e-3
    with pytest.raises(sv.ConvergenceError, match="not stable"):
        sv.predict(model, sv.ERM(penalty=0.01, start="positional"), alpha=2.0)
    assert sv.predict(model, sv.ERM(penalty=0.01), alpha=2.0)["cosine"] > 0.9


@pytest.mark.slow
def test_the_lower_risk_is_the_minimum(semantic, positional):
    whole = sv.predict(MODEL, sv.ERM(penalty=0.01), alpha=2.0)
    assert semantic["risk"] < positional["risk"]
    assert dict(whole) == pytest.approx(dict(semantic))
    few = sv.predict(MODEL, sv.ERM(penalty=0.01), alpha=1.0)
    assert few["positional_overlap"] > 0.5 and few["cosine"] < 1e-6


@pytest.mark.slow
def test_where_the_minimum_changes():
    found = sv.thresholds(MODEL, sv.ERM(penalty=0.01))
    assert isinstance(found, Thresholds)
    alpha, error = found["global_transition"], found.errors["global_transition"]
    assert alpha == pytest.approx(1.252, abs=0.005) and error < 0.01
    for factor, sign in ((0.99, -1), (1.01, 1)):
        semantic, positional = (
            sv.predict(MODEL, sv.ERM(penalty=0.01, start=name), alpha=factor * alpha)["risk"] for name in BRANCHES
        )
        assert sign * (positional - semantic) > 0


def test_the_risk_of_runs_is_that_of_the_samples():
    rng = np.random.default_rng(0)
    data = MODEL.sample(rng, 12, alpha=1.5)
    import jax

    with jax.enable_x64(True):
        known = inner_products(data)
        w, value, converged, _ = descended(known, rng.standard_normal(12), 0.05)
    assert converged and value == pytest.approx(reference.risk(MODEL, 0.05, data.X, data.y, w), rel=1e-10)
    for move in 1e-3 * rng.standard_normal((5, 12)):
        assert reference.risk(MODEL, 0.05, data.X, data.y, w + move) > value


def test_labels():
    rng = np.random.default_rng(1)
    data = MODEL.sample(rng, 400, alpha=0.25)
    d, truth = 400, data.truth
    assert truth @ truth == pytest.approx(d) and abs(truth.sum()) < 1e-9
    noise = data.X - np.array([1.0, -1.0])[:, None] / np.sqrt(d)
    h = noise @ truth / np.sqrt(d)
    weights = np.exp(h[:, :, None] * h[:, None, :])
    own = weights / weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(attention(h), own)
    T = 0.7 * own + 0.3 * np.array([[0.6, 0.4], [0.4, 0.6]])
    np.testing.assert_allclose(data.y, T @ noise)
    assert noise.var() == pytest.approx(0.25, rel=0.02)


def test_the_error_of_given_weights():
    rng = np.random.default_rng(2)
    m, q = np.array([0.5, 0.2]), 0.5
    import jax

    with jax.enable_x64(True):
        value = float(generalization_error(scores(MODEL), m, np.float64(q)))
    z, eta = rng.standard_normal((2, 200_000, 2))
    omega = 0.5 * m[0] * z + m[1] * np.array([1.0, -1.0]) + 0.5 * np.sqrt(q - m[0] ** 2) * eta
    squares = 2 * 0.25 * np.sum((reference.labels(z, MODEL) - reference.diagonal(omega)) ** 2, axis=1)
    assert value == pytest.approx(squares.mean(), abs=4 * squares.std() / np.sqrt(len(z)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "start", "alpha"), [(0.01, "semantic", 2.0), (0.01, "positional", 2.0), (0.03, "positional", 2.0)]
)
def test_runs_end_in_the_branches(penalty, start, alpha):
    learner = sv.ERM(penalty=penalty, start=start)
    theory = sv.predict(MODEL, learner, alpha=alpha)
    overlap, other = ("cosine", "positional_overlap")[:: 1 if start == "semantic" else -1]
    sizes, seeds, means, errors = (200, 800), (32, 12), [], []
    for d, count in zip(sizes, seeds, strict=True):
        runs = [sv.simulate(MODEL, learner, alpha=alpha, d=d, seed=seed) for seed in range(count)]
        assert all(run.converged for run in runs)
        stayed = [run for run in runs if run[overlap] > run[other]]  # the others left for the minimum of lower risk
        assert len(stayed) > 0.8 * count
        values = np.array([[run[name] for name in (overlap, *ERRORS)] for run in stayed])
        means.append(values.mean(axis=0))
        errors.append(values.std(axis=0, ddof=1) / np.sqrt(len(stayed)))
    # Losses hold |S s|^2 / (2 d) of the places, and all else falls like 1/d too: the limit by a line in 1/d.
    small, large = sizes
    limit = (large * means[1] - small * means[0]) / (large - small)
    error = np.hypot(large * errors[1], small * errors[0]) / (large - small)
    for k, name in enumerate((overlap, *ERRORS)):
        assert abs(limit[k] - theory[name]) < 4 * error[k], (name, limit[k], error[k], theory[name])
        assert error[k] < 0.06 * theory[name]


def test_a_random_start_is_no_branch_but_a_start_of_either_is():
    with pytest.raises(ValueError, match="'semantic', 'positional'"):
        sv.predict(MODEL, sv.ERM(penalty=0.01, start="random"), alpha=2.0)
    with pytest.raises(ValueError, match="names no minima"):
        sv.predict(sv.MultiIndex("z", 0.1), sv.ERM(penalty=0.1, start="semantic"), alpha=2.0)


def test_the_lower_end_of_both_starts():
    learner = sv.ERM(penalty=0.01)
    both = sv.simulate(MODEL, learner, alpha=2.0, d=80, seed=3)
    ends = [
        sv.simulate(MODEL, sv.ERM(penalty=0.01, start=start), alpha=2.0, d=80, seed=3)["risk"]
        for start in ("semantic", "positional")
    ]
    assert both["risk"] == pytest.approx(min(ends), rel=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sv.PositionalSemantic(1.5), ValueError, "positional = 1.5"),
        (lambda: sv.PositionalSemantic(0.5, variance=0.0), ValueError, "variance = 0.0"),
        (lambda: sv.predict(MODEL, sv.ERM("huber:1", 0.1), alpha=1.0), sv.NotSolvable, "square loss"),
        (lambda: sv.predict(MODEL, sv.ERM(penalty="lasso:0.1"), alpha=1.0), sv.NotSolvable, "ridge"),
        (lambda: sv.predict(MODEL, sv.ERM(penalty=0.0), alpha=1.0), sv.NotSolvable, "positive penalty"),
        (lambda: sv.simulate(MODEL, sv.ERM(penalty=0.1, solver="gamp"), alpha=1.0, d=20), sv.NotSimulable, "direct"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_branch_is_found_at_any_number_of_samples():
    """A full step overshoots the further the more samples there are; the branch of places ends as a saddle."""
    places = sv.predict(MODEL, sv.ERM(penalty=0.01, start="positional"), alpha=[5.0, 20.0], throw=False)
    assert list(places.converged) == [True, False] and np.all(places["positional_overlap"] > 0.65)
    assert np.all(np.diff(places["risk"]) > 0)
    assert sv.predict(MODEL, sv.ERM(penalty=0.01), alpha=20.0)["cosine"] > 0.99
