r"""Flows of one pass of descent once more: averages by products of Gauss's rules, and SciPy's integrator.

For committees and several directions the fields are $h = M z + L \xi$, $L L^T = Q - M M^T$, and a step by gamma/d on a
sample moves M and Q by what its definition says. For sequences the overlaps of one vector of norm one with fixed
directions follow from the mean of its gradient g and from $|g|^2$,

    du/dt = -(gamma/D) d (E[g.v] - u E[g.w]) - (gamma/D)^2 d u E|g|^2 / 2,        t = n/d.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

Function = Callable[[np.ndarray], np.ndarray]


def gauss(nodes: int, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, dimensions) and weights of N(0, I)."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    weight = functools.reduce(np.multiply.outer, [w / w.sum()] * dimensions, np.ones(())).ravel()
    points = np.stack([part.ravel() for part in np.meshgrid(*[z] * dimensions, indexing="ij")], -1)
    # What weighs nothing is left out.
    kept = weight > 1e-28
    return points[kept], weight[kept]


def ball(step: float, dimensions: int, reach: float = 8.0) -> tuple[np.ndarray, np.ndarray]:
    """The trapezoidal rule for N(0, I), of points within a ball: for functions that are no polynomials."""
    x = step * np.arange(-int(reach / step), int(reach / step) + 1)
    points = np.stack([part.ravel() for part in np.meshgrid(*[x] * dimensions, indexing="ij")], -1)
    points = points[np.sum(points**2, 1) < reach**2]
    weight = np.exp(-np.sum(points**2, 1) / 2)
    return points, weight / weight.sum()


def path(motion: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, end: float, rtol: float) -> np.ndarray:
    """The state at the end."""
    found = solve_ivp(motion, (0, end), start, method="DOP853", rtol=rtol, atol=rtol * 1e-2)
    assert found.success
    return found.y[:, -1]


def committee(g: Function, sigma: Function, slope: Function, kind: str, rule: Any, rtol: float) -> Any:
    """p neurons on labels g(z) + noise; "once", "ahead" or "twice". Gives the metrics of the network at the end.

    `rule` gives points and weights of N(0, I) in so many dimensions.
    """

    def truth(model: Any, learner: Any, alpha: float, found: Any) -> dict[str, float]:
        r, p, gamma = model.projections, learner.width, learner.learning_rate
        a = np.array(learner.student.second_layer)
        points, weight = rule(r + p)
        z, xi, label = points[:, :r], points[:, r:], g(points[:, :r])
        # One step is linear in the label, and two Gaussian nodes are enough for its square.
        noise, of_noise = gauss(2 if kind == "once" else 8, 1) if model.noise else (np.zeros((1, 1)), np.ones(1))
        y = label[:, None] + np.sqrt(model.noise) * noise[:, 0]
        w = weight[:, None] * of_noise

        def force(h: np.ndarray) -> np.ndarray:  # (n, noises, p)
            return a * (y - sigma(h) @ a)[..., None] * slope(h)

        def fields(M: np.ndarray, Q: np.ndarray) -> np.ndarray:
            values, vectors = np.linalg.eigh(Q - M @ M.T)
            return z @ M.T + xi @ (vectors * np.sqrt(np.maximum(values, 0.0))).T

        def motion(_: float, state: np.ndarray) -> np.ndarray:
            M, Q = state[: p * r].reshape(p, r), state[p * r :].reshape(p, p)
            flat = fields(M, Q)
            h = flat[:, None]
            F = force(h)
            if kind == "ahead":
                F = force(h + learner.extrapolation * F)
            if kind == "twice":
                F = F + force(h + gamma * F)
            weighted = F * w[..., None]
            pull, own = weighted.sum(1).T @ z, weighted.sum(1).T @ flat
            squares = np.tensordot(weighted, F, axes=([0, 1], [0, 1]))
            dM, dQ = gamma * pull, gamma * (own + own.T) + gamma**2 * squares
            if learner.spherical:
                lost = np.diag(dQ) / 2
                dM, dQ = dM - lost[:, None] * M, dQ - (lost[:, None] + lost) * Q
            return np.concatenate([dM.ravel(), dQ.ravel()])

        M, Q = learner.first_overlaps(r)
        end = path(motion, np.concatenate([M.ravel(), Q.ravel()]), alpha, rtol)
        M, Q = end[: p * r].reshape(p, r), end[p * r :].reshape(p, p)
        span = M.T @ np.linalg.inv(Q) @ M
        share = float(np.trace(span)) / r
        error = float(weight @ (sigma(fields(M, Q)) @ a - label) ** 2)
        shares = {f"share_{k + 1}": float(span[k, k]) for k in range(r) if r > 1}
        norm = float(np.sqrt(np.trace(Q) / p))
        return shares | {
            "cosine": np.sqrt(share),
            "squared_overlap": share,
            "norm": norm,
            "generalization_error": error,
        }

    return truth


class Attention:
    """The function f of the model on one or two tokens, applied to q = w.(x + p), by its values and its Jacobian."""

    def __init__(self, model: Any, learner: Any, f: Function, nodes: int):
        T = model.tokens
        points, self.weight = gauss(nodes, 2 * T)
        self.z, self.zeta = points[:, :T], points[:, T:]
        self.signs = np.array([1.0, -1.0])[:T] if T == 2 else np.zeros(1)
        self.f, self.noise, self.places, self.weights = f, model.noise, learner.positions, 1.0
        label = f(self.z + model.encoding * self.signs)
        omega = model.positional
        self.y = (1 - omega) * label + omega * f((model.place * self.signs)[None]) if omega else label
        self.start = np.array(learner.start)

    def _student(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, e = u[0], u[1] if self.places else 0.0
        q = m * self.z + np.sqrt(1 - m * m) * self.zeta + e * self.signs
        return q, self.f(q)

    def gradient(self, u: np.ndarray) -> tuple[np.ndarray, float, float]:
        (q, f), h, T = self._student(u), 1e-5, self.z.shape[1]
        slopes = np.stack([(self.f(q + h * part) - self.f(q - h * part)) / (2 * h) for part in np.eye(T)], -1)
        delta = np.einsum("nk,nkt->nt", f - self.y, slopes)
        along = [self.weight @ np.sum(delta * self.z, 1)]
        if self.places:
            place = u[1] / np.sqrt(1 - u[0] ** 2) * self.zeta + self.signs  # the mean of (x + p).p given the fields
            along.append(self.weight @ np.sum(delta * place, 1))
        own = self.weight @ np.sum(delta * q, 1)
        squares = self.weight @ (np.sum(delta**2, 1) + self.noise * np.sum(slopes**2, (1, 2)))
        return np.array(along), float(own), float(squares)

    def error(self, u: np.ndarray) -> float:
        return float(self.weight @ np.sum((self._student(u)[1] - self.y) ** 2, 1))


class Sum:
    r"""A student that knows $f = T^{-1/2} \sum_t \varphi(z_t)$: averages over one token."""

    def __init__(self, model: Any, learner: Any, phi: Function, slope: Function):
        points, self.weight = ball(0.3, 2, 9.0)
        (self.z, self.zeta), self.phi, self.slope = points.T, phi, slope
        self.T, self.noise, self.weights, self.start = model.tokens, model.noise, 1.0, np.array(learner.start)

    def gradient(self, u: np.ndarray) -> tuple[np.ndarray, float, float]:
        q = u[0] * self.z + np.sqrt(1 - u[0] ** 2) * self.zeta
        left, slope = self.phi(q) - self.phi(self.z), self.slope(q)
        along, own = (float(self.weight @ (left * slope * part)) for part in (self.z, q))
        square = float(self.weight @ slope**2)
        # That of another token has mean zero.
        others = (self.T - 1) * float(self.weight @ left**2) * square
        squares = (float(self.weight @ (left * slope) ** 2) + others) / self.T + self.noise * square
        return np.array([along]), own, squares

    def error(self, u: np.ndarray) -> float:
        q = u[0] * self.z + np.sqrt(1 - u[0] ** 2) * self.zeta
        return float(self.weight @ (self.phi(q) - self.phi(self.z)) ** 2)


class Neuron:
    """A neuron of field h = u.v + sqrt(1 - |u|^2) xi on labels f of the tokens, tied or not."""

    def __init__(self, model: Any, learner: Any, f: Function, sigma: Function, slope: Function):
        T = model.tokens
        points, self.weight = ball(0.4, T + 1)
        z, self.xi = points[:, :T], points[:, T]
        plain = learner.student == "plain"
        self.seen = z if plain and model.joint else z.sum(1, keepdims=True) / np.sqrt(T)
        self.y, self.sigma, self.slope, self.noise = f(z), sigma, slope, model.noise
        self.weights, self.start = float(T if plain else 1), np.array(learner.start)

    def _field(self, u: np.ndarray) -> np.ndarray:
        return self.seen @ u + np.sqrt(1 - u @ u) * self.xi

    def gradient(self, u: np.ndarray) -> tuple[np.ndarray, float, float]:
        h = self._field(u)
        slope = self.slope(h)
        F = (self.sigma(h) - self.y) * slope
        squares = float(self.weight @ F**2) + self.noise * float(self.weight @ slope**2)
        return (self.weight * F) @ self.seen, float(self.weight @ (F * h)), squares

    def error(self, u: np.ndarray) -> float:
        return float(self.weight @ (self.sigma(self._field(u)) - self.y) ** 2)


def sequence(side: Callable[[Any, Any], Any], rtol: float = 1e-8) -> Any:
    """One vector of norm one on samples of T tokens; its means are those of `side(model, learner)`."""

    def truth(model: Any, learner: Any, alpha: float, found: Any) -> dict[str, float]:
        means = side(model, learner)
        gamma = learner.learning_rate / means.weights

        def motion(_: float, u: np.ndarray) -> np.ndarray:
            along, own, squares = means.gradient(u)
            return -gamma * (along - u * own) - gamma**2 * means.weights * u * squares / 2

        u = path(motion, means.start, alpha, rtol)
        m = float(np.linalg.norm(u)) if len(u) > 1 and not learner.positions else float(u[0])
        places = {"positional_overlap": abs(float(u[1]))} if learner.positions else {}
        return places | {"cosine": m, "squared_overlap": m * m, "generalization_error": means.error(u)}

    return truth
