"""Scrambled Sobol points as Gaussian vectors: averages over a few coordinates converge faster than independent draws.

Every scrambling gives an unbiased average, and independent scramblings tell its error.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import ndtri

_KEPT = 2**24
"""Bytes up to which a set of points is kept for the next one who asks for it."""


def normal_points(dimensions: int, power: int, number: int = 0) -> np.ndarray:
    """2^power points (n, dimensions), each coordinate N(0, 1): scrambling `number` of the Sobol sequence."""
    small = 8 * dimensions * 2**power <= _KEPT
    return _kept(dimensions, power, number) if small else _made(dimensions, power, number)


@functools.lru_cache(maxsize=16)
def _kept(dimensions: int, power: int, number: int) -> np.ndarray:
    points = _made(dimensions, power, number)
    points.flags.writeable = False
    return points


def _made(dimensions: int, power: int, number: int) -> np.ndarray:
    from scipy.stats import qmc  # takes more than a second to import

    rng = np.random.default_rng([2024, dimensions, number])
    uniform = qmc.Sobol(dimensions, scramble=True, rng=rng).random_base2(power)
    return ndtri(np.clip(uniform, 2.0**-54, 1 - 2.0**-53))
