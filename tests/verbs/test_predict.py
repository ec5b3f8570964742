"""`predict` on the toy model: shapes, statuses, errors, the NaN guard, derivatives in an axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import ridge as toy
from toys.probes import ANSWER, PointProbe, Probe, Spiked

import solvable as sv

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)


@pytest.fixture
def answer():
    yield ANSWER
    ANSWER.clear()


def test_a_number_gives_python_numbers():
    found = sv.predict(MODEL, RIDGE, alpha=1.3)
    assert type(found["overlap"]) is float
    assert type(found.order_parameters["resolvent"]) is float
    assert type(found.uncertainty["overlap"]) is float
    assert type(found.residual) is float and type(found.iterations) is int
    assert found.status is sv.Status.CONVERGED and found.converged is True


def test_closed_form_in_double_precision():
    expected, _ = toy.ridge(1.3, 0.25, 0.5, np)
    found = sv.predict(MODEL, RIDGE, alpha=1.3)
    assert found["estimation_error"] == pytest.approx(expected["estimation_error"], rel=1e-14)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3)])
@pytest.mark.parametrize("learner", [RIDGE, toy.RidgeByHand(penalty=0.5)])
def test_arrays_keep_their_shape(shape, learner):
    alpha = np.linspace(0.5, 2, int(np.prod(shape))).reshape(shape)
    found = sv.predict(MODEL, learner, alpha=alpha)
    assert found["overlap"].shape == shape and found["overlap"].dtype == np.float64
    assert found.status.shape == shape and found.status.dtype.kind == "i"
    assert found.converged.all()
    points = [sv.predict(MODEL, learner, alpha=a)["overlap"] for a in alpha.ravel()]
    np.testing.assert_allclose(found["overlap"].ravel(), points, rtol=1e-14)


def test_lists_and_integers_are_numbers():
    assert sv.predict(MODEL, RIDGE, alpha=[1, 2])["overlap"].shape == (2,)
    assert sv.predict(MODEL, RIDGE, alpha=2)["overlap"] == sv.predict(MODEL, RIDGE, alpha=2.0)["overlap"]


def test_a_model_without_axes():
    found = sv.predict(Spiked(), Probe())
    assert found["overlap"] == 0.5 and found["matrix"].shape == (2, 2)


def test_matrices_follow_the_shape_of_the_axis(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": alpha[:, None, None] * np.eye(2)})
    assert sv.predict(MODEL, Probe(), alpha=[1.0, 2.0, 3.0])["overlap"].shape == (3, 2, 2)
    assert sv.predict(MODEL, Probe(), alpha=2.0)["overlap"].shape == (2, 2)


def test_a_theory_of_the_wrong_shape_or_type_is_refused(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": np.zeros(5)})
    with pytest.raises(ValueError, match=r"Regression x Probe theory returned overlap of shape \(5,\) for 2 points"):
        sv.predict(MODEL, Probe(), alpha=[1.0, 2.0])
    answer["theory"] = lambda alpha: {"overlap": 1.0}
    with pytest.raises(TypeError, match="Regression x Probe theory must return a Prediction; got dict"):
        sv.predict(MODEL, Probe(), alpha=1.0)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({}, r"missing axis alpha: Regression takes alpha \(n = alpha d\)\."),
        ({"alpha": 1.0, "kappa": 2.0}, r"unknown axis kappa: Regression takes alpha \(n = alpha d\)\."),
        ({"alpha": "many"}, "alpha = 'many' is not allowed: alpha must be a number or an array of numbers."),
        ({"alpha": None}, "alpha = None is not allowed"),
        ({"alpha": 1j}, "alpha = 1j is not allowed"),
        ({"alpha": []}, r"alpha = \[\] is not allowed"),
        ({"alpha": [[1.0], [1.0, 2.0]]}, "alpha = .* is not allowed: alpha must be a number or an array of numbers"),
        ({"alpha": -1.0}, "alpha = .* is not allowed: alpha must be finite and not negative"),
        ({"alpha": [1.0, np.nan]}, "alpha = .* is not allowed: alpha must be finite and not negative"),
    ],
)
def test_bad_axes(axes, message):
    with pytest.raises(ValueError, match=message):
        sv.predict(MODEL, RIDGE, **axes)


def test_axes_that_do_not_broadcast():
    class TwoAxes(sv.Model):
        axes = ("alpha", "kappa")
        scaling = "n = alpha d^kappa"

    sv.theory(TwoAxes, Probe)(lambda model, learner, alpha, kappa: sv.Prediction({"overlap": alpha * kappa}))
    with pytest.raises(ValueError, match=r"do not broadcast against each other: alpha \(2,\), kappa \(3,\)"):
        sv.predict(TwoAxes(), Probe(), alpha=np.ones(2), kappa=np.ones(3))
    product = sv.predict(TwoAxes(), Probe(), alpha=np.array([1.0, 2.0])[:, None], kappa=np.array([3.0, 4.0, 5.0]))
    np.testing.assert_allclose(product["overlap"], [[3, 4, 5], [6, 8, 10]])


@pytest.mark.parametrize(
    ("model", "learner", "message"),
    [
        ("abs(z)", RIDGE, r"model must be a Model, such as MultiIndex\('abs\(z\)'\); got str 'abs\(z\)'\."),
        (toy.Regression, RIDGE, r"got the class Regression; write Regression\(\.\.\.\) to make an instance"),
        (MODEL, toy.Ridge, r"learner must be a Learner, .* got the class Ridge; write Ridge\(\.\.\.\)"),
        (MODEL, "ridge", r"learner must be a Learner, such as BayesOptimal\(\); got str 'ridge'\."),
        (MODEL, MODEL, "learner must be a Learner"),
    ],
)
def test_wrong_kinds_of_things(model, learner, message):
    for verb in (lambda: sv.predict(model, learner, alpha=1.0), lambda: sv.simulate(model, learner, d=5, alpha=1.0)):
        with pytest.raises(TypeError, match=message):
            verb()


def test_a_pair_without_theory_names_the_learners_that_have_one():
    with pytest.raises(sv.NotSolvable, match="no theory is registered for Guess on Regression; .*Ridge"):
        sv.predict(MODEL, toy.Guess(), alpha=1.0)
    with pytest.raises(sv.NotSimulable, match="no algorithm is registered for Guess on Regression; .*Mean"):
        sv.simulate(MODEL, toy.Guess(), d=10, alpha=1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_metric_that_is_not_finite_is_never_converged(answer, bad):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": np.where(alpha > 1, bad, 0.5)})
    found = sv.predict(MODEL, Probe(), alpha=[0.5, 1.5])
    assert found.status.tolist() == [sv.Status.CONVERGED, sv.Status.NONFINITE]
    with pytest.raises(sv.ConvergenceError):
        sv.predict(MODEL, Probe(), alpha=1.5)
    assert sv.predict(MODEL, Probe(), alpha=1.5, throw=False).status is sv.Status.NONFINITE


def test_a_nan_inside_a_matrix_is_found(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": np.array([[[1.0, 0.0], [0.0, np.nan]]])})
    assert not sv.predict(MODEL, Probe(), alpha=1.0, throw=False).converged


def test_order_parameters_may_be_infinite_but_not_nan(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": 1.0}, {"field": np.where(alpha > 1, np.nan, np.inf)})
    assert sv.predict(MODEL, Probe(), alpha=[0.5, 1.5]).converged.tolist() == [True, False]


def test_another_failure_keeps_its_status(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": np.nan}, status=sv.Status.MAX_STEPS)
    assert sv.predict(MODEL, Probe(), alpha=1.0, throw=False).status is sv.Status.MAX_STEPS


def test_a_single_failure_says_what_happened_and_what_to_try(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": 0.1}, status=sv.Status.MAX_STEPS)
    with pytest.raises(sv.ConvergenceError) as caught:
        sv.predict(MODEL, Probe(), alpha=1.3)
    assert str(caught.value) == (
        "no prediction for Regression(noise=0.25), Probe(), alpha = 1.3: the step limit was reached before the "
        "tolerance; this happens close to a threshold; move away from it, or allow more steps. "
        "Use throw=False to get the values with their status."
    )
    assert sv.predict(MODEL, Probe(), alpha=[1.3])["overlap"] == 0.1


@pytest.mark.parametrize("learner", [Probe(), PointProbe()])
@pytest.mark.parametrize("error", [FloatingPointError, ZeroDivisionError, sv.ConvergenceError, np.linalg.LinAlgError])
def test_a_point_that_raises_does_not_take_the_others_down(answer, learner, error):
    def theory(alpha):
        if np.any(np.asarray(alpha) > 1):
            raise error("too much")
        return sv.Prediction({"overlap": alpha})

    answer["theory"] = theory
    with pytest.warns(RuntimeWarning, match=f"1 of 2 points failed; the first error: {error.__name__}: too much"):
        found = sv.predict(MODEL, learner, alpha=[0.5, 1.5])
    assert found.status.tolist() == [sv.Status.CONVERGED, sv.Status.NONFINITE]
    assert found["overlap"][0] == 0.5 and np.isnan(found["overlap"][1])
    with pytest.raises(sv.ConvergenceError, match="too much"):
        sv.predict(MODEL, learner, alpha=1.5)
    lost = sv.predict(MODEL, learner, alpha=1.5, throw=False)
    assert lost.status is sv.Status.NONFINITE and np.isnan(lost["estimation_error"])


@pytest.mark.parametrize("error", [ValueError, TypeError, sv.NotSolvable, sv.TargetError])
def test_errors_about_the_pair_are_not_swallowed(answer, error):
    def theory(alpha):
        raise error("never")

    answer["theory"] = theory
    with pytest.raises(error, match="never"):
        sv.predict(MODEL, Probe(), throw=False, alpha=[0.5, 1.5])


def test_double_precision_is_local():
    import jax.numpy as jnp

    sv.predict(MODEL, RIDGE, alpha=1.0)
    assert jnp.asarray(1.0).dtype == jnp.float32


def test_a_derivative_in_an_axis():
    with jax.enable_x64(True):
        slope = jax.grad(lambda alpha: sv.predict(MODEL, RIDGE, alpha=alpha)["estimation_error"])(1.3)
    above, below = (sv.predict(MODEL, RIDGE, alpha=1.3 + h)["estimation_error"] for h in (1e-5, -1e-5))
    assert float(slope) == pytest.approx((above - below) / 2e-5, rel=1e-8)


@pytest.mark.slow
def test_derivatives_of_points_one_by_one_are_those_of_an_array():
    def overlap(alpha):
        return sv.predict(MODEL, RIDGE, alpha=alpha)["overlap"]

    with jax.enable_x64(True):
        slopes = jax.vmap(jax.grad(overlap))(jnp.array([1.0, 2.0]))
        along = jax.jacfwd(overlap)(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(along, np.diag(slopes), rtol=1e-12)


def test_a_derivative_in_single_precision_where_that_is_the_default():
    slope = jax.grad(lambda alpha: sv.predict(MODEL, RIDGE, alpha=alpha)["estimation_error"])(1.3)
    with jax.enable_x64(True):
        exact = jax.grad(lambda alpha: sv.predict(MODEL, RIDGE, alpha=alpha)["estimation_error"])(1.3)
    assert float(slope) == pytest.approx(float(exact), rel=1e-6)


def test_a_theory_that_jax_cannot_trace_says_so():
    with pytest.raises(TypeError, match="Regression x PointProbe theory cannot be traced by JAX"):
        ANSWER["theory"] = lambda alpha: sv.Prediction({"overlap": float(alpha)})
        jax.grad(lambda alpha: sv.predict(MODEL, PointProbe(), alpha=alpha)["overlap"])(1.3)
    with pytest.raises(ValueError, match="missing axis alpha|unknown axis beta"):
        jax.grad(lambda beta: sv.predict(MODEL, RIDGE, beta=beta)["overlap"])(1.3)
    with pytest.raises(ValueError, match="takes one point at a time"):
        jax.jacfwd(lambda alpha: sv.predict(MODEL, PointProbe(), alpha=alpha)["overlap"])(jnp.ones(2))
