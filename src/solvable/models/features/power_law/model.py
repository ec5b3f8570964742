r"""`PowerLawFeatures`: a kernel with power-law eigenvalues, and a target with power-law coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Learner, Model
from solvable.core.ranges import NOT_NEGATIVE, Range

MOST = 1e15
"""The largest number of samples: infinite sums are computed up to 2^60 terms, of which the first T < n count."""


class PowerLawData(NamedTuple):
    """One instance of n samples, p features and the first d eigenfunctions.

    `X` (n x d) are the values of the eigenfunctions at the samples, `W` (p x d) those of their partners at the first
    layer and `F` (n x p) the features, None for the kernel itself; `signal` and `noise` (n) the two parts of the
    labels; `truth` (d) the coefficients of the target. `eigenvalues` are those of the d functions; of all others there
    are the sum of the eigenvalues, that of their squares, and that of the squared coefficients, `rest`.
    """

    X: np.ndarray
    W: np.ndarray | None
    F: np.ndarray | None
    signal: np.ndarray
    noise: np.ndarray
    truth: np.ndarray
    eigenvalues: np.ndarray
    rest: tuple[float, ...]


class PowerLawFeatures(Model):
    r"""Infinitely many features of eigenvalues $k^{-\alpha}$ and a target of squared coefficients $k^{-(1+2\alpha r)}$.

    Labels are $y = \sum_k \beta_k \psi_k(x) + \sqrt\Delta\, \xi$ with $\beta_k^2 = k^{-(1 + 2\alpha r)}$ and
    orthonormal $\psi_k$; a random feature is $\varphi(x) = \sum_k k^{-\alpha/2} \psi_k(x) \phi_k(w)$, $\phi_k$
    orthonormal as well, and the kernel of infinitely many of them $\sum_k k^{-\alpha} \psi_k(x) \psi_k(x')$.

    - `capacity`: $\alpha > 1$; the larger, the fewer features matter.
    - `source`: $r > 0$; the larger, the smoother the target; for r above 1/2 its norm in the kernel's space is finite.
    - `noise`: the variance $\Delta$ of the noise of a label.
    - `terms`: for only so many eigenvalues; infinitely many unless told.

    Axes: `n` samples and `p` random features, infinite for kernel ridge regression. Theory takes any numbers, runs take
    whole ones. A run keeps the first `d` eigenfunctions as independent Gaussians; the sum of all others is noise in the
    features and in the labels, which they are up to the square of $d^{-\alpha}/\nu$.
    """

    axes: ClassVar[tuple[Axis, ...]] = (
        Axis("n", "samples", most=MOST),
        Axis("p", "random features", infinite=True),
    )
    scaling: ClassVar[str] = "n samples, p random features, infinite for the kernel"
    definitions: ClassVar[dict[str, str]] = {
        "bias": "mean squared error on the noiseless label of a fresh input, when learned from labels without noise",
        "variance": "mean square of what noise in the labels adds to the prediction",
        "generalization_error": "mean squared error on the noiseless label of a fresh input, bias + variance",
        "training_error": "mean squared error on the labels seen, with their noise",
        "cosine": "cosine of the angle between prediction and target as functions",
        "squared_overlap": "square of the cosine",
    }

    capacity: float
    source: float
    noise: float
    terms: int | None = eqx.field(static=True)

    def __init__(self, capacity: float, source: float, noise: float = 0.0, terms: int | None = None):
        self.capacity = real_number("capacity", capacity, "a finite number above 1", lambda x: x > 1)
        self.source = real_number("source", source, "a finite number above 0", lambda x: x > 0)
        self.noise = checked_variance(noise)
        self.terms = None if terms is None else check_count("terms", terms, least=1, most=int(MOST))

    def ranges(self, learner: Learner) -> dict[str, Range]:
        return {"bias": NOT_NEGATIVE, "variance": NOT_NEGATIVE}

    def penalty_scale(self, n: float, p: float) -> float:
        """The order of the best penalty: n times the eigenvalue down to which a target is learned at the best rate."""
        smooth = 2 * self.capacity * min(self.source, 1.0)
        learned = max(min(n, p, n ** (1 / (1 + smooth)) if self.noise > 0 else n), 1.0)
        return max(n, 1.0) * float(learned) ** -self.capacity

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> PowerLawData:
        """Gaussian eigenfunctions, d of them, and what the others add."""
        n, p = whole("n", axes["n"]), whole("p", axes["p"])
        least = 2 * min(n, p) if self.terms is None else min(2 * min(n, p), self.terms)
        if d < least:
            raise bad_parameter("d", d, f"at least {least} here, twice min(n, p), so that the rest acts like noise")
        d = d if self.terms is None else min(d, self.terms)
        needed = 8.0 * (d * n + (0 if p == np.inf else p * (d + n)))
        check_memory(2 * needed, f"a run with n = {n}, p = {p}, d = {d}", "d", d)
        alpha, s = float(self.capacity), 1 + 2 * float(self.capacity) * float(self.source)
        k = np.arange(1.0, d + 1)
        eigenvalues, truth = k**-alpha, k ** (-s / 2)
        rest = [
            power_tail(power, d) - (0.0 if self.terms is None else power_tail(power, self.terms))
            for power in (alpha, 2 * alpha, s)
        ]
        X, W, F = rng.standard_normal((n, d)), None, None
        if p != np.inf:
            W = rng.standard_normal((p, d))
            F = (X * np.sqrt(eigenvalues)) @ W.T + np.sqrt(rest[0]) * rng.standard_normal((n, p))
        signal = X @ truth + np.sqrt(rest[2]) * rng.standard_normal(n)
        noise = np.sqrt(float(self.noise)) * rng.standard_normal(n)
        return PowerLawData(X, W, F, signal, noise, truth, eigenvalues, tuple(rest))


def whole(name: str, value: float) -> Any:
    """A number of samples or features as runs take it."""
    if value == np.inf and name == "p":
        return np.inf
    if value != round(value) or value < 1:
        infinite = ", or infinite" if name == "p" else ""
        raise bad_parameter(name, value, f"a whole number of at least 1 in a run{infinite}")
    return int(value)


def power_tail(s: float, d: int) -> float:
    """The sum of k^-s over all k above d."""
    from scipy.special import zeta

    return float(zeta(s, d + 1))
