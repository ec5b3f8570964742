r"""Exact asymptotics of the spectral methods for several projections.

Both operators see a label through $G(y) = E[z z^T|y] - I$ alone (where $E[z|y] \neq 0$ the mean counts as part of the
second moment, as for one projection) and fall into independent blocks (`label_blocks`); `block_spectrum` solves each.
A block is learned above its own threshold $1/\lambda_{max}(E[G \otimes G])$ and not at all below it, so of a staircase
only the first steps are found, however many the samples.

An eigenvector B (d x r) has no scale; the estimate is the posterior mean of the weights given B, whose overlap with the
truth equals its self-overlap, $Q = C P^{-1} C^T$ with $C = W^{*T} B/d$ and $P = B^T B/d$. For the symmetric method it
is B itself at the right scale. The rotation among copies of a block, and the sign of each, are taken as known: finitely
many numbers, which the likelihood of the labels settles at large d up to the symmetries of the target.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Channel, LabelLaw
from solvable.core.learners import Spectral
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.models.index.block_spectrum import BlockSpectrum, block_spectrum
from solvable.models.index.label_blocks import Block, label_blocks
from solvable.models.index.multi_index import MultiIndex

_COARSE = 0.7


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


def spectral_theory(model: MultiIndex, learner: Spectral, alpha: np.ndarray) -> Prediction:
    """The overlap Q of the estimate with the truth, and the errors of predictions from it at V = I - Q."""
    channel = model.multi_channel
    shape, r = np.shape(alpha), channel.projections
    flat = np.ravel(np.asarray(alpha, float))
    found, coarse = (spectral_prediction(law_of(channel, f), learner.kind, flat) for f in (1.0, _COARSE))
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
            known[matrix.tobytes()] = {
                name: (float(a[0]), float(b[0]))
                for name, (a, b) in channel.predictor.errors((np.eye(r) - matrix)[None]).items()
            }
    errors = [known[matrix.tobytes()] for matrix in Q]
    # As for one projection, an error falls no faster than in proportion to itself over V.
    relative = change.max(axis=(1, 2)) / np.maximum(1 - np.linalg.eigvalsh(Q)[:, -1], 1e-12)
    for name in errors[0] if errors else ():
        metrics[name] = np.array([error[name][0] for error in errors])
        uncertainty[name] = np.array([error[name][1] for error in errors]) + relative * metrics[name]
    return Prediction(
        metrics={name: np.reshape(value, shape + value.shape[1:]) for name, value in metrics.items()},
        order_parameters={
            "outlier": np.reshape(found.outlier, shape),
            "bulk_edge": np.reshape(found.bulk_edge, shape),
        },
        status=np.full(shape, Status.CONVERGED),
        uncertainty={name: np.reshape(value, shape + value.shape[1:]) for name, value in uncertainty.items()},
    )


@functools.lru_cache(maxsize=64)
def law_of(channel: Channel, fineness: float = 1.0) -> LabelLaw:
    """The law of the labels of a channel, computed once."""
    return channel.label_law(fineness)


def spectral_prediction(law: LabelLaw, kind: str, alpha: np.ndarray) -> SpectralPrediction:
    """The spectral method `kind` ("symmetric" or "asymmetric") at each alpha, for labels with this law."""
    blocks = label_blocks(law)
    shape, r = np.shape(alpha), law.G.shape[1]
    points = [_point(law, blocks, kind, float(a)) for a in np.ravel(alpha)]
    columns = zip(*points, strict=True) if points else ([],) * len(SpectralPrediction._fields)
    overlap, *scalars = (np.array(column, float) for column in columns)
    return SpectralPrediction(overlap.reshape(*shape, r, r), *(scalar.reshape(shape) for scalar in scalars))


def block_spectra(law: LabelLaw, kind: str, alpha: float) -> list[tuple[Block, BlockSpectrum]]:
    """Every block of the law with the spectrum of its operator."""
    return [(block, block_spectrum(law.weight, law.G, block, kind, alpha)) for block in label_blocks(law)]


def _point(law: LabelLaw, blocks: list[Block], kind: str, alpha: float) -> tuple[np.ndarray, float, float, float]:
    spectra = [block_spectrum(law.weight, law.G, block, kind, alpha) for block in blocks]
    Q = sum(block.lift(found.posterior_overlap) for block, found in zip(blocks, spectra, strict=True))
    shares = np.array([b.copies * np.trace(found.posterior_overlap) for b, found in zip(blocks, spectra, strict=True)])
    squared = np.array([found.squared_overlap for found in spectra])
    total = float(shares @ squared / shares.sum()) if shares.sum() > 0 else 0.0
    edge = max(found.bulk_edge for found in spectra)
    outlier = max([found.outlier for found in spectra if found.learned], default=edge)
    return np.asarray(Q), total, outlier, edge
