r"""`HierarchicalTarget`: squares of features that are polynomials of the inputs themselves, of falling weight."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Learner, Model
from solvable.core.ranges import NOT_NEGATIVE, UNIT, Range
from solvable.models.depth.hierarchical.labels import amplitudes
from solvable.numerics.subspaces import orthonormal

SHOWN = 8
"""How many feature overlaps a prediction has, those of the strongest features."""
MOST = 1e8
"""The largest n/D: up to there at most some ten million features are learned."""
_LARGEST_DEGREE = 12


class HierarchicalData(NamedTuple):
    """One instance: the embedded inputs `Phi` (n x D), labels `y` (n), the features' directions `truth` (D x k).

    `inputs` (n x d) are the points themselves, None where the embedding is Gaussian. `amplitudes` (k) are those of the
    features; of all others, which an instance has no room for, `unseen` is the variance of their labels. `dimension` is
    d.
    """

    Phi: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    inputs: np.ndarray | None
    amplitudes: np.ndarray
    unseen: float
    dimension: int


class HierarchicalTarget(Model):
    r"""A sum of squares of hidden features, $y = \sum_k \lambda_k (h_k^2 - 1) + \sqrt\Delta\,\xi$, $n = \alpha D$.

    The features $h_k = v_k \cdot \varphi(x)$ are polynomials of degree q: $\varphi$ are the $D = \binom{d+q-1}{q}$
    orthonormal Hermite polynomials of that degree in d Gaussian inputs, and the $v_k$ orthonormal and random. Their
    weights fall, $\lambda_k \propto k^{-\gamma}$ with $2\sum_k\lambda_k^2 = 1$: a noiseless label has variance one, and
    is of degree 2q in x.

    - `decay`: $\gamma$, above 1/2 for infinitely many features.
    - `degree`: q; 1 makes the features projections of the inputs.
    - `features`: how many there are; infinitely many unless told.
    - `noise`: the variance $\Delta$ of the noise of a label.
    - `inputs`: of runs. `"gaussian"` draws $\varphi$ as D independent Gaussians, which is what theory knows of it;
      `"hermite"` the polynomials themselves, of d Gaussian inputs, each sample scaled to $|\varphi|^2 = D$.
    """

    axes: ClassVar[tuple[Axis, ...]] = (Axis("alpha", "n/D", most=MOST),)
    scaling: ClassVar[str] = "n = alpha D, D = C(d + degree - 1, degree)"
    definitions: ClassVar[dict[str, str]] = {
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "cosine": "correlation of the predicted with the noiseless label on fresh inputs",
        "squared_overlap": "square of it",
        "feature_overlap": f"share of v_k that lies in what is learned, for the {SHOWN} strongest features; 0 for "
        "those that are not there",
        "features_learned": "number of features whose eigenvalue stands out of the bulk",
    }

    decay: float
    degree: int = eqx.field(static=True)
    features: int | None = eqx.field(static=True)
    noise: float
    inputs: str = eqx.field(static=True)

    def __init__(
        self,
        decay: float = 1.0,
        degree: int = 2,
        features: int | None = None,
        noise: float = 0.0,
        inputs: str = "gaussian",
    ):
        self.features = None if features is None else check_count("features", features, least=1)
        if features is None:
            takes = "a finite number above 1/2 for infinitely many features, whose squares must have a sum"
            self.decay = real_number("decay", decay, takes, lambda x: x > 0.5)
        else:
            self.decay = real_number("decay", decay, "a finite number above 0", lambda x: x > 0)
        self.degree = check_count("degree", degree, least=1, most=_LARGEST_DEGREE)
        self.noise = checked_variance(noise)
        if inputs not in ("gaussian", "hermite"):
            raise bad_parameter("inputs", inputs, "'gaussian' or 'hermite'")
        self.inputs = inputs

    def ranges(self, learner: Learner) -> dict[str, Range]:
        return {"feature_overlap": UNIT, "features_learned": NOT_NEGATIVE}

    def amplitudes(self, count: int) -> np.ndarray:
        r"""$\lambda_1, \dots$, of at most `count` features."""
        there = count if self.features is None else min(count, self.features)
        first = amplitudes(float(self.decay), self.features).values[0]
        return first * np.arange(1.0, there + 1) ** -float(self.decay)

    def dimension(self, d: int) -> int:
        """D, the number of polynomials."""
        return math.comb(d + self.degree - 1, self.degree)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> HierarchicalData:
        """n = round(alpha D) samples, at least one; of infinitely many features the first D, the rest acts as noise."""
        D = self.dimension(d)
        n = max(1, round(axes["alpha"] * D))
        lambdas = self.amplitudes(D)
        needed = 8.0 * (n * (2.0 * D + len(lambdas)) + 4.0 * D * D)
        check_memory(needed, f"{n} samples of {D} polynomials", "d", d)
        truth = orthonormal(rng.standard_normal((D, len(lambdas))))
        unseen = max(0.0, 1 - 2 * float(lambdas @ lambdas))
        Phi, X = self.embedded(rng, n, d)
        noise = np.sqrt(unseen + float(self.noise)) * rng.standard_normal(n)
        return HierarchicalData(Phi, self.labels(Phi, truth, lambdas) + noise, truth, X, lambdas, unseen, d)

    def embedded(self, rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray | None]:
        """n embedded inputs, and the inputs themselves where there are any."""
        if self.inputs == "gaussian":
            return rng.standard_normal((n, self.dimension(d))), None
        X = rng.standard_normal((n, d))
        Phi = hermite_polynomials(X, self.degree)
        Phi *= np.sqrt(Phi.shape[1]) / np.linalg.norm(Phi, axis=1, keepdims=True)
        return Phi, X

    @staticmethod
    def labels(Phi: np.ndarray, truth: np.ndarray, lambdas: np.ndarray) -> np.ndarray:
        """The noiseless labels of embedded inputs."""
        return ((Phi @ truth) ** 2 - 1) @ lambdas


def hermite_polynomials(X: np.ndarray, degree: int) -> np.ndarray:
    r"""The orthonormal Hermite polynomials $\prod_i He_{b_i}(x_i)/\sqrt{b_i!}$ of total degree q at each row of X."""
    n, d = X.shape
    powers: list[Any] = [np.ones_like(X), X]
    for k in range(1, degree):
        powers.append((X * powers[k] - math.sqrt(k) * powers[k - 1]) / math.sqrt(k + 1))
    found = np.empty((n, math.comb(d + degree - 1, degree)))
    for column, chosen in enumerate(itertools.combinations_with_replacement(range(d), degree)):
        product = np.ones(n)
        for i, group in itertools.groupby(chosen):
            product = product * powers[len(list(group))][:, i]
        found[:, column] = product
    return found
