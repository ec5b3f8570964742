"""Asymptotics of nuclear-norm learning: known values, independent equations, limits, derivatives, spectra."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.core.status import Status
from solvable.engine.solvers.nested import solve
from solvable.models.matrix.nuclear.theory import nuclear_points, penalty_slopes
from solvable.models.matrix.recovery import interpolation, least_trace_recovery
from solvable.spectra import Discrete, MarchenkoPastur
from solvable.spectra.thresholded import Thresholded, thresholded

# An independent code: cubic equation of the resolvent, SciPy root finders. Parameters (rho, alpha, noise, penalty);
# estimation error, sum of squared residuals / d^2, penalty term, rank, delta, epsilon.
KNOWN = {
    (0.5, 0.3, 0.5, 0.2): (
        0.526690760911643,
        0.02448621941519603,
        0.12361809083350811,
        0.4575210831036796,
        1.1377541920465093,
        3.6354450135133614,
    ),
    (0.5, 0.6, 0.5, 0.2): (
        0.23723740981868585,
        0.12080597721173533,
        0.1477660700796577,
        0.5951633652827026,
        0.6372057555051625,
        0.9166540948295859,
    ),
    (0.2, 0.8, 0.5, 0.5): (
        0.09009611881180901,
        0.2664972539445269,
        0.2401851294653335,
        0.448960419021841,
        0.4610423779408793,
        0.44654422971354973,
    ),
    (1.5, 0.4, 0.5, 0.3): (
        0.834346471970753,
        0.050057985190723187,
        0.2637918794513311,
        0.5735484806156789,
        1.164230685888085,
        2.6017907389590706,
    ),
}
# The same as the penalty vanishes, to 1e-6 or better; alpha, noise 1/2, rho 0.3: estimation error, residuals, theta.
KNOWN_WITHOUT_PENALTY = {
    0.2: (0.7888509152377972, 0.0, 0.9005825759366242),
    0.26: (1.1527992094398654, 0.0, 0.38182569804510036),
    0.8: (0.17733759236703572, 0.22384636165054977, 0.0),
}
MIXED = Discrete([-1.0, 0.0, 2.0])


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def network(rho: float, noise: float = 0.0) -> sv.QuadraticNetwork:
    return sv.QuadraticNetwork(rho, noise)


@pytest.mark.parametrize("parameters", KNOWN)
def test_known_values(parameters):
    rho, alpha, noise, penalty = parameters
    found = sv.predict(network(rho, noise), sv.NuclearNorm(penalty), alpha=alpha)
    fit = alpha * found["training_error"]
    order = found.order_parameters
    values = found["estimation_error"], fit, found["training_loss"] - fit, found["rank"]
    assert np.allclose([*values, order["delta"], order["epsilon"]], KNOWN[parameters], rtol=1e-9, atol=0)
    assert found["generalization_error"] == 2 * found["estimation_error"]
    assert order["theta"] == pytest.approx(penalty * order["epsilon"], rel=1e-12)
    assert found.residual < 1e-12
    assert found.uncertainty["estimation_error"] < 1e-11


def test_known_values_without_penalty():
    alpha = np.array(list(KNOWN_WITHOUT_PENALTY))
    found = sv.predict(network(0.3, 0.5), sv.NuclearNorm(0.0), alpha=alpha)
    values = found["estimation_error"], alpha * found["training_error"], found.order_parameters["theta"]
    assert np.allclose(np.transpose(values), list(KNOWN_WITHOUT_PENALTY.values()), atol=1e-6)
    assert np.all(np.isinf(found.order_parameters["epsilon"]) == [True, True, False])
    assert np.all((found["training_loss"] == 0) == [True, True, False])


def cubic_integrals(rho: float, D: float, theta: float, nodes: int = 400) -> dict[str, float]:
    """J, K and Df of a Wishart matrix plus noise, from the cubic equation of its resolvent."""
    r = np.sqrt(rho)
    ends = np.roots(np.polyadd(D * np.polymul([1, 0, 0], np.polymul([-1, r], [-1, r])), [rho - 1, 2 * r, -rho]))
    g = np.sort(ends[np.abs(ends.imag) < 1e-9].real)
    x = np.sort(1 / g + D * g + rho / (r - g))
    t, share = np.polynomial.legendre.leggauss(nodes)
    phi, share = (t + 1) * np.pi / 2, share * np.pi / 2
    totals = {"J": 0.0, "K": 0.0, "Df": 0.0, "rank": 0.0, "mass": 0.0}
    for low, high in x.reshape(-1, 2):
        for a, b in ((low, np.clip(theta, low, high)), (np.clip(theta, low, high), high)):
            place = (a + b) / 2 - (b - a) / 2 * np.cos(phi)
            resolvent = np.array([_upper(np.roots([D, -(z + D * r), z * r + 1 - rho, -r])) for z in place])
            weight = (b - a) / 2 * np.sin(phi) * share * np.abs(np.imag(resolvent)) / np.pi
            f = np.maximum(place - theta, 0)
            totals["J"] += np.sum(weight * f**2)
            totals["K"] += np.sum(weight * f)
            totals["Df"] += 2 * np.sum(weight * f * np.real(resolvent))
            totals["rank"] += np.sum(weight[place > theta])
            totals["mass"] += np.sum(weight)
    return totals


def _upper(roots: np.ndarray) -> complex:
    return roots[np.argmax(np.imag(roots))]


@pytest.mark.parametrize(
    ("rho", "alpha", "noise", "penalty"),
    [(0.3, 0.2, 0.5, 1e-3), (0.3, 1.5, 0.02, 0.3), (1.4, 0.7, 1.0, 0.8), (0.1, 0.25, 0.0, 0.05)],
)
def test_the_solution_solves_independent_equations(rho, alpha, noise, penalty):
    found = sv.predict(network(rho, noise), sv.NuclearNorm(penalty), alpha=alpha)
    delta, theta, epsilon = (found.order_parameters[k] for k in ("delta", "theta", "epsilon"))
    D = delta**2
    parts = cubic_integrals(rho, D, theta)
    assert parts["mass"] == pytest.approx(1, abs=1e-9)
    assert 1 / epsilon == pytest.approx(2 * (2 * alpha - parts["Df"]), rel=1e-7)
    error = 1 + rho - parts["J"] - 2 * theta * parts["K"] + 2 * D * parts["Df"]
    assert 2 * alpha * D == pytest.approx(error + noise / 2, rel=1e-8)
    assert found["estimation_error"] == pytest.approx(error, rel=1e-6)
    assert found["training_loss"] == pytest.approx(D / (4 * epsilon**2) + penalty * parts["K"], rel=1e-7)


@pytest.mark.slow
def test_every_regime_is_solved_or_flagged():
    rng = np.random.default_rng(1)
    for law in (MarchenkoPastur(0.02), MarchenkoPastur(1.0), MIXED):
        for noise, penalty in ((0.0, 1e-6), (1e-6, 0.0), (0.0, 3.0), (5.0, 0.1)):
            alpha = 10 ** rng.uniform(-3, 3, 30)
            found = sv.predict(sv.MatrixSensing(law, noise), sv.NuclearNorm(penalty), alpha=alpha)
            # The integrals lose their digits where the noise that is left is tiny beside the spectrum.
            lost = ~found.converged
            assert np.all(found.order_parameters["delta"][lost] < 1e-5), (law, noise, penalty, alpha[lost])
            assert set(found.status) <= {Status.CONVERGED, Status.IMPRECISE}
            assert np.all(found.residual < 1e-9)
            assert np.all((found["rank"] >= 0) & (found["rank"] <= 1 + 1e-12))
            assert np.all(found["estimation_error"] > 0)
            assert all(np.all(np.isfinite(value)) for value in found.uncertainty.values())


@pytest.mark.slow
def test_a_point_without_solution_is_flagged():
    # For a law of mean zero the error diverges where labels cease to be interpolated.
    model = sv.MatrixSensing([-1.0, 0.0, 1.0], 0.3)
    found = sv.predict(model, sv.NuclearNorm(0.0), alpha=[0.2, 0.25, 0.3])
    assert list(found.converged) == [True, False, True]


def test_a_point_that_the_search_does_not_solve_is_flagged(monkeypatch):
    def search(*arguments):
        return solve(*arguments)._replace(solved=np.array([True, False]))

    monkeypatch.setattr("solvable.models.matrix.nuclear.theory.solve", search)
    found = sv.predict(network(0.3, 0.5), sv.NuclearNorm(0.2), alpha=[0.3, 0.6])
    assert list(found.converged) == [True, False]


def test_a_large_penalty_leaves_nothing():
    model = network(0.4, 0.5)
    alpha = np.array([1e-3, 0.3, 2.0])
    found = sv.predict(model, sv.NuclearNorm(100.0), alpha=alpha)
    assert np.array_equal(found["rank"], [0, 0, 0])
    assert np.allclose(found["estimation_error"], 1.4, rtol=1e-12)
    assert np.allclose(found["training_error"], 2 * 1.4 + 0.5, rtol=1e-12)
    # Where it sets in, theta = penalty / (4 alpha) is the upper end of the spectrum of R.
    penalties = np.linspace(8.0, 14.0, 25)
    ranks = np.array([sv.predict(model, sv.NuclearNorm(p), alpha=0.5)["rank"] for p in penalties])
    last = penalties[ranks > 0].max()
    assert np.all(np.diff(ranks) <= 0)
    D = (1.4 + 0.25) / (2 * 0.5)
    r = np.sqrt(0.4)
    g = np.linspace(1e-3, r - 1e-3, 200001)
    edge = np.min(1 / g + D * g + 0.4 / (r - g))
    assert last < 2 * edge < last + 0.5


def test_without_samples_and_with_few():
    model = network(0.4, 0.5)
    for penalty, variance in ((0.0, 0.0), (0.2, 3.3)):
        found = sv.predict(model, sv.NuclearNorm(penalty), alpha=[0.0, 1e-4])
        assert np.all(found.converged)
        assert found["estimation_error"][0] == pytest.approx(1.4)
        assert found["estimation_error"][1] == pytest.approx(1.4, rel=0.02)
        assert found["training_error"][0] == pytest.approx(variance)


def test_exact_recovery():
    rho = 0.3
    threshold = least_trace_recovery(MarchenkoPastur(rho))
    alpha = threshold * np.array([0.98, 0.999, 1.001, 2.0])
    found = sv.predict(network(rho), sv.NuclearNorm(0.0), alpha=alpha)
    assert np.all(found.converged)
    assert found["estimation_error"][0] > 10 * found["estimation_error"][1] > 0
    assert np.array_equal(found["estimation_error"][2:], [0, 0])
    assert np.allclose(found["rank"][2:], rho)
    # A penalty spoils it: the error is quadratic in it.
    small, large = (sv.predict(network(rho), sv.NuclearNorm(p), alpha=0.6)["estimation_error"] for p in (1e-5, 1e-4))
    assert large / small == pytest.approx(100, rel=1e-2)


def test_many_samples():
    # Then R is close to A*, and S to its positive part: of the noise on d^2/2 unknowns (1 + 2 rho - rho^2)/2 are left.
    rho, noise, alpha = 0.3, 0.5, 1e3
    found = sv.predict(network(rho, noise), sv.NuclearNorm(0.0), alpha=alpha)
    assert found["estimation_error"] == pytest.approx(noise / (8 * alpha) * (1 + 2 * rho - rho**2), rel=0.02)
    assert found["training_error"] == pytest.approx(noise, rel=1e-3)


def test_continuity_at_the_interpolation_threshold():
    rho, noise = 0.3, 0.5
    threshold = interpolation(MarchenkoPastur(rho), noise)
    alpha = threshold * (1 + np.array([-1e-4, -1e-6, 1e-6, 2e-6]))
    error = sv.predict(network(rho, noise), sv.NuclearNorm(0.05), alpha=alpha)["estimation_error"]
    assert np.allclose(error, error[1], rtol=1e-3)
    assert np.allclose(error[1:], error[1], rtol=1e-5)
    # Without penalty the error rises like a square root up to the threshold, and falls linearly beyond.
    error = sv.predict(network(rho, noise), sv.NuclearNorm(0.0), alpha=alpha)["estimation_error"]
    assert np.allclose(error[2:], error[2], rtol=1e-5)
    assert (error[2] - error[0]) / (error[2] - error[1]) == pytest.approx(10, rel=0.1)
    nearly = sv.predict(network(rho, noise), sv.NuclearNorm(1e-6), alpha=[0.2, 0.8])
    limit = sv.predict(network(rho, noise), sv.NuclearNorm(0.0), alpha=[0.2, 0.8])
    assert np.allclose(nearly["estimation_error"], limit["estimation_error"], rtol=1e-4)


@pytest.mark.parametrize("law", [MarchenkoPastur(0.3), pytest.param(MIXED, marks=pytest.mark.slow)], ids=str)
def test_derivatives_in_the_penalty(law):
    model, alpha, step = sv.MatrixSensing(law, 0.4), np.array([0.15, 0.4, 1.1]), 1e-4
    penalties = 0.2 + step * np.array([-1, 0, 1])
    low, at, high = (sv.predict(model, sv.NuclearNorm(p), alpha=alpha) for p in penalties)
    points = nuclear_points(law, 0.4, 0.2, alpha)
    slopes = penalty_slopes(points, 0.2, alpha)
    for name, slope in slopes.items():
        assert np.allclose((high[name] - low[name]) / (2 * step), slope, rtol=1e-5, atol=1e-7), name
    # The loss is minimal over S: its derivative is that of the penalty at fixed S. What is fitted worsens.
    assert np.allclose(slopes["training_loss"], (at["training_loss"] - alpha * at["training_error"]) / 0.2, rtol=1e-9)
    assert np.all(slopes["training_error"] > 0)
    assert np.all(slopes["rank"] < 0)


@pytest.mark.slow
def test_the_best_penalty_is_found_by_the_gradient():
    model = network(0.3, 0.5)
    best = sv.optimize(model, sv.NuclearNorm(0.1), alpha=0.5, over="penalty", bounds=(0.01, 10.0))
    assert best.method == "gradient"
    errors = [sv.predict(model, sv.NuclearNorm(best.value * c), alpha=0.5)["estimation_error"] for c in (0.99, 1, 1.01)]
    assert errors[1] == min(errors)
    points = nuclear_points(model.law, 0.5, best.value, np.array([0.5]))
    assert abs(penalty_slopes(points, best.value, np.array([0.5]))["estimation_error"][0]) < 1e-9


@pytest.mark.parametrize(("D", "u"), [(1.3, 0.6), (0.05, 0.12), (0.7, -0.4)])
def test_integrals_and_their_derivatives(D, u):
    law, step = MarchenkoPastur(0.5), 1e-6

    def at(D, u):
        return Thresholded(*(part[0] for part in thresholded(law, np.array([D]), np.array([u]))))

    found = at(D, u)
    parts = cubic_integrals(0.5, D, found.theta)
    assert np.allclose([found.rank, found.K, found.Df], [parts[k] for k in ("rank", "K", "Df")], atol=1e-9)
    error = 1.5 - parts["J"] - 2 * found.theta * parts["K"] + 2 * D * parts["Df"]
    assert found.mse == pytest.approx(error, abs=1e-9)
    up, down = at(D, u + step), at(D, u - step)
    for name, slope in (
        ("theta", found.theta_in_u),
        ("K", -found.rank * found.theta_in_u),
        ("Df", -2 * found.H * found.theta_in_u),
        ("mse", (2 * found.theta * found.rank - 4 * D * found.H) * found.theta_in_u),
    ):
        assert (getattr(up, name) - getattr(down, name)) / (2 * step) == pytest.approx(slope, abs=1e-8), name
    up, down = at(D + step, u), at(D - step, u)
    shift = found.theta_in_D
    for name, slope in (
        ("theta", shift),
        ("K", found.H - found.rank * shift),
        ("Df", 2 * found.G - 2 * found.H * shift),
    ):
        assert (getattr(up, name) - getattr(down, name)) / (2 * step) == pytest.approx(slope, abs=1e-7), name


def test_width():
    model, alpha = network(0.5, 0.5), 0.6
    unlimited = sv.predict(model, sv.NuclearNorm(0.2), alpha=alpha)
    ample = sv.predict(model, sv.NuclearNorm(0.2, width=0.9), alpha=alpha)  # another solver, no limit at rank 0.595
    for name, value in unlimited.metrics.items():
        assert ample[name] == pytest.approx(value, rel=1e-7), name
    narrow = sv.predict(model, sv.NuclearNorm(0.2, width=0.3), alpha=alpha)
    assert narrow["rank"] == pytest.approx(0.3)
    with pytest.raises(ValueError, match="width = 20 is not allowed: width must be a fraction"):
        sv.predict(model, sv.NuclearNorm(0.2, width=20), alpha=alpha)


@pytest.mark.slow
def test_the_width_of_a_law_of_points_is_their_number():
    listed = sv.MatrixSensing([-1.0, 0.0, 2.0], 0.4)
    assert sv.predict(listed, sv.NuclearNorm(0.2, width=7), alpha=[0.5, 0.6]).converged.all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "noise"), [(0.5, 0.1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.3, 0.5), (1.5, 0.1)))]
)
def test_the_approach_to_the_interpolation_threshold(rho, noise):
    """Below it the error rises like a square root of the distance, without a gap in the curve."""
    model = sv.QuadraticNetwork(rho, noise)
    threshold = sv.thresholds(model)["interpolation"]
    distance = np.geomspace(1e-6, 1e-2, 12)
    found = sv.predict(model, sv.NuclearNorm(), alpha=threshold - distance)
    peak = sv.predict(model, sv.NuclearNorm(), alpha=threshold)["estimation_error"]
    assert found.converged.all()
    assert np.all(np.diff(found["estimation_error"]) < 0)
    ratio = (peak - found["estimation_error"]) / np.sqrt(distance)
    assert ratio[1] == pytest.approx(ratio[0], rel=0.1)


@pytest.mark.parametrize("penalty", [1e3, 1e12])
def test_a_penalty_that_leaves_nothing_is_exact(penalty):
    """S = 0 whatever the penalty above the point where that begins: no integral is left that could be off."""
    model = sv.MatrixSensing("marchenko-pastur:0.5", noise=0.01)
    found = sv.predict(model, sv.NuclearNorm(penalty), alpha=0.4)
    assert found["rank"] == found["cosine"] == 0
    assert found["estimation_error"] == pytest.approx(1.5, rel=1e-12)
    assert found["training_loss"] == pytest.approx(0.4 * 3.01, rel=1e-12)
    assert max(float(part) for part in found.uncertainty.values()) < 1e-10
