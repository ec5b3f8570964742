r"""A symmetric matrix of small rank: spikes of one height in a bulk of noise.

$S = W W^T/\sqrt{pd}$ has rank p = rho d and, as rho -> 0, eigenvalues $\rho^{-1/2}$, so that $|S|_F^2 = d$. Seen at the
precision $\hat q = \rho s$ its spikes leave the bulk from s = 1 on, and the posterior mean keeps

    overlap = (1 - 1/s)^2,    mmse = (2 - 1/s)/s,    potential = (s - 2 log s - 1/s)/2,    s > 1

of it, in units in which s is the precision. [boncoraglio2025bayes]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.core.errors import NotSolvable
from solvable.engine.sides import BayesSignal


class Spikes(BayesSignal):
    """The limit of small rank, with s in the place of the precision."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spikes)

    def __hash__(self) -> int:
        return hash(Spikes)

    def __repr__(self) -> str:
        return "Spikes()"

    @property
    def dimension(self) -> float:
        return 2.0

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return (1 - 1 / np.maximum(qhat, 1.0)) ** 2

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        s = np.maximum(qhat, 1.0)
        return (2 - 1 / s) / s

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        s = np.maximum(qhat, 1.0)
        return (s - 2 * np.log(s) - 1 / s) / 2

    def denoiser(self, operator: Any) -> Any:
        raise NotSolvable("the limit of small rank has no runs.")
