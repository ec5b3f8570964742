r"""Exact asymptotics of the spectral methods for several projections.

Both operators see a label through $G(y) = E[z z^T|y] - I$ alone (where $E[z|y] \neq 0$ the mean counts as part of the
second moment, as for one projection) and fall into independent blocks (`label_blocks`); `block_spectrum` solves each.
A block is learned above its own threshold $1/\lambda_{max}(E[G \otimes G])$ and not at all below it, so of a staircase
only the first steps are found, however many the samples.

An eigenvector B (d x r) has no scale; the estimate is the posterior mean of the weights given B, whose overlap with the
truth equals its self-overlap, $Q = C P^{-1} C^T$ with $C = W^{*T} B/d$ and $P = B^T B/d$. For the symmetric method it is
B itself at the right scale. The rotation among copies of a block, and the sign of each, are taken as known: finitely
many numbers, which the likelihood of the labels settles at large d up to the symmetries of the target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.multi import MultiLabelLaw
from solvable.models.index.block_spectrum import BlockSpectrum, block_spectrum
from solvable.models.index.label_blocks import Block, label_blocks


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


def spectral_prediction(law: MultiLabelLaw, kind: str, alpha: np.ndarray) -> SpectralPrediction:
    """The spectral method `kind` ("symmetric" or "asymmetric") at each alpha, for labels with this law."""
    blocks = label_blocks(law)
    shape, r = np.shape(alpha), law.G.shape[1]
    points = [_point(law, blocks, kind, float(a)) for a in np.ravel(alpha)]
    columns = zip(*points, strict=True) if points else ([],) * len(SpectralPrediction._fields)
    overlap, *scalars = (np.array(column, float) for column in columns)
    return SpectralPrediction(overlap.reshape(*shape, r, r), *(scalar.reshape(shape) for scalar in scalars))


def block_spectra(law: MultiLabelLaw, kind: str, alpha: float) -> list[tuple[Block, BlockSpectrum]]:
    """Every block of the law with the spectrum of its operator."""
    return [(block, block_spectrum(law.weight, law.G, block, kind, alpha)) for block in label_blocks(law)]


def _point(law: MultiLabelLaw, blocks: list[Block], kind: str, alpha: float) -> tuple[np.ndarray, float, float, float]:
    spectra = [block_spectrum(law.weight, law.G, block, kind, alpha) for block in blocks]
    Q = sum(block.lift(found.posterior_overlap) for block, found in zip(blocks, spectra, strict=True))
    shares = np.array([b.copies * np.trace(found.posterior_overlap) for b, found in zip(blocks, spectra, strict=True)])
    squared = np.array([found.squared_overlap for found in spectra])
    total = float(shares @ squared / shares.sum()) if shares.sum() > 0 else 0.0
    edge = max(found.bulk_edge for found in spectra)
    outlier = max([found.outlier for found in spectra if found.learned], default=edge)
    return np.asarray(Q), total, outlier, edge
