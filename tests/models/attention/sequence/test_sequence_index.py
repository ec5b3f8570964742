"""Any function of the projections of tokens: names, linear labels in closed form, one token, refusals, runs."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.errors import TargetError
from solvable.targets.expression import evaluate
from solvable.targets.parser import parse_tokens


def both_tokens(z):
    return z[:, :, 0]


def test_names_are_projections_of_tokens():
    expression = parse_tokens("z1[1] + 10*z2[1] + 100*z1[2]", 2)
    assert expression.projections == 3
    assert float(evaluate(expression, [1.0, 2.0, 3.0], np)) == 1 + 30 + 200
    model = sv.SequenceIndex("z1[1] + 10*z2[1] + 100*z1[2]", 2, noise=0.1)
    z = np.array([[[1.0, 3.0], [2.0, 0.0]]])
    assert model.projections == 2 and model.channel.clean(z)[0, 0] == 231


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z1", "write z1\\[1\\] for that of the first"),
        ("z1[3]", "a token is a whole number from 1 to 2"),
        ("z1[z1[1]]", "a token is a whole number"),
        ("abs[1]", "only a projection has tokens"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(TargetError, match=message):
        sv.SequenceIndex(text, 2, noise=0.1)


def test_labels_without_noise_must_be_discrete():
    with pytest.raises(ValueError, match="noise = 0.0 is not allowed: noise must be at least 0.01"):
        sv.SequenceIndex("z1[1]*z1[2]", 2)
    assert sv.SequenceIndex("sign(z1[1]*z1[2])", 2).channel.discrete
    with pytest.raises(ValueError, match="projections = None"):
        sv.SequenceIndex(both_tokens, 2, noise=0.1)


def test_two_linear_labels_of_a_sample_are_one_of_twice_as_many_samples():
    model = sv.SequenceIndex(both_tokens, 2, noise=0.5, projections=1)
    found = sv.predict(model, sv.AMP(), alpha=0.4)
    known = sv.predict(sv.MultiIndex("z", noise=0.5), sv.AMP(), alpha=0.8)
    assert found["overlap"] == pytest.approx(known["overlap"], abs=4 * found.uncertainty["overlap"])
    assert found.uncertainty["overlap"] < 0.02


@pytest.mark.slow
def test_two_linear_labels_of_a_sample_are_learned_as_theory_says():
    model = sv.SequenceIndex(both_tokens, 2, noise=0.5, projections=1)
    runs = [sv.simulate(model, sv.AMP(), alpha=0.4, d=100, seed=seed)["overlap"] for seed in range(4)]
    assert abs(np.mean(runs) - sv.predict(model, sv.AMP(), alpha=0.4)["overlap"]) < 4 * np.std(runs, ddof=1) / 2 + 0.04


@pytest.mark.slow
def test_a_product_of_two_tokens_is_learned_as_runs_say():
    """E|E[z z^T|y] - I|^2 of y = z1[1] z1[2] + noise by draws sorted into narrow bins of y."""
    model = sv.SequenceIndex("z1[1]*z1[2]", 2, noise=0.1)
    weak = sv.thresholds(model)
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2_000_000, 2))
    order = np.argsort(z[:, 0] * z[:, 1] + np.sqrt(0.1) * rng.standard_normal(len(z)))
    bins = z[order].reshape(1000, -1, 2)
    G = np.einsum("bni,bnj->bij", bins, bins) / bins.shape[1] - np.eye(2)
    # The scatter of a mean of 2000 draws adds 6/2000 on average.
    expected = 1 / (np.mean(np.sum(G**2, (1, 2))) - 6 / bins.shape[1])
    assert weak["weak_recovery"] == pytest.approx(expected, abs=4 * weak.errors["weak_recovery"] + 0.01)
    theory = sv.predict(model, sv.AMP(), alpha=0.8)
    for d in (100, 200):
        runs = [sv.simulate(model, sv.AMP(max_steps=100), alpha=0.8, d=d, seed=seed)["overlap"] for seed in range(4)]
        error = np.std(runs, ddof=1) / 2 + theory.uncertainty["overlap"]
        assert abs(np.mean(runs) - theory["overlap"]) < 4 * error + 8 / d
