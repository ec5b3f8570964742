"""Empirical risk minimisation where the answer is known: closed forms, no data, much data, edges, and symmetries."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import solvable as sv
from solvable.core.learners import BayesOptimal

losses = sv.losses
ABSOLUTE = pytest.param("absolute", marks=pytest.mark.slow)
"""A loss that is compiled for itself."""


def two(target: str, noise: float) -> sv.MultiIndex:
    """Clean labels as two equal components: all models here have two, and share compiled programs."""
    return sv.MultiIndex(target, noise=noise, contamination=sv.Contamination(0.5, 1.0, noise))


LINEAR = two("z", 0.3)
OUTLIERS = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, 0.0, 5.0))
SKEWED = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.35, -0.4, 5.0))
SIGN = sv.MultiIndex("sign(z)")


def values(found: sv.Prediction) -> dict:
    return found.metrics | found.order_parameters


def same(here: sv.Prediction, there: sv.Prediction, rel=1e-8):
    assert values(here) == pytest.approx(values(there), rel=rel, abs=1e-11)


def square_by_hand(components, strength: float, alpha: float) -> dict:
    """The closed form for any mixture (p, beta, Delta), from S = V V_hat."""
    p, beta, Delta = np.array(components).T
    c = p @ beta
    D = p @ Delta + p @ beta**2 - c**2
    roots = np.roots([1.0, -(1 + alpha + strength), alpha])  # strength S = (alpha - S)(1 - S)
    S = np.min(roots.real)
    q = (S**2 * c**2 + S**2 / alpha * (D + c**2 * (1 - 2 * S))) / (1 - S**2 / alpha)
    return {"m": c * S, "q": q, "V": S / (alpha - S), "replicon": S**2 / alpha, "estimation_error": 1 - 2 * c * S + q}


@pytest.mark.parametrize("model", [LINEAR, OUTLIERS, SKEWED], ids=["clean", "outliers", "skewed"])
@pytest.mark.parametrize("strength, alpha", [(0.5, 2.0), (1e-6, 0.5), (30.0, 0.1), (-0.3, 3.0), (1.0, 1.0), (2.0, 1e4)])
def test_square_loss_is_the_closed_form(model, strength, alpha):
    found = values(sv.predict(model, sv.ERM("square", strength), alpha=alpha))
    for name, value in square_by_hand(model.components, strength, alpha).items():
        assert found[name] == pytest.approx(value, rel=1e-8), name


def square(y, z):
    return (y - z) ** 2 / 2


@pytest.mark.slow
@pytest.mark.parametrize("strength, alpha", [(0.5, 2.0), (0.01, 0.5), (-0.3, 3.0)])
def test_square_loss_written_out_gives_the_closed_form(strength, alpha):
    """The generic solver against the closed form."""
    custom = sv.ERM(square, strength)
    same(sv.predict(SKEWED, custom, alpha=alpha), sv.predict(SKEWED, sv.ERM("square", strength), alpha=alpha))


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
def test_ridge_of_the_noise_is_bayes_optimal(noise):
    alpha = np.array([0.2, 1.0, 4.0])
    model = sv.MultiIndex("z", noise=noise)
    ridge, bayes = sv.predict(model, sv.ERM(penalty=noise), alpha=alpha), sv.predict(model, BayesOptimal(), alpha=alpha)
    assert ridge["estimation_error"] == pytest.approx(bayes["estimation_error"], abs=1e-9)
    assert ridge.order_parameters["m"] == pytest.approx(ridge.order_parameters["q"], abs=1e-12)
    for other in (0.5 * noise, 2 * noise):
        assert np.all(
            sv.predict(model, sv.ERM(penalty=other), alpha=alpha)["estimation_error"] > ridge["estimation_error"]
        )


@pytest.mark.parametrize("loss", ["square", "huber:0.8", ABSOLUTE])
def test_no_data(loss):
    learner = sv.ERM(loss, 0.3)
    found = sv.predict(OUTLIERS, learner, alpha=0.0)
    assert found.converged and found["cosine"] == 0 and found["estimation_error"] == 1
    assert found.order_parameters["q"] == 0 and found["replicon"] == 0
    near = sv.predict(OUTLIERS, learner, alpha=1e-7)
    assert near["estimation_error"] == pytest.approx(1, abs=1e-5)
    assert near["training_loss"] == pytest.approx(found["training_loss"], rel=1e-4)
    assert near.order_parameters["V"] == pytest.approx(found.order_parameters["V"], rel=1e-4)


def test_no_data_for_classes():
    found = sv.predict(SIGN, sv.ERM("hinge", 0.5), alpha=0.0)
    assert found.converged and found["estimation_error"] == 1 and found["classification_error"] == pytest.approx(0.5)


@pytest.mark.parametrize("loss", ["square", "huber:0.8", ABSOLUTE])
def test_much_data_determine_the_weights(loss):
    """The error falls as 1/alpha, with the factor of maximum likelihood theory: E[l'^2] / E[l'']^2."""
    from scipy.special import ndtr

    s, a = np.sqrt(0.3), 0.8
    inside = 2 * ndtr(a / s) - 1
    density = np.exp(-((a / s) ** 2) / 2) / np.sqrt(2 * np.pi)
    power = s**2 * (inside - 2 * a / s * density) + a**2 * (1 - inside)
    factors = {"square": 0.3, "huber:0.8": power / inside**2, "absolute": 0.3 * np.pi / 2}
    found = sv.predict(LINEAR, sv.ERM(loss, 0.1), alpha=1e5)
    assert found.converged and 1e5 * found["estimation_error"] == pytest.approx(factors[loss], rel=1e-3)


@pytest.mark.parametrize("loss", ["huber:0.7", ABSOLUTE])
def test_without_penalty_and_with_few_samples_the_labels_are_interpolated(loss):
    """Every convex loss of the residual has the limit of least norm, where the residuals vanish."""
    alpha = np.array([0.2, 0.7])
    found, square = (sv.predict(OUTLIERS, sv.ERM(each, 0.0), alpha=alpha) for each in (loss, "square"))
    assert np.all(found.converged) and np.all(found["training_loss"] == 0)
    for name in ("estimation_error", "cosine"):
        assert found[name] == pytest.approx(square[name], rel=1e-10)
    # The closed form at S = alpha.
    slope, power = 0.7, 0.7 * 1.1 + 0.3 * 5.0
    q = (alpha**2 * slope**2 + alpha * (power - slope**2 + slope**2 * (1 - 2 * alpha))) / (1 - alpha)
    assert found.order_parameters["q"] == pytest.approx(q, rel=1e-10)
    weak = sv.predict(OUTLIERS, sv.ERM(loss, 1e-6), alpha=alpha)
    assert weak["estimation_error"] == pytest.approx(found["estimation_error"], rel=1e-4)


@pytest.mark.parametrize("loss", ["square", "huber:0.7", ABSOLUTE])
def test_the_interpolation_threshold_is_not_converged(loss):
    found = sv.predict(OUTLIERS, sv.ERM(loss, 0.0), alpha=np.array([0.9, 1.0, 1.5]))
    assert list(found.converged) == [True, False, True]
    with pytest.raises(sv.ConvergenceError):
        sv.predict(OUTLIERS, sv.ERM(loss, 0.0), alpha=1.0)


def test_negative_ridges_beyond_the_edge_are_refused():
    for alpha in (1.5, 3.0, 10.0):
        edge = -((np.sqrt(alpha) - 1) ** 2)
        assert sv.predict(SKEWED, sv.ERM(penalty=0.99 * edge), alpha=alpha).converged
        found = sv.predict(SKEWED, sv.ERM(penalty=1.01 * edge), alpha=alpha, throw=False)
        assert found.status == sv.Status.OUT_OF_DOMAIN and not found.converged
        with pytest.raises(sv.ConvergenceError, match="outside the range where the theory holds"):
            sv.predict(SKEWED, sv.ERM(penalty=1.01 * edge), alpha=alpha)
    for alpha in (0.0, 0.5, 1.0):
        assert not sv.predict(SKEWED, sv.ERM(penalty=-1e-3), alpha=alpha, throw=False).converged


def test_negative_ridges_too_large_for_a_robust_loss_are_never_converged():
    """Huber(1), alpha = 3, ridge -0.3: the iteration runs to V < 0; beyond it there is nothing to find."""
    found = [sv.predict(OUTLIERS, sv.ERM("huber:1", s), alpha=3.0, throw=False) for s in (-0.3, -1.0, -5.0)]
    assert all(each.status == sv.Status.OUT_OF_DOMAIN and np.isnan(each["estimation_error"]) for each in found)


def test_losses_that_are_not_convex_are_flagged_where_many_minima_compete():
    """Tukey(3), alpha = 3: at ridge -0.1 message passing does not converge and descent ends elsewhere.

    The unstable fixed point is m = 1.022853, q = 1.703733, V = 1.138946, with replicon 1.40887: by SciPy's adaptive
    quadrature over the residual after the proximal step.
    """
    stable = sv.predict(OUTLIERS, sv.ERM("tukey:3", 0.1), alpha=3.0)
    assert stable.converged and stable["replicon"] < 1 and stable.order_parameters["V"] < 1.25
    found = sv.predict(OUTLIERS, sv.ERM("tukey:3", -0.1), alpha=3.0, throw=False)
    assert found.status == sv.Status.UNSTABLE and not found.converged
    assert found["replicon"] == pytest.approx(1.4088717, abs=5 * found.uncertainty["replicon"])
    assert found.order_parameters["V"] == pytest.approx(1.1389456, abs=1e-6)
    with pytest.raises(sv.ConvergenceError, match="not stable"):
        sv.predict(OUTLIERS, sv.ERM("tukey:3", -0.1), alpha=3.0)


def test_no_point_with_several_proximal_values_is_converged():
    """Over a grid of ridges and sizes: converged implies replicon < 1, and V < 5/4 for Tukey."""
    alpha = np.geomspace(0.3, 30, 9)
    for strength in (-0.3, 0.02, 0.3):
        found = sv.predict(OUTLIERS, sv.ERM("tukey:3", strength), alpha=alpha, throw=False)
        good = found.converged
        assert np.all(found["replicon"][good] < 1) and np.all(found.order_parameters["V"][good] < 1.25)
        assert np.all(np.isfinite(found["estimation_error"][good]))
    assert good.any()


def huber(y, z):
    r = jnp.abs(y - z)
    return jnp.where(r < 0.8, r**2 / 2, 0.8 * r - 0.32)


def absolute(y, z):
    return jnp.abs(y - z)


def hinge(y, z):
    return jnp.maximum(0.0, 1 - y * z)


def logistic(y, z):
    return jnp.logaddexp(0.0, -y * z)


@pytest.mark.parametrize(
    "model, written, built_in",
    [
        pytest.param(OUTLIERS, huber, "huber:0.8", id="huber", marks=pytest.mark.slow),
        pytest.param(OUTLIERS, absolute, "absolute", id="absolute", marks=pytest.mark.slow),
        pytest.param(SIGN, hinge, "hinge", id="hinge", marks=pytest.mark.slow),
        pytest.param(SIGN, logistic, "logistic", id="logistic", marks=pytest.mark.slow),
    ],
)
def test_losses_written_out_give_the_numbers_of_built_in_ones(model, written, built_in):
    same(*(sv.predict(model, sv.ERM(loss, 0.1), alpha=2.0) for loss in (written, built_in)))


@pytest.mark.slow
def test_logistic_regression_written_without_the_margin():
    """log(1 + e^z) - (1 + y) z / 2 is the logistic loss at y = +-1, and not a function of y z elsewhere.

    It does not say that the prediction is sign(z), so the mean squared error is that of z itself.
    """

    def written(y, z):
        return jnp.logaddexp(0.0, z) - (1 + y) / 2 * z

    here, there = (values(sv.predict(SIGN, sv.ERM(loss, 0.1), alpha=2.0)) for loss in (written, "logistic"))
    m, q = here["m"], here["q"]
    assert here.pop("generalization_error") == pytest.approx(1 - 2 * m * np.sqrt(2 / np.pi) + q)
    assert there.pop("generalization_error") == pytest.approx(4 * there["classification_error"])
    assert here == pytest.approx(there, rel=1e-7)


@pytest.mark.parametrize("loss", ["square", "huber:0.8", ABSOLUTE])
def test_a_reversed_target_reverses_the_overlap(loss):
    here, there = (sv.predict(two(t, 0.3), sv.ERM(loss, 0.2), alpha=1.7) for t in ("z", "-z"))
    assert there["cosine"] == pytest.approx(-here["cosine"], rel=1e-9)
    assert there.order_parameters["m"] == pytest.approx(-here.order_parameters["m"], rel=1e-9)
    for name in ("generalization_error", "training_loss", "replicon", "squared_overlap"):
        assert there[name] == pytest.approx(here[name], rel=1e-9)


def test_reversed_classes_reverse_the_overlap():
    here, there = (sv.predict(sv.MultiIndex(t), sv.ERM("hinge", 0.1), alpha=2.0) for t in ("sign(z)", "-sign(z)"))
    assert there["cosine"] == pytest.approx(-here["cosine"], rel=1e-8)
    assert there["classification_error"] == pytest.approx(here["classification_error"], rel=1e-8)


@pytest.mark.parametrize("factor", [1e-2, 3.0, 40.0])
def test_labels_in_other_units(factor):
    """Labels, their noise and the loss's scale in other units: m and q follow, V and the replicon do not change."""
    here = sv.predict(SKEWED, sv.ERM("huber:0.8", 0.2), alpha=1.7)
    parts = [sv.Contamination(p, beta, factor**2 * D) for p, beta, D in SKEWED.components[1:]]
    scaled = sv.MultiIndex(f"{factor}*z", noise=factor**2 * 0.1, contamination=parts)
    there = sv.predict(scaled, sv.ERM(losses.Huber(0.8 * factor), 0.2), alpha=1.7)
    assert there["cosine"] == pytest.approx(here["cosine"], rel=1e-8)
    assert there["replicon"] == pytest.approx(here["replicon"], rel=1e-8)
    assert there["training_loss"] == pytest.approx(factor**2 * here["training_loss"], rel=1e-8)
    assert there.order_parameters["q"] == pytest.approx(factor**2 * here.order_parameters["q"], rel=1e-8)
    assert there.order_parameters["V"] == pytest.approx(here.order_parameters["V"], rel=1e-8)


@pytest.mark.slow
def test_the_absolute_loss_in_other_units_has_another_ridge():
    """|c r| = c |r|: multiplying labels by c is dividing the ridge by c."""
    here = sv.predict(two("z", 0.3), sv.ERM("absolute", 0.3), alpha=1.7)
    there = sv.predict(two("3*z", 2.7), sv.ERM("absolute", 0.1), alpha=1.7)
    assert there["cosine"] == pytest.approx(here["cosine"], rel=1e-8)
    assert there["training_loss"] == pytest.approx(3 * here["training_loss"], rel=1e-8)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(noise=st.floats(0.01, 10), share=st.floats(0, 0.5), outlier=st.floats(0, 20))
def test_more_data_never_hurt_the_best_ridge(noise, share, outlier):
    """With the best strength, D for unit slope, the error falls with alpha; it is at most that of no estimate."""
    model = sv.MultiIndex("z", noise=noise, contamination=sv.Contamination(share, 1.0, outlier))
    best = (1 - share) * noise + share * outlier
    errors = sv.predict(model, sv.ERM(penalty=best), alpha=np.geomspace(0.01, 100, 25))["estimation_error"]
    assert np.all(np.diff(errors) < 1e-12) and np.all(errors < 1)


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), -1.0])
def test_sizes_that_are_no_numbers_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        sv.predict(LINEAR, sv.ERM("huber", 0.1), alpha=alpha)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sv.ERM("square", float("nan")),
        lambda: sv.ERM(losses.Huber(float("nan"))),
        lambda: sv.ERM(penalty=sv.Lasso(float("nan"))),
        lambda: sv.MultiIndex("z", noise=float("nan")),
        lambda: sv.ERM(lambda y, z: (y - z) ** 2 * float("nan")),
    ],
)
def test_parameters_that_are_no_numbers_are_refused(make):
    with pytest.raises(ValueError, match="is not allowed"):
        make()


def test_a_solver_that_does_not_exist_is_refused_in_plain_words():
    with pytest.raises(ValueError) as caught:
        sv.ERM(solver="adam")
    assert str(caught.value).startswith("solver = 'adam' is not allowed: solver must be ")


def test_a_classification_loss_for_other_labels_is_refused_in_plain_words():
    with pytest.raises(ValueError, match="it takes the labels -1 and 1, and these are infinitely many"):
        sv.predict(LINEAR, sv.ERM("hinge"), alpha=1.0)
    with pytest.raises(ValueError, match="and these are 0, 1"):
        sv.predict(sv.MultiIndex("step(z)"), sv.ERM("logistic"), alpha=1.0)


def test_several_projections_are_not_solved():
    with pytest.raises(sv.NotSolvable, match="one projection"):
        sv.predict(sv.MultiIndex("z1*z2"), sv.ERM(), alpha=1.0)


@pytest.mark.parametrize("strength", [10.0, 1e6])
def test_too_strong_a_lasso_leaves_an_estimate_of_zero(strength):
    """Where even the largest field of a weight is below the strength: what knowing nothing gives."""
    found = sv.predict(sv.MultiIndex("z", noise=0.3), sv.ERM("square", sv.Lasso(strength)), alpha=0.1)
    zero = [*(found[name] for name in ("cosine", "squared_overlap", "active_fraction")), found.order_parameters["q"]]
    assert max(map(abs, zero)) < 1e-60
    assert [found["estimation_error"], found["generalization_error"]] == pytest.approx([1.0, 1.0], rel=1e-11)
    assert found["training_loss"] == pytest.approx(1.3 / 2, rel=1e-11)
    assert all(np.isfinite(part).all() for part in found.uncertainty.values())


def test_a_strong_lasso_goes_over_into_zero():
    """The error as a function of the strength has no jump where the estimate is zero but for rounding."""
    learners = [sv.ERM("square", sv.Lasso(strength)) for strength in (4.0, 6.0, 8.0, 9.0)]
    found = [sv.predict(sv.MultiIndex("z", noise=0.3), learner, alpha=0.1) for learner in learners]
    assert [float(one["estimation_error"]) for one in found] == pytest.approx([1.0] * 4, abs=1e-11)
