"""What a kernel method or random features learn: the part of the target of low degree, whatever its structure.

An inner-product kernel, or a network with a fixed first layer, fitted on n samples with d^k << n << d^(k+1), learns the
part of the target of degree at most k and nothing of the rest: the error that remains is the sum of c_j^2 over degrees
|j| > k, with c_j the orthonormal Hermite coefficients (Mei, Misiakiewicz and Montanari, 2022).
"""

from __future__ import annotations

import numpy as np

from solvable.targets.hermite import hermite_tensor, kernel_error
from solvable.targets.target import Target

DEGREES = 6


def kernel_errors(target: Target, degrees: int = DEGREES) -> np.ndarray:
    """The squared error against the noiseless label that remains at n = d^kappa, k < kappa < k + 1, for k = 0, 1..."""
    tensor = hermite_tensor(target, degrees)
    return np.array([kernel_error(tensor, k) for k in range(degrees + 1)])
