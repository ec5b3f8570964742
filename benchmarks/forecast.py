"""The cost of a forecast of 2000 rows of 50 inputs, with its interval and its check, in seconds of CPU time.

Less than five seconds is the aim. A kernel uses 1200 of the rows unless told otherwise. Run it with one BLAS
thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv

ROWS, COLUMNS = 2000, 50


def table() -> tuple[np.ndarray, np.ndarray]:
    """Gaussian inputs and labels of a curved function of one projection."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    return X, np.tanh(X @ rng.standard_normal(COLUMNS) / 5) + 0.3 * rng.standard_normal(ROWS)


def main() -> None:
    X, y = table()
    learners = {
        "ridge": sv.LinearRidge(),
        "laplace kernel": sv.KernelRidge("laplace"),
        "rbf kernel": sv.KernelRidge("rbf"),
        "300 rectified neurons": sv.KernelRidge("relu", p=300),
    }
    for name, learner in learners.items():
        begin = time.process_time()
        sv.forecast(X, y, learner)
        print(f"{name:24s} {time.process_time() - begin:6.2f} s")


if __name__ == "__main__":
    main()
