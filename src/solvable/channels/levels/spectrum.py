r"""What the label tells about each Hermite degree: lambda_k = E_y |E[h_k(z) | y]|^2, summed over degree-k polynomials.

The generative exponent is the lowest k > 0 with lambda_k > 0: what the best transformation of the label reveals.
"""

from __future__ import annotations

import itertools

import numpy as np

from solvable.channels.levels.labels import LabelRule
from solvable.numerics.gaussian import hermite_functions

_ZERO = 1e-6


def hermite_spectrum(rule: LabelRule, order: int) -> np.ndarray:
    """lambda_0..lambda_order of the noiseless labels of a rule."""
    r = rule.sets.z.shape[1]
    h = np.stack([hermite_functions(column, order) for column in rule.sets.z.T])
    mass, start = rule.mass, rule.sets.start
    filled = np.nonzero(np.diff(start))[0]
    law = np.add.reduceat(mass, start[filled])
    spectrum = np.zeros(order + 1)
    for k in itertools.product(range(order + 1), repeat=r):
        if sum(k) > order:
            continue
        value = mass.copy()
        for i, degree in enumerate(k):
            if degree:
                value *= h[i, degree]
        mean = np.add.reduceat(value, start[filled])
        spectrum[sum(k)] += np.sum(mean**2 / np.maximum(law, 1e-300)) / law.sum()
    return spectrum


def generative_exponent(fine: np.ndarray, coarse: np.ndarray) -> float:
    """The lowest degree whose lambda is above its numerical error, infinity if there is none."""
    clear = fine > _ZERO + 5 * np.abs(fine - coarse)
    degrees = np.nonzero(clear[1:])[0] + 1
    return float(degrees[0]) if degrees.size else np.inf
