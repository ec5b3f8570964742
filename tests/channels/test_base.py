"""The one interface: equality by definition, errors on request, and one projection in the shapes of several."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy.special import expit, ndtr

import solvable as sv
from solvable.channels import (
    Absolute,
    GenericChannel,
    Information,
    Linear,
    Logit,
    Probit,
    ScalarChannel,
    Sign,
    channel_of,
    generic_channel,
)
from solvable.channels.base import Channel
from solvable.channels.closed import Parity, Product, Staircase
from solvable.channels.finite import FlippedLabels
from solvable.core.errors import NotSimulable, NotSolvable
from solvable.targets.target import Target

MIXED = ((0.7, 1.0, 0.1), (0.3, -1.0, 0.5))
MAKERS = {
    "probit": lambda: Probit(0.5),
    "logit": lambda: Logit(2.0),
    "linear": lambda: Linear(0.3),
    "noisy": lambda: generic_channel(Target("tanh(z)"), 0.1),
    "level sets": lambda: generic_channel(Target("z**3 - z")),
    "flipped": lambda: FlippedLabels(Sign(), 0.1),
    "classes": lambda: channel_of(Target("sign(z)*(abs(z) > 1)"), components=((0.8, 1.0, 0.0), (0.2, -1.0, 0.0))),
    "linear mixture": lambda: channel_of(Target("z"), components=MIXED),
    "parity": lambda: Parity(0.2),
    "generic": lambda: GenericChannel(Target("z1*z2 + z1"), 0.1),
    "known": lambda: GenericChannel(Target("z1*z2 + z1"), 0.1).known(np.eye(2)[:, :1]),
    "one direction": lambda: channel_of(Target("abs(0.6*z1 + 0.8*z2)")),
}


@pytest.mark.parametrize("name", MAKERS)
def test_equal_channels_are_equal_and_say_so_in_plain_values(name):
    one, other = MAKERS[name](), MAKERS[name]()
    assert one == other and hash(one) == hash(other)
    assert json.loads(json.dumps(one.describe())) == json.loads(json.dumps(other.describe()))
    assert one.describe()["channel"] == type(one).__name__
    others = [make() for key, make in MAKERS.items() if key != name]
    assert all(one != each and one.describe() != each.describe() for each in others)


def test_what_defines_a_channel_tells_it_apart():
    assert Probit(0.5) != Probit(0.4) and Probit(0.0) != Sign() and Logit(1.0) != Logit(2.0)
    assert Probit(0.5).describe() == {"channel": "Probit", "target": "sign(z)", "noise": 0.0, "label_noise": 0.5}
    assert Logit(2.0).describe() == {"channel": "Logit", "target": "sign(z)", "noise": 0.0, "gain": 2.0}
    flipped = FlippedLabels(Probit(0.5), 0.1)
    assert flipped.describe() == {
        "channel": "FlippedLabels",
        "labels_of": {"channel": "Probit", "target": "sign(z)", "noise": 0.0, "label_noise": 0.5},
        "flip": 0.1,
    }
    assert flipped != FlippedLabels(Probit(0.5), 0.2)
    generic = GenericChannel(Target("z1*z2 + z1"))
    assert generic.known(np.eye(2)[:, :1]) != generic.known(np.eye(2)[:, 1:])
    assert Absolute() != "abs(z)"


def test_equal_channels_and_models_share_caches():
    assert sv.MultiIndex(Probit(0.5)) == sv.MultiIndex(Probit(0.5))
    assert Probit(0.5).rows(1.0) is Probit(0.5).rows(1.0)
    first, second = GenericChannel(Target("z1*z2 + z1")), GenericChannel(Target("z1*z2 + z1"))
    assert first is not second and first.rule() is second.rule()


def test_a_copy_from_elsewhere_is_equal():
    for channel in (Probit(0.5), Logit(2.0), Linear(0.1), Parity(0.3)):
        assert {channel: 1}[pickle.loads(pickle.dumps(channel))] == 1


def test_errors_are_estimated_when_they_are_asked_for():
    calls = []

    class Counting(Parity):
        def average(self, V, fineness):
            calls.append(fineness)
            return super().average(V, fineness)

    V = np.array([0.6 * np.eye(2), 0.3 * np.eye(2)])
    found = Counting().information(V)
    assert calls == [1.0, 1.0] and found.information.shape == (2, 2, 2) and found.entropy.shape == (2,)
    assert found.error.shape == found.entropy_error.shape == (2,) and np.all(found.error > 0)
    assert calls == [1.0, 1.0, 0.7, 0.7]
    given = Information(found.information, found.entropy, 1e-3, 1e-4)
    assert given.error.tolist() == [1e-3, 1e-3] and given.entropy_error.tolist() == [1e-4, 1e-4]


@pytest.mark.parametrize("name", ["probit", pytest.param("noisy", marks=pytest.mark.slow), "linear mixture"])
def test_one_projection_has_the_shapes_of_several(name):
    channel = MAKERS[name]()
    rng = np.random.default_rng(0)
    z = rng.standard_normal((50, 1))
    y = channel.sample(z, rng)
    seen, Omega, V = channel.observe(y), 0.4 * z, np.full((1, 1), 0.6)
    found, plain = channel.posterior(seen, Omega, V), channel.scalar_posterior(seen, Omega[:, 0], 0.6)
    assert y.shape == found.log_Z.shape == (50,) and found.mean.shape == (50, 1)
    assert found.covariance.shape == (50, 1, 1)
    np.testing.assert_array_equal(found.mean[:, 0], plain.mean)
    np.testing.assert_array_equal(found.covariance[:, 0, 0], plain.variance)
    variances = np.array([0.9, 0.4])
    information, scalar = channel.information(variances[:, None, None]), channel.scalar_information(variances)
    np.testing.assert_array_equal(information.information[:, 0, 0], scalar.information)
    coarse = channel.scalar_information(variances, 0.7)
    np.testing.assert_array_equal(information.error, np.abs(scalar.information - coarse.information))
    law, growth = channel.label_law(), channel.linearisation(np.zeros((1, 1)), np.eye(1))
    assert law.mean.shape == (len(law.weight), 1) and law.G.shape == (len(law.weight), 1, 1)
    assert growth.easy[0, 0] == pytest.approx(law.weight @ law.G[:, 0, 0] ** 2, rel=1e-12)
    assert channel.pinned_mass(np.eye(1)) == channel.continuous_mass and channel.pinned_mass(np.zeros((1, 0))) == 0
    assert channel.known(np.zeros((1, 0))) is channel
    with pytest.raises(ValueError, match="nothing is left to learn"):
        channel.known(np.eye(1))


def test_components_and_labels_of_one_projection():
    z = np.array([-1.5, 0.0, 0.3])
    assert generic_channel(Target("tanh(z)"), 0.1).components == ((1.0, 1.0, 0.1),)
    assert channel_of(Target("z"), components=MIXED).components == MIXED
    assert Sign().components == ((1.0, 1.0, 0.0),) and Probit(0.5).components is None and Logit(1.0).components is None
    assert FlippedLabels(Sign(), 0.25).components == ((0.75, 1.0, 0.0), (0.25, -1.0, 0.0))
    assert FlippedLabels(Logit(1.0), 0.25).components is None
    for channel, one in (
        (Probit(0.5), ndtr(z / np.sqrt(0.5))),
        (Logit(2.0), expit(2 * z)),
        (FlippedLabels(Probit(0.5), 0.1), 0.9 * ndtr(z / np.sqrt(0.5)) + 0.1 * ndtr(-z / np.sqrt(0.5))),
    ):
        assert np.array_equal(channel.labels, [-1, 1])
        np.testing.assert_allclose(channel.probabilities(z), np.stack([1 - one, one], 1), atol=1e-12)
    window = generic_channel(Target("sign(z)*(abs(z) > 1)"))
    assert isinstance(window, ScalarChannel) and np.array_equal(window.labels, [-1, 0, 1])
    assert np.array_equal(window.probabilities(np.array([-1.5, 0.2, 3.0])), np.eye(3))
    assert np.array_equal(Sign().probabilities(np.array([-1.5, 2.0])), np.eye(2))
    for channel in (Absolute(), Linear(0.1), channel_of(Target("sign(z)"), 0.1)):
        assert isinstance(channel, ScalarChannel) and channel.labels is None
        with pytest.raises(ValueError, match="infinitely many labels"):
            channel.probabilities(z)


def test_what_a_channel_has_not_is_refused_in_words():
    class Bare(Channel):
        projections = 2
        definition = {}

    bare = Bare()
    for call in (lambda: bare.sample(np.zeros((1, 2)), np.random.default_rng(0)), lambda: bare.observe(np.zeros(1))):
        with pytest.raises(NotSimulable, match="draws and reads none"):
            call()
    for call in (
        lambda: bare.information(np.eye(2)[None]),
        lambda: bare.linearisation(np.zeros((2, 2)), np.eye(2)),
        lambda: bare.label_law(),
        lambda: bare.known(np.eye(2)[:, :1]),
        lambda: bare.predictor,
    ):
        with pytest.raises(NotSolvable):
            call()
    assert bare.pinned_mass(np.eye(2)) == 0 and bare.deterministic and not bare.discrete


@pytest.mark.parametrize("channel", [Product(), Staircase(), Linear(), Absolute()])
def test_predictions_come_in_batches(channel):
    r = channel.projections
    V = np.array([v * np.eye(r) for v in (0.2, 0.7)])
    found = channel.predictor.errors(V)
    assert list(found) == ["generalization_error"]
    for value, error in found.values():
        assert value.shape == error.shape == (2,) and value[0] < value[1]
    assert channel.predictor.predict(np.zeros((3, r)), V[0]).shape == (3,)
