"""An attention layer of very large and of very small rank: closed limits, and ranks that tend to them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.engine.sides import BayesOutput
from solvable.engine.signals.spikes import Spikes
from solvable.engine.solvers.bracket import Bracket


def error(model, alpha):
    found = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    assert np.all(found.converged)
    return found["estimation_error"]


def first_is_larger(h):
    return (h[:, 0, 0] > h[:, 0, 1]).astype(float)


@pytest.mark.parametrize(("tied", "count"), [(True, 10), (False, 6)])
def test_softmax_of_gaussian_layers_is_closed(tied, count):
    """V = 1/(1 + qhat) and qhat = count alpha / V: V = 1 - count alpha."""
    model, alpha = sv.AttentionIndexed(math.inf, 3, tied=tied), np.array([0.0, 0.03, 0.08, 0.2])
    np.testing.assert_allclose(error(model, alpha), np.maximum(1 - count * alpha, 0), atol=1e-12)
    assert dict(sv.thresholds(model)) == {"strong_recovery": pytest.approx(1 / count)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "tied", "rho"), [("softmax", True, 1000.0), ("softmax", False, 1000.0), ("hardmax", False, 3000.0)]
)
def test_large_ranks_tend_to_their_limit(output, tied, rho):
    """The distance falls like one over the rank."""
    gaussian, wide = (sv.AttentionIndexed(r, 3, output, tied=tied) for r in (math.inf, rho))
    alpha = np.array([0.03, 0.08, 0.2])
    np.testing.assert_allclose(error(wide, alpha), error(gaussian, alpha), atol=0.3 / rho)


@pytest.mark.parametrize(("tied", "count"), [(True, 10), (False, 6)])
def test_softmax_of_layers_of_small_rank_is_closed(tied, count):
    """V = t (2 - t), t = 2 - x and x = count alpha, for alpha = n/(p d) and x from 1 to 2."""
    model, x = sv.AttentionIndexed(0, 3, tied=tied), np.array([0.4, 1.0, 1.3, 1.8, 2.1])
    np.testing.assert_allclose(error(model, x / count), [1, 1, 1.3 * 0.7, 1.8 * 0.2, 0], atol=1e-7)
    found = sv.thresholds(model)
    assert found["weak_recovery"] == pytest.approx(1 / count)
    assert found["strong_recovery"] == pytest.approx(2 / count)


@pytest.mark.parametrize(
    ("tokens", "output", "tied"),
    [
        (3, "hardmax", True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((2, "hardmax", True), (4, "hardmax", False), (2, "softmax", True), (2, "softmax", False))
        ),
    ],
)
def test_small_ranks_tend_to_their_limit(tokens, output, tied):
    """The distance falls with the rank, about like its root."""
    limit = sv.AttentionIndexed(0.0, tokens, output, tied=tied)
    alpha = np.array([0.5, 1.3, 1.7]) * sv.thresholds(limit)["weak_recovery"]
    expected = error(limit, alpha)
    assert expected[0] == 1 and expected[2] < 0.8
    far, near = (np.abs(error(limit.with_field("rho", rho), rho * alpha) - expected).max() for rho in (0.005, 0.0003))
    assert near < 0.4 * far and near < 0.02


@pytest.mark.slow
def test_a_function_of_the_scores_has_the_limits():
    limit = sv.AttentionIndexed(0.0, 2, first_is_larger, tied=False)
    weak = sv.thresholds(limit)
    alpha = weak["weak_recovery"] * np.array([0.9, 1.5])
    below, above = error(limit, alpha)
    assert below == 1 and 0.6 < above < 0.95
    assert weak.errors["weak_recovery"] < 0.05 * weak["weak_recovery"]  # pyright: ignore[reportAttributeAccessIssue]
    gaussian = sv.AttentionIndexed(math.inf, 2, first_is_larger, tied=False)
    wide = sv.AttentionIndexed(3000.0, 2, first_is_larger, tied=False)
    assert error(gaussian, 1.0) == pytest.approx(float(error(wide, 1.0)), abs=1e-4)
    assert dict(sv.thresholds(gaussian)) == {}


class Told(BayesOutput):
    """Labels that tell the same whatever is known."""

    projections = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self, amount):
        self.amount = amount

    def information(self, V):
        return np.full(np.shape(V), self.amount)

    def denoiser(self, y):
        raise NotImplementedError


def test_nothing_is_learned_below_the_threshold_of_small_rank():
    """The fixed point V = 1 is met to rounding, whatever the information there."""
    for amount in np.random.default_rng(0).uniform(0.5, 5, 100):
        found = Bracket(Told(amount), Spikes()).optimal(np.array([0.3, 0.9]) / amount)
        np.testing.assert_array_equal(found.variance[:, 0, 0], 1.0)
        assert np.all(found.residual < 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("output", "tied"), [("softmax", True), ("softmax", False), ("hardmax", False)])
def test_a_run_of_a_gaussian_layer_learns_about_what_theory_says(output, tied):
    model = sv.AttentionIndexed(math.inf, 2, output, tied=tied)
    alpha = {"softmax": 0.5, "hardmax": 1.0}[output] / (4 if tied else 2)
    runs = [float(sv.simulate(model, sv.AMP(), alpha=alpha, d=40, seed=s)["estimation_error"]) for s in range(3)]
    theory = float(error(model, alpha))
    assert abs(np.mean(runs) / theory - 1) < 0.1


def test_what_has_no_limit_is_refused():
    for output in ("hardmax", first_is_larger):
        with pytest.raises(ValueError, match="rho = inf .* finite unless labels are softmax"):
            sv.AttentionIndexed(math.inf, 2, output)
    for rho in (-0.1, math.nan, -math.inf):
        with pytest.raises(ValueError, match="rho = "):
            sv.AttentionIndexed(rho, 2)
    with pytest.raises(ValueError, match="positive for a run"):
        sv.simulate(sv.AttentionIndexed(0.0, 2), sv.AMP(), alpha=0.1, d=20)
    for rho in (0.0, math.inf):
        with pytest.raises(sv.NotSolvable, match="finite rank"):
            sv.predict(sv.AttentionIndexed(rho, 2), sv.GradientDescent(), alpha=0.1)
        with pytest.raises(sv.NotSimulable, match="finite rank"):
            sv.simulate(sv.AttentionIndexed(math.inf, 2), sv.GradientDescent(), alpha=0.1, d=20)


@pytest.mark.parametrize("rho", [pytest.param(1000.0, marks=pytest.mark.slow), 1e4])
def test_wide_untied_layers_keep_their_digits_next_to_recovery(rho):
    """There the error is that of Gaussian entries, 1 - 2 alpha."""
    alpha = 0.5 - np.array([1e-3, 1e-5, 1e-7, 1e-9])
    found = sv.predict(sv.AttentionIndexed(rho, 2, tied=False), sv.BayesOptimal(), alpha=alpha)
    assert np.all(found.converged)
    np.testing.assert_allclose(found["estimation_error"], 1 - 2 * alpha, rtol=1e-5)


def test_small_errors_of_untied_layers_are_quadrature_below_large_ranks():
    """Half of the rank leaves three quarters of the unknowns."""
    for rho, dimension in ((0.5, 0.75), (1.5, 1.0)):
        signal = sv.AttentionIndexed(rho, 2, tied=False).signal_side()
        assert float(1e10 * signal.measured(np.array([1e10]))[0][0]) == pytest.approx(dimension, rel=1e-6)


@pytest.mark.slow
def test_labels_of_untied_layers_show_the_symmetric_part_better():
    """Two tokens: K has the eigenvalues V_s and (V_s + V_a)/2, which Gaussian layers solve in closed form.

    The theory has one V for both parts, whose mean is right at infinite rank; it says of itself where it is not exact.
    """
    model, alpha, d = sv.AttentionIndexed(math.inf, 2, tied=False), 0.2, 50
    V = 1 - 2 * alpha
    expected = np.array([2 * V**2, 2 * V]) / (2 * V + 2 * alpha)
    assert expected.mean() == pytest.approx(float(error(model, alpha)))
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        data = model.sample(rng, d, alpha=alpha)
        instance = model.instance(data)
        off = instance.estimate(instance.uninformed(rng, sv.AMP())[0].estimate) - data.truth
        found.append([np.sum((off + off.T) ** 2) / (2 * d), np.sum((off - off.T) ** 2) / (2 * d)])
    scatter = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - expected) < 4 * scatter + 1 / d)
    assert np.all(scatter < 0.05)
    assert model.exact and sv.AttentionIndexed(0.5, 2).exact and not sv.AttentionIndexed(0.5, 2, tied=False).exact


def test_what_the_theory_of_untied_layers_leaves_out_is_in_their_uncertainty():
    alpha = np.array([1e-6, 0.1, 0.2, 0.3, 0.36, 0.4])
    untied = sv.predict(sv.AttentionIndexed(0.5, 2, tied=False), sv.BayesOptimal(), alpha=alpha)
    sequence = sv.predict(sv.BilinearSequence(0.5), sv.BayesOptimal(), alpha=2 * alpha)
    V, stated = untied["estimation_error"], untied.uncertainty["estimation_error"]
    np.testing.assert_allclose(V, sequence["estimation_error"], atol=1e-9)
    assert np.all(untied.converged) and np.all(stated >= 0.07 * V * (1 - V))
    for model in (sv.AttentionIndexed(0.5, 2), sv.AttentionIndexed(math.inf, 2, tied=False)):
        assert np.all(sv.predict(model, sv.BayesOptimal(), alpha=alpha).uncertainty["estimation_error"] < 1e-6)
