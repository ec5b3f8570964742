"""`simulate` on the toy models: reproducibility, sizes, runs along an axis, errors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from toys import ridge as toy
from toys.axes import LeastSquares, LinearModel, OnlineLeastSquares, OnlineRegression
from toys.chain import CALLS, Alone, Chain
from toys.probes import ANSWER, Probe, Spiked

import solvable as sv
from solvable.core import registry
from solvable.verbs.simulate import generators, simulate_many

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)


@pytest.fixture
def answer():
    yield ANSWER
    ANSWER.clear()


def test_a_run_is_reproducible():
    first, again = (sv.simulate(MODEL, RIDGE, d=30, seed=3, alpha=1.2) for _ in range(2))
    assert first.metrics == again.metrics
    np.testing.assert_array_equal(first.estimate, again.estimate)
    assert sv.simulate(MODEL, RIDGE, d=30, seed=4, alpha=1.2).metrics != first.metrics
    assert type(first["overlap"]) is float and first.seconds > 0


def test_two_learners_see_the_same_data_and_the_algorithm_has_its_own_randomness(answer):
    seen = []

    def algorithm(data, rng):
        seen.append((data, rng.standard_normal(3)))
        return sv.Outcome({"overlap": 1.0})

    answer["simulation"] = algorithm
    sv.simulate(MODEL, Probe(), d=10, seed=1, alpha=1.5)
    mean = sv.simulate(MODEL, toy.Mean(), d=10, seed=1, alpha=1.5)
    np.testing.assert_allclose(mean.estimate, seen[0][0].X.T @ seen[0][0].y)
    sv.simulate(MODEL, Probe(), d=10, seed=1, alpha=1.5)
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    assert not np.isin(seen[0][1], seen[0][0].truth).any()
    for other in ({"seed": 2, "alpha": 1.5}, {"seed": 1, "alpha": 1.5000001}):
        sv.simulate(MODEL, Probe(), d=10, **other)
        assert not np.isin(seen[-1][0].truth, seen[0][0].truth).any()


def test_a_run_agrees_with_theory_at_large_size():
    runs = [sv.simulate(MODEL, RIDGE, d=400, seed=seed, alpha=2.0)["estimation_error"] for seed in range(8)]
    theory = sv.predict(MODEL, RIDGE, alpha=2.0)["estimation_error"]
    assert abs(np.mean(runs) - theory) < 4 * np.std(runs, ddof=1) / np.sqrt(8)


def test_a_run_with_nan_is_not_converged(answer):
    answer["simulation"] = lambda data, rng: sv.Outcome({"overlap": np.nan, "estimation_error": 1.0})
    assert sv.simulate(MODEL, Probe(), d=10, alpha=1.0).converged is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 1}, "d = 1 is not allowed: d must be an integer of at least 2"),
        ({"d": 10.5}, "d = 10.5 is not allowed"),
        ({"d": True}, "d = True is not allowed"),
        ({"d": "10"}, "d = '10' is not allowed"),
        ({"d": 10, "seed": -1}, "seed = -1 is not allowed: seed must be an integer of at least 0"),
        ({"d": 10, "alpha": [1.0, 2.0]}, r"alpha = \[1.0, 2.0\] is not allowed: alpha must be a single number here"),
    ],
)
def test_bad_sizes_and_seeds(arguments, message):
    with pytest.raises(ValueError, match=message):
        sv.simulate(MODEL, RIDGE, **{"alpha": 1.0} | arguments)


def test_numpy_integers_are_integers():
    assert sv.simulate(MODEL, RIDGE, d=np.int64(10), seed=np.uint8(1), alpha=1.0).converged


def test_a_model_without_a_sampler_and_an_algorithm_without_an_outcome(answer):
    with pytest.raises(sv.NotSimulable, match="Spiked has no sampler: define `sample"):
        sv.simulate(Spiked(), Probe(), d=10)
    answer["simulation"] = lambda data, rng: 3.0
    with pytest.raises(TypeError, match="Regression x Probe algorithm must return an Outcome; got float"):
        sv.simulate(MODEL, Probe(), d=10, alpha=1.0)


# --- sizes


def test_the_size_is_needed_exactly_if_the_model_has_one():
    with pytest.raises(ValueError, match=r"missing size d: a run of Regression needs one, such as d=500\."):
        sv.simulate(MODEL, RIDGE, alpha=1.0)
    with pytest.raises(ValueError, match="unexpected size d for a run of LinearModel: it has no size besides its axes"):
        sv.simulate(LinearModel(), LeastSquares(), d=10, n=20, p=5)


class Named(toy.Regression):
    """The regression whose dimension is called N."""

    size = "N"


def test_a_size_of_another_name():
    found = sv.simulate(Named(), RIDGE, N=30, seed=2, alpha=1.2)
    assert found.metrics == sv.simulate(MODEL, RIDGE, d=30, seed=2, alpha=1.2).metrics
    with pytest.raises(ValueError, match="missing size N"):
        sv.simulate(Named(), RIDGE, alpha=1.2)
    with pytest.raises(ValueError, match="unexpected size d for a run of Named: its size is called N"):
        sv.simulate(Named(), RIDGE, d=30, alpha=1.2)
    with pytest.raises(ValueError, match="N = 1 is not allowed: N must be an integer of at least 2"):
        sv.simulate(Named(), RIDGE, N=1, alpha=1.2)


def test_a_size_must_not_be_an_axis():
    with pytest.raises(ValueError, match="size = 'n' is not allowed"):

        class Both(sv.Model):
            axes = ("n",)
            size = "n"


def test_a_model_of_given_n_and_p():
    model, learner = LinearModel(noise=0.5), LeastSquares()
    theory = sv.predict(model, learner, n=np.array([20, 40, 5]), p=8)
    assert theory.converged.tolist() == [True, True, False]
    runs = [sv.simulate(model, learner, seed=seed, n=20, p=8)["estimation_error"] for seed in range(200)]
    assert abs(np.mean(runs) - theory["estimation_error"][0]) < 4 * np.std(runs, ddof=1) / np.sqrt(200)
    assert len(set(runs)) == 200 and runs[3] == sv.simulate(model, learner, seed=3, n=20, p=8)["estimation_error"]
    for verb in (sv.predict, sv.simulate):
        with pytest.raises(ValueError, match="n = 10.5 is not allowed: n must be a whole number of at least 1"):
            verb(model, learner, n=10.5, p=3)


# --- runs along an axis

ONLINE, STEPS = OnlineRegression(noise=0.25), OnlineLeastSquares(step=0.5)
PATH = np.array([0.5, 1.0, 2.5])


def test_one_run_answers_a_whole_path():
    run = sv.simulate(ONLINE, STEPS, d=40, seed=1, alpha=PATH)
    assert run.path == "alpha" and run["estimation_error"].shape == (3,)
    assert run.converged.tolist() == [True] * 3 and run.details == {"samples": 100}
    np.testing.assert_array_equal(
        sv.simulate(ONLINE, STEPS, d=40, seed=1, alpha=PATH[1:])["estimation_error"], run["estimation_error"][1:]
    )
    assert not np.isin(
        sv.simulate(ONLINE, STEPS, d=40, seed=2, alpha=PATH)["estimation_error"], run["estimation_error"]
    ).any()


def test_a_number_is_a_run_up_to_it():
    run, path = (sv.simulate(ONLINE, STEPS, d=40, seed=1, alpha=alpha) for alpha in (1.0, PATH))
    assert run.path is None and type(run["estimation_error"]) is float and run.converged is True
    assert run["estimation_error"] == path["estimation_error"][1]


def test_a_path_agrees_with_theory():
    runs = np.array([sv.simulate(ONLINE, STEPS, d=300, seed=s, alpha=PATH)["estimation_error"] for s in range(8)])
    theory = sv.predict(ONLINE, STEPS, alpha=PATH)["estimation_error"]
    assert np.all(np.abs(runs.mean(0) - theory) < 4 * runs.std(0, ddof=1) / np.sqrt(8) + 2 / 300)


def test_the_other_pairs_of_the_model_keep_their_points():
    found = sv.simulate(ONLINE, RIDGE, d=30, seed=3, alpha=1.2)
    assert found.metrics == sv.simulate(MODEL, RIDGE, d=30, seed=3, alpha=1.2).metrics and found.path is None
    with pytest.raises(ValueError, match="alpha must be a single number here"):
        sv.simulate(ONLINE, RIDGE, d=30, alpha=PATH)


@pytest.mark.parametrize("alpha", [PATH[::-1], [1.0, 1.0], np.ones((2, 2))])
def test_a_path_must_increase(alpha):
    with pytest.raises(ValueError, match="alpha must be a number or an increasing one-dimensional array here"):
        sv.simulate(ONLINE, STEPS, d=10, alpha=alpha)


def test_a_path_of_the_wrong_shape_or_with_nan(monkeypatch):
    answer = {}
    entry = registry.find_simulation(ONLINE, STEPS)
    changed = dataclasses.replace(entry, function=lambda *_: sv.Outcome(**answer))
    monkeypatch.setitem(registry._simulations, (OnlineRegression, OnlineLeastSquares), changed)
    answer |= {"metrics": {"overlap": np.zeros(2)}}
    with pytest.raises(ValueError, match=r"OnlineLeastSquares algorithm returned overlap of shape \(2,\) for 3 points"):
        sv.simulate(ONLINE, STEPS, d=10, alpha=PATH)
    answer |= {"metrics": {"overlap": np.array([1.0, np.nan, 1.0])}, "converged": np.array([True, True, False])}
    assert sv.simulate(ONLINE, STEPS, d=10, alpha=PATH).converged.tolist() == [True, False, False]
    answer |= {"metrics": {"overlap": np.ones((3, 2, 2))}, "converged": True}
    assert sv.simulate(ONLINE, STEPS, d=10, alpha=PATH)["overlap"].shape == (3, 2, 2)


def test_a_stream_is_needed_where_it_is_asked_for():
    class Dry(toy.Regression):
        pass

    sv.simulation(Dry, STEPS.__class__, path="alpha", stream=True)(lambda *_: None)
    with pytest.raises(sv.NotSimulable, match=r"Dry has no stream: define `stream\(rng, d, \*\*axes\)` on the model"):
        sv.simulate(Dry(), STEPS, d=10, alpha=1.0)


# --- runs without data, and of several seeds together


@pytest.fixture
def calls():
    CALLS.clear()
    return CALLS


@pytest.fixture
def more_pairs(monkeypatch):
    """Pairs that are registered until the test ends."""
    monkeypatch.setattr(registry, "_simulations", dict(registry._simulations))


class Dreamt(OnlineRegression):
    """A model that has nothing to draw."""

    sample, stream = sv.Model.sample, sv.Model.stream


def test_a_run_without_data_draws_nothing_and_costs_the_same_at_any_size(calls):
    run = sv.simulate(Dreamt(), Chain(), d=10**12, seed=1, alpha=PATH)
    assert run["estimation_error"].shape == (3,) and calls == [(10**12, PATH.tolist(), 1)]
    np.testing.assert_allclose(
        run["estimation_error"], sv.predict(Dreamt(), Chain(), alpha=PATH)["estimation_error"], atol=1e-5
    )


def test_without_data_an_algorithm_is_told_the_axes_that_it_does_not_follow(calls):
    found = sv.simulate(ONLINE, Alone(), d=10**12, alpha=1.5)
    assert calls == [(10**12, [1.5], 1)]
    assert found["estimation_error"] == pytest.approx(
        sv.predict(ONLINE, Chain(), alpha=1.5)["estimation_error"], abs=1e-5
    )


def test_without_data_and_without_size(more_pairs):
    seen = []

    class Nothing(sv.Learner):
        pass

    @sv.simulation(LinearModel, Nothing, path="n", data=False)
    def _(model, learner, size, n, rng, p):
        seen.append((size, n.tolist(), p))
        return sv.Outcome({"estimation_error": n / p})

    assert sv.simulate(LinearModel(), Nothing(), n=[2, 4], p=2)["estimation_error"].tolist() == [1.0, 2.0]
    assert seen == [(None, [2.0, 4.0], 2.0)]


@pytest.mark.parametrize("learner", [Chain(), STEPS, Alone(), RIDGE])
def test_the_runs_of_many_seeds_are_those_of_each(learner):
    alpha = PATH if learner in (Chain(), STEPS) else 1.5
    seeds = [3, 0, 2**100]
    found = simulate_many(ONLINE, learner, 20, seeds, alpha=alpha)
    for seed, outcome in zip(seeds, found, strict=True):
        alone = sv.simulate(ONLINE, learner, d=20, seed=seed, alpha=alpha)
        assert outcome.path == alone.path and outcome.seconds > 0
        np.testing.assert_array_equal(outcome["estimation_error"], alone["estimation_error"])
        np.testing.assert_array_equal(outcome.converged, alone.converged)
    assert simulate_many(ONLINE, learner, 20, [], alpha=alpha) == []


def test_runs_together_are_one_call_and_do_not_depend_on_their_company(calls):
    whole = simulate_many(ONLINE, Chain(), 20, range(5), alpha=PATH)
    part = simulate_many(ONLINE, Chain(), 20, [4, 1], alpha=PATH[:2])
    assert [seeds for _, _, seeds in calls] == [5, 2]
    for seed, outcome in zip((4, 1), part, strict=True):
        np.testing.assert_array_equal(outcome["estimation_error"], whole[seed]["estimation_error"][:2])


def test_runs_together_see_the_data_of_their_seeds(more_pairs):
    class Means(sv.Learner):
        pass

    @sv.simulation(toy.Regression, Means, together=True)
    def _(model, learner, data, rngs):
        assert len(data) == len(rngs)
        return [toy.score(each.X.T @ each.y, each.truth[:, 0]) for each in data]

    for found, seed in zip(simulate_many(MODEL, Means(), 20, [5, 2], alpha=1.5), (5, 2), strict=True):
        assert found.metrics == sv.simulate(MODEL, toy.Mean(), d=20, seed=seed, alpha=1.5).metrics


def test_what_runs_together_return_is_checked_one_by_one(monkeypatch):
    answer = []
    changed = dataclasses.replace(registry.find_simulation(ONLINE, Chain()), function=lambda *_: answer[0])
    monkeypatch.setitem(registry._simulations, (OnlineRegression, Chain), changed)

    def ask():
        return simulate_many(ONLINE, Chain(), 20, [0, 1], alpha=PATH)

    good, bad = sv.Outcome({"overlap": np.ones(3)}), sv.Outcome({"overlap": np.array([1.0, np.nan, 1.0])})
    answer[:] = [[good, bad]]
    assert [found.converged.tolist() for found in ask()] == [[True] * 3, [True, False, True]]
    for wrong, message in [
        (good, "OnlineRegression x Chain algorithm must return a list of 2 Outcomes, one a seed; got Outcome"),
        ([good], "must return a list of 2 Outcomes, one a seed; got 1 of them"),
        ([good, 3.0], "must return an Outcome; got float"),
    ]:
        answer[:] = [wrong]
        with pytest.raises(TypeError, match=message):
            ask()
    answer[:] = [[good, sv.Outcome({"overlap": np.ones(2)})]]
    with pytest.raises(ValueError, match=r"returned overlap of shape \(2,\) for 3 points"):
        ask()


def test_a_keyword_that_is_no_axis_is_named():
    with pytest.raises(ValueError, match="unknown axis seeds: Regression takes alpha"):
        sv.simulate(MODEL, RIDGE, d=10, alpha=1.0, seeds=3)


# --- streams


@pytest.mark.parametrize("target", ["abs(z)", "sign(z1*z2)"])
def test_the_stream_of_a_multi_index_model(target):
    model, rng = sv.MultiIndex(target), np.random.default_rng(0)
    stream, again = model.stream(rng, 30), model.stream(np.random.default_rng(0), 30)
    parts, whole = [stream.draw(n) for n in (1, 300, 0, 100)], again.draw(401)
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    np.testing.assert_array_equal(stream.truth, whole.truth)
    z = whole.X @ whole.truth
    np.testing.assert_allclose(whole.y, np.abs(z[:, 0]) if target == "abs(z)" else np.sign(z[:, 0] * z[:, 1]))


def test_an_outcome_shows_both_of_its_verdicts():
    words = {(a, b): repr(sv.Outcome({"overlap": 0.5}, converged=a, consistent=b)) for a in (0, 1) for b in (0, 1)}
    assert "; converged, nan s" in words[1, 1] and "; converged, NOT consistent, nan s" in words[1, 0]
    assert "; NOT converged, nan s" in words[0, 1] and "; NOT converged, NOT consistent, nan s" in words[0, 0]
    assert sv.Outcome({"overlap": 0.5}).consistent


def test_data_and_algorithm_draw_different_numbers():
    data, algorithm = generators(0, 10, {"alpha": 1.0})
    assert data.random() != algorithm.random()
