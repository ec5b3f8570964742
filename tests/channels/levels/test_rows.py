"""The posterior of z row by row, where a jump is within the reach of V."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from solvable.channels.generic import GenericChannel
from solvable.targets.target import Target


def test_a_posterior_next_to_a_jump_keeps_both_of_its_branches():
    """y = z2 where z1 > 0 and z3 elsewhere: N(y; omega_j, v_j) P(z1 on its side), and z_j = y, for each branch."""
    channel = GenericChannel(Target("where(z1>0,z2,z3)"))
    V = np.diag([0.37, 0.0905, 0.0987])
    Omega = np.array([[0.0067, 1.98, -1.45], [-0.56, 2.61, -0.69], [0.5, 0.3, -0.8], [-0.3, -1.2, 0.1]])
    y = np.array([-1.587, 2.921, 0.45, 0.25])
    side = norm.cdf(Omega[:, 0] / np.sqrt(V[0, 0]))
    weight = np.stack([norm.pdf(y, Omega[:, j], np.sqrt(V[j, j])) * p for j, p in ((1, side), (2, 1 - side))])
    found = channel.posterior(channel.observe(y), Omega, V)
    # The points are half a unit apart and V is widened to their resolution, which costs some of the evidence.
    np.testing.assert_allclose(found.log_Z, np.log(weight.sum(0)), atol=1.2)
    first = weight[0] / weight.sum(0)
    mean = first * y + (1 - first) * Omega[:, 1]
    np.testing.assert_allclose(np.asarray(found.mean)[:, 1], mean, atol=0.25)
    assert np.all(np.abs(np.asarray(found.mean) - Omega) / np.diag(V) < 10)
