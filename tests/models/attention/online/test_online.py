"""The sequence single-index model: known losses, transitions and flows, runs, and what each student cannot learn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.sequence_descent import run

import solvable as sv
from solvable.models.attention.online.landscape import TokenLandscape, exponent, landscapes, losses

HE2 = "he2(z)/sqrt(2)"


def loss(e, m, omega, place=1.0):
    model = sv.SequenceSingleIndex("softmax", 2, omega, place)
    landscape = landscapes(model, sv.SequenceSGD(1.0, positions=True))[0]
    with jax.enable_x64(True):
        return float(losses(landscape, jnp.asarray([[m, e]]))[0])


@pytest.mark.parametrize(
    ("e", "m", "omega", "value"),
    [(0.0, 0.0, 0.5, 0.120396), (0.37, 0.61, 0.23, 0.099980), (1.0, 0.0, 0.7, 0.100752), (0.0, 1.0, 0.7, 0.090253)],
)
def test_the_loss_of_attention_with_places(e, m, omega, value):
    assert loss(e, m, omega) == pytest.approx(value, abs=1e-5)
    assert loss(-e, m, omega) == pytest.approx(loss(e, m, omega), abs=1e-12)


@pytest.mark.parametrize(("place", "whole", "first"), [(1.0, 0.7376, 0.6410), (0.85, 0.8604, 0.7849)])
def test_where_meaning_and_places_are_worth_the_same(place, whole, first):
    found = sv.positional_transitions(sv.SequenceSingleIndex("softmax", 2, place=place))
    assert found["global_transition"] == pytest.approx(whole, abs=3e-4)
    assert found["dynamical_transition"] == pytest.approx(first, abs=5e-4)


@pytest.mark.parametrize(("tokens", "value"), [pytest.param(1, 0.63609, marks=pytest.mark.slow), (8, 0.75952)])
def test_the_flow_of_a_sum_of_squares(tokens, value):
    """The reference values are good to 4e-3."""
    found = sv.predict(sv.SequenceSingleIndex(HE2, tokens), sv.SequenceSGD(0.1, start=0.2), alpha=10.0)
    assert found["cosine"] == pytest.approx(value, abs=4e-3)


def test_one_token_is_a_single_index():
    alpha = np.array([0.0, 2.0, 8.0])
    one = sv.predict(sv.MultiIndex("relu(z)"), sv.OnlineSGD(0.4, "relu", start=0.2), alpha=alpha)
    for student in ("attention", "tied"):
        found = sv.predict(sv.SequenceSingleIndex("relu(z)", 1), sv.SequenceSGD(0.4, student, start=0.2), alpha=alpha)
        error = found.uncertainty["cosine"] + one.uncertainty["cosine"]
        assert np.all(np.abs(found["cosine"] - one["cosine"]) <= error)
        assert np.all(np.abs(found["generalization_error"] - one["generalization_error"]) < 1e-3)


def test_what_length_costs():
    """A linear target: nothing if weights are tied, a factor T if they are not; attention on a sum: nothing."""
    alpha = np.array([1.0, 3.0])
    one = sv.predict(sv.SequenceSingleIndex("z", 1), sv.SequenceSGD(0.3, "tied", start=0.2), alpha=alpha)
    for tokens in (2, 32):
        model = sv.SequenceSingleIndex("z", tokens)
        tied = sv.predict(model, sv.SequenceSGD(0.3, "tied", start=0.2), alpha=alpha)
        plain = sv.predict(model, sv.SequenceSGD(0.3, "plain", start=0.2), alpha=tokens * alpha)
        for found in (tied, plain):
            np.testing.assert_allclose(found["cosine"], one["cosine"], atol=1e-6)
    rates = [
        sv.thresholds(sv.SequenceSingleIndex(HE2, T), sv.SequenceSGD(1e-6, "tied", activation="he2(z)/sqrt(2)"))[
            "escape_rate"
        ]
        for T in (1, 4, 16)
    ]
    np.testing.assert_allclose(rates[0] / np.array(rates), [1, 2, 4], rtol=1e-5)  # sqrt(T) for the square


def test_who_sees_what():
    odd = sv.SequenceSingleIndex("z1 - z2", 2)
    assert exponent(odd, sv.SequenceSGD(0.1, "tied")) == np.inf
    assert exponent(odd, sv.SequenceSGD(0.1, "attention")) == 1
    plain = sv.predict(odd, sv.SequenceSGD(0.3, "plain", start=(0.01, -0.01)), alpha=40.0)
    tied = sv.predict(odd, sv.SequenceSGD(0.3, "tied", start=0.3), alpha=[10.0, 20.0, 40.0])
    assert plain["cosine"] > 0.9 and np.all(np.diff([0.3, *tied["cosine"]]) < 0)  # it forgets what it started with


def exponent_from(e, encoding):
    model = sv.SequenceSingleIndex("softmax", 2, encoding=encoding)
    return sv.thresholds(model, sv.SequenceSGD(0.1, positions=True, start=(0.0, e)))["exponent"]


def test_places_lower_the_exponent_only_if_the_label_has_them_too():
    assert exponent_from(0.5, encoding=0.0) == exponent_from(0.0, encoding=0.5) == 2
    assert exponent_from(0.5, encoding=0.5) == 1


@pytest.mark.parametrize(("b", "e"), [(0.5, 0.5), pytest.param(1.0, 0.25, marks=pytest.mark.slow)])
def test_the_part_of_degree_one_of_attention_with_places(b, e):
    """E[A_11 z_1] and E[A_11 z_2] with tokens at +-e, known to five digits; A_22 by exchange."""
    parts = {0.25: (0.06864, -0.01702), 0.5: (0.12530, -0.03070), 1.0: (0.17379, -0.04065)}
    model = sv.SequenceSingleIndex("softmax", 2, encoding=b)
    landscape = landscapes(model, sv.SequenceSGD(1.0, positions=True))[0]
    with jax.enable_x64(True):
        slope = float(jax.grad(landscape.loss)(jnp.asarray([0.0, e]))[0])
    assert -slope == pytest.approx(4 * np.dot(parts[b], parts[e]), rel=2e-4)


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        pytest.param(
            sv.SequenceSingleIndex("softmax", 2, 0.3),
            sv.SequenceSGD(0.5, positions=True, start=(0.1, 0.05)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            sv.SequenceSingleIndex("softmax", 2, 0.2, encoding=0.6),
            sv.SequenceSGD(0.5, positions=True, start=(0.1, 0.4)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            sv.SequenceSingleIndex("z**2/2 + z", 2, encoding=-0.4),
            sv.SequenceSGD(0.1, "plain", start=(0.1, 0.2), activation="tanh(z)"),
            marks=pytest.mark.slow,
        ),
        pytest.param(sv.SequenceSingleIndex("softmax", 3), sv.SequenceSGD(0.5, start=0.3), marks=pytest.mark.slow),
        pytest.param(sv.SequenceSingleIndex(HE2, 4), sv.SequenceSGD(0.1, start=0.3), marks=pytest.mark.slow),
        (sv.SequenceSingleIndex("relu(z)", 3, noise=0.2), sv.SequenceSGD(0.3, "tied", start=0.3)),
        (
            sv.SequenceSingleIndex("z1 + z2*z2/2", 2),
            sv.SequenceSGD(0.3, "plain", start=(0.3, 0.1), activation="tanh(z)"),
        ),
    ],
    ids=["places", "places in both", "places of the label", "softmax of three", "sum", "tied", "plain"],
)
def test_runs_follow_the_flow_and_have_the_law_of_d_dimensional_weights(model, learner):
    alpha, d, seeds = np.array([5.0, 20.0]), 150, 12
    theory = sv.predict(model, learner, alpha=alpha)
    runs = np.array([sv.simulate(model, learner, alpha=alpha, d=d, seed=seed)["cosine"] for seed in range(seeds)])
    full = np.array([run(model, learner, alpha, d, seed) for seed in range(seeds)])
    errors = [part.std(axis=0, ddof=1) / np.sqrt(seeds) for part in (runs, full)]
    assert np.all(np.abs(runs.mean(0) - full.mean(0)) < 4 * np.hypot(*errors))
    for part, error in zip((runs, full), errors, strict=True):
        assert np.all(np.abs(part.mean(0) - theory["cosine"]) < 4 * error + 4 / d)


def test_uncertainty_covers_a_finer_series():
    model, learner = sv.SequenceSingleIndex("softmax", 2, 0.3), sv.SequenceSGD(0.5, positions=True, start=(0.3, 0.2))
    fine, coarse = landscapes(model, learner)
    with jax.enable_x64(True):
        finer, u = TokenLandscape.of(model, learner, 1.5), jnp.asarray([0.8, 0.3])
        both = jax.jit(lambda part: jnp.stack([part.loss(u), part.noise(u)]))
        best, one, other = (np.array(both(part)) for part in (finer, fine, coarse))
    assert np.all(np.abs(one - best) <= np.abs(other - one) + 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sv.SequenceSingleIndex("softmax", 1), "tokens = 1"),
        (lambda: sv.SequenceSingleIndex("softmax", 4), "tokens = 4"),
        (lambda: sv.SequenceSingleIndex("z1*z3", 2), "tokens = 2"),
        (lambda: sv.SequenceSingleIndex("z", 3, 0.5), "positional = 0.5"),
        (lambda: sv.SequenceSingleIndex("softmax", 2, 1.5), "positional = 1.5"),
        (lambda: sv.SequenceSingleIndex("softmax", 3, encoding=0.2), "encoding = 0.2"),
        (lambda: sv.SequenceSGD(0.0), "learning_rate"),
        (lambda: sv.SequenceSGD(0.1, "other"), "student"),
        (lambda: sv.SequenceSGD(0.1, "tied", positions=True), "positions"),
        (lambda: sv.predict(sv.SequenceSingleIndex("z", 2), sv.SequenceSGD(0.1, start=(0.9, 0.9)), alpha=1.0), "start"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_neurons_do_not_make_matrices():
    with pytest.raises(sv.NotSolvable, match="attention"):
        sv.predict(sv.SequenceSingleIndex("softmax", 2), sv.SequenceSGD(0.1, "tied"), alpha=1.0)


def test_curves_and_diagrams(tmp_path):
    model, learner = sv.SequenceSingleIndex("z", 4), sv.SequenceSGD(0.3, "tied", start=0.2)
    curve = sv.learning_curve(model, learner, alpha=[0.0, 2.0], d=60, seeds=2, progress=False)
    assert curve.simulation("cosine").shape[-1] == 2
    plane = sv.phase_diagram(
        model, learner, x=("alpha", [1.0, 2.0]), y=("learning_rate", [0.1, 0.3]), metric="cosine", progress=False
    )
    assert np.all(np.diff(plane.theory("cosine").squeeze().values, axis=-1) > 0)
