"""Linear labels with Gaussian noise: what they say on averages and on data."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.engine.outputs.gaussian import GaussianLabels, GaussianOutput
from solvable.engine.sides import Overlap


def test_the_information_is_that_of_the_scores():
    """E g^2 = E[-dg/domega] = 1 / (noise + V), and the evidence is that of a Gaussian."""
    output, V, rng = GaussianOutput(0.3), 0.5, np.random.default_rng(0)
    y = np.sqrt(0.8) * rng.standard_normal(200_000)
    step = output.denoiser(y)(np.zeros((len(y), 1)), np.array([[V]]))
    assert float(step.minus_derivative[0, 0]) == pytest.approx(1 / 0.8)
    assert np.mean(step.g**2) == pytest.approx(1 / 0.8, rel=0.02)
    assert step.variance is None and step.log_Z is not None
    assert step.log_Z()[0] == pytest.approx(-(y[0] ** 2) / 1.6 - np.log(2 * np.pi * 0.8) / 2)
    field = output.average(Overlap.bayes(np.array([[[V]], [[0.0]]])))
    assert np.allclose(field.q_hat[:, 0, 0], [1 / 0.8, 1 / 0.3])
    assert GaussianOutput(0.0).information(np.zeros((1, 1, 1))) == np.inf
    assert output.projections == 1 and output == GaussianOutput(0.3)


def test_scatter_tells_the_variance():
    rng = np.random.default_rng(1)
    noise = rng.uniform(0.1, 0.5, (100_000, 1))
    y = np.sqrt(noise + 0.25) * rng.standard_normal(noise.shape)
    step = GaussianLabels(y, noise, scattered=True)(np.zeros_like(y), np.array([[0.9]]))
    assert step.variance is not None and step.log_Z is not None
    assert float(step.variance[0, 0]) == pytest.approx(0.25, abs=0.02)
    assert float(step.minus_derivative[0, 0]) == pytest.approx(np.mean(1 / (noise + 0.25)), rel=0.05)
    assert step.log_Z().shape == (100_000,)
    exact = GaussianLabels(y, noise, scattered=True)(y, np.array([[0.9]]))
    assert exact.variance is not None and float(exact.variance[0, 0]) == 1e-16
