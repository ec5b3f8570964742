"""The output channel P(y|z) of several projections: what a label says about the vector z, and how much on average.

Notation, with r projections: omega ~ N(0, M) is what is known of z, V = I - M the covariance left,
z | omega ~ N(omega, V), and

    Z(y, omega, V) = E_{z ~ N(omega, V)} P(y|z)
    g(y, omega, V) = grad_omega log Z = V^-1 (E[z | y, omega] - omega)
    information    = E[g g^T]  (r x r),        Psi = E[log Z],        dPsi/dM = E[g g^T] / 2.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import numpy as np

from solvable.targets.target import Target


class MultiPosterior(NamedTuple):
    """Log evidence (n,), mean (n, r) and covariance (n, r, r) of z given each label and its omega."""

    log_Z: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


class MatrixInformation(NamedTuple):
    """How much a label says at M: `information` E[g g^T] (r x r), `entropy` Psi = E[log Z].

    `error` estimates the absolute error of the entries of `information`, `entropy_error` that of `entropy`.
    """

    information: np.ndarray
    entropy: float
    error: float
    entropy_error: float


class MultiLabelLaw(NamedTuple):
    """The law of a label before anything is known: E f(y) = sum of weight * f, over the rows.

    `mean` (L, r) is E[z|y]; `G` (L, r, r) is E[z z^T|y] - I.
    """

    weight: np.ndarray
    mean: np.ndarray
    G: np.ndarray


class Linearisation(NamedTuple):
    """State evolution around M, in the directions `basis` (r x k, orthonormal columns, M basis = 0).

    `trivial` (k x k) is E[m m^T], m = E[basis^T z | y, omega]: directions in its range are learned at once.
    `easy` (k^2 x k^2) is E[G (x) G], G = Cov of basis^T z given (y, omega), plus m m^T, minus I: an infinitesimal
    overlap dM in these directions becomes alpha F(dM), vec F(dM) = easy vec dM, where `trivial` vanishes.
    `error` estimates the absolute error of both; `trivial_change`, where given, that of `trivial` as a matrix.
    """

    basis: np.ndarray
    trivial: np.ndarray
    easy: np.ndarray
    error: float
    trivial_change: np.ndarray | None = None


class MultiChannel(abc.ABC):
    """P(y|z) for r projections, in the coordinates of the target."""

    target: Target
    noise: float = 0.0

    @property
    def projections(self) -> int:
        """The number r of projections."""
        return self.target.projections

    @property
    def deterministic(self) -> bool:
        """Whether z fixes the label."""
        return self.noise == 0

    @property
    @abc.abstractmethod
    def discrete(self) -> bool:
        """Whether the noiseless label takes finitely many values."""

    @property
    @abc.abstractmethod
    def atoms(self) -> np.ndarray:
        """The values that the noiseless label takes with positive probability."""

    @abc.abstractmethod
    def observe(self, y: np.ndarray) -> Any:
        """What `posterior` needs of the labels, computed once: independent of omega and V."""

    @abc.abstractmethod
    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> MultiPosterior:
        """The posterior of z at each row; Omega is (n, r), V (r, r) is shared. log_Z may be None without `evidence`."""

    @abc.abstractmethod
    def information(self, M: np.ndarray) -> MatrixInformation:
        """E[g g^T] and Psi at the overlap matrix M (symmetric, eigenvalues in [0, 1))."""

    @abc.abstractmethod
    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """How state evolution moves off M in the directions `basis`, in which M vanishes."""

    @abc.abstractmethod
    def label_law(self, fineness: float = 1.0) -> MultiLabelLaw:
        """The law of the label with the first two conditional moments of z ~ N(0, I)."""

    @property
    def resolution(self) -> float:
        """The smallest eigenvalue of V for which `information` and `posterior` resolve the label's structure."""
        return 1e-6

    @property
    def row_resolution(self) -> float:
        """The smallest eigenvalue of V at which `posterior` is right."""
        return self.resolution

    @abc.abstractmethod
    def pinned_mass(self, directions: np.ndarray) -> float:
        """The probability that, without noise, a label depends on z near z only through directions^T z (r x k), and
        not flatly: then k such labels per unknown pin these directions down exactly."""

    @abc.abstractmethod
    def frozen(self, directions: np.ndarray) -> MultiChannel:
        """The channel of the remaining projections once directions^T z (r x k, orthonormal) is known exactly.

        Its label is (y, directions^T z), and its coordinates are those of `complement(directions)`.
        """

    @abc.abstractmethod
    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The posterior mean of the noiseless label, E[g(z)], z ~ N(omega, V), for each row of Omega."""

    @abc.abstractmethod
    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The most probable noiseless label, z ~ N(omega, V), for each row; for discrete targets."""

    def prediction_errors(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        """The errors of the best predictions from omega ~ N(0, M), against the noiseless label, with error estimates.

        `generalization_error` is E[(g - E[g|omega])^2]; `classification_error`, for discrete labels, the probability
        that the most probable label is wrong. Directions that M knows exactly are taken as known.
        """
        from solvable.channels.prediction_errors import prediction_errors

        return prediction_errors(self, M)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels y = g(z) + sqrt(noise) xi, for z of shape (n, r)."""
        clean = self.target.numpy(np.asarray(z, float))
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape) if self.noise else clean
