r"""Exact asymptotics of the spectral methods, for any number of projections.

Message passing linearised at its uninformed point gives two matrices, whose leading eigenvectors carry the teacher
above the weak-recovery threshold [mondelli2017fundamental, maillard2022construction, troiani2024fundamental]. Both see a
label through $G(y) = E[z z^T|y] - I$ alone (where $E[z|y] \neq 0$ the mean counts as part of the second moment) and
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

from solvable.channels import Channel, MultiChannel
from solvable.channels.multi import MultiLabelLaw
from solvable.core.learners import Spectral
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.spectral.blocks import label_blocks
from solvable.models.index.spectral.spectrum import block_spectrum
from solvable.models.index.theory import errors_at, uncertainties
from solvable.numerics.errors import COARSER

_Metrics = dict[str, np.ndarray]


class SpectralPrediction(NamedTuple):
    """What a spectral method finds at each alpha.

    `overlap` (..., r, r) is Q; `squared_overlap` the squared cosine |W*^T B|^2 / (d |B|^2) of an eigenvector, averaged
    over the blocks with weights Tr Q; `outlier` the largest informative eigenvalue, equal to `bulk_edge` if there is
    none.
    """

    overlap: np.ndarray
    squared_overlap: np.ndarray
    outlier: np.ndarray
    bulk_edge: np.ndarray


@theory(MultiIndex, Spectral)
def spectral_theory(model: MultiIndex, learner: Spectral, alpha: np.ndarray) -> Prediction:
    """The overlap Q of the estimate with the truth, and the errors of predictions from it at V = I - Q."""
    shape = np.shape(alpha)
    flat = np.ravel(np.asarray(alpha, float))
    output = channel(model)
    found = spectral_prediction(law_of(output), learner.kind, flat)
    coarse = spectral_prediction(law_of(output, COARSER), learner.kind, flat, edges=False)
    metrics, uncertainty = (_one if model.projections == 1 else _several)(model, found, coarse)
    return Prediction(
        metrics={name: np.reshape(value, shape + value.shape[1:]) for name, value in metrics.items()},
        order_parameters={
            "outlier": np.reshape(found.outlier, shape),
            "bulk_edge": np.reshape(found.bulk_edge, shape),
        },
        status=np.full(shape, Status.CONVERGED),
        uncertainty={name: np.reshape(value, shape + value.shape[1:]) for name, value in uncertainty.items()},
    )


def spectral_prediction(law: MultiLabelLaw, kind: str, alpha: np.ndarray, edges: bool = True) -> SpectralPrediction:
    """The spectral method `kind` ("symmetric" or "asymmetric") at each alpha, for labels with this law.

    Without `edges` the end of the bulk, which costs more than the rest, is NaN.
    """
    blocks = label_blocks(law)
    spectra = [block_spectrum(law, block, kind, alpha, edges) for block in blocks]
    parts = [block.lift(found.posterior_overlap) for block, found in zip(blocks, spectra, strict=True)]
    shares = np.trace(parts, axis1=-2, axis2=-1)
    total = shares.sum(0)
    squared = np.sum(shares * [found.squared_overlap for found in spectra], 0) / np.where(total > 0, total, 1.0)
    edge = np.max([found.bulk_edge for found in spectra], 0)
    outlier = np.max([np.where(found.learned, found.outlier, -np.inf) for found in spectra], 0)
    return SpectralPrediction(np.sum(parts, 0), squared, np.where(np.isfinite(outlier), outlier, edge), edge)


@functools.lru_cache(maxsize=64)
def law_of(channel: Channel | MultiChannel, fineness: float = 1.0) -> MultiLabelLaw:
    """The law of the labels of a channel, computed once."""
    weight, mean, G = channel.label_law(fineness)
    mean = np.reshape(mean, (len(weight), -1))
    return MultiLabelLaw(weight, mean, np.reshape(G, mean.shape + mean.shape[1:]))


def channel(model: MultiIndex) -> Channel | MultiChannel:
    """The output channel of the model; eigenvectors know nothing of the weights' law."""
    return model.channel if model.projections == 1 else model.multi_channel


def _one(model: MultiIndex, found: SpectralPrediction, coarse: SpectralPrediction) -> tuple[_Metrics, _Metrics]:
    """The metrics of one projection and their errors; `overlap` is the cosine, whatever the length of the estimate."""
    q, change = found.squared_overlap, np.abs(coarse.squared_overlap - found.squared_overlap) + 1e-12
    metrics, slopes = errors_at(model, q, 1 - q)
    metrics["overlap"] = np.sqrt(q)
    uncertainty = uncertainties(model, metrics, slopes, change)
    uncertainty["overlap"] = change / np.maximum(2 * np.sqrt(q), np.sqrt(change))
    return metrics, uncertainty


def _several(model: MultiIndex, found: SpectralPrediction, coarse: SpectralPrediction) -> tuple[_Metrics, _Metrics]:
    """The metrics of several projections and their errors; `overlap` is the matrix Q."""
    r = model.projections
    Q, change = found.overlap, np.abs(found.overlap - coarse.overlap) + 1e-12
    diagonal, diagonal_change = (np.diagonal(part, axis1=1, axis2=2) for part in (Q, change))
    metrics = {"overlap": Q} | {f"overlap_{i + 1}": diagonal[:, i] for i in range(r)}
    uncertainty = {"overlap": change} | {f"overlap_{i + 1}": diagonal_change[:, i] for i in range(r)}
    metrics |= {"squared_overlap": found.squared_overlap, "estimation_error": r - diagonal.sum(1)}
    uncertainty |= {
        "squared_overlap": np.abs(found.squared_overlap - coarse.squared_overlap) + 1e-12,
        "estimation_error": diagonal_change.sum(1),
    }
    # Below the threshold many points share Q = 0.
    known: dict[bytes, dict[str, tuple[float, float]]] = {}
    for matrix in Q:
        if matrix.tobytes() not in known:
            known[matrix.tobytes()] = model.multi_channel.prediction_errors(matrix)
    errors = [known[matrix.tobytes()] for matrix in Q]
    # As for one projection, an error falls no faster than in proportion to itself over V.
    relative = change.max(axis=(1, 2)) / np.maximum(1 - np.linalg.eigvalsh(Q)[:, -1], 1e-12)
    for name in errors[0] if errors else ():
        metrics[name] = np.array([error[name][0] for error in errors])
        uncertainty[name] = np.array([error[name][1] for error in errors]) + relative * metrics[name]
    return metrics, uncertainty
