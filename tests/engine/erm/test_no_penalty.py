"""A strength of zero as the limit of a vanishing one, in theory and in runs: margins, least norms, no minimum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import nnls
from scipy.special import ndtr

import solvable as sv
from solvable.channels.losses import has_single_minimum
from solvable.core.status import Status
from solvable.engine.erm.direct import minimise

L = sv.losses
SIGNS = sv.MultiIndex("sign(z)")
FLIPPED = sv.MultiIndex("sign(z)", contamination=sv.Contamination(0.2, slope=-1.0))
# Two equal components: the theory of labels with outliers, and this one, share compiled programs.
LINEAR = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.5, 1.0, 0.1))
LINEAR_NOISELESS = sv.MultiIndex("z")
MOSTLY_EXACT = sv.MultiIndex("z", contamination=sv.Contamination(0.1, 0.0, 5.0))
SPARSE = "gauss-bernoulli:0.2"
SPARSE_NOISY = sv.MultiIndex("z", noise=0.05, prior=SPARSE)


def insensitive(y, z):
    return jnp.maximum(jnp.abs(y - z) - 0.5, 0.0)


def shifted(y, z):
    return (y - z - 1) ** 2 / 2


def squared_hinge(y, z):
    return jnp.maximum(1 - y * z, 0.0) ** 2


def close(here: sv.Prediction, there: sv.Prediction, rel: float, names=("cosine", "estimation_error", "replicon")):
    for name in names:
        assert here[name] == pytest.approx(there[name], rel=rel), name


def density(x: float) -> float:
    return float(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_the_hinge_loss_on_separable_classes_has_the_largest_margin(alpha):
    """With t = y omega and u = y z > 0: m (1 - S) = alpha E[u (1 - t)_+], q = m^2 + alpha E[(1 - t)_+^2], by SciPy."""
    found = sv.predict(SIGNS, sv.ERM(L.Hinge(), 0.0), alpha=alpha)
    assert found.converged and found.order_parameters["V"] == np.inf and found["training_loss"] == 0
    m, q = found.order_parameters["m"], found.order_parameters["q"]
    s = np.sqrt(q - m**2)

    def mean(given_u) -> float:
        """The average over u of an average over t ~ N(m u, s^2), in terms of a = (1 - m u)/s."""
        return quad(lambda u: 2 * density(u) * given_u(u, (1 - m * u) / s), 0, 12, epsabs=1e-12, limit=200)[0]

    share = alpha * mean(lambda u, a: ndtr(a))
    push = alpha * mean(lambda u, a: u * s * (a * ndtr(a) + density(a)))
    power = alpha * mean(lambda u, a: s**2 * ((1 + a**2) * ndtr(a) + a * density(a)))
    assert m * (1 - share) == pytest.approx(push, rel=1e-6)
    assert q == pytest.approx(m**2 + power, rel=1e-6)
    assert found["replicon"] == pytest.approx(share, rel=1e-6)


def test_few_noisy_classes_are_separated_and_many_are_not():
    edge = sv.thresholds(FLIPPED, sv.ERM("hinge", 0.0))["separability"]
    found = sv.predict(FLIPPED, sv.ERM("hinge", 0.0), alpha=edge * np.array([0.8, 1.2]))
    assert found.converged.all() and found["training_loss"][0] == 0 < found["training_loss"][1]
    assert list(np.isinf(found.order_parameters["V"])) == [True, False]
    found = sv.predict(FLIPPED, sv.ERM("logistic", 0.0), alpha=edge * np.array([0.8, 1.2]), throw=False)
    assert list(found.status) == [Status.DIVERGED, Status.CONVERGED]


def test_a_minimum_at_infinity_says_what_to_try():
    with pytest.raises(sv.ConvergenceError, match="the minimum lies at infinity, as for separable classes.*positive"):
        sv.predict(SIGNS, sv.ERM("logistic", 0.0), alpha=2.0)
    with pytest.raises(sv.ConvergenceError, match="the replicon is above 1 or the proximal operator has several"):
        sv.predict(LINEAR, sv.ERM("tukey:3", 0.001), alpha=0.5)
    for loss in ("square", "tukey:3"):
        with pytest.raises(sv.ConvergenceError, match="a ridge this negative leaves the risk without a minimum"):
            sv.predict(LINEAR, sv.ERM(loss, -9.0), alpha=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("loss, alpha", [(insensitive, 0.6), (insensitive, 2.0), (shifted, 0.5)])
def test_losses_with_other_minima_do_not_interpolate(loss, alpha):
    found, weak = (sv.predict(LINEAR, sv.ERM(loss, strength), alpha=alpha) for strength in (0.0, 1e-5))
    assert found.converged and found.order_parameters["V"] == np.inf
    close(found, weak, 3e-4)
    assert found["training_loss"] == pytest.approx(0, abs=1e-12)
    if alpha < 1:
        least = sv.predict(LINEAR, sv.ERM("square", 0.0), alpha=alpha)
        assert abs(found["estimation_error"] - least["estimation_error"]) > 0.02


@pytest.mark.slow
def test_the_least_norm_with_more_labels_than_weights_is_the_loss_itself():
    """Labels that cannot be fitted determine the minimum, and V is finite."""
    found = sv.predict(LINEAR, sv.ERM(insensitive, 0.0), alpha=8.0)
    assert found.converged and found.order_parameters["V"] < 10 and found["training_loss"] > 1e-3


def quartic(y, z):
    return (y - z) ** 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "loss, single",
    [("huber:0.01", True), ("square", True), ("absolute", True), ("tukey:3", True), ("cosine:1", True)]
    + [(quartic, True), (shifted, False), ("hinge", False), ("logistic", False), (insensitive, False)],
)
def test_minima_at_zero_only_are_told_from_others(loss, single):
    assert has_single_minimum(L.as_loss(loss)) == single


def soft_moments(threshold: float, tau: float, slope: float, rho: float) -> tuple[float, float, float]:
    """P(w != 0), E[w* w] and E[w^2] of w = soft(slope w* + tau x, threshold), a share rho of w* being N(0, 1/rho)."""
    total = np.zeros(3)
    for weight, variance in ((1 - rho, 0.0), (rho, 1 / rho)):
        S = np.sqrt(slope**2 * variance + tau**2)
        t = threshold / S
        P = 2 * ndtr(-t)
        total += weight * np.array([P, slope * variance * P, S**2 * ((1 + t**2) * P - 2 * t * density(t))])
    return tuple(total)


@pytest.mark.parametrize("loss", ["square", "huber:0.3", "absolute"])
@pytest.mark.parametrize("noise, alpha", [(0.05, 0.3), (0.05, 0.9), (0.0, 0.4)])
def test_a_vanishing_lasso_is_the_least_l1_norm(loss, noise, alpha):
    """As many weights as labels, and alpha tau^2 = E[(y - omega)^2], for every loss with its minimum at zero."""
    model = sv.MultiIndex("z", noise=noise, prior=SPARSE)
    found = sv.predict(model, sv.ERM(loss, sv.Lasso(0.0)), alpha=alpha)
    assert found.converged and found["active_fraction"] == pytest.approx(alpha, abs=1e-12)
    assert found["training_loss"] == 0 and found["replicon"] == 1
    q = found.order_parameters["q"]
    tau = np.sqrt((noise + found["estimation_error"]) / alpha)
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if soft_moments(middle, tau, 1.0, 0.2)[0] > alpha else (low, middle)
    assert soft_moments(low, tau, 1.0, 0.2)[1:] == pytest.approx((found.order_parameters["m"], q), rel=1e-9)


@pytest.mark.slow
def test_a_small_lasso_is_near_its_limit():
    weak, found = (sv.predict(SPARSE_NOISY, sv.ERM("square", sv.Lasso(s)), alpha=0.5) for s in (1e-5, 0.0))
    close(found, weak, 1e-4)


@pytest.mark.slow
def test_sparse_weights_are_recovered_from_the_threshold_on():
    """Beyond it the error is zero, and the response that of a small lasso."""
    model = sv.MultiIndex("z", prior=SPARSE)
    learner = sv.ERM("square", sv.Lasso(0.0))
    edge = sv.thresholds(model, learner)["recovery"]
    found = sv.predict(model, learner, alpha=np.array([edge - 0.02, edge - 1e-9, edge + 1e-9, 0.7, 1.0]))
    assert found.converged.all()
    assert found["estimation_error"][0] > 1e-3 and np.all(found["estimation_error"][1:] < 1e-7)
    weak = sv.predict(model, sv.ERM("square", sv.Lasso(1e-4)), alpha=0.7)
    assert found["replicon"][3] == pytest.approx(weak["replicon"], rel=1e-3)
    assert found.order_parameters["V"][3] == pytest.approx(weak.order_parameters["V"], rel=1e-3)


@pytest.mark.slow
def test_as_many_samples_as_weights_determine_any_weights():
    exact = sv.predict(LINEAR_NOISELESS, sv.ERM("square", sv.Lasso(0.0)), alpha=1.0)
    assert exact.converged and exact["estimation_error"] < 1e-20


@pytest.mark.parametrize(
    "model, learner",
    [
        pytest.param(MOSTLY_EXACT, sv.ERM("absolute", 0.0), id="absolute", marks=pytest.mark.slow),
        pytest.param(MOSTLY_EXACT, sv.ERM("absolute", 1e-3), id="absolute, weak ridge", marks=pytest.mark.slow),
        pytest.param(LINEAR_NOISELESS, sv.ERM("square", 0.0), id="square"),
    ],
)
def test_no_error_is_negative_where_nothing_is_left_to_learn(model, learner):
    found = sv.predict(model, learner, alpha=np.array([1.0, 2.0, 3.0, 10.0]), throw=False)
    good = found.converged
    assert good[1:].all() and np.all(found["cosine"][good] <= 1)
    for name in ("estimation_error", "generalization_error"):
        assert np.all(found[name][good] >= 0) and np.all(found[name][1:] < 1e-9)


@pytest.mark.parametrize(
    "model, loss, penalty",
    [
        pytest.param(SPARSE_NOISY, "square", sv.Lasso(0.0), id="lasso", marks=pytest.mark.slow),
        pytest.param(LINEAR, "square", sv.Ridge(0.0), id="ridge"),
        pytest.param(SIGNS, "hinge", sv.Ridge(0.0), id="hinge"),
    ],
)
def test_single_samples_are_fitted_without_penalty(model, loss, penalty):
    found = sv.predict(model, sv.ERM(loss, penalty), alpha=np.array([0.0, 1e-3]))
    assert found.converged.all() and np.all(found["training_loss"] < 1e-9)
    assert found["estimation_error"][0] == 1


@pytest.mark.slow
def test_no_samples_for_a_loss_with_several_proximal_values():
    """At alpha = 0 a ridge of 0.1 has V = 10: as unstable for Tukey's loss as just above."""
    found = sv.predict(LINEAR, sv.ERM("tukey:3", 0.1), alpha=np.array([0.0, 1e-6]), throw=False)
    assert list(found.status) == [Status.UNSTABLE] * 2
    assert sv.predict(LINEAR, sv.ERM("tukey:3", 1.0), alpha=0.0).converged


def fitted(model: sv.MultiIndex, loss, penalty, alpha: float, d: int = 80):
    """One data set and the minimum on it."""
    data = model.sample(np.random.default_rng(3), d, alpha=alpha)
    with jax.enable_x64(True):
        return data, minimise(data.X, data.y, L.as_loss(loss), penalty)


@pytest.mark.parametrize(
    "loss, precision", [(L.Hinge(), 1e-6), pytest.param(squared_hinge, 1e-4, marks=pytest.mark.slow)]
)
def test_runs_find_the_largest_margin(loss, precision):
    """Every margin is at least one, and the weights are a sum of the samples that touch it with positive factors."""
    data, found = fitted(SIGNS, loss, sv.Ridge(0.0), 1.5)
    rows = data.y[:, None] * data.X
    margins = rows @ found.estimate
    assert found.converged and margins.min() > 1 - precision
    touching = rows[margins < 1 + 1e-4]
    assert nnls(touching.T, found.estimate)[1] < 1e-3 * np.linalg.norm(found.estimate)


@pytest.mark.slow
def test_runs_find_the_least_norm_of_a_loss_that_ignores_small_residuals():
    data, found = fitted(LINEAR, insensitive, sv.Ridge(0.0), 1.2)
    residual = data.y - data.X @ found.estimate
    assert found.converged and np.abs(residual).max() < 0.5 + 1e-6
    touching = np.abs(residual) > 0.5 - 1e-5
    rows = np.sign(residual[touching])[:, None] * data.X[touching]
    assert nnls(rows.T, found.estimate)[1] < 1e-3 * np.linalg.norm(found.estimate)


@pytest.mark.parametrize("loss", ["square", "absolute", "huber:0.5"])
def test_runs_find_the_least_l1_norm(loss):
    """A vector in the row space with entries sign(w) where w is not zero, and at most 1 elsewhere, certifies it."""
    data, found = fitted(SPARSE_NOISY, loss, sv.Lasso(0.0), 0.6)
    w = found.estimate
    assert found.converged and np.abs(data.y - data.X @ w).max() < 1e-8
    on = np.abs(w) > 1e-9
    assert on.sum() == len(data.y)
    certificate = data.X.T @ np.linalg.solve(data.X[:, on].T, np.sign(w[on]))
    assert np.abs(certificate).max() < 1 + 1e-8


def test_runs_with_a_minimum_at_infinity_are_not_converged():
    assert not fitted(SIGNS, "logistic", sv.Ridge(0.0), 1.5)[1].converged
    assert fitted(FLIPPED, "logistic", sv.Ridge(0.0), 6.0)[1].converged


def test_a_run_with_every_sample_at_a_kink_has_a_replicon():
    run = sv.simulate(sv.MultiIndex("z", prior="rademacher"), sv.ERM("absolute", sv.Lasso(0.0)), alpha=0.6, d=50)
    assert run.converged and run["replicon"] == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, loss, penalty, alpha",
    [
        (SIGNS, "hinge", sv.Ridge(0.0), 2.0),
        (FLIPPED, "hinge", sv.Ridge(0.0), 1.0),
        (FLIPPED, "hinge", sv.Ridge(0.0), 4.0),
        (SIGNS, squared_hinge, sv.Ridge(0.0), 2.0),
        (SIGNS, "hinge", sv.Lasso(0.0), 1.0),
        (LINEAR, insensitive, sv.Ridge(0.0), 0.9),
        (SPARSE_NOISY, "huber:0.5", sv.Lasso(0.0), 0.6),
        (sv.MultiIndex("z", noise=0.05, prior="rademacher"), "absolute", sv.Lasso(0.0), 0.6),
    ],
    ids=["margin", "noisy margin", "not separable", "squared hinge", "l1 margin", "insensitive", "sparse", "dense"],
)
@pytest.mark.parametrize("d, seeds", [(150, 48), (400, 16)])
def test_runs_agree_with_theory(model, loss, penalty, alpha, d, seeds):
    learner = sv.ERM(loss, penalty)
    theory = sv.predict(model, learner, alpha=alpha)
    runs = [sv.simulate(model, learner, alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
    assert all(run.converged for run in runs)
    for name in ("cosine", "estimation_error", "training_loss"):
        values = np.array([run[name] for run in runs])
        error = values.std(ddof=1) / np.sqrt(seeds)
        assert abs(values.mean() - theory[name]) < 4 * error + 2 * abs(theory[name]) / d + 1e-7, name
