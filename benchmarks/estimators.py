"""The cost of the estimators for one's own data, in seconds of CPU time.

`SpectralIndex` on 20 000 rows of 200 inputs is to take less than two seconds, beside one product of the inputs with
themselves. Run it with one BLAS thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import solvable as sv

LINKS = {
    "sign(z1 z2)": lambda z: np.sign(z[:, 0] * z[:, 1]),
    "|z|": lambda z: np.abs(z[:, 0]),
    "max(z1, z2)": lambda z: np.maximum(z[:, 0], z[:, 1]),
}


def seconds(work: Callable[..., Any], *arguments: Any) -> float:
    """The CPU time of a call."""
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


def main() -> None:
    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).standard_normal((20_000, 200))
    index = sv.estimators.SpectralIndex()
    print(f"{'one product X^T X, 20000 x 200':44s} {seconds(np.matmul, X.T, X):6.2f} s")
    for name, link in LINKS.items():
        print(f"{'SpectralIndex, 20000 x 200, ' + name:44s} {seconds(index.fit, X, link(X)):6.2f} s")
    small, y = X[:1000, :50], np.abs(X[:1000, 0]) + 0.2 * X[:1000, 60]
    estimators = {
        "AMPRegressor, link learned": sv.estimators.AMPRegressor(),
        "AMPRegressor, |z|": sv.estimators.AMPRegressor("abs(z)"),
        "QuadraticRegressor": sv.estimators.QuadraticRegressor(),
    }
    for name, estimator in estimators.items():
        print(f"{name + ', 1000 x 50':44s} {seconds(estimator.fit, small, y):6.2f} s")


if __name__ == "__main__":
    main()
