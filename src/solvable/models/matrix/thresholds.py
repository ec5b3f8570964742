"""The sample ratios alpha = n / d^2 at which what can be learned of a matrix changes."""

from __future__ import annotations

import math

from solvable.core.registry import thresholds_of
from solvable.engine.thresholds import Thresholds
from solvable.models.matrix import recovery
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork


@thresholds_of(MatrixSensing, references=("maillard2024bayes", "erba2025nuclear"))
def matrix_thresholds(model: MatrixModel) -> Thresholds:
    """Where each learner recovers A* exactly (infinite with noise), and up to where labels can be interpolated.

    perfect_recovery: Bayes-optimal learning; nuclear_recovery: `NuclearNorm` with a vanishing penalty; psd_recovery:
    any positive semidefinite matrix that fits; lazy_recovery: `Lazy` with a vanishing penalty; interpolation: above it
    no positive semidefinite matrix fits all labels (without noise, the limit of small noise).
    """
    law, noise = model.law, float(model.noise)
    found = Thresholds(
        perfect_recovery=recovery.perfect_recovery(law),
        nuclear_recovery=recovery.nuclear_recovery(law),
        psd_recovery=recovery.psd_recovery(law),
        lazy_recovery=0.5,
    )
    if noise > 0:
        found = Thresholds({name: math.inf for name in found})
    found["interpolation"] = recovery.interpolation(law, noise)
    return found


@thresholds_of(QuadraticNetwork, references=("maillard2024bayes", "erba2025nuclear"))
def network_thresholds(model: QuadraticNetwork) -> Thresholds:
    """Those of matrix sensing, and narrow_weak_recovery = rho (2 + noise) / 4.

    From there on Bayes-optimal learning of a narrow network, rho -> 0, does better than guessing the mean of A*.
    """
    found = matrix_thresholds(model)
    found["narrow_weak_recovery"] = float(model.rho) * (2 + float(model.noise)) / 4
    return found
