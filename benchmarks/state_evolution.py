"""The cost of exact predictions: a warm point, a warm curve of 100 points, and both against adaptive SciPy quadrature.

SciPy evaluates the same fixed-point equation of |z| (closed-form posterior, nested `quad` over z and omega) at one
overlap; the library's whole prediction includes all metrics and error estimates.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.integrate import quad

import solvable as sv


def naive_information(q: float) -> float:
    """E[g^2] of |z| by nested adaptive quadrature."""
    V = 1 - q

    def density(x: float) -> float:
        return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)

    def inner(z: float) -> float:
        def at(x: float) -> float:
            omega = q * z + np.sqrt(q * V) * x
            return density(x) * ((abs(z) * np.tanh(abs(z) * omega / V) - omega) / V) ** 2

        return quad(at, -8, 8, epsabs=1e-9, limit=200)[0]

    return 2 * quad(lambda z: density(z) * inner(z), 0, 8, epsabs=1e-8, limit=200)[0]


def seconds(function, repeats: int = 7) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def main() -> None:
    grid = np.linspace(0.05, 2.0, 100)
    naive = seconds(lambda: naive_information(0.3), 3)
    for text, noise in (("abs(z)", 0.0), ("he4(z)", 0.0), ("relu(z)", 0.0), ("abs(z)", 0.1)):
        model = sv.MultiIndex(text, noise=noise)
        begin = time.perf_counter()
        sv.predict(model, sv.AMP(), alpha=0.8)
        first = time.perf_counter() - begin
        point = seconds(lambda model=model: sv.predict(model, sv.AMP(), alpha=0.8))
        curve = seconds(lambda model=model: sv.predict(model, sv.BayesOptimal(), alpha=grid))
        print(
            f"{text} noise {noise:g}: first point {first:.2f} s, warm point {1e3 * point:.1f} ms, "
            f"100 points {1e3 * curve:.0f} ms; one SciPy evaluation of E[g^2] takes {naive / point:.0f} warm points"
        )


if __name__ == "__main__":
    main()
