"""The law of labels that a loss sees is that of the channel, however it is written."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.channels import channel_of
from solvable.engine.outputs.likelihood import Likelihood, class_law
from solvable.engine.outputs.proximal import ClassLabels, CurvedLabels, LinearLabels
from solvable.targets.target import Target

C = sv.channels
FLIPS = ((0.8, 1.0, 0.0), (0.2, -1.0, 0.0))
RANDOM = {
    "probit": C.Probit(0.5),
    "logit": C.Logit(2.0),
    "steep logit": C.Logit(30.0),
    "flipped probit": channel_of(C.Probit(0.5), components=FLIPS),
    "flipped logit": channel_of(C.Logit(2.0), components=FLIPS),
}


@pytest.mark.parametrize("V", [1e-4, 0.3, 1.0])
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * ("logit" in n)) for n in RANDOM])
def test_probabilities_given_omega_are_those_of_the_posterior(name, V):
    """P(y = 1 | omega*) and its derivative against exp(log Z) of the channel, and differences of it."""
    channel, omega, step = RANDOM[name], np.linspace(-3, 3, 13), 1e-4 * np.sqrt(V)
    with jax.enable_x64(True):
        Z, dZ = (np.asarray(part) for part in class_law(channel).probability(0, omega, V))

    def evidence(omega):
        return np.exp(channel.scalar_posterior(channel.observe(np.ones_like(omega)), omega, V).log_Z)

    np.testing.assert_allclose(Z, evidence(omega), atol=1e-9)
    slope = (evidence(omega + step) - evidence(omega - step)) / (2 * step)
    np.testing.assert_allclose(dZ, slope, atol=1e-6 * (1 + np.abs(slope).max()))


@pytest.mark.parametrize(
    "text, parts", [("sign(z)", FLIPS), ("sign(z + 1) + sign(z - 1)", ((0.7, 1.0, 0.0), (0.3, 0.5, 0.0)))]
)
def test_classes_by_components_are_those_of_the_channel(text, parts):
    here, z = Likelihood(Target(text), parts), np.linspace(-3, 3, 20)
    channel = channel_of(Target(text), components=parts)
    np.testing.assert_allclose(here.values, channel.labels)
    np.testing.assert_allclose(here.probabilities(z), channel.probabilities(z))
    np.testing.assert_allclose(here.probabilities(z).sum(-1), 1)
    assert Likelihood.of(channel).components == channel.components


def test_which_form_labels_take():
    huber, hinge = sv.losses.Huber(1.0), sv.losses.Hinge()
    line, bent = sv.MultiIndex("2*z", 0.1).likelihood(), sv.MultiIndex("tanh(z)", 0.1).likelihood()
    assert isinstance(line.with_loss(huber).labels, LinearLabels) and line.slope == 2
    assert isinstance(bent.with_loss(huber).labels, CurvedLabels) and bent.slope is None
    assert isinstance(sv.MultiIndex(C.Logit(1.0)).likelihood().with_loss(hinge).labels, ClassLabels)
    assert sv.MultiIndex(C.Sign()).likelihood() == sv.MultiIndex("sign(z)").likelihood()


def test_labels_without_a_posterior_have_a_likelihood():
    """Outliers on noiseless labels of a bent target: message passing is not known for them, a loss needs less."""
    model = sv.MultiIndex("abs(z)", contamination=sv.Contamination(0.2, 0.0, 3.0))
    with pytest.raises(sv.NotSolvable):
        sv.predict(model, sv.AMP(), alpha=1.0)
    assert isinstance(model.likelihood().with_loss(sv.losses.Huber(1.0)).labels, CurvedLabels)
