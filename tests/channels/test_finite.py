"""Flipped labels and mixtures of classes: closed forms, equal descriptions of one law, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from solvable.channels import Logit, Probit, Sign, channel_of
from solvable.channels.finite import ClassMixture, FlippedLabels
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

V = np.array([1.0, 0.7, 0.1, 1e-2, 1e-6])


def classes(text, components):
    return ClassMixture(landscape(Target(text)), components)


def signs(flip):
    return classes("sign(z)", ((1 - flip, 1.0, 0.0), (flip, -1.0, 0.0)))


@pytest.mark.parametrize("flip", [0.05, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_information_against_scipy(flip, noise):
    """Z = f + (1 - 2 f) Phi(a), a = omega / sqrt(U), U = V + noise, and I = E[Z'^2 / (Z (1 - Z))]."""
    for v in (0.7, 0.1):
        q, U = 1 - v, v + noise

        def fisher(x, q=q, U=U):
            a = np.sqrt(q / U) * x
            Z = flip + (1 - 2 * flip) * ndtr(a)
            return norm.pdf(x) * ((1 - 2 * flip) * norm.pdf(a)) ** 2 / (U * Z * (1 - Z))

        expected = quad(fisher, -9, 9, points=[0.0], epsabs=1e-13, epsrel=1e-11, limit=200)[0]
        assert FlippedLabels(Probit(noise), flip).scalar_information(v).information == pytest.approx(expected, rel=1e-9)


def test_two_descriptions_of_flipped_signs():
    one, other = signs(0.2).scalar_information(V), FlippedLabels(Sign(), 0.2).scalar_information(V)
    assert np.allclose(one.information, other.information, rtol=1e-10)
    assert np.allclose(one.entropy, other.entropy, atol=1e-12)
    y, omega = np.array([1.0, -1.0, 1.0]), np.array([-8.0, 0.3, 0.001])
    for v in (1.0, 1e-4):
        first, second = (c.scalar_posterior(c.observe(y), omega, v) for c in (signs(0.2), FlippedLabels(Sign(), 0.2)))
        for a, b in zip(first, second, strict=True):
            assert np.allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("channel", [Sign(), Probit(0.3), Logit(2.0)], ids=repr)
def test_flipping_few_labels_changes_little_and_half_of_them_all(channel):
    clean = channel.scalar_information(V[:3]).information
    assert np.allclose(FlippedLabels(channel, 1e-9).scalar_information(V[:3]).information, clean, rtol=1e-6)
    assert np.allclose(FlippedLabels(channel, 0.5).scalar_information(V[:3]).information, 0, atol=1e-20)
    one, other = (FlippedLabels(channel, f).scalar_information(V[:3]) for f in (0.2, 0.8))
    assert np.allclose(one.information, other.information) and np.all(one.information < clean)
    assert channel_of(channel, components=((0.4, 1.0, 0.0), (0.6, 1.0, 0.0))) is channel


def test_information_next_to_a_jump_grows_without_bound():
    """I = c V^(-1/2): flips make the constant smaller, and the entropy of known z stays."""
    small = np.array([1e-6, 1e-8])
    found = signs(0.1).scalar_information(small)
    assert found.information[1] / found.information[0] == pytest.approx(10, rel=1e-3)
    assert signs(0.1).settled_entropy == pytest.approx(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    assert FlippedLabels(Sign(), 0.1).settled_entropy == pytest.approx(signs(0.1).settled_entropy)
    assert found.entropy[1] == pytest.approx(signs(0.1).settled_entropy, abs=1e-3)
    assert signs(0.1).sharp and not FlippedLabels(Probit(0.1), 0.1).sharp


def test_classes_that_share_a_value():
    """An indicator with some labels doubled and some set to 0: a 0 may be true or erased."""
    channel = classes("where(abs(z) < 1, 1, 0)", ((0.8, 1.0, 0.0), (0.1, 2.0, 0.0), (0.1, 0.0, 0.0)))
    assert list(channel.labels) == [0.0, 1.0, 2.0]
    assert np.allclose(channel.probabilities(np.array([0.5, 3.0])), [[0.1, 0.8, 0.1], [1.0, 0.0, 0.0]])
    inside = ndtr(1) - ndtr(-1)
    law = channel.label_law()
    assert np.allclose(law.weight, [1 - 0.9 * inside, 0.8 * inside, 0.1 * inside], atol=1e-12)
    y = channel.sample(np.full((20_000, 1), 0.5), np.random.default_rng(0))
    assert abs(np.mean(y == 1) - 0.8) < 4 * np.sqrt(0.16 / len(y))
    assert channel.rows().weight.sum() == pytest.approx(1, abs=1e-12)


def test_labels_that_no_component_gives_are_refused():
    with pytest.raises(ValueError, match=r"y = 0.5 is not allowed: y must be one of the labels -1, 1\."):
        signs(0.1).observe(np.array([1.0, 0.5]))


def test_they_say_what_they_are():
    assert repr(signs(0.25)) == "ClassMixture('sign(z)', '0.75:1:0+0.25:-1:0')"
    assert repr(FlippedLabels(Logit(2.0), 0.1)) == "FlippedLabels(Logit(gain=2), 0.1)"
