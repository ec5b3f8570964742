"""The theory of a width-limited student, against known values, drawn noise matrices, descent and its own limits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from solvable.core.status import Status
from solvable.models.matrix.nuclear.scaling import (
    effective_rank,
    fitted_exponents,
    predicted_exponents,
    width_phases,
)
from solvable.models.matrix.nuclear.width import WidthTheory
from solvable.spectra import Discrete, MarchenkoPastur, PowerLaw
from solvable.spectra.convolution import free_sum, height
from solvable.spectra.upper_part import UpperPart

SIZE = 400
LAW = PowerLaw(1.25, SIZE)


@pytest.fixture(scope="module")
def theory() -> WidthTheory:
    return WidthTheory(LAW)


def solve(theory, width, alpha, penalty, noise=0.1):
    return {key: value[0] for key, value in theory.solve(noise, penalty, width / SIZE, np.array([alpha])).items()}


@pytest.mark.parametrize(
    ("n", "penalty", "width", "published", "tolerance"),
    [
        # State evolution with ten drawn noise matrices, published with the code of the paper on width and data.
        pytest.param(160000, 0.1, 20, 0.0084905, 1e-4, marks=pytest.mark.slow),
        pytest.param(160000, 0.1, 9, 0.0184788, 2e-4, marks=pytest.mark.slow),
        pytest.param(160000, 0.1, 400, 0.01442, 1e-4, marks=pytest.mark.slow),
        pytest.param(8000, 0.1 * np.sqrt(0.05), 9, 0.1186979, 3e-3, marks=pytest.mark.slow),
        (8000, 0.1 * np.sqrt(0.05), 4, 0.0792, 1e-3),
        pytest.param(8000, 0.1 * np.sqrt(0.05), 20, 0.1394, 3e-3, marks=pytest.mark.slow),
    ],
)
def test_published_values(theory, n, penalty, width, published, tolerance):
    found = solve(theory, width, n / SIZE**2, penalty)
    assert found["status"] == Status.CONVERGED
    assert abs(found["estimation_error"] - published) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize(("width", "tolerance"), [(20, 0.01), (SIZE, 0.02)])
def test_drawn_noise_matrices(theory, width, tolerance):
    """The same equations on the eigenvalues and eigenvectors of two matrices A + delta Z, divergence by double sums."""
    alpha, penalty, noise = 1.0, 0.1, 0.1
    A = np.diag(LAW.eigenvalues(SIZE))
    kept = np.arange(SIZE) >= SIZE - width
    gaussians = [np.random.default_rng(seed).standard_normal((SIZE, SIZE)) for seed in range(2)]
    draws = [(Z + Z.T) / np.sqrt(2 * SIZE) for Z in gaussians]

    def error(delta):
        spectra = [np.linalg.eigh(A + delta * Z) for Z in draws]

        def shrunk(values, theta):
            return np.where(kept, np.maximum(values - theta, 0), 0.0)

        def divergence(theta):
            total = 0.0
            for values, _ in spectra:
                f = shrunk(values, theta)
                apart = values[:, None] - values + np.eye(SIZE)
                total += ((f[:, None] - f) / apart).sum() + 2 * np.sum(f > 0)
            return total / len(spectra) / SIZE**2

        theta = brentq(lambda theta: 2 * theta * (2 * alpha - divergence(theta)) - penalty, 1e-9, 10.0, xtol=1e-6)
        return np.mean([np.sum(((V * shrunk(v, theta)) @ V.T - A) ** 2) / SIZE for v, V in spectra])

    def excess(delta):
        return error(delta) + noise / 2 - 2 * alpha * delta**2

    delta = brentq(excess, 0.16, 0.25, xtol=1e-4)
    expected = solve(theory, width, alpha, penalty, noise)["estimation_error"]
    assert np.isclose(error(delta), expected, rtol=tolerance)


def test_a_wide_student_has_no_limit(theory):
    free = solve(theory, SIZE, 0.05, 0.02)
    wide = solve(theory, 100, 0.05, 0.02)
    narrow = solve(theory, 20, 0.05, 0.02)
    assert free["rank"] < 100 / SIZE
    assert all(np.isclose(wide[key], free[key], rtol=1e-10) for key in free)
    assert np.isclose(narrow["rank"], 20 / SIZE, rtol=1e-10)
    assert not np.isclose(narrow["estimation_error"], free["estimation_error"], rtol=1e-2)


@pytest.mark.parametrize(
    ("rho", "alpha", "noise", "penalty", "known"),
    [
        # Error, fit, penalty term, rank, delta and epsilon by the roots of the cubic of the resolvent.
        (
            0.5,
            0.3,
            0.5,
            0.2,
            (0.526690760911643, 0.02448621941519603, 0.1236180908335, 0.4575210831036, 1.1377541920465),
        ),
        (
            0.2,
            0.8,
            0.5,
            0.5,
            (0.09009611881180901, 0.2664972539445269, 0.2401851294653, 0.4489604190218, 0.4610423779409),
        ),
    ],
)
def test_no_limit_of_width_on_a_quadratic_network(rho, alpha, noise, penalty, known):
    found = WidthTheory(MarchenkoPastur(rho)).solve(noise, penalty, 1.0, np.array([alpha]))
    keys = ("estimation_error", "fit", "reg", "rank", "delta")
    assert np.allclose([found[key][0] for key in keys], known, rtol=1e-8)
    assert np.isclose(found["theta"][0], penalty * found["epsilon"][0])


def test_no_penalty_is_the_limit_of_a_small_one():
    law, alpha = MarchenkoPastur(0.3), np.array([0.2, 0.8])
    for share in (1.0, 0.4):
        limit = WidthTheory(law).solve(0.5, 0.0, share, alpha)
        small = WidthTheory(law).solve(0.5, 1e-7, share, alpha)
        assert np.allclose(limit["estimation_error"], small["estimation_error"], rtol=1e-4)
        assert np.allclose(limit["rank"], small["rank"], atol=1e-4)
        assert np.all(limit["reg"] == 0)
        assert np.isinf(limit["epsilon"][0]) and limit["fit"][0] == 0  # it interpolates
        assert np.isclose(limit["epsilon"][1], small["epsilon"][1], rtol=1e-4) and limit["theta"][1] == 0
    # The double descent of the unlimited student (alpha_int is about 0.29).
    assert np.allclose(WidthTheory(law).solve(0.5, 0.0, 1.0, alpha)["estimation_error"], [0.7889, 0.1773], atol=1e-4)


def test_no_data_teach_nothing():
    found = WidthTheory(MarchenkoPastur(0.3)).solve(0.5, 0.1, 0.4, np.array([0.0]))
    assert found["estimation_error"][0] == pytest.approx(1.3)
    assert found["rank"][0] == found["fit"][0] == found["reg"][0] == 0
    assert found["status"][0] == Status.CONVERGED


@pytest.mark.slow
def test_recovery_without_noise():
    """Two eigenvalues in five are 1: a student of that width recovers them, a narrower one misses the rest."""
    law = Discrete([0.0, 1.0], [0.6, 0.4])
    found = WidthTheory(law).solve(0.0, 0.0, 0.4, np.array([0.6]))
    assert found["estimation_error"][0] == 0 and found["status"][0] == Status.CONVERGED
    narrow = WidthTheory(law).solve(0.0, 0.0, 0.3, np.array([30.0]))
    assert 0.1 < narrow["estimation_error"][0] < 0.103


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_nothing_to_learn(share):
    """A* = 0: what is learned is the upper part of a semicircle of variance delta^2."""
    found = {
        key: value[0] for key, value in WidthTheory(Discrete([0.0])).solve(0.1, 0.1, share, np.array([1.0])).items()
    }
    delta, theta = found["delta"], found["theta"]
    x = 2 * delta * np.cos(np.linspace(0, np.pi, 200001))  # falling
    density = np.sqrt(np.maximum(4 * delta**2 - x**2, 0)) / (2 * np.pi * delta**2)
    kept = (x > theta) & (np.cumsum(-density * np.gradient(x)) < share)
    error, divergence = (-np.sum((density * f * np.gradient(x))[kept]) for f in ((x - theta) ** 2, (x - theta) * x))
    assert np.isclose(found["estimation_error"], error, rtol=1e-3)
    assert np.isclose(found["estimation_error"], 2 * delta**2 - 0.05, rtol=1e-8)
    assert np.isclose(2 * theta * (2 - divergence / delta**2), 0.1, rtol=1e-3)


def test_several_solutions_are_marked(theory):
    """Without noise a student of width 4 just interpolates at n = 2992: three states satisfy the equations."""
    found = solve(theory, 4, 2992 / SIZE**2, 0.0, noise=0.0)
    assert found["status"] == Status.AMBIGUOUS_BRANCH
    delta = np.sqrt(1 / (2 * 2992 / SIZE**2))
    assert found["delta"] < delta  # the iteration from a zero estimate falls from here


def test_the_effective_rank_and_its_exponents():
    assert np.allclose(effective_rank(LAW, LAW.eigenvalues(SIZE)[::-1][[0, 9, 99]]), [1, 10, 100])
    assert effective_rank(LAW, 0.0) == SIZE
    # Lost eigenvalues and noise balance: the error is the effective rank to the power 1 - 2 gamma.
    predicted = predicted_exponents(1.25)
    assert predicted["estimation_error"] == pytest.approx(predicted["effective_rank"] * predicted["error_of_width"])


@pytest.mark.slow
def test_a_grid_of_widths_and_samples():
    found = width_phases(LAW, 0.1, lambda a: 0.1 * np.sqrt(a), np.array([4, SIZE]), np.array([0.05, 100.0]))
    assert found["estimation_error"].shape == (2, 2)
    assert found["limited"].tolist() == [[True, True], [False, False]]
    assert np.isclose(found["estimation_error"][0, 1], found["lost"][0, 1], rtol=0.01)  # all that is lost is width
    with pytest.raises(ValueError, match="widths"):
        width_phases(LAW, 0.1, 0.1, np.array([0, 5]), np.array([1.0]))


@pytest.mark.slow
@pytest.mark.parametrize("above", [-0.1, 0.1, 1.0])
def test_the_upper_part_is_that_of_a_convolution_cut_there(above):
    law, D = MarchenkoPastur(0.3), 0.05
    with jax.enable_x64(True):
        found = free_sum(law, D, above=above)
        x = float(above + D * jnp.real(law.stieltjes(above + 1j * height(law, D, jnp.array([above])))[0]))
    nodes, h, u, weight = (np.asarray(part) for part in (found.x, found.hilbert, found.u, found.weight))
    part = UpperPart(law, D)
    eigenvalue, moments = part.at(part.cut_of_mass(weight.sum()))
    assert np.isclose(eigenvalue, x, atol=1e-8)
    columns = (1, nodes, h, nodes * h, h**2)
    assert np.allclose(moments[:-1], [np.sum(weight * column) for column in columns], atol=1e-9)
    kept = np.sum(weight * (2 * u - nodes) ** 2)
    assert np.isclose(moments.missed, 1.3 - part.mmse - kept, atol=1e-9)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"share = 1\.5"):
        WidthTheory(LAW).solve(0.1, 0.1, 1.5, np.array([1.0]))
    with pytest.raises(ValueError, match="penalty = -1"):
        WidthTheory(LAW).solve(0.1, -1, 0.5, np.array([1.0]))


@pytest.mark.slow
def test_fitted_exponents_come_close_to_the_predicted_ones():
    """Within a tenth on average at this size, and the closer the more eigenvalues are learned."""
    found = fitted_exponents(LAW)
    assert set(found) == set(predicted_exponents(LAW.gamma))
    for name, exponent in found.items():
        assert np.isclose(exponent.fitted, exponent.predicted, rtol=0.1), name
    off = np.abs(found["effective_rank"].local - found["effective_rank"].predicted)
    assert np.all(np.diff(off) < 0) and off[-1] < 0.005


@pytest.mark.slow
def test_descent_on_a_narrow_network():
    """The loss minimised over S = W W^T with W of r columns, Gaussian features: errors as the theory of that size."""
    d, width, alpha, penalty, noise = 60, 6, 1.0, 0.1, 0.1
    law = PowerLaw(1.25, d)
    A = np.diag(law.eigenvalues(d))
    n = round(alpha * d**2)
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((n, d, d))
        G = ((G + G.transpose(0, 2, 1)) / np.sqrt(2 * d)).reshape(n, d * d)
        y = G @ A.ravel() + np.sqrt(noise) * rng.standard_normal(n)

        def loss(flat, G=G, y=y):
            W = flat.reshape(d, width)
            misfit = G @ (W @ W.T).ravel() - y
            gradient = 2 * (G.T @ misfit).reshape(d, d) / d**2 + penalty / d * np.eye(d)
            return misfit @ misfit / d**2 + penalty / d * np.sum(W**2), (2 * gradient @ W).ravel()

        start = 0.3 * rng.standard_normal(d * width)
        W = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x.reshape(d, width)
        errors.append(np.sum((W @ W.T - A) ** 2) / d)
    predicted = WidthTheory(law).solve(noise, penalty, width / d, np.array([alpha]))["estimation_error"][0]
    assert np.isclose(np.mean(errors), predicted, rtol=0.05)
