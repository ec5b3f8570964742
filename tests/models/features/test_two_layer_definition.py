"""Theory against networks written from the definition alone, with parameters that nothing else here uses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference.two_layer_network import trained

import solvable as sv

CURVED = "z + 0.5*(z**2 - 1)", lambda X: X[:, 0] + 0.5 * (X[:, 0] ** 2 - 1)
MIXED = "z1*z2 + 0.7*z1 - 0.4*z2", lambda X: X[:, 0] * X[:, 1] + 0.7 * X[:, 0] - 0.4 * X[:, 1]
THREE = "tanh(z1) + z2*z3 + 0.5", lambda X: np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5
STEEP = "tanh(2*z)", lambda X: np.tanh(2 * X[:, 0])
SIGN = "sign(z)", lambda X: np.sign(X[:, 0])
SOFTPLUS = "log(1 + exp(z))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "target", "alpha", "width", "penalty", "noise", "step", "batch", "loss"),
    [
        ("relu", CURVED, 0.9, 1.4, 0.2, 0.05, 0.0, 0.0, "square"),
        ("erf(z)", MIXED, 2.2, 0.7, 0.03, 0.2, 0.0, 0.0, "square"),
        (SOFTPLUS, THREE, 0.6, 2.0, 0.5, 0.0, 0.0, 0.0, "square"),
        (SOFTPLUS, CURVED, 1.1, 0.9, 0.3, 0.1, 1.2, 3.0, "square"),
        ("erf(z)", STEEP, 0.8, 1.5, 0.2, 0.3, 2.5, 0.8, "square"),
        ("relu", CURVED, 1.5, 0.7, 0.4, 0.0, 1.0, 1.5, "square"),
        ("erf(z)", SIGN, 2.0, 0.9, 0.2, 0.0, 0.0, 0.0, "logistic"),
        ("tanh", SIGN, 1.7, 0.8, 0.15, 0.0, 1.5, 1.0, "logistic"),
    ],
)
def test_networks_from_their_definition_at_two_sizes(
    activation, target, alpha, width, penalty, noise, step, batch, loss
):
    text, label = target
    model = sv.TwoLayer(text, activation, width, noise)
    learner = sv.OneStep(penalty, step, batch, loss=loss) if step else sv.RandomFeatures(penalty, loss)
    found = sv.predict(model, learner, alpha=alpha)
    logistic = loss == "logistic"
    names = ("classification_error", "training_loss") if logistic else ("generalization_error", "training_error")
    for d, seeds in ((120, 32), (300, 12)):
        network = (activation, label, d, alpha, width, penalty, noise, step, batch)
        runs = np.array([trained(*network, seed, logistic) for seed in range(seeds)])
        for name, values in zip(names, runs.T, strict=True):
            error = values.std(ddof=1) / math.sqrt(seeds)
            assert abs(values.mean() - found[name]) < 4 * error + 1.5 * abs(found[name]) / d, (name, d)
