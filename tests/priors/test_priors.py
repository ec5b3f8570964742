"""Priors: denoisers against adaptive quadrature, identities of the scalar problem, and its limits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from solvable.priors import GaussBernoulli, Gaussian, Rademacher, as_prior

PRIORS = [Gaussian(), Rademacher(), GaussBernoulli(0.01), GaussBernoulli(0.2), GaussBernoulli(0.9), GaussBernoulli(1.0)]
IDS = ["gaussian", "rademacher", "gb 0.01", "gb 0.2", "gb 0.9", "gb 1"]
QHAT = np.array([1e-3, 0.05, 0.099, 0.101, 0.5, 1.0, 3.0, 10.0, 40.0])

every_prior = pytest.mark.parametrize("prior", PRIORS, ids=IDS)


def law(prior) -> tuple[list[tuple[float, float]], float, float]:
    """The prior written down anew: atoms (place, weight), and the weight and variance of a Gaussian part."""
    if isinstance(prior, Rademacher):
        return [(-1.0, 0.5), (1.0, 0.5)], 0.0, 1.0
    if isinstance(prior, Gaussian):
        return [], 1.0, 1.0
    return [(0.0, 1 - prior.rho)], prior.rho, 1 / prior.rho


def posterior_moments(prior, B: float, A: float) -> tuple[float, float, float]:
    """log Z, mean and variance of the density P(w) exp(B w - A w^2 / 2), by adaptive quadrature."""
    atoms, slab, tau = law(prior)
    v = 1 / (A + 1 / tau)
    centre, s = v * B, np.sqrt(v)
    shift = max([centre * B / 2] + [B * w - A * w * w / 2 for w, p in atoms if p > 0])
    moments = []
    for power in range(3):
        total = sum(p * w**power * np.exp(B * w - A * w * w / 2 - shift) for w, p in atoms)
        if slab:
            total += quad(
                lambda w, k=power: (
                    slab * w**k * np.exp(B * w - A * w * w / 2 - w * w / (2 * tau) - shift) / np.sqrt(2 * np.pi * tau)
                ),
                centre - 12 * s,
                centre + 12 * s,
                epsabs=1e-13,
                epsrel=1e-10,
                points=[centre],
            )[0]
        moments.append(total)
    mean = moments[1] / moments[0]
    return np.log(moments[0]) + shift, mean, moments[2] / moments[0] - mean**2


@every_prior
@pytest.mark.parametrize("A", [0.0, 0.3, 4.0, 50.0])
def test_posterior_against_adaptive_quadrature(prior, A):
    B = np.array([-7.0, -1.3, 0.0, 0.4, 2.0, 12.0])
    exact = np.array([posterior_moments(prior, b, A) for b in B])
    mean, variance = prior.denoise(B, A)
    assert np.allclose(prior.log_partition(B, A), exact[:, 0], rtol=1e-9, atol=1e-10)
    assert np.allclose(mean, exact[:, 1], rtol=1e-8, atol=1e-10)
    assert np.allclose(variance, exact[:, 2], rtol=1e-5, atol=1e-9)


@every_prior
def test_denoising_is_the_slope_of_the_log_partition(prior):
    B, A, h = np.linspace(-4, 4, 17), 1.7, 1e-4
    mean, variance = prior.denoise(B, A)
    up, down = prior.log_partition(B + h, A), prior.log_partition(B - h, A)
    assert np.allclose((up - down) / (2 * h), mean, atol=1e-6)
    assert np.allclose((prior.denoise(B + h, A)[0] - prior.denoise(B - h, A)[0]) / (2 * h), variance, atol=1e-6)


@every_prior
def test_overlap_and_mmse_sum_to_one(prior):
    assert np.allclose(prior.overlap(QHAT) + prior.mmse(QHAT), 1, atol=1e-10)


def field_average(prior, qhat: float, function) -> float:
    """E f(B), B = qhat w + sqrt(qhat) x, from the definition: a mixture of Gaussians in B, integrated adaptively."""
    atoms, slab, tau = law(prior)
    parts = [(p, qhat * w, np.sqrt(qhat)) for w, p in atoms if p > 0]
    parts += [(slab, 0.0, np.sqrt(qhat**2 * tau + qhat))] if slab else []
    total = 0.0
    for weight, centre, scale in parts:
        switch = min(9.0, 5 * np.sqrt(qhat) / scale)  # spike against slab, narrow beside a wide slab
        points = [-switch, 0.0, switch]
        integral = quad(lambda x, c=centre, s=scale: function(c + s * x) * norm.pdf(x), -9, 9, points=points, limit=300)
        total += weight * integral[0]
    return total


@pytest.mark.sampled(3)
@every_prior
@pytest.mark.parametrize("qhat", [0.02, 0.7, 8.0])
def test_overlap_and_potential_against_adaptive_quadrature(prior, qhat):
    mean_square = field_average(prior, qhat, lambda B: float(prior.denoise(np.array([B]), qhat)[0][0]) ** 2)
    log_Z = field_average(prior, qhat, lambda B: float(prior.log_partition(np.array([B]), qhat)[0]))
    assert float(prior.overlap(qhat)) == pytest.approx(mean_square, rel=1e-7)
    assert float(prior.potential(qhat)) == pytest.approx(log_Z, rel=1e-6, abs=1e-9)


@every_prior
def test_the_potential_has_slope_half_the_overlap(prior):
    h = 1e-3 * QHAT
    slope = (prior.potential(QHAT + h) - prior.potential(QHAT - h)) / (2 * h)
    assert np.allclose(slope, prior.overlap(QHAT) / 2, rtol=2e-5, atol=1e-9)


@every_prior
def test_the_overlap_starts_linearly_and_grows(prior):
    tiny = np.array([1e-9, 1e-7, 1e-5])
    assert np.allclose(prior.overlap(tiny) / tiny, 1, rtol=2e-3)
    many = np.logspace(-6, 3, 200)
    overlap, mmse = prior.overlap(many), prior.mmse(many)
    assert np.all(np.diff(overlap) >= -1e-13) and np.all((overlap >= 0) & (overlap <= 1))
    assert np.all(np.diff(mmse) <= 1e-13) and np.all(mmse >= 0)
    # The linear estimator, error 1 / (1 + qhat), is the worst prior's best.
    assert np.all(mmse <= 1 / (1 + many) * (1 + 1e-9))


@every_prior
def test_edges_are_finite(prior):
    for qhat in (0.0, 1e-300, 1e-15, 1e5, 1e8):
        for value in (prior.overlap(qhat), prior.mmse(qhat), prior.potential(qhat)):
            assert np.shape(value) == () and np.isfinite(value)
    assert float(prior.mmse(0.0)) == pytest.approx(1, abs=1e-12)
    assert float(prior.overlap(0.0)) == pytest.approx(0, abs=1e-12)
    assert float(prior.potential(0.0)) == pytest.approx(0, abs=1e-12)
    together = np.array([[0.0, 1e-15, 1.0], [1e3, 1e5, 1e8]])
    for method in (prior.overlap, prior.mmse, prior.potential):
        assert method(together).shape == together.shape
        assert method(together)[0, 2] == pytest.approx(float(method(1.0)), rel=1e-12)
    for B, A in ((0.0, 0.0), (1e6, 1.0), (-1e6, 1e6), (700.0, 0.0)):
        mean, variance = prior.denoise(np.array([B]), A)
        assert np.isfinite(mean).all() and np.isfinite(variance).all() and (variance >= 0).all()
        assert np.isfinite(prior.log_partition(np.array([B]), A)).all()


@every_prior
def test_large_qhat_shows_the_information_dimension(prior):
    # A spike is told from a slab up to an error of order log(qhat) / sqrt(qhat).
    for qhat, relative in ((1e4, 0.07), (1e6, 0.015), (1e8, 0.002)):
        assert qhat * float(prior.mmse(qhat)) == pytest.approx(prior.dimension, rel=relative, abs=1e-12)


@pytest.mark.parametrize(("rho", "qhat"), [(0.01, 1e4), (0.3, 1e6)])
def test_sparse_error_at_large_qhat_against_mpmath(rho, qhat):
    v = 1 / (qhat + rho)
    spike, slab = np.sqrt(qhat), np.sqrt(qhat**2 / rho + qhat)

    def weighted_variance(B):
        odds = rho / (1 - rho) * mpmath.sqrt(v * rho) * mpmath.exp(v * B * B / 2)
        p = odds / (1 + odds)
        density = (1 - rho) * mpmath.npdf(B, 0, spike) + rho * mpmath.npdf(B, 0, slab)
        return density * (p * v + p * (1 - p) * (v * B) ** 2)

    ends = sorted([spike * x for x in range(13)] + [slab * x for x in (0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 4, 6, 9, 12)])
    exact = 2 * mpmath.quad(weighted_variance, ends)
    assert float(GaussBernoulli(rho).mmse(qhat)) == pytest.approx(float(exact), rel=1e-10)


def test_rademacher_error_is_exponentially_small():
    """mmse = exp(-qhat/2) E[1/cosh(sqrt(qhat) t)], to relative precision also where 1 - overlap has no digits left."""
    for qhat in (4.0, 30.0, 200.0):
        exact = mpmath.quad(
            lambda x, q=qhat: (1 - mpmath.tanh(q + mpmath.sqrt(q) * x)) * mpmath.npdf(x),
            [-40, -2 * mpmath.sqrt(qhat), -mpmath.sqrt(qhat), 0, 20],
        )
        assert float(Rademacher().mmse(qhat)) == pytest.approx(float(exact), rel=1e-6)
    asymptotic = np.exp(-200.0 / 2) * np.sqrt(np.pi / (2 * 200.0))
    assert float(Rademacher().mmse(200.0)) == pytest.approx(asymptotic, rel=0.01)


def test_rademacher_entropy_is_the_limit_of_the_free_entropy():
    prior = Rademacher()
    assert float(prior.potential(80.0) - 40.0 * prior.overlap(80.0)) == pytest.approx(-prior.entropy, abs=1e-9)


def test_full_density_is_gaussian():
    B = np.linspace(-5, 5, 11)
    sparse, dense = GaussBernoulli(1.0), Gaussian()
    assert np.allclose(sparse.log_partition(B, 2.0), dense.log_partition(B, 2.0), atol=1e-14)
    for one, other in zip(sparse.denoise(B, 2.0), dense.denoise(B, 2.0), strict=True):
        assert np.allclose(one, other, atol=1e-14)
    for name in ("overlap", "mmse", "potential"):
        assert np.allclose(getattr(sparse, name)(QHAT), getattr(dense, name)(QHAT), rtol=1e-10, atol=1e-13)


def test_sparse_weights_are_easier_than_dense_ones():
    errors = [float(GaussBernoulli(rho).mmse(5.0)) for rho in (0.05, 0.2, 0.5, 1.0)]
    assert errors == sorted(errors)


@every_prior
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_samples_have_the_norm_exactly(prior, size):
    weights = prior.sample(np.random.default_rng(5), size)
    assert weights.shape == (size,) and weights.dtype == np.float64
    if np.any(weights):  # a sparse teacher of few weights may be zero
        assert np.sum(weights**2) == pytest.approx(size, rel=1e-12)
    again = prior.sample(np.random.default_rng(5), size)
    assert np.array_equal(weights, again)


def test_samples_follow_their_law():
    rng = np.random.default_rng(0)
    size = 200_000
    assert set(np.unique(Rademacher().sample(rng, size))) == {-1.0, 1.0}
    sparse = GaussBernoulli(0.2).sample(rng, size)
    error = np.sqrt(0.2 * 0.8 / size)
    assert abs(np.mean(sparse != 0) - 0.2) < 4 * error
    slab = sparse[sparse != 0]
    assert np.mean(slab**4) / np.mean(slab**2) ** 2 == pytest.approx(3, abs=4 * np.sqrt(24 / len(slab)) * 2)
    assert np.mean(Gaussian().sample(rng, size) ** 4) == pytest.approx(3, abs=4 * np.sqrt(96 / size))


@pytest.mark.parametrize("rho", [0, -0.1, 1.5, float("nan")])
def test_bad_density_is_refused(rho):
    with pytest.raises(ValueError) as error:
        GaussBernoulli(rho)
    assert str(error.value) == f"rho = {rho!r} is not allowed: rho must be in (0, 1]."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian", Gaussian()),
        ("  Gaussian ", Gaussian()),
        ("rademacher", Rademacher()),
        ("gauss-bernoulli:0.2", GaussBernoulli(0.2)),
        ("gauss_bernoulli:1", GaussBernoulli(1.0)),
    ],
)
def test_priors_from_text(text, expected):
    prior = as_prior(text)
    assert type(prior) is type(expected) and prior == expected
    assert as_prior(prior) is prior


@pytest.mark.parametrize(
    "bad", ["laplace", "", "gaussian:1", "gauss-bernoulli", "gauss-bernoulli:x", "gauss-bernoulli:2", 3, None]
)
def test_bad_priors_are_refused_with_what_is_taken(bad):
    with pytest.raises(ValueError) as error:
        as_prior(bad)
    assert str(error.value) == (
        f"prior = {bad!r} is not allowed: prior must be a prior, 'gaussian', 'rademacher' or 'gauss-bernoulli:RHO' "
        "with RHO in (0, 1]."
    )


@pytest.mark.parametrize("prior", [Gaussian(), GaussBernoulli(0.3), GaussBernoulli(1.0), Rademacher()])
def test_the_slope_of_the_information_is_half_the_error_however_much_is_known(prior):
    log_qhat, step = np.log([0.01, 1.0, 30.0, 1e6, 1e8, 1e9, 1e14]), 1e-2
    slope = (prior.information(np.exp(log_qhat + step)) - prior.information(np.exp(log_qhat - step))) / (2 * step)
    expected = np.exp(log_qhat) * prior.mmse(np.exp(log_qhat)) / 2
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)
