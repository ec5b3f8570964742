r"""The trace norm over positive matrices solves the output half of the state evolution of vectors.

The minimiser over S >= 0 sees the field $\hat V A^* + \sqrt{\hat q} Z$, so that $\hat V = b = 2\alpha - Df$,
$\hat q = D b^2$ and $V = Df / b$; per unknown labels have the variance $E A^2$ and the noise $\Delta / 2$.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.channels.losses import Square
from solvable.engine.outputs.proximal import LinearLabels, ProximalOutput
from solvable.engine.sides import Overlap

ALPHA = np.array([0.3, 0.8])


def output_half(power, noise, error, V):
    """The field of one sample for labels sqrt(power) z plus noise, where the estimate is wrong by `error`."""
    slope = np.sqrt(power)
    m = (2 * power - error) / (2 * slope)  # any m and q with power - 2 slope m + q = error
    state = [np.reshape(part, (-1, 1, 1)) for part in (m, np.full_like(m, power), V)]
    with jax.enable_x64(True):
        labels = LinearLabels(np.ones(1), np.array([slope]), np.array([noise]))
        field = ProximalOutput(Square(), labels).average(Overlap(*state))
    return tuple(np.ravel(part) for part in field)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "learner"),
    [
        (0.1, sv.NuclearNorm(0.2)),
        (0.0, sv.NuclearNorm(0.05)),
        (0.1, sv.NuclearNorm(0.2, width=0.4)),
    ],
)
def test_the_nuclear_norm_solves_the_output_half(noise, learner):
    network = sv.QuadraticNetwork(0.5, noise)
    power = network.law.second_moment
    found = sv.predict(network, learner, alpha=ALPHA)
    b = 1 / (2 * found.order_parameters["epsilon"])
    V = (2 * ALPHA - b) / b
    m_hat, q_hat, V_hat = (2 * ALPHA * part for part in output_half(power, noise / 2, found["estimation_error"], V))
    tolerance = 1e-11 + 10 * np.max(found.residual)
    np.testing.assert_allclose(V_hat, b, rtol=tolerance)
    np.testing.assert_allclose(m_hat, np.sqrt(power) * b, rtol=tolerance)
    np.testing.assert_allclose(q_hat, (found.order_parameters["delta"] * b) ** 2, rtol=tolerance)
    np.testing.assert_allclose(V_hat * found.order_parameters["theta"], learner.penalty / 2, rtol=tolerance)
