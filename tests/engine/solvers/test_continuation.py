"""Continuation of r x r overlaps against closed forms, the explicit curve, known values, and its free entropy."""

from __future__ import annotations

import concurrent.futures

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ortho_group
from toys.outputs import LinearToy, ParityToy, PotentialToy, continued

from solvable.channels.base import Average
from solvable.channels.closed import Parity, Staircase
from solvable.core.status import Status
from solvable.engine.solvers.base import Thresholds
from solvable.engine.solvers.branches import Point
from solvable.engine.solvers.continuation import Continuation
from solvable.numerics.cache import Cache
from solvable.numerics.symmetric import smat

SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])
PARITY_OVERLAPS = {2.6: 0.0560535859, 3.0: 0.2427062, 3.5: 0.47076, 4.0: 0.6438411, 5.0: 0.8235368011}
"""sign(z1*z2): q at alpha, from a one-dimensional root search on the closed-form information of M = q I."""


def random_toy(seed: int, trivial: bool) -> PotentialToy:
    rng = np.random.default_rng(seed)
    G = [g + g.T for g in 0.4 * rng.standard_normal((2, 3, 3))]
    v = rng.standard_normal((3, 1 if trivial else 0))
    return PotentialToy(0.3 * v @ v.T, G, np.eye(3), c=0.02)


class Bistable:
    """M = q I with E[g g^T] = (q/2 + 3.2 q^3) I: the curve alpha(q) = 1 / ((1 - q)(1/2 + 3.2 q^2)) bends back."""

    @staticmethod
    def toy(error: float = 1e-12) -> PotentialToy:
        return PotentialToy(np.zeros((2, 2)), [np.sqrt(0.5) * np.eye(2)], np.eye(2), 0.4, error)

    @staticmethod
    def upper(alpha: float) -> float:
        """The stable q on the rising part of the curve, beyond its minimum near q = 0.6."""
        return brentq(lambda q: 1 / ((1 - q) * (0.5 + 3.2 * q**2)) - alpha, 0.6, 1 - 1e-12)

    @staticmethod
    def free_entropy(q: float, alpha: float) -> float:
        return q + np.log1p(-q) + alpha * (0.25 * q**2 + 0.8 * q**4)


def test_linear_labels_in_closed_form():
    a, noise = np.array([1.0, 2.0]), 0.3
    alpha = np.array([0.0, 0.01, 1.0, 5.0, 1e4])
    points = continued(LinearToy(a, noise)).uninformed(alpha)
    # One direction a/|a| seen with noise / |a|^2: q / (1 - q) = alpha / (1 - q + noise / 5).
    q = [brentq(lambda q, x=x: q * (1 - q + noise / 5) - x * (1 - q), 0, 1, xtol=1e-15) for x in alpha]
    expected = np.array(q)[:, None, None] * np.outer(a, a) / 5
    np.testing.assert_allclose(points.overlap, expected, atol=1e-8)
    information = [LinearToy(a, noise).at(M).information for M in points.overlap]
    np.testing.assert_allclose(points.field, alpha[:, None, None] * information, rtol=1e-6, atol=1e-9)
    assert np.all(points.status == Status.CONVERGED) and np.all(points.overlap[0] == 0) and points.free_entropy[0] == 0


def test_linear_labels_without_noise_end_in_exact_recovery():
    points = continued(LinearToy([1.0, 1.0])).uninformed(np.array([0.3, 0.999, 1.001, 50.0]))
    one = np.full((2, 2), 0.5)
    np.testing.assert_allclose(points.overlap, np.array([0.3, 0.999, 1.0, 1.0])[:, None, None] * one, atol=1e-7)
    assert np.all(np.isinf(points.free_entropy) == [False, False, True, True])
    assert np.all(np.isinf(points.field[2])) and not np.isnan(points.field).any()


def test_parity_reaches_the_known_overlaps_in_few_evaluations():
    evolution = continued(Parity())
    alpha = np.array([0.5, 2.4, *PARITY_OVERLAPS])
    points = evolution.uninformed(alpha)
    q = np.array([0.0, 0.0, *PARITY_OVERLAPS.values()])
    assert np.all(np.abs(points.overlap - q[:, None, None] * np.eye(2)) < 1e-6 + points.uncertainty[:, None, None])
    assert np.all(points.status == Status.CONVERGED) and np.all(points.uncertainty < 1e-4)
    assert evolution.output.calls < 100


def test_parity_curve_is_the_same_point_by_point_and_in_any_order():
    alpha = np.linspace(2.5, 6.0, 8)
    curve = continued(Parity()).uninformed(alpha)
    backwards = continued(Parity()).uninformed(alpha[::-1])
    alone = continued(Parity()).uninformed(alpha[-1:])
    np.testing.assert_array_equal(backwards.overlap[::-1], curve.overlap)
    np.testing.assert_allclose(alone.overlap[0], curve.overlap[-1], atol=1e-6)


@pytest.mark.parametrize(
    "channel",
    [pytest.param(Parity, marks=pytest.mark.slow), pytest.param(Staircase, marks=pytest.mark.slow), Bistable.toy],
    ids=["parity", "staircase", "bistable"],
)
def test_no_bit_depends_on_what_was_asked_before(channel):
    def bits(evolution: Continuation, name: str, alpha: list[float]) -> list[bytes]:
        found = getattr(evolution, name)(np.array(alpha))
        return [np.asarray(value).tobytes() for value in vars(found).values()]

    questions = [(name, a) for a in ([1.9], [3.0], [1.2, 1.9, 3.0]) for name in ("uninformed", "optimal")]
    fresh = [bits(continued(channel()), *question) for question in questions]
    one = continued(channel())
    assert [bits(one, *question) for question in questions] == fresh
    calls = one.output.calls
    assert [bits(one, *question) for question in questions] == fresh and one.output.calls == calls
    other = continued(channel())
    assert other.steps
    assert [bits(other, *question) for question in reversed(questions)] == fresh[::-1]


@pytest.mark.slow
def test_the_optimal_points_of_a_grid_reuse_its_uninformed_ones():
    alpha = np.linspace(2.6, 5.0, 4)
    both, optimal = continued(Parity()), continued(Parity())
    both.uninformed(alpha)
    both.optimal(alpha)
    optimal.optimal(alpha)
    assert both.output.calls == optimal.output.calls


def test_threads_that_share_a_grid_find_the_same():
    alpha = np.array([1.2, 1.9, 3.0])
    expected = continued(Staircase()).optimal(alpha)
    evolution = continued(Staircase())
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda name: getattr(evolution, name)(alpha), ["uninformed", "optimal", "optimal"]))
    for points in found[1:]:
        np.testing.assert_array_equal(points.overlap, expected.overlap)
        np.testing.assert_array_equal(points.uncertainty, expected.uncertainty)


def test_what_is_kept_is_a_function_of_the_exact_values():
    seen: list[np.ndarray] = []

    def total(a: np.ndarray) -> float:
        seen.append(a)
        return float(a.sum())

    kept = Cache(total, most=2)
    a = np.arange(6.0).reshape(2, 3)
    assert kept(a) == kept(np.asfortranarray(a)) == 15.0 and len(seen) == 1 and seen[0].flags.c_contiguous
    # A last bit and a shape make another question; the sign of a zero does not.
    near = a.copy()
    near[1, 2] = np.nextafter(5.0, 6.0)
    kept(near)
    kept(a.reshape(3, 2))
    assert len(seen) == 3 and len(kept.values) == 1
    kept(np.zeros((2, 2)))
    kept(-np.zeros((2, 2)))
    assert len(seen) == 4 and not np.signbit(seen[3]).any()


def test_a_saddle_of_lower_rank_is_left():
    """Only z1 + z2 learned is a fixed point of sign(z1*z2), unstable towards z1 - z2."""
    branches = continued(Parity()).branches()
    u = np.array([[1.0], [1.0]]) / np.sqrt(2)
    start = Point(4.0, 0.01 * u @ u.T, u, np.array([[0.01]]), 0.0, 0.0)
    inside = branches.climb(4.0, start, within=u)
    assert np.linalg.matrix_rank(inside.M, tol=1e-6) == 1 and inside.M[0, 0] > 0.1
    np.testing.assert_allclose(branches.climb(4.0, inside).M, PARITY_OVERLAPS[4.0] * np.eye(2), atol=1e-5)


@pytest.mark.slow
def test_values_below_the_resolution_are_continued_within_their_uncertainty():
    fine, coarse = (continued(c).uninformed(np.array([100.0])) for c in (Parity(), ParityToy()))
    assert coarse.uncertainty[0] > 1e-7
    assert np.abs(fine.overlap - coarse.overlap).max() < coarse.uncertainty[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_overlaps_grow_with_alpha_and_stay_in_range(seed, trivial):
    points = continued(random_toy(seed, trivial)).uninformed(np.geomspace(0.05, 30, 12))
    assert np.all(points.status == Status.CONVERGED)
    eigenvalues = np.linalg.eigvalsh(points.overlap)
    assert eigenvalues.min() > -1e-9 and eigenvalues.max() < 1
    assert np.linalg.eigvalsh(np.diff(points.overlap, axis=0)).min() > -1e-7
    assert np.all(np.diff(points.free_entropy) > -1e-9)


def free_entropy(output, M, gain):
    """phi at any M with eigenvalues below one."""
    found, nothing = output.labels(M), output.labels(np.zeros_like(M))
    log_det = float(np.log(np.linalg.eigvalsh(np.eye(len(M)) - M)).sum())
    return (float(np.trace(M)) + log_det) / 2 + gain * (found.entropy - nothing.entropy)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_fixed_points_solve_the_equations_and_are_stationary_and_stable(seed, trivial):
    toy = random_toy(seed, trivial)
    evolution = continued(toy)
    rng = np.random.default_rng(seed)
    for alpha in (0.7, 3.0, 12.0):
        M = evolution.uninformed(np.array([alpha])).overlap[0]

        def step(M, alpha=alpha):
            return np.eye(3) - np.linalg.inv(np.eye(3) + alpha * toy.at(M).information)

        np.testing.assert_allclose(step(M), M, atol=1e-7)
        near = M + 1e-4 * np.eye(3)
        for _ in range(400):
            near = step(near)
        np.testing.assert_allclose(near, M, atol=1e-4)
        # In units of V, the scale on which the free entropy varies, within the learned directions.
        q, u = np.linalg.eigh(M)
        root = (u * np.where(q > 1e-6, np.sqrt(1 - q), 0.0)) @ u.T
        for _ in range(3):
            direction = root @ smat(rng.standard_normal(6)) @ root
            values = [free_entropy(evolution.output, M + h * direction, alpha) for h in (-1e-4, 1e-4)]
            assert abs(values[1] - values[0]) / 2e-4 < 1e-6


def test_a_rotation_of_the_coordinates_rotates_the_overlap():
    toy = random_toy(1, True)
    Q = np.asarray(ortho_group.rvs(3, random_state=0))
    turned = PotentialToy(Q.T @ toy.T @ Q, [Q.T @ g @ Q for g in toy.G], np.eye(3), toy.c)
    M, rotated = (continued(t).uninformed(np.array([4.0])).overlap[0] for t in (toy, turned))
    np.testing.assert_allclose(rotated, Q.T @ M @ Q, atol=1e-7)


def test_an_exchange_symmetry_of_the_labels_is_kept():
    points = continued(Parity(0.2)).uninformed(np.array([3.0, 6.0]))
    np.testing.assert_allclose(points.overlap, SWAP @ points.overlap @ SWAP, atol=1e-9)


def test_specialisation_splits_what_is_first_learned_together():
    """The labels have a mean on z1 + z2; on z1 - z2 an overlap grows above alpha = 2."""
    plus, minus = (np.outer(v, v) / 2 for v in ([1, 1], [1, -1]))
    evolution = continued(PotentialToy(0.4 * plus, [np.sqrt(0.5) * minus]))
    points = evolution.uninformed(np.array([1.9, 2.1, 4.0]))
    np.testing.assert_allclose(points.overlap[0], points.overlap[0, 0, 0] * np.ones((2, 2)), atol=1e-9)
    # On z1 - z2: q / (1 - q) = alpha q / 2.
    split = [float(np.trace(minus @ M)) for M in points.overlap]
    np.testing.assert_allclose(split, [0, 1 - 2 / 2.1, 0.5], atol=1e-7)


def test_bayes_optimal_is_the_better_of_two_stable_states():
    evolution, alpha = continued(Bistable.toy()), 1.9
    q = Bistable.upper(alpha)
    assert Bistable.free_entropy(q, alpha) > 0
    np.testing.assert_allclose(evolution.uninformed(np.array([alpha])).overlap[0], 0, atol=1e-12)
    best = evolution.optimal(np.array([alpha]))
    np.testing.assert_allclose(best.overlap[0], q * np.eye(2), atol=1e-7)
    np.testing.assert_allclose(best.free_entropy[0], Bistable.free_entropy(q, alpha), atol=1e-8)
    # The curve first rises, to 2.088 at q = 0.078: the iteration stops before, and jumps above.
    before, after = evolution.uninformed(np.array([2.05, 2.1])).overlap
    low = brentq(lambda q: 1 / ((1 - q) * (0.5 + 3.2 * q**2)) - 2.05, 1e-6, 0.078)
    np.testing.assert_allclose(before, low * np.eye(2), atol=1e-7)
    np.testing.assert_allclose(after, Bistable.upper(2.1) * np.eye(2), atol=1e-7)


def test_two_states_of_one_free_entropy_are_called_ambiguous():
    crossing = brentq(lambda alpha: Bistable.free_entropy(Bistable.upper(alpha), alpha), 1.55, 1.9)
    evolution = continued(Bistable.toy(error=1e-4))
    assert evolution.optimal(np.array([crossing])).status[0] == Status.AMBIGUOUS_BRANCH


def test_the_error_of_the_labels_is_carried_over():
    exact, biased = (PotentialToy(0.4 * np.eye(2), [np.eye(2)], error=e) for e in (1e-12, 2e-3))
    good = biased.at

    def shifted(M):
        found = good(M)
        return found._replace(information=found.information + 2e-3 * np.eye(2))

    biased.at = shifted
    alpha = np.array([0.5, 2.0, 8.0])
    found, known = (continued(t).uninformed(alpha) for t in (biased, exact))
    gap = np.abs(found.overlap - known.overlap).max((1, 2))
    assert np.all(gap <= found.uncertainty) and np.all(found.uncertainty < 30 * gap)


def test_a_value_that_is_not_finite_is_never_called_converged():
    class Broken(PotentialToy):
        def at(self, M):
            found = super().at(M)
            return found if M[0, 0] < 0.3 else Average(np.full((2, 2), np.nan), np.nan, 0.0, 0.0)

    points = continued(Broken(0.5 * np.eye(2), [np.eye(2)])).uninformed(np.array([0.1, 5.0]))
    assert points.status[0] == Status.CONVERGED and points.status[1] != Status.CONVERGED


@pytest.mark.parametrize(("alpha", "q"), [(0.7, 0.0568245), (1.3, 0.6291434), (1.39, 0.8002138)])
def test_the_first_stage_of_a_staircase(alpha, q):
    points = continued(Staircase()).uninformed(np.array([alpha]))
    np.testing.assert_allclose(points.overlap[0], np.diag([q, 0, 0]), atol=3e-5)


def test_what_is_recovered_exactly_lets_the_rest_be_learned():
    evolution = continued(Staircase())
    points = evolution.uninformed(np.array([1.39, 1.41, 2.4, 4.0]))
    expected = [np.diag(m) for m in ([0.8002138, 0, 0], [1, 0, 0], [1, 0, 0], [1, *[PARITY_OVERLAPS[4.0]] * 2])]
    np.testing.assert_allclose(points.overlap, expected, atol=2e-5)
    assert np.all(np.isinf(points.free_entropy[1:]))
    # With exact knowledge stable from alpha = 1 on, Bayes-optimal learning has it from there.
    best = evolution.optimal(np.array([1.02, 1.39]))
    np.testing.assert_allclose(best.overlap, [np.diag([1.0, 0, 0])] * 2, atol=1e-12)


def test_thresholds_are_written_with_the_digits_that_their_error_leaves():
    found = Thresholds(weak_recovery=3.68429, algorithmic=5.0, errors={"weak_recovery": 0.1})
    assert str(found).split() == ["weak_recovery", "3.68", "algorithmic", "5"]
    half = found.divided(2.0)
    assert half == {"weak_recovery": 3.68429 / 2, "algorithmic": 2.5} and half.text("weak_recovery") == "1.84"
