"""One projection is the special case r = 1 of the spectral theory, which is written once in matrices.

The scalar equations are those of the textbook, solved here by SciPy on the same law of the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import solvable as sv
from solvable.models.index.spectral import spectrum
from solvable.models.index.spectral.blocks import label_blocks
from solvable.models.index.spectral.theory import spectral_prediction

MODELS = {
    "abs": sv.MultiIndex("abs(z)"),
    "window": sv.MultiIndex("abs(z) < 1"),
    "noisy square": sv.MultiIndex("z**2", noise=0.25),
    "relu": sv.MultiIndex("relu(z)", noise=0.1),
    "contaminated": sv.MultiIndex("z", noise=0.1, contamination="0.3:0:5"),
}
every_model = pytest.mark.parametrize("name", MODELS)
both_kinds = pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
FACTORS = np.array([0.5, 0.999, 1.01, 1.5, 4.0, 40.0])
"""Samples over the weak-recovery threshold."""


def textbook(weight: np.ndarray, G: np.ndarray, kind: str, alpha: float) -> float:
    """The squared overlap of one direction, by the scalar equation."""
    gamma = alpha * np.sum(weight * G**2)
    if gamma <= 1:
        return 0.0
    if kind == "asymmetric":
        return (gamma**2 - gamma) / (gamma**2 + alpha * np.sum(weight * G**3))
    found: Any = brentq(lambda q: alpha * (1 - q) * np.sum(weight * G**2 / (1 + q * G)) - 1, 0, 1 - 1e-15, xtol=1e-16)
    return found


@both_kinds
@every_model
def test_one_projection_solves_the_scalar_equations(name, kind):
    law = MODELS[name].channel.label_law()
    alpha = FACTORS / np.sum(law.weight * law.G[:, 0, 0] ** 2)
    exact = [textbook(law.weight, law.G[:, 0, 0], kind, a) for a in alpha]
    found = spectral_prediction(law, kind, alpha)
    np.testing.assert_allclose(found.overlap[:, 0, 0], exact, rtol=0, atol=1e-15)
    predicted = sv.predict(MODELS[name], sv.Spectral(kind), alpha=alpha)
    np.testing.assert_array_equal(predicted["squared_overlap"], found.overlap[:, 0, 0])


@both_kinds
@every_model
def test_one_direction_by_scalars_is_one_direction_by_matrices(name, kind):
    """A block of one direction takes a short way; the equations in matrices say the same of it."""
    law = MODELS[name].channel.label_law()
    (block,) = label_blocks(law)
    alpha = FACTORS / np.sum(law.weight * law.G[:, 0, 0] ** 2)
    short = spectrum._in_one_direction(law, block, kind, alpha, edge=True)
    long = spectrum._in_several_directions(law, block, kind, alpha, edge=True)
    # In matrices the unknown is 1/(1 - q), which has fewer digits of q close to the threshold.
    np.testing.assert_allclose(long.posterior_overlap, short.posterior_overlap, atol=1e-15 if kind[0] == "a" else 1e-12)
    for field in ("outlier", "bulk_edge"):
        np.testing.assert_allclose(getattr(long, field), getattr(short, field), rtol=1e-9)
    assert np.all(long.larger == 0) and np.all(short.larger == 0)


@pytest.mark.slow
@both_kinds
def test_a_second_projection_that_does_not_matter_changes_nothing(kind):
    """abs(z1 + z2) is abs(z) along (1, 1)/sqrt 2, and nothing is learned across."""
    one, two = sv.MultiIndex("abs(z)"), sv.MultiIndex("abs(z1 + z2)/sqrt(2)")
    alpha = np.array([0.3, 0.6, 2.0])
    narrow, wide = (sv.predict(model, sv.Spectral(kind), alpha=alpha) for model in (one, two))
    np.testing.assert_allclose(
        wide["overlap"], narrow["squared_overlap"][:, None, None] * np.full((2, 2), 0.5), atol=1e-12
    )
    # Half of the unknowns are found as well as before, the other half not at all.
    np.testing.assert_allclose(wide["squared_overlap"], narrow["squared_overlap"] / 2, atol=1e-12)
    np.testing.assert_allclose(wide["generalization_error"], narrow["generalization_error"], atol=1e-9)
    for name in ("outlier", "bulk_edge"):
        np.testing.assert_allclose(wide.order_parameters[name], narrow.order_parameters[name], atol=1e-9)
