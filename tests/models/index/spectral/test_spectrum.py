"""Theory of the spectral methods for several projections: closed forms, its equations solved otherwise, and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import k0, k1
from scipy.stats import chi2, norm

from solvable.channels.base import LabelLaw
from solvable.models.index.spectral.blocks import label_blocks
from solvable.models.index.spectral.spectrum import block_spectrum
from solvable.models.index.spectral.theory import spectral_prediction

both_kinds = pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])


def law(weight, G) -> LabelLaw:
    weight, G = np.asarray(weight, float), np.asarray(G, float)
    return LabelLaw(weight, np.zeros(G.shape[:2]), G)


def parity() -> LabelLaw:
    """sign(z1 z2): G = y (2/pi) sigma_x."""
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    return law([0.5, 0.5], np.array([1.0, -1.0])[:, None, None] * (2 / np.pi) * swap)


def parity_and_window() -> LabelLaw:
    """The label (sign(z1 z2), 1{|z1| < 1}), whose four matrices G do not commute."""
    inside = norm.cdf(1) - norm.cdf(-1)
    truncated = inside - 2 * norm.pdf(1)
    absolute = 2 * (norm.pdf(0) - norm.pdf(1))
    weight, G = [], []
    for sign in (1, -1):
        for p, second, first in (
            (inside, truncated, absolute),
            (1 - inside, 1 - truncated, 2 * norm.pdf(0) - absolute),
        ):
            mixed = sign * first / p * np.sqrt(2 / np.pi)
            weight.append(p / 2)
            G.append([[second / p - 1, mixed], [mixed, 0.0]])
    return law(weight, G)


def product() -> LabelLaw:
    """z1 z2: density K0(|y|)/pi, E[z1^2|y] = |y| K1/K0, E[z1 z2|y] = y."""
    x, w = np.polynomial.legendre.leggauss(400)
    t = (x + 1) / 2
    y, w = 40 * t**4, w / 2 * 160 * t**3
    diagonal, weight = y * k1(y) / k0(y) - 1, w * k0(y) / np.pi
    G = [np.array([[diagonal, s * y], [s * y, diagonal]]).transpose(2, 0, 1) for s in (1, -1)]
    return law(np.tile(weight, 2) / (2 * weight.sum()), np.concatenate(G))


def norm_squared(r: int) -> LabelLaw:
    """z1^2 + .. + zr^2: G = (y/r - 1) I, y a chi-squared variable."""
    x, w = np.polynomial.legendre.leggauss(400)
    # y = u^2 takes the square root off the density at zero.
    u = (x + 1) / 2 * np.sqrt(90.0)
    weight = w * chi2.pdf(u**2, r) * u
    return law(weight / weight.sum(), (u**2 / r - 1)[:, None, None] * np.eye(r))


def first_direction_only() -> LabelLaw:
    """A label that tells of z1 of three projections, like the staircase z1^2 + sign(z1 z2 z3): here 1{|z1| < 1}."""
    inside = norm.cdf(1) - norm.cdf(-1)
    G = np.zeros((2, 3, 3))
    G[:, 0, 0] = -2 * norm.pdf(1) / inside, 2 * norm.pdf(1) / (1 - inside)
    return law([inside, 1 - inside], G)


def two_strengths(strong: float = 0.8, weak: float = 0.4) -> LabelLaw:
    return law([0.5, 0.5], [np.diag([strong, weak]), -np.diag([strong, weak])])


def random_law(seed: int, r: int, labels: int) -> LabelLaw:
    """Second moments without structure, normalised to E[G] = 0."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((labels, r, r))
    second = A @ np.swapaxes(A, 1, 2)
    weight = rng.dirichlet(np.ones(labels))
    values, vectors = np.linalg.eigh(np.tensordot(weight, second, 1))
    root = (vectors / np.sqrt(values)) @ vectors.T
    return law(weight, root @ second @ root - np.eye(r))


def block_spectra(labels: LabelLaw, kind: str, alpha: float):
    """Every block with the spectrum of its operator."""
    return [(block, block_spectrum(labels, block, kind, np.array(alpha))) for block in label_blocks(labels)]


def squared_cosine(labels: LabelLaw, kind: str, alpha: float) -> float:
    """|W*^T B|^2 / (d |B|^2) of the eigenvector B of labels that are one block."""
    ((_, found),) = block_spectra(labels, kind, alpha)
    return float(np.sum(found.overlap**2) / np.trace(found.self_overlap))


def threshold(labels: LabelLaw) -> float:
    r = labels.G.shape[1]
    pairs = np.einsum("l,lij,lkm->ikjm", labels.weight, labels.G, labels.G).reshape(r * r, r * r)
    return 1 / np.linalg.eigvalsh(pairs)[-1]


def scalar_overlap(weight: np.ndarray, G: np.ndarray, alpha: float) -> float:
    """The root of alpha (1 - q) E[G^2 / (1 + q G)] = 1 for one direction."""
    return brentq(lambda q: alpha * (1 - q) * np.sum(weight * G**2 / (1 + q * G)) - 1, 0, 1 - 1e-12, xtol=1e-14)


LAWS = {
    "parity": parity(),
    "parity and window": parity_and_window(),
    "product": product(),
    "norm in R^2": norm_squared(2),
    "norm in R^3": norm_squared(3),
    "first direction": first_direction_only(),
    "two strengths": two_strengths(),
    "random in R^2": random_law(0, 2, 3),
    "random in R^3": random_law(1, 3, 5),
}
every_law = pytest.mark.parametrize("name", LAWS)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("parity", [(1, 1), (1, 1)]),
        ("parity and window", [(1, 2)]),
        ("product", [(1, 1), (1, 1)]),
        ("norm in R^2", [(2, 1)]),
        ("norm in R^3", [(3, 1)]),
        ("first direction", [(1, 1), (2, 1)]),
        ("two strengths", [(1, 1), (1, 1)]),
        ("random in R^3", [(1, 3)]),
    ],
)
def test_blocks_of_the_second_moments(name, expected):
    """(copies, directions of each) of every kind of block."""
    assert sorted((block.copies, block.size) for block in label_blocks(LAWS[name])) == expected


@every_law
def test_blocks_put_together_are_the_law(name):
    labels = LAWS[name]
    blocks = label_blocks(labels)
    rebuilt = sum(np.einsum("ais,lst,ajt->lij", block.bases, block.G, block.bases) for block in blocks)
    np.testing.assert_allclose(rebuilt, labels.G, atol=1e-10)
    basis = np.hstack([columns for block in blocks for columns in block.bases])
    np.testing.assert_allclose(basis.T @ basis, np.eye(labels.G.shape[1]), atol=1e-12)


def test_blocks_in_copies_of_two_directions():
    """G of r = 4 projections, the same 2 x 2 matrices twice, in a rotated basis."""
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    two = LAWS["random in R^2"]
    labels = law(two.weight, turn @ np.kron(np.eye(2), two.G) @ turn.T)
    (block,) = label_blocks(labels)
    assert (block.copies, block.size) == (2, 2)
    for basis in block.bases:
        np.testing.assert_allclose(basis.T @ labels.G @ basis, block.G, atol=1e-10)
    alpha = 2 * threshold(two)
    once, twice = (spectral_prediction(which, "symmetric", np.array(alpha)) for which in (two, labels))
    np.testing.assert_allclose(twice.overlap, turn @ np.kron(np.eye(2), once.overlap) @ turn.T, atol=1e-9)


def test_parity_by_two_scalar_problems():
    found = spectral_prediction(parity(), "symmetric", np.array([2.0, 3.5, 10.0]))
    for index, alpha in enumerate([3.5, 10.0], start=1):
        q = scalar_overlap(np.array([0.5, 0.5]), np.array([2 / np.pi, -2 / np.pi]), alpha)
        np.testing.assert_allclose(found.overlap[index], q * np.eye(2), atol=1e-9)
    assert found.overlap[1, 0, 0] == pytest.approx(0.3252540225, abs=1e-8)
    assert found.bulk_edge[1] == pytest.approx(0.96076278, abs=1e-6)
    assert np.all(found.overlap[0] == 0) and found.outlier[0] == found.bulk_edge[0] < 1
    assert np.all(found.outlier[1:] == 1)


def test_parity_of_the_asymmetric_method():
    """In each of the two directions E[G^3] = 0, so the squared overlap is 1 - 1/gamma."""
    alpha = np.array([3.0, 3.5, 8.0])
    found = spectral_prediction(parity(), "asymmetric", alpha)
    gamma = alpha * 4 / np.pi**2
    np.testing.assert_allclose(found.overlap, (1 - 1 / gamma)[:, None, None] * np.eye(2), atol=1e-10)
    np.testing.assert_allclose(found.outlier, gamma, atol=1e-10)
    np.testing.assert_allclose(found.bulk_edge, np.sqrt(gamma), atol=1e-10)
    assert found.overlap[1, 0, 0] == pytest.approx(0.2950282571, abs=1e-8)


def test_matrices_that_do_not_commute():
    """(sign(z1 z2), 1{|z1| < 1}) at three times its threshold 0.7574682957, against independently computed values."""
    labels = parity_and_window()
    weak = threshold(labels)
    assert weak == pytest.approx(0.7574682957, abs=1e-9)
    found = spectral_prediction(labels, "symmetric", np.array(3 * weak))
    assert found.outlier == 1 and squared_cosine(labels, "symmetric", 3 * weak) == pytest.approx(0.5755, abs=5e-5)
    # The eigenvector of norm sqrt(d) has the overlap Q / sqrt(Tr Q).
    np.testing.assert_allclose(found.overlap / np.sqrt(np.trace(found.overlap)), np.diag([0.641, 0.405]), atol=1e-3)
    found = spectral_prediction(labels, "asymmetric", np.array(3 * weak))
    assert squared_cosine(labels, "asymmetric", 3 * weak) == pytest.approx(0.4497552811, abs=1e-8)
    assert found.outlier == pytest.approx(3)


@pytest.mark.parametrize("r", [2, 3])
@both_kinds
def test_norm_is_one_scalar_problem(r, kind):
    """Each direction sees G = y/r - 1; the threshold is r/2, and E[G^2] = 2/r, E[G^3] = 8/r^2."""
    labels = norm_squared(r)
    alpha = np.array([0.45 * r, 0.6 * r, 2.0 * r])
    found = spectral_prediction(labels, kind, alpha)
    assert np.all(found.overlap[0] == 0)
    for index in (1, 2):
        gamma = alpha[index] * 2 / r
        asymmetric = gamma * (gamma - 1) / (gamma**2 + alpha[index] * 8 / r**2)
        symmetric = scalar_overlap(labels.weight, labels.G[:, 0, 0], alpha[index])
        q = symmetric if kind == "symmetric" else asymmetric
        np.testing.assert_allclose(found.overlap[index], q * np.eye(r), atol=1e-7)


@both_kinds
def test_only_the_first_step_of_a_staircase_is_found(kind):
    labels = first_direction_only()
    found = spectral_prediction(labels, kind, np.array([2.0, 1e4]))
    assert np.all(found.overlap[:, 0, 0] > 0.3)
    found.overlap[:, 0, 0] = 0
    assert np.all(np.abs(found.overlap) < 1e-12)


@both_kinds
def test_each_block_has_its_own_threshold(kind):
    """Strengths 0.8 and 0.4: learned from alpha = 1/0.64 and from 1/0.16."""
    found = spectral_prediction(two_strengths(), kind, np.array([1.5, 1.6, 6.2, 6.3]))
    diagonal = np.diagonal(found.overlap, axis1=1, axis2=2)
    np.testing.assert_array_equal(diagonal > 0, [[False, False], [True, False], [True, False], [True, True]])


def test_a_strong_direction_seen_through_a_weak_one_lies_above_the_outlier():
    """w1 is an outlier of the operator of z2 once alpha E[G1 G2] > 1, above 1 and above gamma_2: rank matters."""
    for kind in ("symmetric", "asymmetric"):
        spectra = {block.bases[0, 0, 0] != 0: found for block, found in block_spectra(two_strengths(), kind, 10.0)}
        assert spectra[True].larger == 0 and spectra[False].larger == 1


@pytest.mark.sampled(3)
@every_law
def test_symmetric_overlap_solves_the_matrix_equation(name):
    """Q (I - Q)^-1 = alpha E[G Q G (I + Q G)^-1], the largest solution: iterate it down from I."""
    labels = LAWS[name]
    r = labels.G.shape[1]
    for factor in (0.9, 1.3, 5.0):
        alpha = factor * threshold(labels)
        Q = np.eye(r)
        for _ in range(4000):
            R = np.linalg.solve(np.eye(r) + labels.G @ Q, labels.G)
            before, Mhat = Q, alpha * np.tensordot(labels.weight, labels.G @ Q @ R, 1)
            Q = np.eye(r) - np.linalg.inv(np.eye(r) + (Mhat + Mhat.T) / 2)
            if np.abs(Q - before).max() < 1e-12:
                break
        np.testing.assert_allclose(spectral_prediction(labels, "symmetric", np.array(alpha)).overlap, Q, atol=3e-6)


@every_law
def test_eigenvector_equations_at_the_outlier(name):
    r"""lambda C = alpha E[Sigma C R], and the self-overlap P: both with the Q found, put in as they stand."""
    labels = LAWS[name]
    G, r = labels.G, labels.G.shape[1]
    alpha = 2.5 * threshold(labels)
    Q = spectral_prediction(labels, "symmetric", np.array(alpha)).overlap
    m = np.eye(r) - Q
    R = G @ np.linalg.inv(np.eye(r) + G - m @ G)

    def mean(values):
        return np.tensordot(labels.weight, values, 1)

    # E[G] = 0 holds to the accuracy of the law's quadrature, and so does the rest.
    tolerance = 1e-7 + 10 * np.abs(mean(G)).max()
    np.testing.assert_allclose(np.linalg.inv(m), np.eye(r) - alpha * mean(R), atol=tolerance)
    np.testing.assert_allclose(alpha * mean((np.eye(r) + G) @ Q @ R), Q, atol=tolerance)
    inverse = np.linalg.inv(m)
    left = inverse @ Q @ inverse - alpha * mean(R @ Q @ R)
    np.testing.assert_allclose(left, inverse @ Q @ Q @ inverse + alpha * mean(R @ Q @ G @ Q @ R), atol=10 * tolerance)


@pytest.mark.sampled(3)
@every_law
def test_asymmetric_overlap_by_power_iteration(name):
    """C -> alpha E[G C G], P -> C'^T C' + alpha E[G (P + C^T G C) G] in each block, normalised, from C = P = I."""
    labels = LAWS[name]
    for factor in (1.5, 4.0):
        alpha = factor * threshold(labels)
        for block, found in block_spectra(labels, "asymmetric", alpha):
            if not found.learned:
                continue
            C = P = np.eye(block.size)
            for _ in range(400):
                new = alpha * np.tensordot(labels.weight, block.G @ C @ block.G, 1)
                inner = P + C.T @ block.G @ C
                P = new.T @ new + alpha * np.tensordot(labels.weight, block.G @ inner @ block.G, 1)
                size = np.linalg.norm(new)
                C, P = new / size, P / size**2
            Q = C @ np.linalg.inv(P) @ C.T
            np.testing.assert_allclose(found.posterior_overlap, Q, atol=1e-7)


@pytest.mark.parametrize("name", ["parity", "product", "norm in R^2", "two strengths"])
@pytest.mark.parametrize("factor", [0.5, 1.2, 3.0])
def test_bulk_edge_of_scalar_blocks(name, factor):
    """The largest over blocks of the minimum over m of 1/m + alpha E[T / (1 - m T)]."""
    labels = LAWS[name]
    alpha = factor * threshold(labels)
    edges = []
    for block in label_blocks(labels):
        second = 1 + block.G[:, 0, 0]

        def bulk(m: float, second: np.ndarray = second) -> float:
            return 1 / m + alpha * float(np.sum(labels.weight * (second - 1) / (second - m * (second - 1))))

        # T comes as close to 1 as one likes where labels are unbounded.
        limit = 1 / (1 - 1 / second.max()) if name in ("parity", "two strengths") else 1.0
        bounds = (1e-6, limit * (1 - 1e-12))
        best = minimize_scalar(bulk, bounds=bounds, method="bounded", options={"xatol": 1e-11})
        edges.append(best.fun)
    assert spectral_prediction(labels, "symmetric", np.array(alpha)).bulk_edge == pytest.approx(max(edges), abs=1e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["parity and window", "random in R^2", "random in R^3"])
@pytest.mark.parametrize("factor", [0.5, 1.2, 3.0])
def test_bulk_edge_of_matrix_blocks(name, factor):
    """Just above the edge the iteration m -> (lambda - alpha E[R])^-1 from zero converges; just below it escapes."""
    labels = LAWS[name]
    alpha = factor * threshold(labels)
    r = labels.G.shape[1]
    edge = float(spectral_prediction(labels, "symmetric", np.array(alpha)).bulk_edge)

    def bounded(value: float) -> bool:
        m = np.zeros((r, r))
        for _ in range(20_000):
            R = np.linalg.solve(np.eye(r) + labels.G - labels.G @ m, labels.G)
            k = value * np.eye(r) - alpha * np.tensordot(labels.weight, R, 1)
            values = np.linalg.eigvalsh(k)
            if values[0] <= 0:
                return False
            before, m = m, np.linalg.inv((k + k.T) / 2)
            # From zero the iteration rises for as long as it stays below the largest value T allows.
            if np.linalg.eigvalsh(m - before)[0] < -1e-9:
                return False
            if np.abs(m - before).max() < 1e-12 * np.abs(m).max():
                return True
        return True

    width = 1e-3 * max(1.0, abs(edge))
    assert bounded(edge + width) and not bounded(edge - width)
    assert edge < 1


@pytest.mark.sampled(6)
@every_law
@both_kinds
def test_predictions_are_ordered(name, kind):
    labels = LAWS[name]
    alpha = threshold(labels) * np.array([0.0, 0.5, 0.999, 1.001, 1.1, 2.0, 8.0, 1e3])
    found = spectral_prediction(labels, kind, alpha)
    values = np.linalg.eigvalsh(found.overlap)
    assert np.all((values > -1e-12) & (values < 1))
    assert np.all(found.overlap[:3] == 0) and np.all(np.diff(np.trace(found.overlap, axis1=1, axis2=2)[3:]) > 0)
    assert np.all(found.outlier[3:] > found.bulk_edge[3:]) and np.all(found.outlier[:3] == found.bulk_edge[:3])
    assert np.all(np.linalg.eigvalsh(np.diff(found.overlap, axis=0)) > -1e-9)
    if kind == "asymmetric":
        better = spectral_prediction(labels, "symmetric", alpha)
        assert np.all(np.linalg.eigvalsh(better.overlap - found.overlap) > -1e-9)


@both_kinds
def test_a_rotated_law_has_rotated_overlaps(kind):
    labels = LAWS["random in R^3"]
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
    alpha = np.array(2 * threshold(labels))
    plain = spectral_prediction(labels, kind, alpha)
    turned = spectral_prediction(law(labels.weight, turn @ labels.G @ turn.T), kind, alpha)
    np.testing.assert_allclose(turned.overlap, turn @ plain.overlap @ turn.T, atol=1e-9)
    for field in ("outlier", "bulk_edge"):
        assert getattr(turned, field) == pytest.approx(getattr(plain, field), abs=1e-8)


@both_kinds
def test_labels_that_say_nothing(kind):
    found = spectral_prediction(law([0.5, 0.5], np.zeros((2, 3, 3))), kind, np.array([[0.0, 1.0], [10.0, 1e6]]))
    assert np.all(found.overlap == 0) and found.overlap.shape == (2, 2, 3, 3)
    assert np.all(found.outlier == 0)
