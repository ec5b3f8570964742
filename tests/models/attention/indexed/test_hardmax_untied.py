"""Hardmax labels and functions of untied keys and queries: closed limits, drawn scores, a posterior sampled apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import solvable as sv
from solvable.models.attention.indexed import hardmax_untied
from solvable.models.attention.indexed.hardmax_untied import UntiedHardmaxLabels, UntiedHardmaxOutput
from solvable.models.attention.indexed.sampled import SampledLabels, SampledOutput
from solvable.numerics.sobol import normal_points
from tests.reference.untied_layer import error_of_posterior_mean

V = np.array([1.0, 0.6, 0.3, 0.1])


def largest(h):
    return h.argmax(-1)


def untied(tokens, output="hardmax", rho=0.5, noise=0.0):
    return sv.AttentionIndexed(rho, tokens, output, tied=False, noise=noise)


def sign_information(ratio):
    """J of one row of two tokens, the sign of one number: E phi(k)^2 / (Phi(k) Phi(-k)) at k ~ N(0, ratio)."""
    return quad(
        lambda k: norm.pdf(k / ratio**0.5) / ratio**0.5 * np.exp(2 * norm.logpdf(k) - norm.logcdf(k) - norm.logsf(k)),
        *(-15, 15),
    )[0]


def test_labels_of_a_row_have_probability_one_and_the_slopes_of_differences():
    x = 2 * np.random.default_rng(0).standard_normal((5, 4))
    whole = [hardmax_untied.posterior(x, np.full(5, label)) for label in range(4)]
    np.testing.assert_allclose(np.sum([np.exp(row.log_P) for row in whole], axis=0), 1, atol=1e-9)
    step = 1e-4
    for label, row in enumerate(whole):
        for b in range(4):
            moved = step * np.eye(4)[b]
            up, down = (hardmax_untied.posterior(x + s * moved, np.full(5, label)).log_P for s in (1, -1))
            np.testing.assert_allclose(row.slope[:, b], (up - down) / (2 * step), atol=1e-7)
            np.testing.assert_allclose(row.bend[:, b], -(up + down - 2 * row.log_P) / step**2, atol=1e-5)


def test_a_label_that_nobody_expects_keeps_its_digits():
    """Far behind another score only those two matter: a sign at a distance of 60 / sqrt(2) deviations."""
    row = hardmax_untied.posterior(np.array([[0.0, 60.0, -5.0]]), np.array([0]))
    k = -60 / np.sqrt(2)
    assert row.log_P[0] == pytest.approx(norm.logcdf(k), rel=1e-10)
    assert row.slope[0, 0] == pytest.approx(np.exp(norm.logpdf(k) - norm.logcdf(k)) / np.sqrt(2), rel=1e-8)


def test_a_row_of_two_tokens_is_a_sign():
    output = UntiedHardmaxOutput(2)
    closed = np.array([2 * sign_information((1 - v) / v) / v if v < 1 else 4 / np.pi for v in V])
    off, stated = np.abs(output.information(V) / closed - 1), output.information_error(V)
    assert np.all(off <= stated) and np.all(stated < 1e-4)


@pytest.mark.parametrize("tokens", [2, 3, 7])
def test_where_nothing_is_known_all_is_closed(tokens):
    assert hardmax_untied.row_information(tokens, 0.0, 4) == pytest.approx(hardmax_untied.nothing_known(tokens))


def test_the_narrow_threshold_of_two_tokens_is_closed():
    found = sv.thresholds(untied(2, rho=0.3))
    assert found["narrow_weak_recovery"] == pytest.approx(0.3 * np.pi / 4)
    assert found["strong_recovery"] == np.inf
    alpha = 0.0005 * np.pi / 4 * np.array([0.9, 1.2])
    below, above = sv.predict(untied(2, rho=0.0005), sv.BayesOptimal(), alpha=alpha)["estimation_error"]
    assert below > 0.995 > 0.97 > above


def test_the_information_is_that_of_drawn_scores():
    """E[delta | y]^2 by scores drawn in numbers at each mean, from the definition alone."""
    v, draws, means = 0.4, 2000, 128
    rng = np.random.default_rng(1)
    omega = np.sqrt(1 - v) * normal_points(3, 7, 5)
    parts = np.zeros(means)
    for place, mean in enumerate(omega):
        delta = rng.standard_normal((draws, 3))
        label = (mean + np.sqrt(v) * delta).argmax(1)
        for value in range(3):
            own = delta[label == value]
            if len(own) > 1:
                pairs = np.sum(own.sum(0) ** 2) - np.sum(own**2)
                parts[place] += pairs / (len(own) - 1) / draws
    drawn, scatter = 3 * parts.mean() / v, 3 * parts.std() / v / np.sqrt(means)
    assert abs(UntiedHardmaxOutput(3).information(np.array(v)) - drawn) < 4 * scatter < 0.2 * drawn


def test_hardmax_as_a_function_has_the_same_information():
    sampled, closed = SampledOutput(largest, 3, 0.0, tied=False), UntiedHardmaxOutput(3)
    off = np.abs(sampled.information(V) / closed.information(V) - 1)
    stated = sampled.information_error(V) + closed.information_error(V)
    assert np.all(off <= stated) and np.all(stated < 0.05) and sampled.monotone


@pytest.mark.slow
def test_linear_labels_with_noise_have_the_closed_information():
    """All four scores of two tokens, each with noise: I = 4 / (V + noise)."""
    sampled = SampledOutput(lambda h: h, 2, 0.0, 0.5, tied=False)
    off = np.abs(sampled.information(V) * (V + 0.5) / 4 - 1)
    stated = sampled.information_error(V)
    assert np.all(off <= stated) and np.all(stated < 0.1)


def test_the_denoiser_of_a_function_is_the_closed_one_up_to_draws():
    rng, v = np.random.default_rng(0), np.full((1, 1), 0.5)
    y = np.array(list(itertools.product(range(2), repeat=2)) * 25)
    Omega = 0.5 * rng.standard_normal((4 * len(y), 1))
    closed = UntiedHardmaxLabels(y)(Omega, v)
    drawn = SampledLabels(SampledOutput(largest, 2, 0.0, tied=False), y)(Omega, v)
    assert np.sqrt(np.mean((closed.g - drawn.g) ** 2)) < 0.15 * np.sqrt(np.mean(closed.g**2))
    assert drawn.minus_derivative[0, 0] == pytest.approx(closed.minus_derivative[0, 0], rel=0.03)
    assert closed.log_Z is not None and drawn.log_Z is not None
    likely = closed.log_Z() > -2
    np.testing.assert_allclose(drawn.log_Z()[likely], closed.log_Z()[likely], atol=0.2)


def test_labels_name_the_largest_scores_and_runs_learn():
    model = untied(3)
    data = model.sample(np.random.default_rng(3), 12, alpha=0.3)
    h = np.einsum("nai,ij,nbj->nab", data.X, data.truth, data.X)
    np.testing.assert_array_equal(data.y, h.argmax(-1))
    run = sv.simulate(model, sv.AMP(max_steps=20), alpha=0.3, d=24, seed=0)
    assert 0.6 < run["cosine"] < 1
    again = sv.simulate(model, sv.AMP(max_steps=20), alpha=0.3, d=24, seed=0)
    assert run["estimation_error"] == again["estimation_error"]


def test_a_function_of_untied_scores_has_theory_thresholds_and_runs():
    model = untied(2, largest)
    found = sv.predict(model, sv.BayesOptimal(), alpha=0.5)
    closed = sv.predict(untied(2), sv.BayesOptimal(), alpha=0.5)
    stated = float(found.uncertainty["estimation_error"])
    assert found.converged and abs(found["estimation_error"] - closed["estimation_error"]) <= stated < 0.05
    narrow = sv.thresholds(model)
    assert abs(narrow["narrow_weak_recovery"] - 0.5 * np.pi / 4) < 2 * narrow.errors["narrow_weak_recovery"]
    assert 0.5 < sv.simulate(model, sv.AMP(max_steps=12), alpha=0.5, d=20, seed=0)["cosine"] < 1


def test_the_trace_is_read_off_the_labels():
    """Tokens that name themselves too often show what all scores of a token with itself have in common."""
    rng, shift = np.random.default_rng(2), 0.1
    h = rng.standard_normal((40000, 3, 3)) + shift * np.eye(3)
    assert hardmax_untied.shift_of_own(h.argmax(-1)) == pytest.approx(shift, abs=0.02)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="tokens = 17 .* must be 2 to 16 for hardmax of untied keys"):
        untied(17)
    with pytest.raises(ValueError, match="tokens = 5 .* must be 2 to 4 for hardmax of tied keys"):
        sv.AttentionIndexed(0.5, 5, "hardmax")
    with pytest.raises(ValueError, match="tied = 1 is not allowed: tied must be True or False"):
        sv.AttentionIndexed(0.5, 2, tied=1)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "alpha"), [(2, 0.5), (3, 0.2)])
def test_message_passing_comes_nearer_as_the_dimension_grows(tokens, alpha):
    model, left = untied(tokens), []
    theory = float(sv.predict(model, sv.BayesOptimal(), alpha=alpha)["estimation_error"])
    for d, seeds in ((20, 16), (60, 8)):
        runs = [sv.simulate(model, sv.AMP(max_steps=100), alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
        found = np.array([float(run["estimation_error"]) for run in runs])
        left.append(found.mean() - theory)
        assert abs(left[-1]) < 4 * found.std(ddof=1) / np.sqrt(seeds) + 1 / (alpha * d)
    assert left[1] < left[0]


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "alpha"), [(2, 1.0), (3, 0.4)])
def test_a_posterior_that_is_sampled_apart_has_the_error_of_message_passing(tokens, alpha):
    """A layer of large rank, whose matrix is Gaussian; each with its own data of the same size."""
    model, d, runs = untied(tokens, rho=20.0), 16, 8
    sampled = [error_of_posterior_mean(tokens, alpha, d, seed, 800, 200) for seed in range(runs)]
    passed = [
        1 - float(sv.simulate(model, sv.AMP(max_steps=100), alpha=alpha, d=d, seed=seed)["squared_overlap"])
        for seed in range(runs)
    ]
    theory = float(sv.predict(model, sv.BayesOptimal(), alpha=alpha)["estimation_error"])
    error = np.hypot(np.std(sampled, ddof=1), np.std(passed, ddof=1)) / np.sqrt(runs)
    assert abs(np.mean(sampled) - np.mean(passed)) < 4 * error
    assert abs(np.mean(sampled) - theory) < 4 * np.std(sampled, ddof=1) / np.sqrt(runs) + 1 / (alpha * d)
