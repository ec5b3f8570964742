r"""Descent on the weights of a network of quadratic units.

A network of p units computes $\hat y = \mathrm{Tr}[G S]$ with $S = W^T W/\sqrt{pd}$. With $V = W/(pd)^{1/4}$ this is
$S = V^T V$, $\mathrm{Tr}\, S = |V|_F^2$, and the gradient of $|y - \mathcal{F}S|^2$ is
$-4 V \mathcal{F}^*(y - \mathcal{F}S)$, $\mathcal{F}$ the map of S to the labels: the width enters through the number of
rows of V only. Weight decay $\lambda_W |W|_F^2$ on the sum of squares is the penalty
$\lambda d\,\mathrm{Tr}\,S$ with $\lambda = \lambda_W \sqrt{p/d}$.
"""

from __future__ import annotations

import numpy as np

from solvable.engine.operators import Features

_START = 0.1
"""The size of the eigenvalues of S at the start, over that of the teacher: small weights."""
_STEPS = 20_000


class NetworkDescent:
    """Trains a network under weight decay by L-BFGS, a quasi-Newton descent on V, from small random weights.

    With d units or more every local minimum is global: it is the convex problem's. With fewer units it may not be.
    """

    def __init__(self, operator: Features, units: int, rng: np.random.Generator, max_steps: int = _STEPS):
        self.operator, self.units, self.max_steps, self.iterations = operator, units, max_steps, 0
        self.convex = units >= operator.size
        self._rng = rng
        self.V: np.ndarray | None = None

    def solve(self, labels: np.ndarray, penalty: float, tolerance: float) -> tuple[np.ndarray, bool]:
        """S at the end of the descent, and whether it ended by itself: the objective falls no more, relatively."""
        from scipy.optimize import minimize  # loaded when needed: it takes long to import

        d, decay = self.operator.size, penalty * self.operator.size
        V = self._start(labels, tolerance)
        # L-BFGS compares changes to the larger of the objective and 1: with these units the objective is.
        unit = 1e-9 * max(float(labels @ labels), 1e-300)

        def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
            V = weights.reshape(self.units, d)
            residual = labels - self.operator.forward(V.T @ V)
            slope = 2 * decay * V - 4 * V @ self.operator.adjoint(residual)
            return float(residual @ residual + decay * weights @ weights) / unit, slope.ravel() / unit

        steps = max(1, self.max_steps - self.iterations)
        options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": max(1e-3 * tolerance**2, 1e-14), "gtol": 0.0}
        found = minimize(objective, V.ravel(), jac=True, method="L-BFGS-B", options=options)
        self.V = V = found.x.reshape(self.units, d)
        self.iterations += int(found.nit)
        return V.T @ V, found.status == 0

    def _start(self, labels: np.ndarray, tolerance: float) -> np.ndarray:
        noise = self._rng.standard_normal((self.units, self.operator.size)) / np.sqrt(self.operator.size)
        if self.V is not None:  # a unit of weight zero would stay there: move by less than was solved for
            return self.V + tolerance * np.linalg.norm(self.V) / np.linalg.norm(noise) * noise
        # The variance of a label is about 2 |A*|_F^2 / d.
        return np.sqrt(_START * np.sqrt(np.mean(labels**2))) * noise
