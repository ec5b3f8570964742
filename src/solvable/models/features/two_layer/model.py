"""Two-layer networks on Gaussian inputs: a target of few directions, an activation, and the number of units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Data, Model
from solvable.core.registry import thresholds_of
from solvable.engine.dynamics.student import read_activation
from solvable.models.features.two_layer.averages import Moments, linear_part, moments
from solvable.numerics.subspaces import orthonormal
from solvable.targets.target import Target


def positive_or_infinite(name: str, value: Any, what: str) -> Any:
    """A positive number, or infinity, as a float."""
    if isinstance(value, float) and math.isinf(value) and value > 0:
        return float(value)
    return real_number(name, value, f"a positive number, {what}, or inf", lambda x: x > 0)


class TwoLayer(Model):
    r"""Labels y = g(z) + sqrt(noise) xi of inputs $x \sim N(0, I_d)$, and a network $f(x) = a\cdot\sigma(Wx)/\sqrt p$.

    - `target`: g of the projections $z = W^{*T} x$ on orthonormal directions, as text (`"sin(z)"`), a `Target`, or a
      function of one projection written with `jax.numpy`. Random features take several projections, of which they
      learn the linear part only; a trained first layer takes one.
    - `activation`: sigma, a formula in z, a name (`"relu"`, `"tanh"`; `"erf"` is erf(z/sqrt(2))), or a function.
    - `width`: p/d, hidden units per dimension; `inf` for the limit of a kernel.
    - `noise`: variance of the Gaussian noise added to the label.

    There are n = alpha d samples. The first layer starts with independent rows on the unit sphere; how much of it is
    trained is the learner's.
    """

    scaling: ClassVar[str] = "n = alpha d, p = width d"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "cosine of the angle between the linear parts of the network, E[f x], and of the target, E[y x]; of "
        "TwoSteps, of the target's direction with the span of the directions found",
        "squared_overlap": "square of the cosine",
        "generalization_error": "mean squared error of the output on fresh inputs against the noiseless label; of a "
        "classifier, of the sign of the output",
        "training_error": "mean squared error on the training labels, with their noise",
        "classification_error": "probability that the sign of the output is wrong, against the noiseless label",
        "training_loss": "mean loss on the training samples, without the penalty",
        "directions": "of TwoSteps: directions beyond that of one step that do not vanish with the width",
    } | {
        f"alignment_{k}": f"of TwoSteps: cosine of the target's direction with that of power {k} of the first step in "
        "the second, 0 where it vanishes with the width"
        for k in range(4)
    }

    target: Target = eqx.field(static=True)
    activation: Target = eqx.field(static=True)
    width: float
    noise: float

    def __init__(
        self,
        target: str | Target | Callable[..., Any],
        activation: str | Target | Callable[..., Any],
        width: float,
        noise: float = 0.0,
    ):
        one = callable(target) and not isinstance(target, Target)
        self.target = target if isinstance(target, Target) else Target(target, projections=1 if one else None)
        self.activation = read_activation(activation)
        if self.activation.projections != 1:
            raise bad_parameter("activation", str(self.activation), "a function of one variable z")
        self.width = positive_or_infinite("width", width, "hidden units per dimension")
        self.noise = checked_variance(noise)
        if self.activation_moments.slope == 0 and self.activation_moments.rest == 0:
            raise bad_parameter("activation", str(self.activation), "a function that is not constant")

    @property
    def target_moments(self) -> Moments:
        """Mean, slope and square of the noiseless label."""
        return moments(self.target)

    @property
    def activation_moments(self) -> Moments:
        """mu0, mu1 and E[sigma^2] of the activation at unit variance."""
        return moments(self.activation)

    def units(self, d: int) -> int:
        """The number p of hidden units of a run."""
        if math.isinf(self.width):
            raise bad_parameter("width", self.width, "finite for a run, which has a number of units")
        p = max(1, round(self.width * d))
        check_memory(8.0 * p * d, f"the first layer, {p} x {d} numbers,", "width", self.width)
        return p

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Data:
        """Directions W* with W*^T W* = I, n = round(alpha d) inputs (at least one) and their labels."""
        r = self.target.projections
        if d < r:
            raise bad_parameter("d", d, f"at least the number of projections, {r}")
        n = max(1, round(axes["alpha"] * d))
        check_memory(8.0 * n * d, f"the inputs, {n} x {d} numbers,", "d", d)
        truth = orthonormal(rng.standard_normal((d, r)))
        return Data(*self.fresh(rng, truth, n), truth)

    def fresh(self, rng: np.random.Generator, truth: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """n inputs and their labels with noise."""
        X = rng.standard_normal((n, len(truth)))
        y = self.target.numpy(X @ truth)
        return X, y + math.sqrt(self.noise) * rng.standard_normal(n) if self.noise > 0 else y

    def direction(self, truth: np.ndarray) -> np.ndarray:
        """The linear part of the target at given directions, E[y x]; the first direction where it has none."""
        part = linear_part(self.target)
        return truth @ part if np.any(part) else truth[:, 0]


@thresholds_of(TwoLayer, references=("gerace2020generalisation", "mei2022generalization"))
def interpolation(model: TwoLayer) -> dict[str, float]:
    """Up to where features that are frozen can fit any labels: n = p, or n = d for fewer linear features."""
    linear = model.activation_moments.rest == 0
    return {"interpolation": min(float(model.width), 1.0) if linear else float(model.width)}
