"""Closed forms of finitely many values, with or without label noise.

A discrete target cuts R^r into regions, one for each atom c_k, with probabilities P_k(omega, V). The posterior given
the region follows from the derivatives of P_k in omega, and so do all averages:

    E[z|k] = omega + V grad P_k / P_k,    Cov[z|k] = V + V [Hess P_k / P_k - grad P_k grad P_k^T / P_k^2] V.

With noise of variance D the label is a mixture, Z(y) = sum_k N(y; c_k, D) P_k, and every derivative is mixed alike.
"""

from __future__ import annotations

import abc
import functools
from typing import Any, NamedTuple

import numpy as np

from solvable.channels.base import LabelLaw, Posterior
from solvable.channels.closed.base import AveragedChannel, Moments, kronecker, weighted_square
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import normal_trapezoid
from solvable.numerics.gaussian_many import omega_rule

_CHUNK = 20_000
_LOGITS = 40.0


class Regions(NamedTuple):
    """For each row and atom: log P_k (n, K), grad P_k / P_k (n, K, r) and Hess P_k / P_k (n, K, r, r)."""

    log_P: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


class DiscreteChannel(AveragedChannel):
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

    def posterior(self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        return gaussian_moments(self._given_labels(self.regions(Omega, V), observation), Omega, V)

    def _given_labels(self, regions: Regions, y: np.ndarray) -> Regions:
        """The derivatives of Z for each row's label: log Z (n,), grad Z / Z (n, r), Hess Z / Z (n, r, r)."""
        if self.noise == 0:
            chosen = np.abs(y[:, None] - self.atoms).argmin(1)
            return Regions(*(part[np.arange(len(y)), chosen] for part in regions))
        mixed = _mixed(regions, _log_normal(y[:, None] - self.atoms, self.noise)[:, None, :])
        return Regions(*(part[:, 0] for part in mixed))

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        r = self.projections
        weight, labels = self._labels(self.regions(np.zeros((1, r)), np.eye(r)), fineness)
        return LabelLaw(weight[0], labels.slope[0], labels.curvature[0])

    def moments(self, V: np.ndarray, basis: np.ndarray, fineness: float) -> Moments:
        """G needs no V, since V basis = basis."""
        k, fineness = basis.shape[1], density(fineness)
        rule = omega_rule(np.eye(len(V)) - V, self.walls, fineness)
        parts = []
        for start in range(0, len(rule.weight), _CHUNK):
            part = slice(start, start + _CHUNK)
            weight, labels = self._outcomes(self.regions(rule.omega[part], V), fineness)
            weight = rule.weight[part, None] * weight
            m = labels.slope @ basis
            G = (basis.T @ labels.curvature @ basis).reshape(*weight.shape, k * k)
            parts.append(
                Moments(
                    weighted_square(weight, labels.slope),
                    float(np.sum(weight * np.maximum(labels.log_P, -1e100))),
                    weighted_square(weight, m),
                    kronecker(weighted_square(weight, G), k),
                    0.0,
                )
            )
        columns = [np.sum(column, 0) for column in zip(*parts, strict=True)]
        information, entropy, trivial, easy, _ = columns
        # The omegas that the rule leaves out know the atom: their label is noise.
        certain = (1 - rule.weight.sum()) * (-np.log(2 * np.pi * np.e * self.noise) / 2 if self.noise else 0.0)
        return Moments(information, float(entropy) + certain, trivial, easy, rule.defect)

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

    def region_probabilities(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """P(g(z) = atom), z ~ N(omega, V), for each row and atom."""
        return np.exp(self.regions(np.asarray(Omega, float), V).log_P)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.region_probabilities(Omega, V) @ self.atoms

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.atoms[self.region_probabilities(Omega, V).argmax(1)]

    def prediction_errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        fine, coarse = self._prediction_errors(V, 1.0), self._prediction_errors(V, COARSER)
        names = ("generalization_error", "classification_error")
        return {name: (float(a), float(abs(a - b))) for name, a, b in zip(names, fine, coarse, strict=True)}

    def _prediction_errors(self, V: np.ndarray, fineness: float) -> np.ndarray:
        """E over omega ~ N(0, I - V) of the label's variance, and of the probability of all but the likeliest atom."""
        rule = omega_rule(np.eye(len(V)) - V, self.walls, density(fineness))
        P = self.region_probabilities(rule.omega, V)
        return np.array([rule.weight @ (P @ self.atoms**2 - (P @ self.atoms) ** 2), rule.weight @ (1 - P.max(1))])


def density(fineness: float) -> float:
    """The density of nodes of a rule, relative to the finest: these rules converge fast, and lose much by a little."""
    return (1 + 2 * fineness) / 3


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


def gaussian_moments(labels: Regions, Omega: np.ndarray, V: np.ndarray) -> Posterior:
    """The posterior of z from log Z, grad Z / Z and Hess Z / Z: the mean is omega + V g."""
    g = labels.slope
    covariance = V + V @ (labels.curvature - g[:, :, None] * g[:, None, :]) @ V
    return Posterior(labels.log_P, Omega + g @ V, covariance)
