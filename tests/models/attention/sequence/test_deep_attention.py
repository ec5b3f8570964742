"""One layer of attention by one direction: known values, phase retrieval as one token, labels, message passing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad

import solvable as sv
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers import solver_for
from solvable.models.attention.sequence.metrics import label_errors
from solvable.models.attention.sequence.model import signless
from solvable.models.attention.sequence.signless import SignlessLabels, SignlessOutput, averages
from solvable.priors import Gaussian


def overlap(tokens, alpha):
    found = sv.predict(sv.DeepAttention(1, tokens), sv.AMP(), alpha=alpha)
    assert np.all(found.converged)
    return found["overlap"]


def test_known_overlaps():
    """A rule of 60 x 81 nodes that is not converged gives 0.592021 and 0.786328 in the first and third."""
    np.testing.assert_allclose(overlap(2, [0.4, 0.25, 0.45]), [0.59201166, 0.14222156, 0.78617970], atol=2e-8)
    np.testing.assert_allclose(overlap(3, [0.13]), [0.1362206], atol=2e-7)


def test_averages_are_those_of_an_independent_quadrature():
    kappa, T = 1.7, 2

    def integrand(zeta, c):
        r = np.sqrt(kappa) * c
        density = c * np.exp(-(c**2) / 2 - zeta**2 / 2) / np.sqrt(2 * np.pi)
        return density * ((r + zeta) ** 2 + 1) * np.tanh(r * (r + zeta)) ** 2

    exact = dblquad(integrand, 0, 11, -8, 8, epsabs=1e-8, epsrel=1e-8)[0] - T * kappa
    assert averages(kappa, T)[0] == pytest.approx(exact, abs=1e-7)


def test_one_token_would_be_phase_retrieval():
    alpha = np.array([0.6, 0.9, 1.05, 1.2])
    solver, known = solver_for(SignlessOutput(1), SeparableSignal(Gaussian())), sv.MultiIndex("abs(z)")
    for found, learner in ((solver.uninformed(alpha), sv.AMP()), (solver.optimal(alpha), sv.BayesOptimal())):
        expected = sv.predict(known, learner, alpha=alpha)
        np.testing.assert_allclose(found.overlap[:, 0, 0], expected["overlap"], atol=1e-6)
    free = sv.predict(known, sv.AMP(), alpha=alpha[:3]).order_parameters["free_entropy"]
    np.testing.assert_allclose(solver.uninformed(alpha[:3]).free_entropy, free, atol=1e-7)
    assert solver.thresholds()["algorithmic"] == pytest.approx(sv.thresholds(known)["algorithmic"], rel=1e-5)


@pytest.mark.parametrize("tokens", [2, 3, 6])
def test_a_direction_is_seen_from_its_closed_threshold_on_and_known_from_another(tokens):
    weak, perfect = 1 / (tokens * (tokens + 1)), 1 / tokens
    assert sv.thresholds(sv.DeepAttention(1, tokens))["weak_recovery"] == pytest.approx(weak, rel=1e-12)
    below, above, nearly, known = overlap(tokens, [0.99 * weak, 1.01 * weak, 0.98 * perfect, 1.001 * perfect])
    assert below == 0 and 0 < above < 0.02 and 0.85 < nearly < 1 and known == 1


def test_the_slope_of_the_entropy_is_half_the_information():
    output, t = SignlessOutput(3), np.array([-5.0, -1.2, 0.3, 3.1, 7.7, 11.2])
    q, V = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))
    slope = (output.entropy(t + 1e-4) - output.entropy(t - 1e-4)) / 2e-4
    np.testing.assert_allclose(slope, np.exp(output.log_information(t)) * q * V / 2, rtol=2e-5)


def test_the_denoiser_is_the_slope_of_its_evidence():
    rng, V = np.random.default_rng(0), np.full((1, 1), 0.6)
    labels, Omega = SignlessLabels(rng.standard_normal((4, 3))), rng.standard_normal((12, 1))
    step, total = labels(Omega, V), []
    for k in range(12):
        shift = 1e-4 * np.eye(12)[:, k : k + 1]
        total.append([labels(Omega + sign * shift, V).log_Z().sum() for sign in (1, 0, -1)])
    total = np.array(total)
    np.testing.assert_allclose(step.g[:, 0], (total[:, 0] - total[:, 2]) / 2e-4, atol=1e-6)
    bends = (total[:, 0] - 2 * total[:, 1] + total[:, 2]) / 1e-8
    assert step.minus_derivative[0, 0] == pytest.approx(-bends.mean(), abs=1e-4)


def test_a_label_is_the_projections_up_to_a_sign():
    rng = np.random.default_rng(1)
    data = sv.DeepAttention(1, 4).sample(rng, 30, alpha=3.0)
    z, u = (data.X @ data.truth)[..., 0], signless(data.y)
    signs = np.sign(np.sum(u * z, axis=1))
    np.testing.assert_allclose(signs[:, None] * u, z, atol=1e-7)


def test_runs_agree_with_theory():
    """The mean over runs within four standard errors and a shift of size 1/d; the run's own estimate is its overlap."""
    model, alpha = sv.DeepAttention(1, 2), 0.45
    runs = [sv.simulate(model, sv.AMP(), alpha=alpha, d=600, seed=seed) for seed in range(6)]
    found = np.array([run["overlap"] for run in runs])
    assert abs(found.mean() - overlap(2, alpha)) < 4 * found.std(ddof=1) / np.sqrt(6) + 8 / 600
    own = np.array([run.details["self_overlap"] for run in runs])
    assert np.abs(own - found).max() < 4 / np.sqrt(600)


def test_what_is_not_solved_is_refused():
    with pytest.raises(ValueError, match="layers = 5 is not allowed: layers must be at most 4"):
        sv.DeepAttention(5, 2)
    with pytest.raises(ValueError, match="tokens = 1"):
        sv.DeepAttention(1, 1)
    with pytest.raises(ValueError, match="residual = 0.01 is not allowed: residual must be from 0.05 to 100"):
        sv.DeepAttention(2, 2, 0.01)


def test_labels_of_many_tokens_are_never_held_all_at_once():
    """A thousand tokens have labels of a million numbers: of all samples together they would be 16 GB."""
    held = []

    def labels(z):
        held.append(len(z) * z.shape[1] ** 2)
        return np.broadcast_to(z.mean(axis=1, keepdims=True), (len(z), 1, 1))

    for tokens in (3, 50, 1000):
        value, error, *_ = label_errors(labels, tokens, np.eye(1))
        assert max(held) <= 2**22 and sum(held) < 2**29
        # Half of the mean square of the difference of two means of T normal numbers.
        assert abs(value - 1 / tokens) < 4 * error + 1e-12
        held.clear()
