"""The denoiser of a penalty on the trace: message passing with it ends at the minimiser of the convex problem."""

from __future__ import annotations

import numpy as np
import pytest
from reference.trace_signal import TraceSignal

from solvable.engine.amp import amp
from solvable.engine.operators import PackedFeatures
from solvable.engine.sides import Field, OutputStep
from solvable.models.matrix import QuadraticNetwork
from solvable.models.matrix.nuclear.convex import ProximalGradient, minimise
from solvable.spectra import Discrete

POINTS = Discrete([-1.0, 1.0, 3.0])


class Squares:
    """The output denoiser of a sum of `weight` r^2 / 2 over residuals r."""

    def __init__(self, y, weight):
        self.y, self.weight = y, weight

    def __call__(self, Omega, V):
        h = self.weight / (1 + self.weight * V[0, 0])
        return OutputStep((self.y - Omega) * h, np.full((1, 1), np.mean(h)))


@pytest.mark.parametrize("features", ["quadratic", "gaussian"])
def test_message_passing_finds_the_convex_minimiser(features):
    """At any size the fixed point is the minimiser: V is the response, whatever its value."""
    model, penalty, rng = QuadraticNetwork(0.5, 0.2, features=features), 0.5, np.random.default_rng(0)
    data = model.sample(rng, 24, alpha=0.6)
    best = minimise(ProximalGradient(data.operator, rng), data.operator, data.y, penalty)
    operator = PackedFeatures(data.operator)
    unit = operator.unit(1.0)
    denoiser = TraceSignal(model.law, penalty).denoiser(operator)
    labels = Squares(data.y[:, None] / unit, unit**2 / 2)
    start = np.zeros((operator.dimension, 1))
    report = amp(operator, labels, denoiser, start, rng, damping=0.3, tolerance=1e-9, max_steps=3000)
    assert report.converged
    assert np.linalg.norm(denoiser.matrix(report.proposal) - best.S) < 1e-6 * np.linalg.norm(best.S)


def test_what_is_kept_of_a_matrix_without_noise():
    """As D falls the eigenvalues are those of A*, lowered and cut, up to the rank that is allowed."""
    values = np.array([-1.0, 1.0, 3.0])
    for share, kept in ((1.0, [0, 1, 1]), (0.3, [0, 0, 0.9])):
        m, q, _ = TraceSignal(POINTS, 0.5, share).average(Field(1.0, 1e-10, 1.0))
        lowered = (values - 0.25) * kept
        assert float(m) == pytest.approx(np.mean(values * lowered), rel=1e-4)
        assert float(q) == pytest.approx(np.mean((values - 0.25) * lowered), rel=1e-4)


def test_a_large_penalty_leaves_nothing():
    found = TraceSignal(POINTS, 100.0).average(Field(1.0, 0.5, 1.0))
    assert all(abs(float(part)) < 1e-9 for part in found)
    several = TraceSignal(POINTS, 0.1).average(Field.bayes(np.full((2, 1, 1), 0.7)))
    assert several.V.shape == (2, 1, 1) and np.ptp(several.V) == 0
