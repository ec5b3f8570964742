r"""The principal component of spiked data: `Spectral`, whose closed forms are those of an outlier [baik2005phase].

Its squared overlap with the spike is

    matrix       1 - 1/snr^2                                  above snr = 1
    covariance   (1 - 1/(alpha snr^2)) / (1 + 1/(alpha snr))  above alpha = 1/snr^2
    tensor       0 from order 3 on: its left singular vector, of the unfolding, needs noise that falls with d

and zero below. An eigenvector has no length: the estimate is $\sqrt q\, v$ with q that squared overlap, the posterior
mean given v, whose error is 1 - q. Where theory says that nothing is learned the estimate is zero, and the cosines of a
run are those of the eigenvector.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.learners import Spectral
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosine_error, cosines, cosines_of
from solvable.engine.solvers.base import Thresholds
from solvable.models.lowrank.spiked import LATENT, Spiked, SpikedCovariance, SpikedTensor

_ROUNDING = 1e-15
_REFERENCES = ("baik2005phase", "benaych2011eigenvalues", "montanari2014statistical")


@theory(Spiked, Spectral, references=_REFERENCES)
def principal_component(model: Spiked, learner: Spectral, **axes: np.ndarray) -> Prediction:
    """The overlap of the leading eigenvector, and its eigenvalue beside the end of the bulk."""
    _check(model, learner)
    found = model.outlier(**axes)
    q = np.asarray(0.0 if found is None else found.overlap)
    error = np.full(q.shape, _ROUNDING)
    metrics = {**cosines(q, q, 1.0), "estimation_error": 1 - q}
    uncertainty = {"cosine": cosine_error(q, error), "squared_overlap": error, "estimation_error": error}
    if isinstance(model, SpikedCovariance):
        metrics[LATENT], uncertainty[LATENT] = model.latent_component(axes["alpha"]), error
    edges = {} if found is None else {"outlier": found.location, "bulk_edge": found.edge}
    return Prediction(metrics, edges, np.full(q.shape, Status.CONVERGED), uncertainty=uncertainty)


@thresholds_of(Spiked, Spectral, references=_REFERENCES)
def spectral_thresholds(model: Spiked, learner: Spectral) -> Thresholds:
    """Where the leading eigenvector begins to know the spike; for a tensor of order 3 or more at no noise."""
    _check(model, learner)
    never = isinstance(model, SpikedTensor) and model.order > 2
    return Thresholds(weak_recovery=model.at_gain(math.inf if never else model.output_side().gain_weak))


@simulation(Spiked, Spectral, references=_REFERENCES)
def run_principal_component(model: Spiked, learner: Spectral, data: Any, rng: np.random.Generator) -> Outcome:
    """The leading eigenvector, scaled to its predicted overlap; the likelier of its signs where data tell it."""
    _check(model, learner)
    found = model.principal(data, rng)
    d = len(data.truth)
    direction = math.sqrt(d) * found.vector[:, None]
    if not model.hides_sign() and np.vdot(direction, model.instance(data).operator.forward(direction)) < 0:
        direction = -direction
    known = model.outlier(alpha=len(data.X) / d) if isinstance(model, SpikedCovariance) else model.outlier()
    estimate = direction * (0.0 if known is None else math.sqrt(float(known.overlap)))
    metrics = model.scores(estimate, data, rng)
    del metrics["overlap"]  # it is the squared overlap, and goes by that name
    aligned = -direction if model.hides_sign() and np.vdot(direction, data.truth) < 0 else direction
    metrics |= cosines_of(aligned, data.truth)
    if isinstance(model, SpikedCovariance):
        metrics |= model.latent_scores(data.X @ direction, data)
    details = {"eigenvalue": found.eigenvalue, "second_eigenvalue": found.second}
    return Outcome(metrics, estimate, found.converged, details=details)


def _check(model: Spiked, learner: Spectral) -> None:
    if learner.kind != "symmetric":
        takes = f"'symmetric' for {type(model).__name__}, whose principal component it is"
        raise bad_parameter("kind", learner.kind, takes)
