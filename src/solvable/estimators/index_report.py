r"""What `SpectralIndex` found, in words: directions, how surely, and how many samples a network would need.

From the leave-one-out projections $\omega$ of the samples, of variance one and squared cosines q with the truth, follow
$E[z|y] = E[\omega|y]/\sqrt q$ and $G = E[z z^T - I|y]$, in each slice of the label. Without noise in these averages the
weak-recovery threshold is 1 / |E[G (x) G]|, and the squared cosine q of the optimal method at another number of
samples alpha d is the root of $\alpha (1-q) E[G^2/(1 + q G)] = 1$; at first order $q = 1 - 1/(1 + \alpha s^2)$,
$s^2 = |E[z|y]|^2$. The information exponent is the lowest degree k at which the label itself has a Hermite
coefficient, $E[y\, h_k(z)] \neq 0$: one pass of descent on the label needs of order d, d log d, d^2, ... samples for
k = 1, 2, 3, ... [arous2021online, damian2024computational].
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import chi2

from solvable.channels.base import LabelLaw
from solvable.channels.exponents import threshold
from solvable.numerics.gaussian import hermite_functions

if TYPE_CHECKING:
    from solvable.estimators.spectral_index import SpectralIndex

_DEGREES, _SURE = 4, 1e-4
_MOST_DIRECTIONS, _LISTED = 4, 12
_GOOD = 0.9
"""The squared cosine that counts as found well."""


def report(found: SpectralIndex) -> str:
    """The lines of the report."""
    fields, n, d = found._fields, len(found._labels), found._U.shape[0]
    k = found.n_directions_
    lines = [f"{n} samples of {d} inputs ({n / d:.3g} for each): {_count(k)} of the bulk"]
    for j in range(min(len(fields.T), _LISTED)):
        kind = "mean of the inputs given the label" if found.orders_[j] == 1 else "their second moments"
        sure = "" if j < k else "   (does not stand out)"
        lines.append(
            f"  {j + 1}  {kind:36s} eigenvalue {found.eigenvalues_[j]:.3g}, bulk up to {found.bulk_edges_[j]:.3g}; "
            f"expected squared cosine {found.overlaps_[j]:.2f}{sure}"
        )
    if fields.shape[1] > _LISTED:
        lines.append(f"  and {fields.shape[1] - _LISTED} more")
    if k == 0:
        lines.append(f"  a network would not find any from these {n} samples by what the label says to second order;")
        lines.append("  there may be directions that need more samples, or that only higher moments show")
    else:
        lines += _samples(found, min(k, _MOST_DIRECTIONS), d)
    return "\n".join(lines + [f"  beware: {doubt}" for doubt in found.doubts_])


def _count(k: int) -> str:
    return {0: "no direction stands out", 1: "one direction stands out"}.get(k, f"{k} directions stand out")


def _samples(found: SpectralIndex, k: int, d: int) -> list[str]:
    """What the label says of the first k directions, and the samples this takes."""
    law = label_law(found, k)
    lines = []
    if 1 in found.orders_[:k]:
        one = max(float(np.linalg.eigvalsh(np.einsum("l,li,lj->ij", law.weight, law.mean, law.mean))[-1]), 1e-12)
        lines.append(
            "  the mean shows directions at any number of samples in proportion to the inputs; a squared cosine"
        )
        lines.append(f"  of {_GOOD:g} with the strongest takes about {_rounded(_GOOD / (1 - _GOOD) / one * d)} samples")
    if 2 in found.orders_[:k]:
        weak = threshold(law)
        lines.append(
            f"  second moments show directions above about {weak:.2g} samples for each input, {_rounded(weak * d)}:"
        )
        lines.append("  so many are needed by message passing, and by a network that sees its samples again")
    exponent = information_exponent(found, k)
    lines.append(f"  one pass of descent on the label: {_one_pass(exponent, d)}")
    return lines


def label_law(found: SpectralIndex, k: int) -> LabelLaw:
    """E[z|y] and E[z z^T|y] - I of the first k directions in the slices of the label, as the fields show them."""
    slices, q = found._slices, np.maximum(found.overlaps_[:k], 0.05)
    w = found._fields[:, :k]
    w = w - w.mean(axis=0)
    counts = slices.share * len(w)
    mean = np.stack([np.bincount(slices.of, column) / counts for column in w.T], axis=1) / np.sqrt(q)
    G = np.zeros((slices.count, k, k))
    for i, j in itertools.combinations_with_replacement(range(k), 2):
        raw = np.bincount(slices.of, w[:, i] * w[:, j]) / counts - (i == j)
        noise = (1 + (i == j)) * (1 + np.maximum(raw, 0) * (i == j)) ** 2 / counts
        G[:, i, j] = G[:, j, i] = slices.smooth(raw, noise) / np.sqrt(q[i] * q[j])
    return LabelLaw(slices.share, mean, G)


def information_exponent(found: SpectralIndex, k: int) -> float:
    """The lowest degree at which the label has a Hermite coefficient that is not noise; infinite up to the fourth."""
    y = found._labels
    columns = _columns(y, found._slices.ordered or len(np.unique(y)) == 2)
    h = np.stack([hermite_functions(column, _DEGREES) for column in found._fields[:, :k].T])
    for degree in range(1, _DEGREES + 1):
        statistic, freedom = 0.0, 0
        for powers in itertools.product(range(degree + 1), repeat=k):
            if sum(powers) != degree:
                continue
            feature = np.prod([h[i, power] for i, power in enumerate(powers)], axis=0)
            products = columns * (feature - feature.mean())[:, None]
            statistic += float(np.sum(products.mean(axis=0) ** 2 / np.maximum(products.var(axis=0), 1e-300)) * len(y))
            freedom += columns.shape[1]
        if chi2.sf(statistic, freedom) < _SURE:
            return degree
    return math.inf


def _columns(y: np.ndarray, numbers: bool) -> np.ndarray:
    """The label, or each of several classes against the rest, of mean zero."""
    columns = y[:, None] if numbers else (y[:, None] == np.unique(y)[1:]).astype(float)
    return columns - columns.mean(axis=0)


def _one_pass(exponent: float, d: int) -> str:
    if exponent == 1:
        return f"information exponent 1, of order d = {d} samples"
    if exponent == 2:
        return f"information exponent 2, of order d log d = {_rounded(d * math.log(max(d, 2)))} samples"
    if math.isinf(exponent):
        return f"information exponent above {_DEGREES}, of order d^{_DEGREES} = {_rounded(d**_DEGREES)} samples or more"
    power = int(exponent) - 1
    return f"information exponent {exponent:g}, of order d^{power} = {_rounded(d**power)} samples"


def _rounded(value: float) -> str:
    """Two digits."""
    return f"{float(f'{value:.2g}'):.0f}" if value < 1e6 else f"{value:.1e}"
