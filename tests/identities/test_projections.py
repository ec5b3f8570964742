"""One projection as the special case of several: the continuation of r x r overlaps at r = 1 is the explicit curve."""

from __future__ import annotations

import numpy as np
import pytest
from toys.outputs import continued, scalars

from solvable.core.status import Status
from solvable.models.index import MultiIndex


@pytest.mark.parametrize(
    ("target", "noise", "alpha"),
    [
        ("abs(z)", 0.0, [0.3, 0.6, 0.8, 1.0, 1.1, 1.128, 1.129, 3.0]),
        pytest.param("sign(z)", 0.0, [1e-3, 0.1, 1.0, 2.5, 10.0, 100.0], marks=pytest.mark.slow),
        ("z", 0.3, [0.01, 1.0, 5.0, 100.0]),
        pytest.param("z**3 - 3*z", 0.0, [0.1, 0.9, 1.1, 1.19, 1.2], marks=pytest.mark.slow),
    ],
)
def test_fixed_points_are_those_of_the_curve(target, noise, alpha):
    model = MultiIndex(target, noise=noise)
    evolution = continued(model.channel)
    for name in ("uninformed", "optimal"):
        found, known = (getattr(e, name)(np.array(alpha)) for e in (evolution, scalars(model.solver())))
        assert np.all(found.status == Status.CONVERGED)
        np.testing.assert_array_less(
            np.abs(found.overlap[:, 0, 0] - known.q), 1e-7 + found.uncertainty + known.uncertainty
        )
        np.testing.assert_allclose(found.free_entropy, known.free_entropy, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("abs(z)", marks=pytest.mark.slow),
        pytest.param("sign(z)", marks=pytest.mark.slow),
        pytest.param("z**3 - 3*z", marks=pytest.mark.slow),
    ],
)
def test_thresholds_are_those_of_the_curve(target):
    model = MultiIndex(target)
    found, known = continued(model.channel).thresholds(), model.solver().thresholds()
    assert set(found) == set(known)
    np.testing.assert_allclose(list(found.values()), list(known.values()), rtol=3e-5)
