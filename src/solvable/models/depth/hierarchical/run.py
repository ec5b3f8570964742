r"""Runs of `LayerwiseSpectral`: features by an eigendecomposition, their squares by least squares, on the same samples.

Which eigenvalues stand out is told by the labels alone: they give the edge of the bulk (`Averages`). So is the field at
which an eigenvector without sample i would see it: its eigenvalue $\lambda$ fixes ell, and

    omega_i = (1 - Z_i / ell) v . phi_i

has the law of a fresh sample's field. The squares of these fields are what y is regressed on: with the fields
themselves the fit would be too good on the samples that made the eigenvectors, and too bad on all others.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.cosines import cosines
from solvable.models.depth.hierarchical.learner import LayerwiseSpectral
from solvable.models.depth.hierarchical.model import SHOWN, HierarchicalData, HierarchicalTarget
from solvable.models.depth.hierarchical.spectrum import Averages
from solvable.numerics.roots import halving, logarithmic

_FRESH = 4000
"""Samples on which an error is measured, where it is not known in closed form."""


@simulation(HierarchicalTarget, LayerwiseSpectral, references="wortsman2026scaling")
def run_layerwise(
    model: HierarchicalTarget, learner: LayerwiseSpectral, data: HierarchicalData, rng: np.random.Generator
) -> Outcome:
    """Features and coefficients of their squares, with what they predict."""
    n, D = data.Phi.shape
    averages = Averages(learner.transformed(data.y), np.full(n, 1 / n))
    values, vectors, edge = _outliers(data.Phi, averages)
    fields = data.Phi @ vectors
    ell = _places(values, averages, n / D)
    seen = fields * (1 - averages.Z[:, None] / ell)
    design = np.column_stack([np.ones(n), seen**2 - 1])
    coefficients = np.linalg.lstsq(design, data.y, rcond=None)[0] if n > 1 + len(values) else np.zeros(1 + len(values))
    overlap = np.zeros(SHOWN)
    shares = np.sum((vectors.T @ data.truth[:, :SHOWN]) ** 2, axis=0)
    overlap[: len(shares)] = np.minimum(shares, 1.0)
    moments = _exact if model.inputs == "gaussian" else _measured
    cross, own, target = moments(model, data, vectors, coefficients, rng)
    target += data.unseen
    metrics = {"generalization_error": max(own - 2 * cross + target, 0.0), "feature_overlap": overlap}
    metrics |= {name: float(value) for name, value in cosines(cross, own, target).items()}
    metrics["features_learned"] = float(len(values))
    details = {"bulk_edge": edge, "eigenvalue": float(values[0]) if len(values) else edge}
    return Outcome(metrics, (vectors, coefficients), details=details)


def _outliers(Phi: np.ndarray, averages: Averages) -> tuple[np.ndarray, np.ndarray, float]:
    """The eigenvalues above the bulk, largest first, with their eigenvectors (D x k), and the edge of the bulk."""
    n, D = Phi.shape
    if averages.width == 0:
        return np.empty(0), np.empty((D, 0)), 0.0
    delta = n / D
    edge = float(averages.eigenvalue(averages.edge(np.array([delta])), delta)[0])
    C = (Phi * averages.Z[:, None]).T @ Phi / n
    values, vectors = scipy.linalg.eigh(C, subset_by_value=(edge, np.inf), overwrite_a=True, check_finite=False)
    return values[::-1], vectors[:, ::-1], edge


def _places(values: np.ndarray, averages: Averages, delta: float) -> np.ndarray:
    """The ell of each eigenvalue above the bulk, where `Averages.eigenvalue` rises."""
    if not len(values):
        return values
    start = float(averages.edge(np.array([delta]))[0]) - averages.top
    far = np.full(len(values), start + delta * (np.max(values, initial=0.0) + averages.width) + averages.width)
    found = halving(
        lambda x: averages.eigenvalue(averages.top + x, delta) > values,
        np.full(len(values), start),
        far,
        middle=logarithmic,
    )
    return averages.top + found.middle


def _exact(
    model: HierarchicalTarget, data: HierarchicalData, V: np.ndarray, c: np.ndarray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """E[f y], E[f^2] and E[y^2] of the prediction f and the noiseless label, for Gaussian features."""
    cross = 2 * float(c[1:] @ (V.T @ data.truth) ** 2 @ data.amplitudes)
    return cross, float(c[0] ** 2 + 2 * c[1:] @ c[1:]), 2 * float(data.amplitudes @ data.amplitudes)


def _measured(
    model: HierarchicalTarget, data: HierarchicalData, V: np.ndarray, c: np.ndarray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The same on fresh samples, for polynomials of Gaussian inputs."""
    Phi, _ = model.embedded(rng, _FRESH, data.dimension)
    label, predicted = model.labels(Phi, data.truth, data.amplitudes), c[0] + ((Phi @ V) ** 2 - 1) @ c[1:]
    return float(predicted @ label) / _FRESH, float(predicted @ predicted) / _FRESH, float(label @ label) / _FRESH
