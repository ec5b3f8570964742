"""Bayes-optimal learning and AMP of the single-index model: limits, thresholds found twice, properties, messages."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.equations import absolute_information, linear_error, probit_information
from scipy.special import ndtr

import solvable as sv

AMP, BAYES = sv.AMP(), sv.BayesOptimal()

ABS = sv.MultiIndex("abs(z)")
SIGN = sv.MultiIndex("sign(z)")
HE3 = sv.MultiIndex("he3(z)")
HARD = sv.MultiIndex("z**2*exp(-z**2)")
NOISY_SQUARE = sv.MultiIndex("z**2", noise=0.25)
PROBIT = sv.MultiIndex(sv.channels.Probit(noise=0.5))
NOISY = sv.MultiIndex("z", noise=0.3)
CLEAN = sv.MultiIndex("z")
BINARY_SIGN = sv.MultiIndex("sign(z)", prior="rademacher")
BINARY_ABS = sv.MultiIndex("abs(z)", prior="rademacher")
BINARY_NOISY = sv.MultiIndex("z", noise=0.05, prior="rademacher")
SPARSE = sv.MultiIndex("z", prior="gauss-bernoulli:0.5")
SPARSE_NOISY = sv.MultiIndex("z", noise=0.01, prior="gauss-bernoulli:0.2")
SPARSE_ABS = sv.MultiIndex("abs(z)", prior="gauss-bernoulli:0.2")
EVERY = {
    "abs": ABS,
    "sign": SIGN,
    "he3": HE3,
    "hard": HARD,
    "noisy square": NOISY_SQUARE,
    "probit": PROBIT,
    "noisy": NOISY,
    "clean": CLEAN,
    "binary sign": BINARY_SIGN,
    "binary abs": BINARY_ABS,
    "binary noisy": BINARY_NOISY,
    "sparse": SPARSE,
    "sparse noisy": SPARSE_NOISY,
    "sparse abs": SPARSE_ABS,
}
SLOW = {"he3", "noisy square", "binary abs", "sparse abs", "sparse noisy", "binary noisy"}
"""Models whose tables take seconds, beside others of their kind."""


def some_models(*names):
    """A parameter `model` for each name, those of `SLOW` for the slow tests."""
    marks = {name: pytest.mark.slow if name in SLOW else () for name in names}
    return pytest.mark.parametrize("model", [pytest.param(EVERY[n], id=n, marks=marks[n]) for n in names])


every_model = some_models(*EVERY)


# The search for a hard phase takes a few seconds with binary or sparse weights.
thresholds = functools.cache(sv.thresholds)


def overlap(model, learner, alpha):
    return sv.predict(model, learner, alpha=alpha)["overlap"]


def jump(model, learner, level: float, low: float, high: float) -> float:
    """The alpha at which the overlap passes `level`, by bisection on the prediction alone."""
    for _ in range(24):
        middle = (low + high) / 2
        value = sv.predict(model, learner, alpha=middle, throw=False)["overlap"]
        low, high = (low, middle) if value > level else (middle, high)
    return (low + high) / 2


# Limits


@every_model
def test_nothing_is_learned_from_nothing(model):
    for learner in (AMP, BAYES):
        found = sv.predict(model, learner, alpha=0.0)
        assert found["overlap"] == 0 and found["estimation_error"] == 1
        assert found["generalization_error"] == pytest.approx(variance(model), rel=1e-6)


def variance(model) -> float:
    """Var g(z), by a dense midpoint rule."""
    z = (np.arange(-90_000, 90_000) + 0.5) * 1e-4
    weight = np.exp(-(z**2) / 2) * 1e-4 / np.sqrt(2 * np.pi)
    g = model.target.numpy(z[:, None])
    return float(weight @ g**2 - (weight @ g) ** 2)


@pytest.mark.parametrize(
    "model, mass",
    [
        (SIGN, 2 / np.pi),
        pytest.param(HE3, 0.667831, marks=pytest.mark.slow),
        (NOISY, 1 / 1.3),
        (CLEAN, 1.0),
        (PROBIT, 2 / np.pi / 1.5),
        (BINARY_SIGN, 2 / np.pi),
    ],
    ids=["sign", "he3", "noisy", "clean", "probit", "binary sign"],
)
def test_trivial_targets_start_with_a_known_slope(model, mass):
    """q ~ alpha E[E[z|y]^2] as alpha -> 0, up to a relative correction of order alpha."""
    for alpha in (1e-3, 1e-4):
        assert overlap(model, AMP, alpha) == pytest.approx(alpha * mass, rel=3 * alpha + 5e-6)
        assert overlap(model, BAYES, alpha) == pytest.approx(overlap(model, AMP, alpha), rel=1e-9)


@some_models("abs", "noisy square", "binary abs")
def test_easy_targets_start_at_their_threshold(model):
    weak = thresholds(model)["weak_recovery"]
    assert np.all(overlap(model, AMP, weak * np.array([0.5, 0.999, 1.0])) == 0)
    above = overlap(model, AMP, weak * np.array([1.0001, 1.001, 1.01]))
    assert np.all(above > 0) and above[0] < 1e-3


def test_many_samples_of_a_sign_leave_an_error_of_order_one_over_alpha_squared():
    """V = (sqrt(2 pi) / (c alpha))^2 with c the integral of phi^2 / (Phi(a) Phi(-a)), from I ~ c / sqrt(2 pi V)."""
    a = np.linspace(-30, 30, 60_001)
    phi = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
    c = np.sum(phi**2 / np.maximum(ndtr(a) * ndtr(-a), 1e-300)) * 1e-3
    for alpha, accuracy in ((100.0, 1e-3), (1000.0, 1e-4)):
        expected = 2 * np.pi / (c * alpha) ** 2
        assert sv.predict(SIGN, AMP, alpha=alpha)["estimation_error"] == pytest.approx(expected, rel=accuracy)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_linear_closed_form(noise):
    model = sv.MultiIndex("z", noise=noise)
    alpha = np.array([0.1, 0.8, 1.0, 3.0, 1000.0])
    for learner in (AMP, BAYES):
        found = sv.predict(model, learner, alpha=alpha)
        q = found["overlap"]
        np.testing.assert_allclose(found["estimation_error"], [linear_error(a, noise) for a in alpha], rtol=1e-9)
        np.testing.assert_allclose(q / (1 - q), alpha / (1 - q + noise), rtol=1e-8)
        # For y = z the label's error is the weights' error.
        np.testing.assert_allclose(found["generalization_error"], found["estimation_error"], rtol=1e-6)


def test_noiseless_linear_learns_alpha_and_then_everything():
    alpha = np.array([0.25, 0.99, 1.01, 4.0])
    for learner in (AMP, BAYES):
        np.testing.assert_allclose(overlap(CLEAN, learner, alpha), [0.25, 0.99, 1, 1], atol=1e-9)


@some_models("abs", "he3", "binary sign", "binary abs", "sparse", "sparse abs")
def test_noiseless_recovery_is_perfect_far_above_the_thresholds(model):
    found = sv.predict(model, AMP, alpha=np.array([3.0, 100.0]))
    assert np.all(found["overlap"] == 1) and np.all(found["generalization_error"] == 0)
    assert np.all(found.order_parameters["qhat"] == np.inf) and np.all(found.converged)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 5.0, 50.0])
def test_probit_solves_its_equation(alpha):
    """q / (1 - q) = alpha E[N(omega; 0, U)^2 / (Phi Phi)], U = V + D, with the integral by SciPy."""
    found = sv.predict(PROBIT, AMP, alpha=alpha)
    q, V = found["overlap"], found["estimation_error"]
    assert abs(q / V / (alpha * probit_information(q, 0.5)) - 1) / 1e-8 < 30
    assert found["classification_error"] == pytest.approx(np.arccos(np.sqrt(q)) / np.pi, abs=1e-7)


# Thresholds, found twice


def test_thresholds_of_phase_retrieval_twice():
    found = thresholds(ABS)
    assert found["weak_recovery"] == pytest.approx(0.5, abs=1e-9)
    assert found["algorithmic"] == pytest.approx(1.1284714, abs=1e-6)
    assert found["information_theoretic"] == pytest.approx(1.0, abs=1e-6)
    assert jump(ABS, AMP, 1e-9, 0.1, 1.0) == pytest.approx(found["weak_recovery"], abs=1e-6)
    assert jump(ABS, AMP, 0.95, 0.6, 3.0) == pytest.approx(found["algorithmic"], rel=1e-6)
    assert jump(ABS, BAYES, 0.95, 0.6, 3.0) == pytest.approx(found["information_theoretic"], rel=1e-6)
    # The spinodal is where alpha(q) = q / ((1 - q) I) has its maximum, at q = 0.846646.
    q = 0.846646
    assert q / ((1 - q) * absolute_information(q)) == pytest.approx(found["algorithmic"], rel=1e-7)


@some_models("abs", "noisy square", "binary abs")
def test_weak_recovery_by_extrapolating_the_overlap(model):
    """The curve alpha(q) is continued to q = 0 from positive overlaps, which the stability formula does not enter."""
    weak = thresholds(model)["weak_recovery"]
    alpha = weak * np.array([1.004, 1.008, 1.012, 1.016, 1.02])
    continued = np.polynomial.Polynomial.fit(overlap(model, AMP, alpha), alpha, 3)(0.0)
    assert continued == pytest.approx(weak, rel=5e-5)


def test_binary_sign_has_a_hard_phase():
    found = thresholds(BINARY_SIGN)
    assert found["weak_recovery"] == 0
    assert jump(BINARY_SIGN, AMP, 0.99, 1.0, 2.0) == pytest.approx(found["algorithmic"], rel=1e-6)
    assert jump(BINARY_SIGN, BAYES, 0.99, 1.0, 2.0) == pytest.approx(found["information_theoretic"], rel=1e-6)
    alpha = np.array([1.2, 1.24, 1.25, 1.4, 1.49, 1.5])
    amp, bayes = overlap(BINARY_SIGN, AMP, alpha), overlap(BINARY_SIGN, BAYES, alpha)
    np.testing.assert_array_equal(bayes == 1, [False, False, True, True, True, True])
    np.testing.assert_array_equal(amp == 1, [False, False, False, False, False, True])
    np.testing.assert_allclose(amp[:2], bayes[:2], atol=1e-9)


@pytest.mark.parametrize("alpha", [1.25, 1.4, 2.0])
def test_perfect_recovery_of_binary_weights_is_not_ambiguous(alpha):
    assert sv.predict(BINARY_SIGN, BAYES, alpha=alpha)["overlap"] == 1


@pytest.mark.slow
def test_binary_phase_retrieval_is_determined_by_any_sample():
    """A continuous label and binary weights: one noiseless sample tells them all apart, to a learner without limits."""
    found = thresholds(BINARY_ABS)
    assert found["information_theoretic"] == 0
    assert found["weak_recovery"] == pytest.approx(0.5, abs=1e-9)
    assert found["weak_recovery"] < found["algorithmic"] < 1
    assert overlap(BINARY_ABS, BAYES, 1e-3) == 1 and overlap(BINARY_ABS, AMP, 0.4) == 0
    assert jump(BINARY_ABS, AMP, 0.99, 0.6, 2.0) == pytest.approx(found["algorithmic"], rel=1e-6)


@pytest.mark.slow
def test_noiseless_sparse_recovery_is_possible_from_the_fraction_of_nonzero_weights():
    found = thresholds(SPARSE)
    assert found["information_theoretic"] == pytest.approx(0.5, abs=1e-6)
    assert found["algorithmic"] == pytest.approx(0.6857, abs=1e-4)
    assert jump(SPARSE, AMP, 0.9999, 0.3, 2.0) == pytest.approx(found["algorithmic"], rel=1e-6)
    assert jump(SPARSE, BAYES, 0.9999, 0.3, 2.0) == pytest.approx(found["information_theoretic"], rel=1e-6)


@pytest.mark.slow
def test_a_noisy_first_order_transition_has_both_branches_below_one():
    found = thresholds(BINARY_NOISY)
    threshold = found["information_theoretic"]
    assert 0 < threshold < found["algorithmic"]
    assert jump(BINARY_NOISY, AMP, 0.95, 0.3, 1.0) == pytest.approx(found["algorithmic"], rel=1e-6)
    assert jump(BINARY_NOISY, BAYES, 0.95, 0.3, 1.0) == pytest.approx(threshold, rel=1e-6)
    below, above = (sv.predict(BINARY_NOISY, BAYES, alpha=threshold * (1 + s)) for s in (-1e-7, 1e-7))
    assert below["overlap"] < 0.8 < above["overlap"] < 1
    assert above.order_parameters["free_entropy"] == pytest.approx(below.order_parameters["free_entropy"], abs=1e-6)


def test_hard_target_is_never_learned_by_message_passing():
    found = thresholds(HARD)
    assert found["weak_recovery"] == found["algorithmic"] == np.inf
    assert found["information_theoretic"] == pytest.approx(1.0, abs=1e-6)
    alpha = np.array([0.5, 0.999, 1.001, 3.0, 1e6])
    assert np.all(overlap(HARD, AMP, alpha) == 0)
    np.testing.assert_array_equal(overlap(HARD, BAYES, alpha), [0, 0, 1, 1, 1])
    assert jump(HARD, BAYES, 0.5, 0.1, 5.0) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "model, weak", [(SIGN, 0.0), (NOISY, 0.0), pytest.param(NOISY_SQUARE, 0.54165, marks=pytest.mark.slow)]
)
def test_smooth_learning_has_one_threshold(model, weak):
    found = thresholds(model)
    assert found["weak_recovery"] == pytest.approx(weak, abs=5e-5)
    assert set(found.values()) == {found["weak_recovery"]}
    alpha = np.linspace(0.01, 3, 40)
    np.testing.assert_allclose(overlap(model, BAYES, alpha), overlap(model, AMP, alpha), atol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("prior", ["gaussian", "gauss-bernoulli:0.2", "rademacher"])
def test_weak_recovery_does_not_depend_on_the_prior(prior):
    """Every prior of zero mean and unit variance denoises a weak field linearly."""
    model = sv.MultiIndex("abs(z)", prior=prior)
    assert np.all(overlap(model, AMP, np.array([0.3, 0.4999])) == 0)
    assert overlap(model, AMP, 0.5005) > 0


# Properties


def alphas():
    return st.floats(0.0, 3.0, allow_subnormal=False)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, derandomize=True)
@given(model=st.sampled_from(list(EVERY.values())), first=alphas(), second=alphas())
def test_learning_never_gets_worse_with_more_samples(model, first, second):
    alpha = np.sort([first, second])
    amp, bayes = (sv.predict(model, learner, alpha=alpha, throw=False) for learner in (AMP, BAYES))
    for found in (amp, bayes):
        q = found["overlap"]
        assert np.all((q >= 0) & (q <= 1)) and q[0] <= q[1] + 1e-12
        np.testing.assert_allclose(found["estimation_error"], 1 - q, atol=1e-14)
        assert found["generalization_error"][1] <= found["generalization_error"][0] + 1e-9
    assert np.all(bayes["overlap"] >= amp["overlap"] - 1e-9)
    assert np.all(bayes["generalization_error"] <= amp["generalization_error"] + 1e-9)


@every_model
def test_order_parameters_and_metrics_are_consistent(model):
    """Nishimori: the order parameter, w_hat.w*/d and |w_hat|^2/d are one number, so its squared cosine is q too."""
    for learner in (AMP, BAYES):
        found = sv.predict(model, learner, alpha=np.array([0.3, 0.7, 1.3]))
        assert np.all(found.converged) and np.all(found.residual < 1e-8)
        np.testing.assert_array_equal(found.order_parameters["q"], found["overlap"])
        np.testing.assert_array_equal(found["squared_overlap"], found["overlap"])
        q, qhat = found["overlap"], found.order_parameters["qhat"]
        inner = np.isfinite(qhat)
        np.testing.assert_allclose(model.prior.overlap(qhat[inner]), q[inner], atol=1e-12)
        for name, error in found.uncertainty.items():
            assert np.all((error >= 0) & (error < 1e-3 * max(1, variance(model)))), name


@pytest.mark.parametrize("target", ["z", pytest.param("sign", marks=pytest.mark.slow)])
def test_noise_never_helps(target):
    if target == "z":
        models = [sv.MultiIndex("z", noise=noise) for noise in (0.0, 0.05, 0.3, 1.0, 2.0)]
    else:
        models = [SIGN, sv.MultiIndex(sv.channels.Probit(noise=0.05)), PROBIT]
    alpha = np.array([0.1, 0.6, 0.9, 1.5, 4.0])
    found = np.array([overlap(model, BAYES, alpha) for model in models])
    assert np.all(np.diff(found, axis=0) <= 0) and np.all(found[0] > found[-1])


@pytest.mark.slow
def test_noise_raises_the_threshold():
    assert thresholds(ABS)["weak_recovery"] < thresholds(NOISY_SQUARE)["weak_recovery"]


@pytest.mark.parametrize("model", [SIGN, BINARY_SIGN], ids=["gaussian", "binary"])
def test_errors_of_a_sign_in_closed_form(model):
    found = sv.predict(model, AMP, alpha=np.array([0.2, 0.7, 1.2]))
    q = found["overlap"]
    np.testing.assert_allclose(found["classification_error"], np.arccos(np.sqrt(q)) / np.pi, atol=1e-7)
    x = np.linspace(-9, 9, 20_001)
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    field = np.sqrt(q / (1 - q))[:, None] * x
    np.testing.assert_allclose(found["generalization_error"], 4 * (ndtr(field) * ndtr(-field)) @ weight, atol=1e-7)


@pytest.mark.slow
def test_errors_of_a_square_in_closed_form():
    """Var(z^2 | omega) = 4 V omega^2 + 2 V^2, on average 4 V q + 2 V^2."""
    found = sv.predict(NOISY_SQUARE, AMP, alpha=np.array([0.2, 0.8, 2.0]))
    q, V = found["overlap"], found["estimation_error"]
    np.testing.assert_allclose(found["generalization_error"], 4 * V * q + 2 * V**2, rtol=1e-6)
    assert "classification_error" not in found.metrics


@pytest.mark.parametrize("model", [ABS, SIGN, BINARY_NOISY, HARD], ids=["abs", "sign", "binary noisy", "hard"])
def test_an_array_of_alpha_gives_what_single_calls_give(model):
    grid = np.array([[0.0, 0.2, 0.7], [0.9, 1.05, 2.0]])
    for learner in (AMP, BAYES):
        together = sv.predict(model, learner, alpha=grid)
        assert together["overlap"].shape == together.status.shape == grid.shape
        for index, alpha in np.ndenumerate(grid):
            alone = sv.predict(model, learner, alpha=alpha)
            assert isinstance(alone["overlap"], float) and alone.status == together.status[index]
            for group in ("metrics", "order_parameters", "uncertainty"):
                for key, value in getattr(alone, group).items():
                    assert value == pytest.approx(getattr(together, group)[key][index], rel=1e-9, abs=1e-11), key


@pytest.mark.slow
def test_a_function_gives_the_same_numbers_as_its_formula():
    function = sv.MultiIndex(lambda z: jnp.abs(z[0]))
    alpha = np.linspace(0.0, 1.4, 15)
    for learner in (AMP, BAYES):
        np.testing.assert_allclose(overlap(function, learner, alpha), overlap(ABS, learner, alpha), atol=1e-8)
        errors = (sv.predict(model, learner, alpha=alpha)["generalization_error"] for model in (function, ABS))
        np.testing.assert_allclose(*errors, atol=1e-8)
    assert thresholds(function) == pytest.approx(thresholds(ABS), rel=1e-6)


def test_state_evolution_is_shared_by_models_with_the_same_channel():
    assert ABS.solver() is sv.MultiIndex("abs(z)").solver()
    assert ABS.solver().table is BINARY_ABS.solver().table


# Failures, and what they say


def test_binary_weights_with_very_many_samples():
    """mmse ~ exp(-qhat / 2) is far below rounding at qhat = alpha / (V + D) = 200: learned, as far as numbers go."""
    found = sv.predict(sv.MultiIndex("z", noise=0.5, prior="rademacher"), AMP, alpha=100.0)
    assert found.converged and found["overlap"] == 1 and found["generalization_error"] < 1e-12


def test_on_the_threshold_itself_bayes_is_ambiguous():
    threshold = thresholds(BINARY_SIGN)["information_theoretic"]
    with pytest.raises(sv.ConvergenceError, match="two branches are equally good.*a first-order threshold; move"):
        sv.predict(BINARY_SIGN, BAYES, alpha=threshold)
    kept = sv.predict(BINARY_SIGN, BAYES, alpha=threshold, throw=False)
    assert kept.status == sv.Status.AMBIGUOUS_BRANCH and not kept.converged
    assert sv.predict(BINARY_SIGN, AMP, alpha=threshold).converged


@pytest.mark.parametrize("learner", [AMP, BAYES, sv.Spectral()])
def test_too_many_projections_are_refused(learner):
    model = sv.MultiIndex("z1*z2 + z3*z4")
    with pytest.raises(sv.NotSolvable, match="depends on 4 projections; learning curves are computed for up to 3"):
        sv.predict(model, learner, alpha=1.0)
    with pytest.raises(sv.NotSolvable, match="depends on 4 projections"):
        thresholds(model)


@pytest.mark.parametrize("learner", [AMP, BAYES, sv.Spectral()])
def test_other_priors_are_for_one_projection(learner):
    model = sv.MultiIndex("z1*z2", prior="rademacher")
    with pytest.raises(sv.NotSolvable, match="is solved for one projection"):
        sv.predict(model, learner, alpha=1.0)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "loud", None, [0.1, 0.2]])
def test_bad_noise_is_refused(noise):
    with pytest.raises(
        ValueError, match=r"noise = .* is not allowed: noise must be a variance: a finite number, zero or"
    ):
        sv.MultiIndex("abs(z)", noise=noise)


@pytest.mark.parametrize("prior", ["laplace", "gauss-bernoulli", "gauss-bernoulli:0", "gauss-bernoulli:1.5", 3, None])
def test_bad_prior_is_refused(prior):
    with pytest.raises(
        ValueError, match=r"prior = .* is not allowed: prior must be a prior, 'gaussian', 'rademacher' or"
    ):
        sv.MultiIndex("abs(z)", prior=prior)


@pytest.mark.parametrize(
    "target, message",
    [
        ("abs(z", r"column 4"),
        ("foo(z)", r"unknown function 'foo'.*column 1"),
        ("2", r"a constant: it must use z"),
        (3, r"target = 3 is not allowed: target must be a formula such as 'abs\(z\)'"),
        ("log(z)", r"not a number at z = "),
    ],
)
def test_bad_target_is_refused(target, message):
    with pytest.raises(sv.TargetError, match=message):
        sv.MultiIndex(target)


@pytest.mark.parametrize(
    "target, message", [("1/z", "infinite variance"), ("exp(z**2)", "grows too fast"), ("z/0", "is infinite on a set")]
)
def test_target_without_a_theory_is_refused(target, message):
    with pytest.raises(sv.TargetError, match=message):
        sv.predict(sv.MultiIndex(target), AMP, alpha=1.0)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, [0.5, -0.5]])
def test_bad_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha = .* is not allowed: alpha must be finite and not negative"):
        sv.predict(ABS, AMP, alpha=alpha)


@pytest.mark.parametrize("alpha", ["one", None, True, 1j, []])
def test_alpha_that_is_no_number_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha = .* is not allowed: alpha must be a number or an array of numbers"):
        sv.predict(ABS, AMP, alpha=alpha)


def test_a_named_channel_brings_its_own_noise():
    with pytest.raises(
        ValueError, match=r"noise must be 0 with the named channel Probit\(noise=0.5\), which has its own"
    ):
        sv.MultiIndex(sv.channels.Probit(noise=0.5), noise=0.1)
    with pytest.raises(ValueError, match="noise = -1.0 is not allowed: noise must be a variance"):
        sv.channels.Probit(noise=-1.0)
