"""Mixtures of noisy labels: against SciPy from the definition, against each other, and their limits."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.integrate import cubature, quad
from scipy.special import ndtr
from scipy.stats import norm

from solvable.channels import channel_of
from solvable.channels.mixture import LinearMixture, NoisyMixture
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

OUTLIERS = ((0.7, 1.0, 0.1), (0.3, 0.0, 5.0))
TWO_SIGNS = ((0.6, 1.0, 0.1), (0.4, -1.0, 0.3))


@functools.cache
def absolute():
    return NoisyMixture(landscape(Target("abs(z)")), OUTLIERS)


def linear(components):
    return LinearMixture(landscape(Target("z")), components)


def fisher(evidence_and_slope, q, reach_y):
    """E_omega int dy (dZ/domega)^2 / Z by adaptive cubature; `evidence_and_slope` gives Z and its derivative."""

    def integrand(points):
        x, y = points[:, 0], points[:, 1]
        Z, slope = evidence_and_slope(y, np.sqrt(q) * x)
        return norm.pdf(x) * np.where(Z > 1e-290, slope**2 / np.maximum(Z, 1e-290), 0.0)

    found = cubature(integrand, [-8.0, -reach_y], [8.0, reach_y], rtol=1e-8, atol=1e-11)
    assert found.status == "converged"
    return float(found.estimate)


@pytest.mark.parametrize("components", [OUTLIERS, TWO_SIGNS])
@pytest.mark.parametrize("q", [0.3, 0.9])
def test_linear_information_against_scipy(components, q):
    def evidence_and_slope(y, omega):
        Z, slope = 0.0, 0.0
        for p, b, noise in components:
            total = noise + b**2 * (1 - q)
            part = p * norm.pdf(y, b * omega, np.sqrt(total))
            Z, slope = Z + part, slope + part * b * (y - b * omega) / total
        return Z, slope

    expected = fisher(evidence_and_slope, q, 20.0)
    assert linear(components).scalar_information(np.array([1 - q])).information[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("q", [0.9, *(pytest.param(q, marks=pytest.mark.slow) for q in (0.3, 0.995))])
def test_nonlinear_information_against_scipy(q):
    """Of |z| each side of the kink is half a Gaussian: N(y; +-omega, S) Phi((y V +- omega D) / (S s)), S = V + D."""
    V = 1 - q

    def evidence_and_slope(y, omega):
        (p, _, D), (p_out, _, D_out) = OUTLIERS
        S, s = V + D, np.sqrt(V * D / (V + D))
        Z, slope = p_out * norm.pdf(y, 0, np.sqrt(D_out)), 0.0
        for side in (1, -1):
            a = (y * V + side * omega * D) / (S * s)
            bell = p * norm.pdf(y, side * omega, np.sqrt(S))
            Z = Z + bell * ndtr(a)
            slope = slope + side * bell * ((y - side * omega) / S * ndtr(a) + norm.pdf(a) * D / (S * s))
        return Z, slope

    found = absolute().scalar_information(np.array([V])).information[0]
    assert found == pytest.approx(fisher(evidence_and_slope, q, 20.0), rel=1e-6)


def bell(x, variance):
    """The Gaussian density, quicker on scalars than SciPy's."""
    return math.exp(-x * x / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("V", [1.0, 0.2, 1e-3])
def test_nonlinear_posterior_against_scipy(V):
    y, omega = np.array([-3.0, 0.02, 0.6, 1.5]), np.array([0.5, 0.1, -0.55, 0.4])
    found = absolute().scalar_posterior(absolute().observe(y), omega, V)
    for i in range(len(y)):
        reach = 9 * np.sqrt(V)

        def weight(z, power=0, i=i):
            density = sum(p * bell(y[i] - b * abs(z), noise) for p, b, noise in OUTLIERS)
            return z**power * density * bell(z - omega[i], V)

        ends = sorted(
            [
                omega[i] - reach,
                *(e for e in (0.0, y[i], -y[i], omega[i]) if abs(e - omega[i]) < reach),
                omega[i] + reach,
            ]
        )
        moments = [
            sum(
                quad(weight, a, b, args=(k,), epsabs=0, epsrel=1e-11)[0]
                for a, b in zip(ends[:-1], ends[1:], strict=True)
            )
            for k in range(3)
        ]
        mean = moments[1] / moments[0]
        assert found.log_Z[i] == pytest.approx(np.log(moments[0]), abs=1e-7)
        assert found.mean[i] == pytest.approx(mean, abs=1e-7 * np.sqrt(V))
        assert found.variance[i] == pytest.approx(moments[2] / moments[0] - mean**2, abs=1e-6 * V)


@pytest.mark.slow
def test_the_generic_mixture_of_z_agrees_with_the_closed_form():
    V = np.exp(-np.array([0.05, 3.0, 12.0]))
    generic = NoisyMixture(landscape(Target("z")), TWO_SIGNS)
    one, other = linear(TWO_SIGNS).scalar_information(V), generic.scalar_information(V)
    assert np.allclose(one.information, other.information, rtol=1e-7)
    assert np.allclose(one.entropy, other.entropy, atol=1e-8)
    # Labels that are possible: the generic posterior looks no farther than six standard deviations.
    y, omega = np.array([-1.5, -0.3, 0.0, 2.0]), np.array([0.3, 0.3, -1.0, 1.5])
    for a, b in zip(
        linear(TWO_SIGNS).scalar_posterior(y, omega, 0.3),
        generic.scalar_posterior(generic.observe(y), omega, 0.3),
        strict=True,
    ):
        assert np.allclose(a, b, rtol=1e-7)


def test_equal_components_are_one():
    V = np.exp(-np.array([0.05, 1.0, 3.0, 12.0, 30.0]))
    one, other = (
        linear(((0.7, 1.0, 0.1), (0.3, 1.0, 0.1))).scalar_information(V),
        channel_of(Target("z"), 0.1).scalar_information(V),
    )
    assert np.allclose(one.information, other.information, rtol=1e-12) and np.allclose(one.entropy, other.entropy)


def test_mirrored_slopes_say_the_same():
    V = np.array([0.5, 0.02])
    mirrored = tuple((p, -b, noise) for p, b, noise in OUTLIERS)
    assert np.allclose(
        linear(OUTLIERS).scalar_information(V).information,
        linear(mirrored).scalar_information(V).information,
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    "components", [OUTLIERS, TWO_SIGNS, ((0.6, 1.0, 0.0), (0.4, 0.5, 1.0)), ((0.6, 1.0, 0.1), (0.4, 0.0, 0.0))]
)
def test_information_is_the_slope_of_the_entropy(components):
    """dPsi/dq = I / 2."""
    q, h = np.array([0.2, 0.7, 0.95]), 1e-5
    channel = linear(components)
    slope = (channel.scalar_information(1 - q - h).entropy - channel.scalar_information(1 - q + h).entropy) / (2 * h)
    assert np.allclose(slope, channel.scalar_information(1 - q).information / 2, rtol=1e-6)


@pytest.mark.parametrize("components", [OUTLIERS, TWO_SIGNS], ids=["outliers", "signs"])
def test_fewer_nodes_change_next_to_nothing(components):
    channel = linear(components)
    V = np.exp(-np.linspace(0.01, 38, 25))
    fine, coarse = channel.scalar_information(V), channel.scalar_information(V, 0.7)
    assert np.allclose(fine.information, coarse.information, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1.0, *(pytest.param(x, marks=pytest.mark.slow) for x in (0.1, 3.0, 4.7, 8.0, 15.0))])
def test_absolute_labels_with_fewer_nodes(depth):
    V = np.exp(-np.array([depth]))
    fine, coarse = absolute().scalar_information(V), absolute().scalar_information(V, 0.7)
    assert np.allclose(fine.information, coarse.information, rtol=2e-6)


def test_erased_labels_say_nothing_and_the_rest_all():
    V = np.array([1.0, 0.3, 1e-3])
    channel = linear(((0.6, 1.0, 0.1), (0.4, 0.0, 0.0)))
    assert np.allclose(channel.scalar_information(V).information, 0.6 / (V + 0.1), rtol=1e-12)
    found = channel.scalar_posterior(np.array([0.0, 0.5]), np.array([0.3, 0.3]), 0.2)
    assert found.log_Z[0] == np.log(0.4) and found.mean[0] == 0.3 and found.variance[0] == 0.2
    assert found.mean[1] == pytest.approx(0.3 + 0.2 / 0.3 * 0.2)


def test_exact_labels_among_outliers_pin_z_down():
    channel = linear(((0.7, 1.0, 0.0), (0.3, 0.0, 5.0)))
    # Outliers within k sqrt(V) of omega pass for exact labels, k^2 = log(1 / V): a share k^3 sqrt(V) of I.
    V = np.exp(-np.array([10.0, 20.0, 30.0, 39.0]))
    missing = 0.7 - V * channel.scalar_information(V).information
    assert (
        np.all(missing > 0)
        and np.all(missing < 0.3 * np.sqrt(V) * np.log(1 / V) ** 1.5)
        and np.all(np.diff(missing) < 0)
    )
    assert channel.continuous_mass == 0.7 and channel.sharp and not channel.deterministic


def test_the_label_law_has_total_one_and_mean_zero():
    for channel in (linear(OUTLIERS), absolute(), linear(((0.6, 1.0, 0.1), (0.4, 0.0, 0.0)))):
        law = channel.label_law()
        assert law.weight.sum() == pytest.approx(1, abs=1e-8)
        assert law.weight @ law.mean[:, 0] == pytest.approx(0, abs=1e-8)
        assert law.weight @ law.G[:, 0, 0] == pytest.approx(0, abs=1e-8)


def test_rows_are_a_rule_over_z_and_y():
    rows = absolute().rows()
    y = rows.observation.y
    assert rows.weight.sum() == pytest.approx(1, abs=1e-8)
    assert np.sum(rows.weight * y**2) == pytest.approx(0.7 * 1.1 + 0.3 * 5, rel=1e-7)
    assert np.sum(rows.weight * y * np.abs(rows.z)) == pytest.approx(0.7, rel=1e-7)


def test_channels_are_made_once_and_say_what_they_are():
    channel = channel_of(Target("z"), components=OUTLIERS)
    assert channel is channel_of(Target("z"), components=OUTLIERS)
    assert repr(channel) == "LinearMixture('z', '0.7:1:0.1+0.3:0:5')"
