"""The fixed-point solver: known answers, safeguards, derivatives, and reports that never flatter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.core.status import Status
from solvable.numerics.fixed_point import Ending, solve_fixed_point


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def cosine(x, args):
    return jnp.cos(x)


def mean_field(m, beta):
    return jnp.tanh(beta * m)


def affine(x, args):
    matrix, shift = args
    return matrix @ x + shift


def root_of(x, shift):
    return jnp.sqrt(x - shift)


def slow_contraction(size=30, slope=0.99):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(size, size))
    matrix = matrix @ matrix.T
    return slope * matrix / np.linalg.eigvalsh(matrix).max(), rng.normal(size=size)


def test_contraction_with_known_answer():
    found = solve_fixed_point(cosine, 0.3)
    # The Dottie number, 0.739085133215160641655..., to all digits of double precision.
    assert found.status == Ending.CONVERGED
    assert found.value == pytest.approx(0.7390851332151607, abs=1e-9)
    assert found.value.dtype == jnp.float64


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("beta", [1.05, 1.5, 4.0])
def test_mean_field_leaves_the_unstable_solution(beta, memory):
    """Started close to the unstable fixed point m = 0, acceleration must not lead back to it."""
    found = solve_fixed_point(mean_field, 1e-3, beta, memory=memory)
    m = float(found.value)
    assert found.status == Ending.CONVERGED and m > 0.1
    assert abs(np.tanh(beta * m) - m) < 2e-10


def test_acceleration_takes_fewer_steps_where_the_slope_is_close_to_one():
    plain, accelerated = (solve_fixed_point(mean_field, 0.5, 1.05, memory=memory) for memory in (0, 5))
    assert plain.status == accelerated.status == Ending.CONVERGED
    assert accelerated.iterations < plain.iterations / 10


def test_disordered_mean_field_goes_to_zero():
    found = solve_fixed_point(mean_field, 0.7, 0.5)
    assert found.status == Ending.CONVERGED and abs(found.value) < 1e-11


def test_damping_rescues_a_two_cycle():
    def alternating(x, args):
        return 3.2 * x * (1 - x)

    plain = solve_fixed_point(alternating, 0.3, memory=0, max_steps=400)
    damped = solve_fixed_point(alternating, 0.3, memory=0, damping=0.5, max_steps=400)
    assert plain.status == Ending.MAX_STEPS and plain.residual > 1e-10
    assert damped.status == Ending.CONVERGED
    assert damped.value == pytest.approx(1 - 1 / 3.2, abs=1e-9)


@pytest.mark.slow
def test_acceleration_takes_far_fewer_steps():
    args = slow_contraction()
    plain = solve_fixed_point(affine, jnp.zeros(30), args, memory=0, max_steps=5000)
    accelerated = solve_fixed_point(affine, jnp.zeros(30), args, memory=5)
    assert plain.status == accelerated.status == Ending.CONVERGED
    assert accelerated.iterations < plain.iterations / 10
    exact = np.linalg.solve(np.eye(30) - args[0], args[1])
    np.testing.assert_allclose(accelerated.value, exact, rtol=1e-8)


def test_an_extrapolation_out_of_the_domain_is_taken_back():
    """The secant step from here lands where the function is NaN; the plain iteration stays inside."""

    def inside(x, args):
        return jnp.where(x < 0.999, 1 - jnp.sqrt(1 - x) + 0.2 * (1 - x) ** 2, jnp.nan)

    plain = solve_fixed_point(inside, 0.1, memory=0)
    accelerated = solve_fixed_point(inside, 0.1, memory=5)
    assert plain.status == accelerated.status == Ending.CONVERGED
    assert accelerated.value == pytest.approx(float(plain.value), abs=1e-8)


@jax.jit
@jax.vmap
def magnetisation(beta):
    """The slopes of value and residual, and the solution; for five values of beta, so that it compiles once."""

    def solution(beta):
        found = solve_fixed_point(mean_field, 0.5, beta, rtol=1e-13)
        return (found.value, found.residual), found

    return jax.jacrev(solution, has_aux=True)(beta)


def test_gradient_is_the_implicit_derivative_and_the_report_has_none():
    beta, step = 1.2, 1e-5
    (slope, slope_of_report), found = magnetisation(beta + step * np.array([0.0, 1.0, -1.0, 2.0, -2.0]))
    m = float(found.value[0])
    closed_form = m * (1 - m**2) / (1 - beta * (1 - m**2))
    finite_difference = (found.value[1] - found.value[2]) / (2 * step)
    assert finite_difference == pytest.approx(closed_form, rel=1e-6)
    assert slope[0] == pytest.approx(closed_form, rel=1e-9)
    assert np.all(np.asarray(slope_of_report) == 0)


def test_batch_with_different_convergence_times_and_one_bad_point():
    betas = np.array([0.5, 1.01, 2.0, np.nan, 10.0])
    (slopes, _), batch = magnetisation(betas)
    assert batch.status.tolist() == [0, 0, 0, Ending.NONFINITE, 0]
    assert len(set(batch.iterations.tolist())) > 2
    for beta, value, steps in zip(betas[:3], batch.value, batch.iterations, strict=False):
        alone = solve_fixed_point(mean_field, 0.5, beta, rtol=1e-13)
        assert value == pytest.approx(float(alone.value), abs=1e-12)
        assert steps == alone.iterations
    assert np.isfinite(slopes).tolist() == [True, True, True, False, True]


def test_nan_is_never_converged():
    for found in (solve_fixed_point(root_of, 0.5, 1.0), solve_fixed_point(cosine, jnp.nan)):
        assert found.status == Ending.NONFINITE


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0, 5])
def test_nan_in_one_of_many_entries_is_never_converged(memory):
    args = slow_contraction()
    poisoned = (args[0], args[1].copy())
    poisoned[1][3] = np.nan
    for found in (
        solve_fixed_point(root_of, 0.5, 1.0, memory=memory),
        solve_fixed_point(affine, jnp.zeros(30), poisoned, memory=memory),
        solve_fixed_point(affine, jnp.full(30, jnp.inf), args, memory=memory),
    ):
        assert found.status == Ending.NONFINITE


def test_divergence_to_infinity_is_not_converged():
    found = solve_fixed_point(lambda x, args: x**2 + 2.0, 3.0, memory=0)
    assert found.status == Ending.NONFINITE


@pytest.mark.parametrize("memory", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_step_limit_is_reported_with_an_honest_residual(memory):
    args = slow_contraction()
    found = solve_fixed_point(affine, jnp.zeros(30), args, memory=memory, max_steps=7)
    assert found.status == Ending.MAX_STEPS and found.iterations == 7
    x = np.asarray(found.value)
    afresh = np.max(np.abs(args[0] @ x + args[1] - x) / (1e-2 + np.abs(x)))
    assert found.residual == pytest.approx(afresh, rel=1e-6)
    assert found.residual > 1e-10


@pytest.mark.slow
def test_pytree_state():
    def coupled(state, shift):
        return {"a": jnp.cos(state["b"]).sum() * jnp.ones(()) / 4, "b": 0.5 * jnp.sin(state["a"]) + shift}

    shift = jnp.array([0.1, 0.2, 0.3])
    found = solve_fixed_point(coupled, {"a": 0.0, "b": jnp.zeros(3)}, shift)
    assert found.status == Ending.CONVERGED
    assert found.value["b"].shape == (3,)
    np.testing.assert_allclose(found.value["b"], 0.5 * np.sin(found.value["a"]) + shift, rtol=1e-9)


@pytest.mark.slow
def test_single_precision_converges_to_its_own_rounding():
    with jax.enable_x64(False):
        found = solve_fixed_point(cosine, 0.3)
        assert found.value.dtype == jnp.float32
        assert found.status == Ending.CONVERGED
        assert abs(float(found.value) - 0.7390851332151607) < 2e-6


def test_endings_are_numbered_as_the_statuses():
    assert {e.name: e.value for e in Ending} == {e.name: Status[e.name].value for e in Ending}


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"damping = 0 is not allowed: damping must be in \(0, 1\]"):
        solve_fixed_point(cosine, 0.3, damping=0)
    with pytest.raises(ValueError, match="memory = -1 is not allowed"):
        solve_fixed_point(cosine, 0.3, memory=-1)


@pytest.mark.slow
def test_random_maps_are_never_falsely_converged_and_acceleration_loses_none():
    """Maps tanh(A x + b) from contracting to chaotic; the residual is checked with NumPy."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(200, 6, 6)) / np.sqrt(6) * rng.uniform(0.3, 2.2, size=(200, 1, 1))
    b = 0.3 * rng.normal(size=(200, 6))

    def saturating(x, args):
        return jnp.tanh(args[0] @ x + args[1])

    converged = {}
    for memory in (0, 5):
        solve = jax.vmap(lambda *args, m=memory: solve_fixed_point(saturating, jnp.full(6, 0.1), args, memory=m))
        found = jax.jit(solve)(A, b)
        x = np.asarray(found.value)
        residual = np.abs(np.tanh(np.einsum("kij,kj->ki", A, x) + b) - x) / (1e-12 + 1e-10 * np.abs(x))
        converged[memory] = np.asarray(found.status) == Ending.CONVERGED
        assert np.all(residual[converged[memory]] < 1.01)
    assert np.all(converged[5] | ~converged[0])
    assert converged[5].sum() > converged[0].sum() + 30


def test_a_residual_a_little_above_the_tolerance_is_not_converged():
    found = solve_fixed_point(lambda x, args: 0.5 * x + 1.0, 0.0, memory=0, max_steps=31)
    assert found.status == Ending.MAX_STEPS and 1e-10 < found.residual < 1e-9
