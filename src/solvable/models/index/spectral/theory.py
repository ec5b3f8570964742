r"""Exact asymptotics of the spectral methods, for any number of projections.

Message passing linearised at its uninformed point gives two matrices, whose leading eigenvectors carry the teacher
above the weak-recovery threshold [mondelli2017fundamental, maillard2022construction, troiani2024fundamental]. Both see
a label through $G(y) = E[z z^T|y] - I$ alone (where $E[z|y] \neq 0$ the mean counts as part of the second moment) and
fall into independent blocks (`blocks`); `spectrum` solves each. A block is learned above its own threshold
$1/\lambda_{max}(E[G \otimes G])$ and not at all below it, so of a staircase only the first steps are found, however
many the samples [defilippis2025optimal, kovacevic2025spectral].

An eigenvector B (d x r) has no scale; the estimate is the posterior mean of the weights given B, whose overlap with the
truth equals its self-overlap, $Q = C P^{-1} C^T$ with $C = W^{*T} B/d$ and $P = B^T B/d$. For the symmetric method it
is B itself at the right scale; for one projection Q is the squared cosine. The rotation among copies of a block, and
the sign of each, are taken as known: finitely many numbers, which the likelihood of the labels settles at large d up to
the symmetries of the target.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from solvable.channels import Channel
from solvable.channels.base import LabelLaw
from solvable.core.learners import Spectral
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosine_error, cosines
from solvable.models.index.metrics import overlaps
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.spectral.blocks import label_blocks
from solvable.models.index.spectral.spectrum import block_spectrum
from solvable.numerics.errors import told_by_two

_COARSER = (0.9, 0.8)
"""Two coarser laws of the labels, which tell the error together (`told_by_two`)."""
_SAFETY = 4.0
"""The uncertainty over what they change: it covers errors that fall like one over the number of nodes or faster."""


class SpectralPrediction(NamedTuple):
    """What a spectral method finds at each alpha.

    `overlap` (..., r, r) is Q; `outlier` the largest informative eigenvalue, equal to `bulk_edge` if there is none.
    """

    overlap: np.ndarray
    outlier: np.ndarray
    bulk_edge: np.ndarray


@theory(MultiIndex, Spectral, references=("mondelli2017fundamental", "lu2020phase", "defilippis2025optimal"))
def spectral_theory(model: MultiIndex, learner: Spectral, alpha: np.ndarray) -> Prediction:
    """The overlap Q of the estimate with the truth, and the errors of predictions from it at V = I - Q."""
    output = model.channel
    found = spectral_prediction(law_of(output), learner.kind, alpha)
    coarse = [spectral_prediction(law_of(output, rule), learner.kind, alpha, edges=False) for rule in _COARSER]
    metrics, uncertainty = _metrics(output, found, coarse)
    return Prediction(
        metrics=metrics,
        order_parameters={"outlier": found.outlier, "bulk_edge": found.bulk_edge},
        status=np.full(alpha.shape, Status.CONVERGED),
        uncertainty=uncertainty,
    )


def spectral_prediction(law: LabelLaw, kind: str, alpha: np.ndarray, edges: bool = True) -> SpectralPrediction:
    """The spectral method `kind` ("symmetric" or "asymmetric") at each alpha, for labels with this law.

    Without `edges` the end of the bulk, which costs more than the rest, is NaN.
    """
    blocks = label_blocks(law)
    spectra = [block_spectrum(law, block, kind, alpha, edges) for block in blocks]
    parts = [block.lift(found.posterior_overlap) for block, found in zip(blocks, spectra, strict=True)]
    edge = np.max([found.bulk_edge for found in spectra], 0)
    outlier = np.max([np.where(found.learned, found.outlier, -np.inf) for found in spectra], 0)
    return SpectralPrediction(np.sum(parts, 0), np.where(np.isfinite(outlier), outlier, edge), edge)


@functools.lru_cache(maxsize=64)
def law_of(channel: Channel, fineness: float = 1.0) -> LabelLaw:
    """The law of the labels of a channel, computed once."""
    return channel.label_law(fineness)


def _metrics(output: Channel, found: SpectralPrediction, coarse: list[SpectralPrediction]) -> tuple[dict, dict]:
    """The metrics and their errors: what coarser label laws change, and the errors of the metrics' own quadrature.

    With one projection the overlap q is the squared overlap, and goes by that name only.
    """
    r, Q = output.projections, found.overlap
    near, far = (np.abs(Q - other.overlap) for other in coarse)
    weights = np.stack(told_by_two(np, np.max(near, (1, 2)), np.max(far, (1, 2))))
    change = _SAFETY * np.einsum("ak,akij->kij", weights, np.stack([near, far])) + 1e-12
    q, q_change = (np.trace(part, axis1=1, axis2=2) / r for part in (Q, change))
    metrics = overlaps(Q) | cosines(q, q, 1.0) | {"estimation_error": r * (1 - q)}
    uncertainty = overlaps(change) | {
        "cosine": cosine_error(q, q_change),
        "squared_overlap": q_change,
        "estimation_error": r * q_change,
    }
    if r == 1:
        del metrics["overlap"], uncertainty["overlap"]
    # Below the threshold many points share Q = 0.
    distinct, which = np.unique(Q.reshape(-1, r * r), axis=0, return_inverse=True)
    largest = np.linalg.eigvalsh(Q)[:, -1]
    # An error falls no faster than in proportion to itself over V; that of classification starts like sqrt(q) as well.
    relative = change.max(axis=(1, 2)) / np.maximum(1 - largest, 1e-12)
    for name, (value, error) in output.predictor.errors(np.eye(r) - distinct.reshape(-1, r, r)).items():
        start = np.sqrt(np.maximum(largest, 1e-12)) if name == "classification_error" else 1.0
        metrics[name] = value[which]
        uncertainty[name] = error[which] + relative / start * metrics[name]
    return metrics, uncertainty
