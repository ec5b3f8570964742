"""The noiseless channel: posteriors against thin shells, information against independent integrals, no NaN ever."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm, truncnorm

from solvable.channels import generic_channel
from solvable.targets.target import Target

GRID = np.linspace(-9, 9, 600_001)  # 1.5 points in the width of the thinnest shell: trapezoids are exact
FUNCTIONS = {
    "abs(z)": np.abs,
    "he4(z)": lambda z: z**4 - 6 * z**2 + 3,
    "cos(2*z)": lambda z: np.cos(2 * z),
    "relu(z)": lambda z: np.maximum(z, 0),
    "min(abs(z), 1)": lambda z: np.minimum(np.abs(z), 1),
    "sign(z) + sin(3*z)": lambda z: np.sign(z) + np.sin(3 * z),
    "z**3": lambda z: z**3,
    "-1 < z < 1": lambda z: (np.abs(z) < 1) * 1.0,
}
Q = (1e-3, 0.3, 0.9, 0.9999)


def quick(*names):
    """All functions, those not named among the slow tests."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in FUNCTIONS]


@functools.cache
def channel(text):
    return generic_channel(Target(text), 0.0)


@functools.cache
def information(text, fineness=1.0):
    """I and Psi at every q of Q, in one call."""
    return channel(text).scalar_information(1 - np.array(Q), fineness)


def thin_shell(g, y, omega, V, width):
    """log Z, mean and variance of z ~ N(omega, V) given that g(z) is y up to Gaussian noise of a small width."""
    log_weight = norm.logpdf(GRID, omega, np.sqrt(V)) + norm.logpdf(y, g(GRID), width)
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    mean = weight @ GRID / weight.sum()
    log_Z = np.log(weight.sum() * (GRID[1] - GRID[0])) + top
    return log_Z, mean, weight @ (GRID - mean) ** 2 / weight.sum()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "text",
    [
        "he4(z)",
        "sign(z) + sin(3*z)",
        *(pytest.param(text, marks=pytest.mark.slow) for text in ("abs(z)", "cos(2*z)", "z**3")),
    ],
)
def test_posterior_is_the_limit_of_thin_shells(text):
    g = FUNCTIONS[text]
    z, omega, V = [0.83, -0.37, 1.41], [0.9, 0.4, -0.3], [0.2, 0.7, 1.0]
    for one in zip(z, omega, V, strict=True):
        y = float(g(one[0]))
        found = channel(text).scalar_posterior(channel(text).observe(np.array([y])), np.array([one[1]]), one[2])
        # The error of a shell is quadratic in its width, and two widths extrapolate it away.
        wide, thin = (np.array(thin_shell(g, y, one[1], one[2], w)) for w in (2e-3, 1e-3))
        log_Z, mean, variance = thin + (thin - wide) / 3
        assert found.log_Z[0] == pytest.approx(log_Z, abs=2e-5)
        assert found.mean[0] == pytest.approx(mean, abs=2e-5)
        assert found.variance[0] == pytest.approx(variance, abs=1e-4)


def test_atoms_are_truncated_normals():
    omega, V = np.array([-1.2, 0.0, 0.4, 2.5]), 0.6
    s = np.sqrt(V)
    at_zero = channel("relu(z)").scalar_posterior(channel("relu(z)").observe(np.zeros(4)), omega, V)
    law = truncnorm(-np.inf, -omega / s, omega, s)
    assert np.allclose(at_zero.log_Z, norm.logcdf(-omega / s), atol=1e-12)
    assert np.allclose(at_zero.mean, law.mean(), atol=1e-9)
    assert np.allclose(at_zero.variance, law.var(), atol=1e-9)
    # Two tails make up the atom at one of min(|z|, 1).
    at_one = channel("min(abs(z), 1)").scalar_posterior(channel("min(abs(z), 1)").observe(np.ones(4)), omega, V)
    left, right = truncnorm(-np.inf, (-1 - omega) / s, omega, s), truncnorm((1 - omega) / s, np.inf, omega, s)
    mass = np.array([norm.cdf((-1 - omega) / s), norm.sf((1 - omega) / s)])
    share = mass / mass.sum(0)
    mean = share[0] * left.mean() + share[1] * right.mean()
    second = share[0] * (left.var() + left.mean() ** 2) + share[1] * (right.var() + right.mean() ** 2)
    assert np.allclose(at_one.log_Z, np.log(mass.sum(0)), atol=1e-12)
    assert np.allclose(at_one.mean, mean, atol=1e-9)
    assert np.allclose(at_one.variance, second - mean**2, atol=1e-9)


@pytest.mark.parametrize("text", quick("he4(z)", "relu(z)", "min(abs(z), 1)", "-1 < z < 1"))
def test_log_partition_is_normalised(text):
    """The label's law given omega integrates to one: atoms, plus the density over a fine grid of labels."""
    shape, omega, V = channel(text).landscape, 0.6, 0.5
    total = 0.0
    if shape.atoms.size:
        at_atoms = channel(text).scalar_posterior(
            channel(text).observe(shape.atoms), np.full(len(shape.atoms), omega), V
        )
        total += np.exp(at_atoms.log_Z).sum()
    if shape.continuous_mass > 0:
        # As E_y under the label law at omega = 0, V = 1: the ratio of the two densities averages to one.
        rows = channel(text).rows()
        here = channel(text).scalar_posterior(rows.observation, np.full(len(rows.z), omega), V).log_Z
        prior = channel(text).scalar_posterior(rows.observation, np.zeros(len(rows.z)), 1.0).log_Z
        continuous = (shape.atom_of(FUNCTIONS[text](rows.z)) < 0) & (rows.weight > 0)
        total += np.sum(rows.weight[continuous] * np.exp(here - prior)[continuous])
    assert total == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("text", quick("he4(z)", "relu(z)", "min(abs(z), 1)", "-1 < z < 1"))
def test_rows_are_a_law(text):
    for narrow in (False, True):
        rows = channel(text).rows(1.0, narrow)
        assert np.all(rows.weight >= 0) and rows.weight.sum() == pytest.approx(1, abs=1e-9)
        assert np.sum(rows.weight * rows.z**2) == pytest.approx(1, abs=1e-8)


def average_over_rows(text, q, function):
    """E f(posterior, omega) over the joint law of label and omega, by the rows and a trapezoid of our own in x."""
    rows, V = channel(text).rows(1.0, q > 0.99), 1 - q
    x = np.linspace(-6, 6, 61)
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    total = 0.0
    for node, w in zip(x, weight, strict=True):
        omega = q * rows.z + np.sqrt(q * V) * node
        total = total + w * np.sum(
            rows.weight * function(channel(text).scalar_posterior(rows.observation, omega, V), omega), -1
        )
    return total


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["he4(z)", "relu(z)", "-1 < z < 1"])
@pytest.mark.parametrize("q", [0.3, 0.9])
@pytest.mark.slow
def test_nishimori(text, q):
    """E[g^2] = E[1/V - Var/V^2], since the posterior of z is that of the truth; and I is the former."""
    V = 1 - q

    def both(posterior, omega):
        return np.stack([((posterior.mean - omega) / V) ** 2, 1 / V - posterior.variance / V**2])

    squares, fluctuation = average_over_rows(text, q, both)
    assert squares == pytest.approx(fluctuation, rel=1e-6)
    assert information(text).information[Q.index(q)] == pytest.approx(squares, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["he4(z)", "min(abs(z), 1)"])
def test_information_against_monte_carlo(text):
    """Labels drawn from the model: I is the mean square of g, and the truth overlaps as the mean does with itself."""
    rng, q = np.random.default_rng(3), 0.3
    omega = np.sqrt(q) * rng.standard_normal(40_000)
    z = omega + np.sqrt(1 - q) * rng.standard_normal(40_000)
    posterior = channel(text).scalar_posterior(
        channel(text).observe(channel(text).sample(z[:, None], rng)), omega, 1 - q
    )
    square = ((posterior.mean - omega) / (1 - q)) ** 2
    assert abs(square.mean() - information(text).information[1]) < 4 * square.std() / 200
    assert abs(posterior.log_Z.mean() - information(text).entropy[1]) < 4 * posterior.log_Z.std() / 200
    excess = posterior.mean * (z - posterior.mean)
    assert abs(excess.mean()) < 4 * excess.std() / 200
    error = (z - posterior.mean) ** 2 - posterior.variance
    assert abs(error.mean()) < 4 * error.std() / 200


def graded(edges, nodes):
    """Gauss-Legendre on consecutive panels, with t = u^2 (3 - 2 u) against square roots at their ends."""
    u, w = np.polynomial.legendre.leggauss(nodes)
    u, w = (u + 1) / 2, w / 2
    t, w = u**2 * (3 - 2 * u), w * 6 * u * (1 - u)
    parts = list(zip(edges[:-1], edges[1:], strict=True))
    return np.concatenate([a + (b - a) * t for a, b in parts]), np.concatenate([(b - a) * w for a, b in parts])


@pytest.mark.parametrize("q", [0.3, 0.9])
def test_four_roots_by_hand(q):
    """he4(c) = he4(z) has the roots c = +-z and +-sqrt(6 - z^2), where |he4'(c)| = 4 |c| |z^2 - 3|."""
    V = 1 - q
    z, weight = graded([0, 1, np.sqrt(3), np.sqrt(6), 4, 8], 60)
    partner = np.sqrt(np.maximum(6 - z**2, 0))
    root = np.stack([-z, z, -partner, partner])
    real = np.stack([z > 0, z > 0, z**2 < 6, z**2 < 6])
    total = 0.0
    for x in np.linspace(-6, 6, 61):
        omega = q * z + np.sqrt(q * V) * x
        log_weight = np.where(
            real, -((root - omega) ** 2) / (2 * V) - np.log(np.maximum(np.abs(root), 1e-300)), -np.inf
        )
        share = np.exp(log_weight - log_weight.max(0))
        mean = np.sum(share * root, 0) / share.sum(0)
        total += 0.2 * norm.pdf(x) * np.sum(2 * weight * norm.pdf(z) * ((mean - omega) / V) ** 2)
    assert information("he4(z)").information[Q.index(q)] == pytest.approx(total, rel=2e-6)


def density(x):
    """The standard normal density, quicker on scalars than SciPy's."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def atoms_information(intervals, q):
    """E_omega sum over the atoms of P'^2 / P, by adaptive quadrature."""
    s = np.sqrt(1 - q)

    def integrand(omega):
        total = 0.0
        for atom in intervals:
            p = sum(ndtr((b - omega) / s) - ndtr((a - omega) / s) for a, b in atom)
            slope = sum(density((a - omega) / s) - density((b - omega) / s) for a, b in atom) / s
            total += slope**2 / p if p > 1e-14 else 0.0
        return total * density(omega / np.sqrt(q)) / np.sqrt(q)

    reach = 8 * np.sqrt(q)
    points = sorted({e for atom in intervals for ends in atom for e in ends if abs(e) < reach})
    return quad(integrand, -reach, reach, points=points or None, limit=400, epsabs=1e-12, epsrel=1e-9)[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("-1 < z < 1", [[(-1, 1)], [(-np.inf, -1), (1, np.inf)]]),
        pytest.param("step(z - 0.5)", [[(-np.inf, 0.5)], [(0.5, np.inf)]], marks=pytest.mark.slow),
        ("sign(z)*(abs(z) > 1)", [[(-np.inf, -1)], [(-1, 1)], [(1, np.inf)]]),
    ],
)
def test_discrete_labels_against_adaptive_quadrature(text, intervals):
    found = information(text)
    for i in (1, 2):
        assert found.information[i] == pytest.approx(atoms_information(intervals, Q[i]), rel=1e-6)
    assert channel(text).discrete and channel(text).continuous_mass == 0
    # The entropy of a discrete label is minus that of its classes: between zero and log of their number.
    assert np.all((found.entropy < 0) & (found.entropy > -np.log(len(intervals))))


@pytest.mark.parametrize("q", [0.3, 0.9])
def test_relu_is_an_atom_and_a_half_line(q):
    V, s = 1 - q, np.sqrt(1 - q)

    def integrand(omega):
        t = omega / s
        # The atom: phi^2 / Phi; above it z is known, E[(z - omega)^2; z > 0] = V (Phi(t) - t phi(t)).
        atom = np.exp(2 * norm.logpdf(t) - norm.logcdf(-t)) / V
        above = (norm.cdf(t) - t * norm.pdf(t)) / V
        return (atom + above) * norm.pdf(omega, 0, np.sqrt(q))

    exact = quad(integrand, -8 * np.sqrt(q), 8 * np.sqrt(q), points=[0], limit=200, epsrel=1e-10)[0]
    assert information("relu(z)").information[Q.index(q)] == pytest.approx(exact, rel=1e-6)
    assert channel("relu(z)").continuous_mass == pytest.approx(0.5)


@pytest.mark.parametrize("text", quick("he4(z)", "relu(z)", "-1 < z < 1", "z**3"))
def test_entropy_has_slope_half_the_information(text):
    q, h = np.array([0.05, 0.3, 0.7, 0.999]), np.array([1e-3, 1e-3, 1e-3, 1e-5])
    entropy = channel(text).scalar_information(1 - np.concatenate([q + h, q - h])).entropy
    slope = (entropy[:4] - entropy[4:]) / (2 * h)
    assert np.allclose(slope, channel(text).scalar_information(1 - q).information / 2, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("text", quick("he4(z)", "relu(z)", "-1 < z < 1", "z**3"))
def test_information_grows_with_what_is_known_and_stays_below_knowing_z(text):
    q = np.array([1e-4, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.985])
    values = channel(text).scalar_information(1 - q).information
    # V I is the share of the remaining variance that a label removes: at most all of it.
    assert np.all(values > 0) and np.all((1 - q) * values <= 1 + 1e-7)
    # E[Cov(z|y)]/V falls: information per label grows with q for every channel.
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize(
    "text",
    ["relu(z)", "he4(z)", *(pytest.param(text, marks=pytest.mark.slow) for text in ("abs(z)", "min(abs(z), 1)"))],
)
def test_information_diverges_with_the_continuous_mass(text):
    assert (1 - Q[3]) * information(text).information[3] == pytest.approx(channel(text).continuous_mass, abs=0.01)


def test_an_invertible_target_gives_z_away():
    for i, q in enumerate(Q):
        assert information("z**3").information[i] == pytest.approx(1 / (1 - q), rel=1e-6)


@pytest.mark.parametrize("q", Q)
@pytest.mark.parametrize("text", quick())
def test_the_error_estimate_is_honest(text, q):
    """What finer rules change is within what coarser ones do."""
    coarse, here, fine = (information(text, f).information[Q.index(q)] for f in (0.7, 1.0, 1.6))
    assert abs(here - fine) <= 3 * abs(here - coarse) + 1e-6 * abs(here)


@pytest.mark.parametrize("text", quick("he4(z)", "relu(z)", "min(abs(z), 1)", "-1 < z < 1"))
def test_far_tails_stay_finite(text):
    """Omega may be wildly wrong in the first steps of an algorithm, and V small: still numbers."""
    z = np.array([-2.3, -1.0001, -0.4, 1e-3, 0.7, 1.9])
    observation = channel(text).observe(FUNCTIONS[text](z))
    for centre in (-300.0, -40.0, -7.0, 0.0, 7.0, 40.0, 300.0):
        for V in (1e-9, 1e-4, 0.1, 1.0):
            log_Z, mean, variance = channel(text).scalar_posterior(observation, np.full(6, centre), V)
            assert np.all(np.isfinite(log_Z)) and np.all(np.isfinite(mean)) and np.all(np.isfinite(variance))
            assert np.all(variance >= 0)
            assert np.all(np.abs(mean) <= np.maximum(9.01, abs(centre) + 9 * np.sqrt(V)))


def test_a_label_far_from_omega_points_to_its_nearest_root():
    posterior = channel("he4(z)").scalar_posterior(
        channel("he4(z)").observe(np.zeros(2)), np.array([30.0, -30.0]), 1e-2
    )
    outer = np.sqrt(3 + np.sqrt(6))
    assert np.allclose(posterior.mean, [outer, -outer], atol=1e-9) and np.allclose(posterior.variance, 0, atol=1e-12)


def test_a_far_atom_is_entered_at_its_edge():
    channel_ = channel("-1 < z < 1")
    posterior = channel_.scalar_posterior(channel_.observe(np.ones(2)), np.array([40.0, -40.0]), 1.0)
    assert np.allclose(posterior.mean, [truncnorm.mean(-41, -39, 40), truncnorm.mean(39, 41, -40)], atol=1e-5)


@pytest.mark.parametrize(("text", "z"), [("cos(2*z)", 1e-9), ("cos(2*z)", np.pi / 2), ("abs(z)", 0.0)])
def test_labels_drawn_at_turning_points_are_not_nan(text, z):
    """z within 1e-8 of a turning point gives the critical value itself: about one label in 1e8."""
    observation = channel(text).observe(FUNCTIONS[text](np.array([z])))
    with np.errstate(invalid="ignore"):
        posterior = channel(text).scalar_posterior(observation, np.array([0.3]), 0.5)
    assert np.isfinite(posterior.mean).all() and np.isfinite(posterior.variance).all()


def test_a_label_drawn_at_a_turning_point_keeps_its_roots():
    # he4(1e-9) = 3 to the last digit: the roots +-1e-9 weigh infinitely more than +-sqrt(6), and only those are found.
    posterior = channel("he4(z)").scalar_posterior(channel("he4(z)").observe(np.array([3.0])), np.array([0.3]), 0.5)
    assert abs(posterior.mean[0]) < 1e-3 and posterior.variance[0] < 1e-3


@pytest.mark.parametrize(("text", "label"), [("abs(z)", -0.5), ("he4(z)", -6.5), ("-1 < z < 1", 0.5)])
def test_impossible_labels_are_refused(text, label):
    with pytest.raises(ValueError, match=f"y = {label} is not allowed: y must be a value of"):
        channel(text).observe(np.array([label]))


def test_labels_are_those_of_the_target():
    z = np.random.default_rng(0).standard_normal(50)
    for text, g in FUNCTIONS.items():
        assert np.allclose(channel(text).sample(z[:, None], np.random.default_rng(1)), g(z), atol=1e-12)
