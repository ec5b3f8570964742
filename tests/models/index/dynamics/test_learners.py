"""Learners of descent: what their fields take, what they refuse and in which words, and where they start."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import solvable as sv

LINE = sv.MultiIndex("z")


def refused(field: str, takes: str) -> str:
    """The end of the message that refuses a field, as a pattern."""
    return rf"^{field} = (.|\n)* is not allowed: {field} must be {takes}\.$"


RATE = "a positive number"
WIDTH = "an integer of at least 1"
NUMBERS = "numbers, with spaces between them and ; between rows"
START = "'random', a number between -1 and 1, or an array of numbers"
ARRAY = "a number or an array of numbers"
FINITE = "a matrix of finite numbers"
FLAG = "True or False"

BAD = [
    *[("learning_rate", value, RATE) for value in (0, -1.0, np.nan, np.inf, "fast", True, None, [1.0])],
    *[("width", value, WIDTH) for value in (0, 2.0, True, "two")],
    ("width", 65, "an integer of at most 64"),
    ("activation", "sign", "a function whose slope does not vanish almost everywhere"),
    ("activation", lambda z: 1.0, "a function whose slope does not vanish almost everywhere"),
    ("activation", lambda z: jnp.sqrt(jnp.maximum(z, 0.0)), "a function with a finite slope almost everywhere"),
    ("activation", "z1*z2", "a function of one variable z"),
    ("activation", 3, r"a formula such as 'relu\(z\)', its name, or a function"),
    ("activation", None, r"a formula such as 'relu\(z\)', its name, or a function"),
    ("second_layer", (1.0, 2.0), "one number, or width more"),
    ("second_layer", "1 2", "one number, or width more"),
    ("second_layer", "one", NUMBERS),
    ("second_layer", np.inf, FINITE),
    ("second_layer", [], ARRAY),
    ("second_layer", [True], ARRAY),
    ("second_layer", [[1.0, 2.0], [3.0, 4.0]], "a list of numbers, one for each neuron"),
    ("loss", "hinge", "'square' or 'correlation'"),
    ("loss", None, "'square' or 'correlation'"),
    *[("start", value, START) for value in (1.5, -2, np.nan, None, True)],
    ("start", "warm", NUMBERS),
    ("start", "0.1 b", NUMBERS),
    ("start", [np.nan], FINITE),
    ("start", np.zeros((2, 2, 2)), FINITE),
    ("start", [], ARRAY),
    ("start", [[1, 2], [3]], ARRAY),
    ("self_overlap", "one", NUMBERS),
    ("self_overlap", [[1.0, 0.0]], "a matrix of 1 x 1 numbers"),
]
ONLINE = [("spherical", "no", FLAG), ("spherical", 1, FLAG), ("reduced", "no", FLAG), ("reduced", None, FLAG)]
AHEAD = [
    *[("extrapolation", value, "a finite number") for value in (np.nan, np.inf, "far", None)],
    *[("similarity", value, "between 0 and 1") for value in (-0.1, 1.1, np.nan, "same")],
]
BATCH = [
    *[("steps", value, "an integer of at least 0") for value in (-1, 2.5, True)],
    ("steps", 1001, "an integer of at most 1000"),
    *[("decay", value, "zero or positive") for value in (-1.0, np.nan, "slow")],
    *[("reuse", value, FLAG) for value in ("no", 1)],
]
KINDS = {sv.OnlineSGD: ONLINE, sv.Extragradient: ONLINE + AHEAD, sv.RepeatedSGD: ONLINE, sv.BatchGD: BATCH}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_refused_in_words(kind):
    for field, value, takes in BAD + KINDS[kind]:
        with pytest.raises(ValueError, match=refused(field, takes)):
            kind(**({"learning_rate": 0.5} | {field: value}))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("blah", "activation: unknown name 'blah'"),
        ("3", "activation: the formula is a constant"),
        ("exp(z", r"activation: this is not a formula: '\(' was never closed"),
        ("z**2, z", "activation: one formula is expected, not several separated by commas"),
        ("log(z)", r"activation: log\(z\) is not a number at z = "),
    ],
)
def test_a_formula_that_cannot_be_read_is_named_an_activation(formula, message):
    with pytest.raises(sv.TargetError, match=f"^{message}"):
        sv.OnlineSGD(0.5, activation=formula)


def test_several_neurons_need_as_many_of_everything():
    with pytest.raises(ValueError, match=refused("second_layer", "3 numbers, one for each neuron")):
        sv.OnlineSGD(0.5, width=3, second_layer=[1, 2])
    with pytest.raises(
        ValueError, match=refused("start", "'random', or an array with a row for each of the 2 neurons")
    ):
        sv.OnlineSGD(0.5, width=2, start=0.1)
    for overlap in ([[1.0]], "1 0 0; 0 1 0"):
        with pytest.raises(ValueError, match=refused("self_overlap", "a matrix of 2 x 2 numbers")):
            sv.OnlineSGD(0.5, width=2, self_overlap=overlap)


UNFIT = r"overlaps that fit together: Q - M M\^T has the eigenvalue {}, which is negative"


@pytest.mark.parametrize(
    ("learner", "target", "message"),
    [
        (sv.OnlineSGD(0.5, start=[0.1, 0.1]), "z", refused("start", "an array of 1 x 1 overlaps, one a neuron .*")),
        (sv.OnlineSGD(0.5, width=2, start=[[0.1, 0.2]]), "z1*z2", refused("start", "an array of 2 x 2 overlaps, .*")),
        (sv.OnlineSGD(0.5, start=0.8), "z1*z2", refused("start", UNFIT.format("-0.28"))),
        (sv.OnlineSGD(0.5, width=2, self_overlap="1 2; 2 1"), "z", refused("start", UNFIT.format("-1"))),
        (sv.OnlineSGD(0.5, width=2, self_overlap="1 0.1; 0.2 1"), "z", refused("self_overlap", "symmetric")),
        (sv.OnlineSGD(0.5, self_overlap=2.0), "z", refused("self_overlap", "1 on its diagonal for spherical neurons")),
    ],
    ids=["start too long", "start too short", "start too large", "Q too large", "Q not symmetric", "not on the sphere"],
)
def test_what_does_not_fit_the_target_is_refused_by_theory_and_by_runs(learner, target, message):
    model = sv.MultiIndex(target)
    with pytest.raises(ValueError, match=message):
        sv.predict(model, learner, alpha=1.0)
    with pytest.raises(ValueError, match=message):
        sv.simulate(model, learner, alpha=1.0, d=30)


def test_a_size_that_holds_no_such_network_is_refused():
    with pytest.raises(ValueError, match=refused("d", "at least 4: more than the directions and neurons")):
        sv.simulate(LINE, sv.OnlineSGD(0.5, start=0.1), alpha=1.0, d=3)
    with pytest.raises(ValueError, match=refused("d", "at least 5, the number of directions and neurons")):
        sv.simulate(LINE, sv.OnlineSGD(0.5, width=4), alpha=1.0, d=4)
    fixed = sv.OnlineSGD(0.5, width=4, start="0 0 0 0", reduced=False)
    with pytest.raises(ValueError, match=refused("d", "at least 5, the number of directions and neurons")):
        sv.simulate(LINE, fixed, alpha=1.0, d=4)


def test_labels_that_are_no_target_with_noise_are_refused():
    contaminated = sv.MultiIndex("z", contamination="0.3:0:5")
    with pytest.raises(sv.NotSolvable, match=r"^OnlineSGD takes labels y = g\(z\) \+ noise, not contaminated labels"):
        sv.predict(contaminated, sv.OnlineSGD(0.5), alpha=1.0)
    probit = sv.MultiIndex(sv.channels.Probit(noise=0.5))
    with pytest.raises(sv.NotSimulable, match=r"^RepeatedSGD takes labels y = g\(z\) \+ noise, not the channel Probit"):
        sv.simulate(probit, sv.RepeatedSGD(0.5), alpha=1.0, d=30)


def test_near_copies_are_simulated_by_the_chain_only():
    with pytest.raises(sv.NotSimulable, match="near-copies are simulated by the reduced chain only: use reduced=True"):
        sv.simulate(LINE, sv.Extragradient(0.5, similarity=0.5, reduced=False), alpha=1.0, d=30)


# --- what is taken


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_learning_rate_is_enough(kind):
    learner = kind(learning_rate=0.3)
    M, Q = learner.first_overlaps(2)
    assert str(learner.activation) == "relu(z)" and learner.student.second_layer == (1.0,) and learner.student.square
    np.testing.assert_array_equal(M, np.zeros((1, 2)))
    np.testing.assert_array_equal(Q, np.ones((1, 1)))


def test_text_lists_and_arrays_are_the_same():
    rows = [[0.2, 0.1], [-0.1, 0.3]]
    given = [sv.OnlineSGD(0.5, width=2, start=start) for start in ("0.2 0.1; -0.1 0.3", rows, np.array(rows))]
    assert given[0] == given[1] == given[2]
    np.testing.assert_array_equal(given[0].first_overlaps(2)[0], rows)
    layers = [sv.OnlineSGD(0.5, width=2, second_layer=a) for a in ("1 -0.5", "1; -0.5", [1, -0.5], [[1], [-0.5]])]
    assert all(learner.second_layer == (1.0, -0.5) for learner in layers)
    assert sv.OnlineSGD(0.5, second_layer=2).second_layer == sv.OnlineSGD(0.5, second_layer="2").second_layer == (2.0,)
    assert sv.OnlineSGD(0.5, start="random") == sv.OnlineSGD(0.5)


def test_the_second_layer_alternates_unless_told():
    np.testing.assert_allclose(sv.OnlineSGD(0.5, width=4).student.second_layer, np.array([1, -1, 1, -1]) / 2)


def test_activations_by_name_follow_the_convention_of_the_field():
    assert str(sv.OnlineSGD(0.5, activation="erf").activation) == "erf(z/sqrt(2))"
    assert str(sv.OnlineSGD(0.5, activation="tanh").activation) == "tanh(z)"
    assert str(sv.OnlineSGD(0.5, activation="erf(z)").activation) == "erf(z)"


def test_a_number_starts_one_neuron_alike_in_every_direction():
    M, Q = sv.OnlineSGD(0.5, start=0.3).first_overlaps(3)
    assert M.tolist() == [[0.3, 0.3, 0.3]] and Q.tolist() == [[1.0]]


def test_neurons_share_what_the_directions_share_unless_told():
    M, Q = sv.OnlineSGD(0.5, width=2, start="0.6 0; 0.5 0.5").first_overlaps(2)
    np.testing.assert_allclose(Q, [[1.0, 0.3], [0.3, 1.0]])
    Q = sv.OnlineSGD(0.5, width=2, start="0.6 0; 0.5 0.5", self_overlap="1 0.2; 0.2 1").first_overlaps(2)[1]
    np.testing.assert_array_equal(Q, [[1.0, 0.2], [0.2, 1.0]])


def test_a_random_start_has_the_law_of_random_vectors():
    """Means and variances of the overlaps of unit vectors at d = 50, 4000 draws, within four standard errors."""
    d, count, rng = 50, 4000, np.random.default_rng(1)
    learner = sv.OnlineSGD(0.5, width=2)
    drawn = [learner.first_overlaps(2, d, rng) for _ in range(count)]
    M, Q = (np.stack(part) for part in zip(*drawn, strict=True))
    np.testing.assert_allclose(Q[:, [0, 1], [0, 1]], 1.0, atol=1e-12)
    assert np.all(np.linalg.eigvalsh(Q - M @ np.swapaxes(M, 1, 2)) > 0)
    for overlap in (M[:, 0, 0], M[:, 1, 1], Q[:, 0, 1]):
        assert abs(overlap.mean()) < 4 / np.sqrt(d * count)
        # the square of a coordinate of a unit vector has variance 2 (d - 1)/(d^2 (d + 2))
        assert abs(np.mean(overlap**2) - 1 / d) < 4 * np.sqrt(2 / d**2 / count)


def test_a_random_frame_keeps_its_self_overlap():
    learner = sv.OnlineSGD(0.5, width=2, self_overlap="1 0.4; 0.4 1")
    M, Q = learner.first_overlaps(2, 40, np.random.default_rng(0))
    np.testing.assert_array_equal(Q, [[1.0, 0.4], [0.4, 1.0]])
    assert np.all(np.linalg.eigvalsh(Q - M @ M.T) > 0) and np.all(M != 0)
