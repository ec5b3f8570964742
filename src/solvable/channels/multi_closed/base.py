"""What the closed forms share: channels of finitely many values, with or without label noise.

A discrete target cuts R^r into regions, one for each atom c_k, with probabilities P_k(omega, V). The posterior given
the region follows from the derivatives of P_k in omega, and so do all averages:

    E[z|k] = omega + V grad P_k / P_k,    Cov[z|k] = V + V [Hess P_k / P_k - grad P_k grad P_k^T / P_k^2] V.

With noise of variance D the label is a mixture, Z(y) = sum_k N(y; c_k, D) P_k, and every derivative is mixed alike.
"""

from __future__ import annotations

import abc
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.channels.multi import Linearisation, MatrixInformation, MultiChannel, MultiLabelLaw, MultiPosterior
from solvable.channels.multi_closed.omega import omega_rule
from solvable.core.errors import checked_variance
from solvable.numerics.gaussian import normal_trapezoid
from solvable.targets.target import Target

if TYPE_CHECKING:
    from solvable.channels.generic import GenericChannel

_CHUNK = 20_000
_COARSE = 0.8
_LOGITS = 40.0


class Regions(NamedTuple):
    """For each row and atom: log P_k (n, K), grad P_k / P_k (n, K, r) and Hess P_k / P_k (n, K, r, r)."""

    log_P: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


class Averages(NamedTuple):
    """Moments over (omega, y): E[g g^T], E[log Z], E[m m^T] and E[G (x) G] in the directions of a basis."""

    information: np.ndarray
    entropy: float
    trivial: np.ndarray
    easy: np.ndarray


class ClosedChannel(MultiChannel):
    """A channel with formulas of its own; what it has no formula for, the generic channel of its target does."""

    formula: str

    def __init__(self, noise: float = 0.0):
        self.target = Target(self.formula)
        self.noise = checked_variance(noise)

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    @functools.cached_property
    def generic(self) -> GenericChannel:
        """The generic channel of the same target and noise."""
        from solvable.channels.generic import GenericChannel

        return GenericChannel(self.target, self.noise)

    def frozen(self, directions: np.ndarray) -> MultiChannel:
        return self.generic.frozen(directions)

    @abc.abstractmethod
    def prediction_errors(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        """The mean squared error of the posterior mean of the noiseless label and, for discrete targets, the
        probability that the most probable label is wrong, each with an error estimate."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise={self.noise:g})" if self.noise else f"{type(self).__name__}()"


class DiscreteChannel(ClosedChannel):
    """A target of finitely many values that jumps on planes through the origin, with g(-z) = g(z) or -g(z)."""

    walls: np.ndarray
    """Normals (r x k) of the planes on which the target jumps."""

    values: tuple[float, ...]

    @abc.abstractmethod
    def regions(self, Omega: np.ndarray, V: np.ndarray) -> Regions:
        """The probabilities of all atoms and their derivatives, for each row of Omega."""

    @property
    def discrete(self) -> bool:
        return True

    @property
    def atoms(self) -> np.ndarray:
        return np.array(self.values)

    def posterior(
        self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True
    ) -> MultiPosterior:
        return gaussian_moments(self._given_labels(self.regions(Omega, V), observation), Omega, V)

    def _given_labels(self, regions: Regions, y: np.ndarray) -> Regions:
        """The derivatives of Z for each row's label: log Z (n,), grad Z / Z (n, r), Hess Z / Z (n, r, r)."""
        if self.noise == 0:
            chosen = np.abs(y[:, None] - self.atoms).argmin(1)
            return Regions(*(part[np.arange(len(y)), chosen] for part in regions))
        mixed = _mixed(regions, _log_normal(y[:, None] - self.atoms, self.noise)[:, None, :])
        return Regions(*(part[:, 0] for part in mixed))

    def information(self, M: np.ndarray) -> MatrixInformation:
        none = np.zeros((self.projections, 0))
        fine, coarse = self._averages(M, none), self._averages(M, none, _COARSE)
        defect = omega_rule(M, self.walls).defect
        error = np.abs(fine.information - coarse.information).max() + defect * np.abs(fine.information).max()
        entropy_error = abs(fine.entropy - coarse.entropy) + defect * abs(fine.entropy)
        return MatrixInformation(fine.information, float(fine.entropy), float(error), float(entropy_error))

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        fine, coarse = self._averages(M, basis), self._averages(M, basis, _COARSE)
        error = max(np.abs(fine.trivial - coarse.trivial).max(), np.abs(fine.easy - coarse.easy).max())
        return Linearisation(basis, fine.trivial, fine.easy, float(error), fine.trivial - coarse.trivial)

    def label_law(self, fineness: float = 1.0) -> MultiLabelLaw:
        r = self.projections
        weight, labels = self._labels(self.regions(np.zeros((1, r)), np.eye(r)), fineness)
        return MultiLabelLaw(weight[0], labels.slope[0], labels.curvature[0])

    def _averages(self, M: np.ndarray, basis: np.ndarray, fineness: float = 1.0) -> Averages:
        """The averages over omega ~ N(0, M) and y given omega; G needs no V, since V basis = basis."""
        k = basis.shape[1]
        rule = omega_rule(M, self.walls, fineness)
        V = np.eye(self.projections) - M
        parts = []
        for start in range(0, len(rule.weight), _CHUNK):
            part = slice(start, start + _CHUNK)
            weight, labels = self._outcomes(self.regions(rule.omega[part], V), fineness)
            weight = rule.weight[part, None] * weight
            m = labels.slope @ basis
            G = (basis.T @ labels.curvature @ basis).reshape(*weight.shape, k * k)
            parts.append(
                Averages(
                    weighted_square(weight, labels.slope),
                    float(np.sum(weight * np.maximum(labels.log_P, -1e100))),
                    weighted_square(weight, m),
                    kronecker(weighted_square(weight, G), k),
                )
            )
        columns = [np.sum(column, 0) for column in zip(*parts, strict=True)]
        total = Averages(columns[0], float(columns[1]), columns[2], columns[3])
        # The omegas that the rule leaves out know the atom: their label is noise.
        certain = (1 - rule.weight.sum()) * (-np.log(2 * np.pi * np.e * self.noise) / 2 if self.noise else 0.0)
        return total._replace(entropy=total.entropy + certain)

    def _labels(self, regions: Regions, fineness: float) -> tuple[np.ndarray, Regions]:
        """Weights (n, L) and derivatives of the labels that may be seen at each row: the atoms, or smeared atoms."""
        if self.noise == 0:
            return np.exp(regions.log_P), regions
        y, weight = _noisy_labels(self.values, self.noise, fineness)
        spread = np.exp(regions.log_P) @ weight
        return spread, _mixed(regions, _log_normal(y[:, None] - self.atoms, self.noise))

    def _outcomes(self, regions: Regions, fineness: float) -> tuple[np.ndarray, Regions]:
        """As `_labels`, for second moments only: two noisy atoms then need one outcome a row.

        With Z(y) = P N_1(y) + (1 - P) N_0(y), every derivative of Z is (N_1 - N_0) times that of P. So all averages
        need only kappa(P) = P (1 - P) int (N_1 - N_0)^2 / Z dy and E[log Z], functions of P that are tabulated once.
        """
        if self.noise == 0 or len(self.values) != 2:
            return self._labels(regions, fineness)
        rare = regions.log_P.argmin(1)
        rows = np.arange(len(rare))
        logit = np.abs(regions.log_P[:, 1] - regions.log_P[:, 0])
        kappa, entropy = _noisy_pair(self.values, self.noise)(np.minimum(logit, _LOGITS)).T
        weight = kappa * np.exp(-logit)
        picked = Regions(*(part[rows, rare, None] for part in regions))
        log_Z = np.divide(entropy, weight, out=np.zeros_like(weight), where=weight > 0)
        return weight[:, None], picked._replace(log_P=log_Z[:, None])

    def pinned_mass(self, directions: np.ndarray) -> float:
        return 0.0

    def probabilities(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """P(g(z) = atom), z ~ N(omega, V), for each row and atom."""
        return np.exp(self.regions(np.asarray(Omega, float), V).log_P)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.probabilities(Omega, V) @ self.atoms

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.atoms[self.probabilities(Omega, V).argmax(1)]

    def prediction_errors(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        fine, coarse = self._prediction_errors(M, 1.0), self._prediction_errors(M, _COARSE)
        names = ("generalization_error", "classification_error")
        return {name: (float(a), float(abs(a - b))) for name, a, b in zip(names, fine, coarse, strict=True)}

    def _prediction_errors(self, M: np.ndarray, fineness: float) -> np.ndarray:
        """E over omega ~ N(0, M) of the label's variance, and of the probability of all but the likeliest atom."""
        rule = omega_rule(M, self.walls, fineness)
        P = self.probabilities(rule.omega, np.eye(self.projections) - M)
        return np.array([rule.weight @ (P @ self.atoms**2 - (P @ self.atoms) ** 2), rule.weight @ (1 - P.max(1))])


def _mixed(regions: Regions, log_likelihood: np.ndarray) -> Regions:
    """Derivatives of Z(y) = sum_k P(y|c_k) P_k for labels with log P(y|c_k) given as (..., L, K)."""
    joint = regions.log_P[:, None, :] + log_likelihood
    top = joint.max(-1, keepdims=True)
    share = np.exp(joint - top)
    total = share.sum(-1, keepdims=True)
    share /= total
    n, _, r = regions.slope.shape
    slope = share @ regions.slope
    curvature = (share @ regions.curvature.reshape(n, -1, r * r)).reshape(*slope.shape, r)
    return Regions((top + np.log(total))[..., 0], slope, curvature)


def _noisy_labels(atoms: tuple[float, ...], noise: float, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels (L,) around each atom, and the weight (K, L) with which each atom produces them."""
    # Between two atoms the posterior switches within a fraction of sqrt(noise); closer atoms never need more.
    x, weight = normal_trapezoid(float(np.clip(0.4 * np.sqrt(noise), 0.12, 0.3)) / fineness, 6.5)
    y = np.add.outer(np.array(atoms), np.sqrt(noise) * x).ravel()
    return y, np.kron(np.eye(len(atoms)), weight)


@functools.lru_cache(maxsize=64)
def _noisy_pair(atoms: tuple[float, ...], noise: float) -> Any:
    """kappa and E[log Z] of two noisy atoms as functions of log(P_likely / P_rare) from 0 to `_LOGITS`."""
    logit = np.linspace(0.0, _LOGITS, 8 * int(_LOGITS) + 1)
    y, weight = _noisy_labels(atoms, noise, 1.2)
    log_likelihood = _log_normal(y[:, None] - np.array(atoms), noise)
    log_P = -np.stack([np.logaddexp(0, logit), np.logaddexp(0, -logit)], 1)
    log_Z = np.logaddexp(*np.moveaxis(log_P[:, None, :] + log_likelihood, -1, 0))
    ratio = np.exp(log_likelihood - log_Z[:, :, None])
    spread = np.exp(log_P) @ weight
    kappa = np.exp(log_P.sum(1)) * np.sum(spread * (ratio[..., 1] - ratio[..., 0]) ** 2, 1)
    from scipy.interpolate import make_interp_spline  # loaded when needed: it takes long to import

    return make_interp_spline(logit, np.stack([kappa, np.sum(spread * log_Z, 1)], 1), k=5)


def _log_normal(x: np.ndarray, variance: float) -> np.ndarray:
    return -(x**2) / (2 * variance) - np.log(2 * np.pi * variance) / 2


def weighted_square(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """sum of weight * values values^T, over all rows and labels."""
    flat = values.reshape(weight.size, values.shape[-1])
    return flat.T @ (weight.reshape(-1, 1) * flat)


def kronecker(square: np.ndarray, k: int) -> np.ndarray:
    """E[G (x) G] from E[vec G vec G^T]: entry (ac, bd) of the first is entry (ab, cd) of the second."""
    return square.reshape(k, k, k, k).transpose(0, 2, 1, 3).reshape(k * k, k * k)


def gaussian_moments(labels: Regions, Omega: np.ndarray, V: np.ndarray) -> MultiPosterior:
    """The posterior of z from log Z, grad Z / Z and Hess Z / Z: the mean is omega + V g."""
    g = labels.slope
    covariance = V + V @ (labels.curvature - g[:, :, None] * g[:, None, :]) @ V
    return MultiPosterior(labels.log_P, Omega + g @ V, covariance)
