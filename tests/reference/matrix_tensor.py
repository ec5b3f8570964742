"""Fixed points of the four overlaps of a matrix and a tensor by plain iteration, written from the definitions."""

from __future__ import annotations

import numpy as np


def iterated(matrix_noise, tensor_noise, ratios, q=1e-6, on_spheres=False, floor=1e-12, tolerance=1e-13):
    """The overlaps of posterior means, or squared cosines on spheres, from the start `q`, one number or four.

    None falls below the floor: x and y would be lost before u is found.
    """
    a = np.array(ratios) / ratios[0]
    Dm, Dt = matrix_noise, tensor_noise
    q = np.full(4, q, dtype=float)
    noise = np.array([a[1] / Dm + a[2] * a[3] / Dt, 1 / Dm, a[3] / Dt, a[2] / Dt])
    for _ in range(20_000):
        u, v, x, y = np.sqrt(q) if on_spheres else q
        mean = np.array([a[1] * v / Dm + a[2] * a[3] * x * y / Dt, u / Dm, a[3] * u * y / Dt, a[2] * u * x / Dt])
        new = np.maximum(mean**2 / (mean**2 + noise) if on_spheres else mean / (1 + mean), floor)
        done = np.max(np.abs(new - q) / np.maximum(q, floor)) < tolerance
        q = new
        if done:
            break
    return np.where(q > 2 * floor, q, 0.0)
