"""Targets that depend on one direction only, seen from several projections: the channel of one projection."""

from __future__ import annotations

import numpy as np
import pytest
from at_overlap import errors_at, information_at

from solvable.channels import GenericChannel, channel_of
from solvable.channels.single_direction import SingleDirection
from solvable.targets.target import Target

UNIT = np.array([0.6, 0.8])
CORRELATED = np.array([[0.4, 0.1], [0.1, 0.3]])
CASES = {
    "abs(0.6*z1 + 0.8*z2)": ("abs(z)", 0.0),
    "sign(0.6*z1 + 0.8*z2)": ("sign(z)", 0.0),
    "tanh(0.6*z1 + 0.8*z2)": ("tanh(z)", 0.1),
    "relu(0.6*z1 + 0.8*z2)": ("relu(z)", 0.0),
}
MARKED = [pytest.param(text, marks=pytest.mark.slow) if text.startswith(("sign", "relu")) else text for text in CASES]


def pair(text: str):
    formula, noise = CASES[text]
    found = channel_of(Target(text), noise)
    assert isinstance(found, SingleDirection)
    return found, channel_of(Target(formula), noise)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", MARKED)
def test_information_is_that_of_one_projection(text):
    embedded, scalar = pair(text)
    v = UNIT @ (np.eye(2) - CORRELATED) @ UNIT
    exact = scalar.scalar_information(np.array([v]))
    found = information_at(embedded, CORRELATED)
    np.testing.assert_allclose(found.information, exact.information[0] * np.outer(UNIT, UNIT), atol=1e-8)
    assert found.entropy == pytest.approx(exact.entropy[0], abs=1e-8)
    np.testing.assert_allclose(np.abs(embedded.direction), UNIT, atol=1e-9)
    assert (embedded.discrete, embedded.deterministic) == (scalar.discrete, scalar.deterministic)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", MARKED)
def test_the_generic_channel_agrees(text):
    embedded, _ = pair(text)
    generic = GenericChannel(Target(text), embedded.noise)
    first, second = information_at(embedded, CORRELATED), information_at(generic, CORRELATED)
    np.testing.assert_allclose(second.information, first.information, atol=3 * (first.error + second.error) + 1e-5)
    assert second.entropy == pytest.approx(first.entropy, abs=3 * second.entropy_error + 1e-5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", MARKED)
def test_rows_are_those_of_one_projection(text):
    embedded, scalar = pair(text)
    V = np.eye(2) - CORRELATED
    rng = np.random.default_rng(1)
    z = rng.standard_normal((40, 2))
    omega = 0.4 * z + 0.3 * rng.standard_normal((40, 2))
    y = embedded.sample(z, np.random.default_rng(2))
    found = embedded.posterior(embedded.observe(y), omega, V)
    v = float(UNIT @ V @ UNIT)
    plain = scalar.scalar_posterior(scalar.observe(y), omega @ UNIT, v)
    np.testing.assert_allclose(found.mean @ UNIT, plain.mean, atol=1e-9)
    np.testing.assert_allclose(np.einsum("i,nij,j->n", UNIT, found.covariance, UNIT), plain.variance, atol=1e-9)
    # What is orthogonal under V is not touched.
    other = np.linalg.solve(V, np.array([0.8, -0.6]))
    np.testing.assert_allclose((found.mean - omega) @ other, 0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("i,nij,j->n", other, found.covariance, other), other @ V @ other, atol=1e-9)
    np.testing.assert_allclose(
        embedded.predictor.predict(omega, V),
        scalar.predictor.predict((omega @ UNIT)[:, None], np.full((1, 1), v)),
        atol=1e-12,
    )


def test_labels_say_nothing_about_the_other_direction():
    embedded, scalar = pair("abs(0.6*z1 + 0.8*z2)")
    across = np.array([[0.8], [-0.6]])
    found = embedded.linearisation(np.outer(UNIT, UNIT) * 0.5, across)
    assert np.abs(found.trivial).max() < 1e-9 and np.abs(found.easy).max() < 1e-9
    along = embedded.linearisation(np.zeros((2, 2)), np.eye(2))
    assert 1 / np.linalg.eigvalsh(along.easy)[-1] == pytest.approx(0.5, abs=1e-6)
    law, plain = embedded.label_law(), scalar.label_law()
    np.testing.assert_allclose(law.mean @ UNIT, plain.mean[:, 0], atol=1e-9)
    np.testing.assert_allclose(np.trace(law.G, axis1=1, axis2=2), plain.G[:, 0, 0], atol=1e-9)


@pytest.mark.slow
def test_pinned_and_known():
    embedded, _ = pair("relu(0.6*z1 + 0.8*z2)")
    direction = embedded.direction[:, None]
    across = np.array([[0.8], [-0.6]])
    assert embedded.pinned_mass(direction) == pytest.approx(0.5, abs=1e-6)
    assert embedded.pinned_mass(across) == 0
    nothing = embedded.known(direction)
    assert nothing.projections == 1 and np.abs(information_at(nothing, np.array([[0.3]])).information).max() == 0
    same = embedded.known(across)
    v = UNIT @ (0.7 * np.eye(2)) @ UNIT
    exact = channel_of(Target("relu(z)"), 0.0).scalar_information(np.array([v])).information[0]
    assert information_at(same, np.array([[0.3]])).information[0, 0] == pytest.approx(exact, rel=1e-9)


def test_prediction_errors():
    embedded, _ = pair("sign(0.6*z1 + 0.8*z2)")
    q = float(UNIT @ CORRELATED @ UNIT)
    found = errors_at(embedded, CORRELATED)
    assert found["classification_error"][0] == pytest.approx(np.arccos(np.sqrt(q)) / np.pi, abs=1e-6)
    rng = np.random.default_rng(3)
    omega = np.sqrt(q) * rng.standard_normal((2000, 1))
    label = np.sign(omega + np.sqrt(1 - q) * rng.standard_normal((2000, 400)))
    spread = label.var(1, ddof=1)
    assert found["generalization_error"][0] == pytest.approx(spread.mean(), abs=4.5 * spread.std() / np.sqrt(2000))
