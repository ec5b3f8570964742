"""Hierarchical targets: values of the sheet, an independent evaluation, limits, thresholds twice, and runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import solvable as sv
from solvable.models.depth.hierarchical.labels import amplitudes, labels
from solvable.models.depth.hierarchical.model import hermite_polynomials
from solvable.models.depth.hierarchical.theory import white_noise_error
from solvable.verbs.simulate import generators, simulate_many

EIGHT, TANH = sv.HierarchicalTarget(1.0, features=8), sv.LayerwiseSpectral()


@pytest.mark.parametrize(
    ("alpha", "overlaps", "tolerance"), [(32.0, (0.9374, 0.8800, 0.7871), 2e-3), (8.0, (0.7507, 0.5111, 0.1278), 4e-3)]
)
def test_it_meets_the_overlaps_of_the_sheet(alpha, overlaps, tolerance):
    found = sv.predict(EIGHT, TANH, alpha=alpha)
    assert found["feature_overlap"][:3] == pytest.approx(overlaps, abs=tolerance)


@pytest.mark.parametrize(("decay", "slope"), [(0.8, -0.377), (1.0, -0.498), (1.5, -0.659)])
def test_it_meets_the_slopes_of_the_sheet(decay, slope):
    """Those of white noise, within what the steps of single features do to a local slope."""
    found = np.diff(np.log(white_noise_error(sv.HierarchicalTarget(decay), np.array([5e3, 2e4]))))[0] / math.log(4)
    assert found == pytest.approx(slope, abs=0.006)


@pytest.mark.parametrize("decay", [0.8, 1.0, 1.5])
def test_the_error_falls_like_the_predicted_power(decay):
    """-(1 - 1/(2 gamma)), which the exact theory approaches as slowly as strong features, whose errors fall like 1/n,
    cease to count."""
    error = sv.predict(sv.HierarchicalTarget(decay), TANH, alpha=[1e4, 1e6, 1e8])["generalization_error"]
    slopes = np.diff(np.log10(error)) / 2
    expected = -(1 - 1 / (2 * decay))
    assert slopes[1] == pytest.approx(expected, abs=0.006)
    assert abs(slopes[1] - expected) < abs(slopes[0] - expected)


def by_quadrature(lambdas, noise, T, delta):
    """Squared overlaps of two features at n/D = delta by a product rule over the features, from the equations in
    Mondelli and Montanari's form: psi and phi_k, their crossing, and derivatives by differences."""
    h, w = np.polynomial.hermite_e.hermegauss(160)
    w = w / w.sum()
    a, b, c = np.meshgrid(h, h, h[::4] if noise else [0.0], indexing="ij")
    third = np.polynomial.hermite_e.hermegauss(40) if noise else (np.zeros(1), np.ones(1))
    c = np.broadcast_to(third[0], a.shape[:2] + (len(third[0]),)) if noise else c
    a, b = (np.broadcast_to(part[..., :1], c.shape) for part in (a, b))
    weight = w[:, None, None] * w[None, :, None] * (third[1] / third[1].sum())[None, None, :]
    y = lambdas[0] * (a**2 - 1) + lambdas[1] * (b**2 - 1) + math.sqrt(noise) * c
    Z = T(y)
    Z = Z - np.sum(weight * Z)
    top = Z.max() + 1e-9

    def psi(ell):
        return ell * (1 / delta + np.sum(weight * Z / (ell - Z)))

    def phi(ell, h):
        return ell * np.sum(weight * Z * h**2 / (ell - Z))

    def slope(f, ell, step=1e-5):
        return (8 * (f(ell + step) - f(ell - step)) - (f(ell + 2 * step) - f(ell - 2 * step))) / (12 * step)

    grid = top + np.geomspace(1e-3, 1e3, 400)
    start = grid[np.argmin([psi(ell) for ell in grid])]
    found = []
    for feature in (a, b):
        if psi(start) >= phi(start, feature):
            found.append(0.0)
            continue
        ell = brentq(lambda ell, x=feature: psi(ell) - phi(ell, x), start, 1e4, xtol=1e-13)
        up = slope(psi, ell)
        found.append(up / (up - slope(lambda ell, x=feature: phi(ell, x), ell)))
    return found


@pytest.mark.parametrize(
    ("noise", "delta", "scale"),
    [(0.0, 6.0, 1.0), (0.0, 40.0, 2.0), pytest.param(0.5, 12.0, 1.5, marks=pytest.mark.slow)],
)
def test_an_independent_evaluation_agrees_within_the_uncertainty(noise, delta, scale):
    model = sv.HierarchicalTarget(0.7, features=2, noise=noise)
    found = sv.predict(model, sv.LayerwiseSpectral(scale=scale), alpha=delta)
    exact = by_quadrature(model.amplitudes(2), noise, lambda y: np.tanh(y / scale), delta)
    assert found["feature_overlap"][:2] == pytest.approx(exact, abs=2e-6 if noise else 2e-7)
    assert np.all(found.uncertainty["feature_overlap"] < 1e-6)


@pytest.mark.parametrize(
    ("decay", "features", "noise"), [(1.0, 1, 0.0), (1.2, 2, 0.1), (0.6, None, 0.0), (0.3, 5000, 1.0)]
)
def test_the_law_of_the_labels_has_the_moments_of_its_definition(decay, features, noise):
    """Of y: 0, 1 + noise and 8 sum lambda^3; with h_k^2: 1, 2 lambda_k."""
    law, found = labels(decay, features, noise), amplitudes(decay, features)
    cubes = 8 * float(found.weights @ found.values**3)
    assert [law.weight @ law.y**k for k in range(4)] == pytest.approx([1, 0, 1 + noise, cubes], abs=1e-9)
    second = law.second(found.values[:3])
    assert second.sum(axis=1) == pytest.approx(0, abs=1e-10)
    assert second @ law.y == pytest.approx(2 * found.values[:3], abs=1e-10)
    assert law.weight.min() > -1e-15


def test_thresholds_are_where_features_appear():
    found = sv.thresholds(EIGHT, TANH)
    assert list(found) == [f"feature_{k}" for k in range(1, 9)]
    for number, alpha in enumerate(found.values(), 1):
        below, above = sv.predict(EIGHT, TANH, alpha=[alpha * (1 - 1e-6), alpha * (1 + 1e-6)])["features_learned"]
        assert (below, above) == (number - 1, number)


def test_weak_features_and_labels_as_they_are_approach_white_noise():
    """n_k/D = (1 + noise)/(4 lambda_k^2) with a wide scale; and far above it
    1 - o_k = E[y^2 h_k^2]/(4 lambda_k^2 alpha), where E[y^2 h_k^2] = E[y^2] + 8 lambda_k^2:
    close to 1 - n_k/n only of weak features."""
    model = sv.HierarchicalTarget(1.0, features=40, noise=0.2)
    wide = sv.LayerwiseSpectral(scale=300.0)
    closed, exact = (np.array(list(part.values())) for part in (sv.thresholds(model), sv.thresholds(model, wide)))
    assert closed == pytest.approx((1.2) / (4 * model.amplitudes(8) ** 2))
    alpha = 1e6
    found = sv.predict(model, wide, alpha=alpha)["feature_overlap"]
    assert (1 - found) * alpha == pytest.approx(closed + 2, rel=1e-3)
    ratio = exact / closed
    assert np.all(np.diff(np.abs(ratio[1:] - 1)) < 0)  # the weaker, the closer


def test_limits():
    found = sv.predict(EIGHT, TANH, alpha=[0.0, 1e-3, 1e8])
    assert found["generalization_error"] == pytest.approx([1, 1, 0], abs=1e-6)
    assert found["squared_overlap"][2] > 0.999999 and found["features_learned"].tolist() == [0, 0, 8]
    one = sv.predict(sv.HierarchicalTarget(1.0, features=1), TANH, alpha=50.0)
    same = sv.predict(sv.HierarchicalTarget(30.0, features=8), TANH, alpha=50.0)
    assert one["generalization_error"] == pytest.approx(same["generalization_error"], abs=1e-8)
    many = [sv.predict(sv.HierarchicalTarget(1.5, features=k), TANH, alpha=300.0) for k in (4000, None)]
    assert many[0]["generalization_error"] == pytest.approx(many[1]["generalization_error"], abs=1e-6)


@settings(max_examples=4, deadline=None)
@given(
    decay=st.floats(0.55, 2.5), noise=st.floats(0, 2), kind=st.sampled_from(["tanh", "clip"]), scale=st.floats(0.3, 3)
)
def test_more_samples_and_less_noise_never_hurt(decay, noise, kind, scale):
    learner = sv.LayerwiseSpectral(kind, scale)
    alpha = np.array([0.5, 2.0, 8.0, 50.0, 1e3])
    noisy, clean = (sv.predict(sv.HierarchicalTarget(decay, noise=x), learner, alpha=alpha) for x in (noise, 0.0))
    for found in (noisy, clean):
        assert np.all(np.diff(found["generalization_error"]) <= 1e-9)
        assert np.all(np.diff(found["feature_overlap"], axis=1) <= 1e-9)
        assert np.all(found.converged)
    assert np.all(clean["generalization_error"] <= noisy["generalization_error"] + 1e-9)


def test_a_sum_over_many_learned_features_is_that_of_each():
    model, alpha = sv.HierarchicalTarget(0.8), 3e4
    found = sv.predict(model, TANH, alpha=alpha)
    K = int(found["features_learned"])
    from solvable.models.depth.hierarchical.theory import _Method

    method = _Method(model, TANH, False)
    edge = float(method.averages.edge(np.array([alpha]))[0])
    lambdas = model.amplitudes(K)
    _, o = method._solved(alpha, edge, method.second(lambdas))
    assert K > 300 and o[-1] < 0.02
    assert 1 - 2 * np.sum(lambdas**2 * o**2) == pytest.approx(found["generalization_error"], rel=1e-9)


def plain_overlaps(D, alpha, count, seed):
    """Squared overlaps of leading eigenvectors with the features, from the definition, with nothing of the package."""
    rng = np.random.default_rng(seed)
    n, k = round(alpha * D), np.arange(1.0, 9)
    lambdas = (1 / k) / math.sqrt(2 * np.sum(1 / k**2))
    Phi = rng.standard_normal((n, D))
    T = np.tanh(((Phi[:, :8] ** 2) - 1) @ lambdas)
    vectors = np.linalg.eigh((Phi * (T - T.mean())[:, None]).T @ Phi / n)[1][:, ::-1]
    return [vectors[j, j] ** 2 for j in range(count)]


@pytest.mark.parametrize(("D", "seeds"), [(60, 60), pytest.param(250, 24, marks=pytest.mark.slow)])
def test_an_independent_simulation_agrees(D, seeds):
    """At D and 2 D. Eigenvectors of close eigenvalues mix, the more the smaller D is: a deviation of about
    -1/D, -4/D and -11/D for the first three features, which an extrapolation to infinite D takes out."""
    theory = sv.predict(EIGHT, TANH, alpha=32.0)["feature_overlap"][:3]
    runs = [np.array([plain_overlaps(size, 32.0, 3, seed) for seed in range(seeds)]) for size in (D, 2 * D)]
    small, large = (found.mean(axis=0) - theory for found in runs)
    error = np.sqrt([found.var(axis=0, ddof=1) / seeds for found in runs])
    assert np.all(np.abs(2 * large - small) < 4 * np.hypot(2 * error[1], error[0]))
    assert np.all(np.abs(large) < 15 / D)


@pytest.mark.parametrize(("d", "seeds"), [(14, 24), (22, 10), pytest.param(36, 8, marks=pytest.mark.slow)])
def test_runs_agree(d, seeds):
    """D = 105, 253, 666: the error, and the features that are far from their thresholds."""
    found = sv.predict(EIGHT, TANH, alpha=32.0)
    runs = simulate_many(EIGHT, TANH, d, range(seeds), alpha=32.0)
    for metric in ("generalization_error", "squared_overlap"):
        values = np.array([run[metric] for run in runs])
        error = values.std(ddof=1) / math.sqrt(seeds)
        assert abs(values.mean() - found[metric]) < 4 * error + 1 / EIGHT.dimension(d), metric
    overlaps = np.array([run["feature_overlap"] for run in runs])[:, :3]
    error = overlaps.std(axis=0, ddof=1) / math.sqrt(seeds)
    assert np.all(np.abs(overlaps.mean(axis=0) - found["feature_overlap"][:3]) < 4 * error + 2 / EIGHT.dimension(d))


def test_the_error_of_a_run_is_what_fresh_samples_measure():
    model = sv.HierarchicalTarget(0.9, features=None, noise=0.1)
    rng = np.random.default_rng(5)
    data = model.sample(rng, 12, alpha=20.0)
    assert data.truth.shape == (78, 78) and 0 < data.unseen < 0.05
    run = sv.simulate(model, TANH, alpha=20.0, d=12, seed=3)
    vectors, c = run.estimate
    drawn = model.sample(generators(3, 12, {"alpha": 20.0})[0], 12, alpha=20.0)
    Phi = rng.standard_normal((40_000, 78))
    label = model.labels(Phi, drawn.truth, drawn.amplitudes)
    measured = np.mean((c[0] + ((Phi @ vectors) ** 2 - 1) @ c[1:] - label) ** 2) + drawn.unseen
    assert measured == pytest.approx(run["generalization_error"], rel=0.05)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_hermite_polynomials_are_orthonormal_and_all_there(degree):
    x, w = np.polynomial.hermite_e.hermegauss(6)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", w, w, w).ravel() / (2 * math.pi) ** 1.5
    found = hermite_polynomials(grid, degree)
    assert found.shape[1] == math.comb(2 + degree, degree) == sv.HierarchicalTarget(1.0, degree).dimension(3)
    np.testing.assert_allclose((found * weight[:, None]).T @ found, np.eye(found.shape[1]), atol=1e-12)


def test_polynomials_of_few_inputs_are_close_to_gaussian_features():
    model = sv.HierarchicalTarget(1.0, features=8, inputs="hermite")
    runs = simulate_many(model, TANH, 20, range(6), alpha=32.0)
    found = np.mean([run["feature_overlap"][0] for run in runs])
    assert found == pytest.approx(sv.predict(model, TANH, alpha=32.0)["feature_overlap"][0], abs=0.05)
    data = model.sample(np.random.default_rng(0), 6, alpha=2.0)
    assert np.sum(data.Phi**2, axis=1) == pytest.approx(21)


def test_a_run_with_hardly_any_samples():
    for alpha in (0.0, 0.01, 0.05):
        run = sv.simulate(EIGHT, TANH, alpha=alpha, d=10)
        assert run.converged and run["generalization_error"] < 1.5


def test_bad_parameters():
    for values, name in (
        ({"decay": 0.5}, "decay"),
        ({"decay": 0.0, "features": 8}, "decay"),
        ({"features": 0}, "features"),
        ({"degree": 0}, "degree"),
        ({"inputs": "binary"}, "inputs"),
        ({"noise": -1.0}, "noise"),
    ):
        with pytest.raises(ValueError, match=f"{name} = "):
            sv.HierarchicalTarget(**values)  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        ValueError, match="preprocessing = 'none' is not allowed: preprocessing must be 'tanh' or 'clip'"
    ):
        sv.LayerwiseSpectral("none")
    with pytest.raises(ValueError, match="scale = 0"):
        sv.LayerwiseSpectral(scale=0.0)
    with pytest.raises(ValueError, match="alpha = 1000000000.0 is not allowed"):
        sv.predict(EIGHT, TANH, alpha=1e9)


def test_the_best_scale_is_found():
    best = sv.optimize(EIGHT, TANH, over="scale", bounds=(0.1, 10.0), alpha=8.0)
    assert best.prediction["generalization_error"] < sv.predict(EIGHT, TANH, alpha=8.0)["generalization_error"]


def test_a_kernel_learns_nothing():
    """Theory says 1. At size d it leaks: some n of D^2/2 squares; the mean label is predicted at the worst."""
    found = sv.predict(EIGHT, sv.Kernel(2), alpha=[0.0, 8.0])
    assert found["generalization_error"].tolist() == [1, 1] and found["squared_overlap"].tolist() == [0, 0]
    runs = {
        d: np.mean([run["squared_overlap"] for run in simulate_many(EIGHT, sv.Kernel(2), d, range(3), alpha=4.0)])
        for d in (5, 15)
    }
    assert runs[15] < 0.15 and runs[15] < runs[5]
    assert sv.simulate(EIGHT, TANH, alpha=4.0, d=15)["squared_overlap"] > 2 * runs[15]
    deep = sv.HierarchicalTarget(1.0, features=8, inputs="hermite")
    assert sv.simulate(deep, sv.Kernel(4), alpha=4.0, d=8)["generalization_error"] == pytest.approx(0.8, abs=0.4)
    with pytest.raises(sv.NotSolvable, match="best penalty"):
        sv.predict(EIGHT, sv.Kernel(2, penalty=0.1), alpha=1.0)


def test_grids_over_its_fields():
    plane = sv.phase_diagram(
        EIGHT, TANH, x=("alpha", [4.0, 40.0]), y=("decay", [0.8, 1.6]), metric="generalization_error"
    )
    values = plane.theory("generalization_error").values.ravel()
    assert sorted(values) == pytest.approx(
        sorted(
            sv.predict(EIGHT.with_field("decay", decay), TANH, alpha=alpha)["generalization_error"]
            for alpha in (4.0, 40.0)
            for decay in (0.8, 1.6)
        )
    )
