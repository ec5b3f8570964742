"""The solver of a monotone curve of fixed points: closed forms, exact limits, and its residuals."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.core.status import Status
from solvable.engine.outputs.gaussian import GaussianOutput
from solvable.engine.sides import BayesSignal, Evolution, Overlap
from solvable.engine.solvers.bracket import Bracket


class Sparse(BayesSignal):
    """A signal with mmse = dimension / (dimension + qhat), for which everything is explicit."""

    def __init__(self, dimension):
        self._dimension = dimension

    @property
    def dimension(self):
        return self._dimension

    def mmse(self, qhat):
        return self.dimension / (self.dimension + qhat)

    def potential(self, qhat):
        return (qhat - self.dimension * np.log1p(qhat / self.dimension)) / 2

    def denoiser(self, operator):
        raise NotImplementedError


def solved(gain, noise, dimension):
    """qhat (noise + dimension / (dimension + qhat)) = gain."""
    b = dimension + noise * dimension - gain
    root = np.sqrt(b**2 + 4 * noise * gain * dimension)
    if b > 0:  # without cancellation
        return 2 * gain * dimension / (root + b)
    return (root - b) / (2 * noise) if noise else np.inf


@pytest.mark.parametrize("noise", [0.0, 1e-20, 1e-6, 0.3, 1e4])
def test_a_closed_form(noise):
    gain = np.array([1e-8, 0.1, 0.399, 0.7, 3.0, 1e5])
    for dimension in (0.4, 1.0):
        found = Bracket(GaussianOutput(noise), Sparse(dimension)).uninformed(gain)
        expected = [solved(g, noise, dimension) for g in gain]
        assert np.allclose(found.field[:, 0, 0], expected, rtol=1e-8)
        assert np.all(found.status == Status.CONVERGED) and np.all(found.residual < 1e-12)
        assert found.overlap.shape == found.variance.shape == (6, 1, 1)
        assert np.allclose(found.overlap + found.variance, 1)


def test_fixed_points_are_those_of_the_iteration():
    output, signal, gain = GaussianOutput(0.2), Sparse(0.6), np.array([[[0.5]], [[2.0]]])
    found = Bracket(output, signal).optimal(gain.ravel())
    again = Evolution(output, signal).step(Overlap.bayes(found.variance), gain)
    assert np.allclose(again.V, found.variance, rtol=1e-12)


def test_perfect_recovery_and_no_samples_are_exact():
    solver = Bracket(GaussianOutput(0.0), Sparse(0.6))
    assert solver.thresholds() == {"perfect_recovery": 0.6}
    found = solver.uninformed(np.array([0.0, 0.6, 2.0]))
    assert found.variance[:, 0, 0].tolist() == [1, 0, 0]
    assert found.field[:, 0, 0].tolist() == [0, np.inf, np.inf]
    assert Bracket(GaussianOutput(1e-9), Sparse(0.6)).thresholds() == {"perfect_recovery": np.inf}
    assert solver.uninformed(np.zeros(0)).variance.shape == (0, 1, 1)


def test_a_step_that_is_not_solved_is_not_called_converged(monkeypatch):
    monkeypatch.setattr("solvable.engine.solvers.bracket._STEPS", 1)
    found = Bracket(GaussianOutput(0.1), Sparse(0.6)).uninformed(np.array([0.5]))
    assert found.status[0] == Status.MAX_STEPS and found.residual[0] > 1e-10
