"""Outputs of low-rank models: what a latent variable tells, read off a table that serves spikes of any strength."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from solvable.engine.outputs.explicit import LatentOutput
from solvable.priors import as_prior


@pytest.mark.parametrize("prior", ["gaussian", "rademacher", "gauss-bernoulli:0.3", "gauss-bernoulli:0.001"])
@pytest.mark.parametrize("snr", [1e-3, 1.5, 1e3])
def test_the_information_of_a_latent_variable_is_its_overlap(prior, snr):
    """I = theta overlap(theta q), within the stated error and rounding, from q = 1e-26 to 1 - q = 1e-17."""
    law, t = as_prior(prior), np.linspace(-60.0, 40.0, 157)
    output = LatentOutput(law, snr)
    exact = snr * law.overlap(snr * expit(t))
    error = output.relative_error(t)
    assert np.all(np.abs(np.exp(output.log_information(t)) / exact - 1) < error + 2e-13)
    assert error.max() < 1e-10


def test_a_spike_of_no_strength_tells_nothing():
    output = LatentOutput(as_prior("rademacher"), 0.0)
    assert np.all(output.log_information(np.linspace(-5.0, 5.0, 3)) == -np.inf)
