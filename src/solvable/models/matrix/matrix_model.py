"""What quadratic networks and matrix sensing share: labels that are linear in a hidden symmetric matrix."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.errors import bad_parameter
from solvable.core.model import Model
from solvable.models.matrix.instance import MatrixData
from solvable.models.matrix.operators import gaussian_features, quadratic_features
from solvable.spectra import Law

FEATURES = {"quadratic": quadratic_features, "gaussian": gaussian_features}


class MatrixModel(Model):
    """y = Tr[G A*] + sqrt(noise) xi with n = alpha d^2 samples, A* a symmetric d x d matrix with random eigenvectors.

    `features` says what G is: `"quadratic"`, (x x^T - I) / sqrt(d) with x of d independent N(0, 1) entries; or
    `"gaussian"`, a symmetric Gaussian matrix with entries of variance 1/d, 2/d on the diagonal. Both have the same
    limit of infinite dimension.
    """

    axes = (Axis("alpha", "n/d^2"),)
    scaling: ClassVar[str] = "n = alpha d^2"
    definitions: ClassVar[dict[str, str]] = {
        "estimation_error": "|A_hat - A*|_F^2 / d",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless "
        "label: twice the estimation error",
        "training_error": "mean over the samples of (y - y_hat)^2",
        "training_loss": "what the learner minimises: sum of (y - y_hat)^2 / d^2, plus its penalty",
        "rank": "share of the eigenvalues of A_hat that are positive",
    }

    noise: eqx.AbstractVar[float]
    features: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def law(self) -> Law:
        """The law of the eigenvalues of A*."""

    @abc.abstractmethod
    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        """A matrix A* of size d, and the width of a network that computes it."""

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> MatrixData:
        """A teacher, n = round(alpha d^2) features (at least one) and their labels."""
        n = max(1, round(axes["alpha"] * d**2))
        truth, width = self.teacher(rng, d)
        operator = FEATURES[self.features](rng, n, d)
        labels = operator.forward(truth) + np.sqrt(float(self.noise)) * rng.standard_normal(n)
        return MatrixData(operator, labels, truth, width)


def checked_features(features: object) -> str:
    """`features`, or a `ValueError` unless it is one of the names."""
    if features not in FEATURES:
        raise bad_parameter("features", features, " or ".join(repr(name) for name in FEATURES))
    return str(features)
