r"""`TreeTarget`: labels made in three layers, of which a deep network can learn one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Model
from solvable.models.depth.tree.degrees import Degrees, degrees_of
from solvable.numerics.subspaces import orthonormal
from solvable.targets.target import Target

INNER, OUTER = "he2(z) + he3(z)", "tanh(3*z)"
MOST_KAPPA = 20.0
"""Beyond any number of samples, and any degree that is looked at."""


class TreeData(NamedTuple):
    """One instance: inputs `X` (n x d), labels `y` (n), the directions `truth` (d x r m) and their signs (r m)."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    signs: np.ndarray


class TreeTarget(Model):
    r"""Labels of r branches, $y = r^{-1/2} \sum_{i\le r} g(h_i) + \sqrt\Delta\,\xi$, each of many directions.

    $h_i = m^{-1/2} \sum_{j\le m} a_{ij} P(w_{ij}\cdot x)$ with $m = d^\epsilon$ (rounded) directions a branch, all of
    them orthogonal, and signs $a_{ij} = \pm1$; there are $n = d^\kappa$ samples.

    - `branches`: their number r.
    - `exponent`: $\epsilon$, between 0 and 1.
    - `inner`: P, a function of one projection with mean zero: a formula in z, a `Target`, or a function written with
      `jax.numpy`. `he2(z)` is $z^2 - 1$, `he3(z)` $z^3 - 3z$, without factorials.
    - `outer`: g, of one projection as well.
    - `noise`: variance $\Delta$ of the Gaussian noise added to the label.

    As d grows the $h_i$ become independent Gaussians: g acts on one number each, which a network of three layers can
    find and a kernel has to expand.
    """

    axes: ClassVar[tuple[Axis, ...]] = (Axis("kappa", "log n / log d", most=MOST_KAPPA),)
    scaling: ClassVar[str] = "n = d^kappa"
    references = ("dandi2025computational",)
    definitions: ClassVar[dict[str, str]] = {
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "training_error": "mean squared error on all labels seen, with their noise",
        "cosine": "correlation of the predicted with the noiseless label, each without its mean, on fresh inputs",
        "squared_overlap": "square of it",
        "first_layer": "mean over the learned first layer of the share of a direction's squared length that lies in "
        "the span of the target's directions; by chance r m/d",
        "second_layer": "share of the variance of sum_i h_i that the best linear function of the learned hidden "
        "features explains, on fresh inputs",
    }

    branches: int
    exponent: float
    inner: Target = eqx.field(static=True)
    outer: Target = eqx.field(static=True)
    noise: float

    def __init__(
        self,
        branches: int = 1,
        exponent: float = 0.5,
        inner: str | Target | Callable[..., Any] = INNER,
        outer: str | Target | Callable[..., Any] = OUTER,
        noise: float = 0.0,
    ):
        self.branches = check_count("branches", branches, least=1)
        self.exponent = real_number("exponent", exponent, "above 0 and below 1", lambda x: 0 < x < 1)
        self.inner, self.outer = _one_projection("inner", inner), _one_projection("outer", outer)
        self.noise = checked_variance(noise)
        self.degrees.check()

    @property
    def degrees(self) -> Degrees:
        """The Hermite coefficients of both functions, of which theory consists."""
        return degrees_of(self.inner, self.outer)

    def directions(self, d: int) -> int:
        """The number m of directions of a branch at size d."""
        return max(1, round(d ** float(self.exponent)))

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> TreeData:
        """Directions W* with W*^T W* = d I, signs, and n = round(d^kappa) inputs of N(0, 1/d) entries with labels."""
        count, needed = self.branches * self.directions(d), axes["kappa"] * math.log(d)
        if count > d:
            raise bad_parameter("branches", self.branches, f"at most {d // self.directions(d)} at d = {d}")
        if needed > math.log(1e12):
            raise bad_parameter("kappa", axes["kappa"], f"smaller: d^kappa is {math.exp(needed):.3g} samples")
        n = max(1, round(d ** axes["kappa"]))
        check_memory(8.0 * n * (d + count), f"the inputs, {n} x {d} numbers,", "kappa", axes["kappa"])
        truth = math.sqrt(d) * orthonormal(rng.standard_normal((d, count)))
        signs = rng.choice([-1.0, 1.0], count)
        X = rng.standard_normal((n, d)) / math.sqrt(d)
        y = self.labels(self.hidden(X, truth, signs))
        if self.noise > 0:
            y = y + math.sqrt(float(self.noise)) * rng.standard_normal(n)
        return TreeData(X, y, truth, signs)

    def hidden(self, X: np.ndarray, truth: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """The hidden features h_i of inputs, n x r."""
        values = self.inner.numpy((X @ truth)[..., None]) * signs
        each = values.reshape(len(X), int(self.branches), -1)
        return each.sum(axis=2) / math.sqrt(each.shape[2])

    def labels(self, hidden: np.ndarray) -> np.ndarray:
        """The noiseless labels of hidden features, n x r."""
        return self.outer.numpy(hidden[..., None]).sum(axis=1) / math.sqrt(hidden.shape[1])


def _one_projection(name: str, target: Any) -> Target:
    one = callable(target) and not isinstance(target, Target)
    found = target if isinstance(target, Target) else Target(target, projections=1 if one else None)
    if found.projections != 1:
        raise bad_parameter(name, str(found), "a function of one projection, z")
    return found
