r"""Wide teachers: a network of many features, whose amplitudes fall like a power.

See `feature.py` for one feature and `curve.py` for all of them. The equations are derived, not proved: each feature
sees the others as Gaussian noise, and each sample says little of it. Both hold for features that are many and weak, at
n/d large. What supports them is on the model's page of the documentation. [barbier2026sharp]
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Data, Learner, Model
from solvable.core.precision import float64
from solvable.core.ranges import NOT_NEGATIVE, UNIT, Range
from solvable.engine.dynamics.student import read_activation
from solvable.models.lowrank.wide_teacher.curve import Curve
from solvable.models.lowrank.wide_teacher.feature import Feature
from solvable.models.lowrank.wide_teacher.features import EqualFeatures, Features, PowerLawFeatures
from solvable.models.lowrank.wide_teacher.kernel import Kernel, kernels_of
from solvable.targets.admissible import check_admissible
from solvable.targets.target import Target

CUBIC = "he3(z)/sqrt(6)"
SHOWN = 8
"""How many overlaps a prediction has, those of the strongest features."""
_ZERO = 1e-6
"""A Hermite coefficient below this, relative to the standard deviation, is none."""


class WideTeacher(Model):
    r"""The labels of a wide network, $y = \sum_{j\le k} a_j \sigma(w_j\cdot x) + \sqrt\Delta\,\xi$, n = alpha d.

    Inputs have N(0, 1/d) entries, weights are independent with $|w_j|^2 = d$, and amplitudes fall, $a_j = j^{-\beta}$.

    - `exponent`: $\beta$, above 1/2 for an infinite width; 0 stands for equal amplitudes $1/\sqrt k$.
    - `width`: the number k of features; `inf` in theory only.
    - `activation`: $\sigma$, a formula in z, the name of a function, or a function written with `jax.numpy`. It may
      have a linear part, but no quadratic one (then all features are learned together, see `WideNetwork`), and must
      have one of degree three or more.
    - `noise`: variance $\Delta$ of the Gaussian noise added to the label.
    """

    scaling: ClassVar[str] = "n = alpha d"
    references = ("barbier2026sharp",)
    definitions: ClassVar[dict[str, str]] = {
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "nonlinear_error": "the part of it that is not of degree one: the sum over features of a_j^2 (g(1) - g(q_j))",
        "cosine": "correlation of the predicted with the noiseless label, each without its mean, on fresh inputs",
        "squared_overlap": "square of it: of a posterior mean the share of the label's variance that it explains",
        "overlap": f"q_j = w_hat_j.w_j/d of the {SHOWN} strongest features, 0 for those that are not there",
        "effective_width": "number of features that are learned",
        "training_error": "mean over the samples that are trained on of (y - y_hat)^2",
    }

    exponent: float
    width: float
    activation: Target = eqx.field(static=True)
    noise: float

    def __init__(
        self,
        exponent: float = 1.0,
        width: float = math.inf,
        activation: str | Target | Callable[..., Any] = CUBIC,
        noise: float = 0.0,
    ):
        self.exponent = real_number("exponent", exponent, "a finite number, not negative", lambda x: x >= 0)
        self.width = checked_width("width", width)
        if math.isinf(self.width) and not self.exponent > 0.5:
            raise bad_parameter("width", width, "finite for an exponent of 1/2 or less: the squares must have a sum")
        self.activation = read_activation(activation)
        self.noise = checked_variance(noise)
        check_kernel(self.activation)

    @property
    def kernel(self) -> Kernel:
        """g of the activation."""
        return kernels_of(self.activation).fine

    @property
    def amplitudes(self) -> np.ndarray:
        """a_j of all features, of a finite width."""
        return amplitudes(self.exponent, self._finite_width())

    @property
    def variance(self) -> float:
        """That of the noiseless label."""
        return (self.kernel.linear + self.kernel.total) * self.features().power

    def features(self, limit: float = math.inf, coarse: bool = False) -> Features:
        """The features, of which the first `limit` may be learned; `coarse` ones tell the error of their sums."""
        return _features(self.activation, float(self.exponent), float(self.width), float(limit), coarse)

    def curve(self, limit: float = math.inf) -> Curve:
        """The curve of solutions."""
        return _curve(self.features(limit), float(self.noise))

    def ranges(self, learner: Learner) -> dict[str, Range]:
        if not learner.posterior_mean:
            return {}
        errors = {"generalization_error": self.variance, "nonlinear_error": self.features().unlearned}
        found = {name: Range(0.0, most, 1e-9 * most) for name, most in errors.items()}
        return found | {"overlap": UNIT, "effective_width": NOT_NEGATIVE}

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Data:
        """Weights (d x k), n = round(alpha d) inputs (at least one) and their labels."""
        k, count = self._finite_width(), max(1.0, axes["alpha"] * d)
        check_memory(8.0 * (count + k) * (d + k), f"{count:.4g} samples and {k} features of {d} numbers", "d", d)
        truth = rng.standard_normal((d, k))
        truth *= np.sqrt(d) / np.linalg.norm(truth, axis=0)
        X = rng.standard_normal((round(count), d)) / np.sqrt(d)
        return Data(X, self.labels(X, truth) + np.sqrt(float(self.noise)) * rng.standard_normal(len(X)), truth)

    def labels(self, X: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """The noiseless labels of inputs."""
        return self.activation.numpy((X @ truth)[..., None]) @ self.amplitudes

    def _finite_width(self) -> int:
        if math.isinf(self.width):
            raise bad_parameter("width", self.width, "finite to draw a teacher")
        return int(self.width)


def amplitudes(exponent: float, width: int) -> np.ndarray:
    """a_j = j^-exponent, or 1/sqrt(width) for an exponent of zero."""
    return np.arange(1, width + 1) ** -float(exponent) if exponent > 0 else np.full(width, width**-0.5)


def checked_width(name: str, value: Any) -> float:
    """A whole number of at least one as an integer, or infinity."""
    if isinstance(value, numbers.Real) and value == math.inf:
        return math.inf
    takes = "a whole number of at least 1, or infinite"
    return int(real_number(name, value, takes, lambda x: x >= 1 and x == math.floor(x)))


@float64
def check_kernel(activation: Target) -> None:
    """Refuse an activation with a quadratic part, or without one of degree three or more."""
    check_admissible(activation)
    kernel = kernels_of(activation).fine
    scale = kernel.linear + kernel.quadratic + kernel.total
    if kernel.quadratic > _ZERO**2 * scale:
        takes = (
            "a function without a quadratic part, such as an odd one (E[sigma(z) (z^2 - 1)] = 0): with one all "
            "features are learned together from n of the order of d^2, which is what WideNetwork solves"
        )
        raise bad_parameter("activation", str(activation), takes)
    if not kernel.total > _ZERO**2 * scale:
        raise bad_parameter("activation", str(activation), "a function with a part of degree three or more")


@functools.lru_cache(maxsize=64)
def feature_of(activation: Target, coarse: bool = False) -> Feature:
    """A feature of this activation; the coarse one is the other where they have the same coefficients."""
    fine, rough = kernels_of(activation)
    if coarse and rough.tail is None and fine.tail is None and np.array_equal(rough.degrees, fine.degrees):
        return feature_of(activation)
    return Feature(rough if coarse else fine)


@functools.lru_cache(maxsize=256)
def _features(activation: Target, exponent: float, width: float, limit: float, coarse: bool) -> Features:
    feature = feature_of(activation, coarse)
    if exponent == 0:
        return EqualFeatures(feature, width, limit)
    return PowerLawFeatures(feature, exponent, width, limit, *([32] if coarse else []))


@functools.lru_cache(maxsize=64)
def _curve(features: Features, noise: float) -> Curve:
    return Curve(features, noise)
