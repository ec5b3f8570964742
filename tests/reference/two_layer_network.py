"""Two-layer networks from their definition alone: NumPy, nothing of the package."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import erf

ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(float)),
    "erf(z)": (erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-(x**2))),
    "log(1 + exp(z))": (lambda x: np.logaddexp(0.0, x), lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
}


def trained(
    activation: str,
    label: Callable[[np.ndarray], np.ndarray],
    d: int,
    alpha: float,
    width: float,
    penalty: float,
    noise: float,
    step: float,
    batch: float,
    seed: int,
    logistic: bool = False,
) -> tuple[float, float]:
    """Test and training error (or classification error and mean loss) after one step of the first layer, if any.

    The target is a function of the first coordinates of the inputs; `label` takes all of them.
    """
    rng, (sigma, slope) = np.random.default_rng([seed, d]), ACTIVATIONS[activation]
    p, n = round(width * d), round(alpha * d)
    W = rng.standard_normal((p, d))
    W /= np.linalg.norm(W, axis=1)[:, None]

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((count, d))
        return X, label(X) + math.sqrt(noise) * rng.standard_normal(count)

    if step:
        X, y = draw(round(batch * d))
        H = X @ W.T
        residual = y - sigma(H).mean(axis=1)
        W = W + step / len(y) * (slope(H) * residual[:, None]).T @ X
    X, y = draw(n)
    Phi = sigma(X @ W.T) / math.sqrt(p)
    fresh = rng.standard_normal((6000, d))
    if logistic:

        def loss(a: np.ndarray) -> tuple[float, np.ndarray]:
            t = y * (Phi @ a)
            value = np.sum(np.logaddexp(0, -t)) + penalty / 2 * a @ a
            return value, Phi.T @ (-y / (1 + np.exp(t))) + penalty * a

        a = minimize(loss, np.zeros(p), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-13}).x
        wrong = np.sign(sigma(fresh @ W.T) @ a) != label(fresh)
        return float(np.mean(wrong)), float(np.mean(np.logaddexp(0, -y * (Phi @ a))))
    a = np.linalg.solve(Phi.T @ Phi + penalty * np.eye(p), Phi.T @ y)
    test = np.mean((sigma(fresh @ W.T) @ a / math.sqrt(p) - label(fresh)) ** 2)
    return float(test), float(np.mean((y - Phi @ a) ** 2))
