"""Simulations of empirical risk minimisation with a vanishing penalty, written from the definitions of the model alone.

Nothing here uses the library or any theory. `python erm_limits_blind.py` rewrites `erm_limits_blind.json`, which the
tests compare with the theory; `python erm_limits_blind.py 3 10` runs the settings of these numbers only and prints
them.

Entries of X (n = round(alpha d) rows) are N(0, 1/d), the teacher has `|w*|^2 = d`, and w is the limit lam -> 0+ of the
minimiser of the sum over the samples of `l(y, x.w)` plus `lam/2 |w|^2` or `lam |w|_1`. In every setting the losses of
all the samples can vanish together, so that w has the least penalty among the solutions of `A w >= b` (of `A w = b` for
the square loss), where the rows of A are `y x` and b is 1 for the hinges, and the rows are `x` and `-x` with bounds
`y - width` and `-y - width` for the tube. Noises are variances; label flips are independent. How a run is solved:

- ridge: an interior-point method on the quadratic programme, whose guess of the tight constraints is then solved as
  linear equations. The run fails where the dual variables u show that no w satisfies the constraints, through the bound
  `|w| >= b.u / |A^T u|` on any that does;
- l1: the simplex method for the linear programme (HiGHS), whose vertex (basis and tight constraints) is then solved
  as linear equations, for w and for the dual variables.

The residual of a run, of which an entry keeps the worst, is the largest of: the violation of a constraint on w (in the
units of `x.w`); the violation of a constraint on the dual variables u (`u >= 0`, relative to the largest of them, and
`|A^T u| <= 1` for l1); the duality gap relative to the penalty of w.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.special import expit

Array = NDArray[np.float64]
SIZES = {200: 96, 600: 24}  # dimension: number of seeds
TOLERANCE = 1e-9  # of the residuals


class InfeasibleError(Exception):
    """The losses of all the samples cannot vanish together."""


def mixture(*components: tuple[float, float, float], target: str = "z") -> dict[str, Any]:
    """Labels `beta t(z) + sqrt(Delta) N(0, 1)`, with (probability, beta, Delta) of each component."""
    return {"kind": "mixture", "target": target, "components": [list(c) for c in components]}


def setting(loss: str, args: list[float], penalty: str, alpha: float, labels: dict, **more: Any) -> dict[str, Any]:
    """One setting; `teacher` is the law of the entries of the teacher that are not zero, a share `density` of them."""
    base = {"loss": loss, "loss_parameters": args, "penalty": penalty, "lam": 0.0, "limit": "lam -> 0+", "alpha": alpha}
    return base | {"labels": {"target": "sign(z)"} | labels, "teacher": "gaussian", "density": 1.0} | more


SETTINGS: dict[str, dict[str, Any]] = {
    "1": setting("hinge", [], "ridge", 1.3, {"kind": "sign", "flip": 0.0}),
    "2": setting("hinge", [], "ridge", 1.1, {"kind": "sign", "flip": 0.15}),
    "3": setting("hinge", [], "ridge", 3.0, {"kind": "sign", "flip": 0.0}),
    "4": setting("hinge", [], "l1", 0.8, {"kind": "sign", "flip": 0.0}, density=0.3),
    "5": setting("max(|y - z| - width, 0)", [0.7], "ridge", 1.2, mixture((1, 1, 0.3))),
    "6": setting("max(|y - z| - width, 0)", [0.4], "ridge", 0.6, mixture((0.8, 1, 0.2), (0.2, -0.5, 2))),
    "7": setting("square", [], "l1", 0.45, mixture((1, 1, 0.1)), density=0.3),
    "8": setting("square", [], "l1", 0.7, mixture((1, 1, 0.2)), teacher="rademacher"),
    "9": setting("square", [], "l1", 0.6, mixture((1, 1, 0.05), target="tanh(2z)")),
    "10": setting("square", [], "l1", 0.4, mixture((1, 1, 0)), density=0.25),
    "11": setting("max(1 - y z, 0)^2", [], "ridge", 1.5, {"kind": "logistic", "slope": 3.0}),
}


def draw_teacher(spec: dict[str, Any], d: int, rng: np.random.Generator) -> Array:
    w = rng.choice([-1.0, 1.0], d) if spec["teacher"] == "rademacher" else rng.standard_normal(d)
    if spec["density"] < 1:
        w *= rng.random(d) < spec["density"]
    return w * np.sqrt(d) / np.linalg.norm(w)


def draw_labels(spec: dict[str, Any], z: Array, rng: np.random.Generator) -> Array:
    if spec["kind"] == "mixture":
        p, beta, variance = np.array(spec["components"], dtype=float).T
        c = rng.choice(len(p), len(z), p=p)
        target = np.tanh(2 * z) if spec["target"] == "tanh(2z)" else z
        return beta[c] * target + np.sqrt(variance[c]) * rng.standard_normal(len(z))
    if spec["kind"] == "logistic":
        return np.where(rng.random(len(z)) < expit(spec["slope"] * z), 1.0, -1.0)
    return np.sign(z) * np.where(rng.random(len(z)) < spec["flip"], -1.0, 1.0)


def losses(spec: dict[str, Any], y: Array, z: Array) -> Array:
    if spec["loss"] == "square":
        return (y - z) ** 2 / 2
    if spec["loss"] == "max(|y - z| - width, 0)":
        return np.maximum(np.abs(y - z) - spec["loss_parameters"][0], 0)
    return np.maximum(1 - y * z, 0) ** (1 if spec["loss"] == "hinge" else 2)


def constraints(spec: dict[str, Any], X: Array, y: Array) -> tuple[Array, Array]:
    """The A and b of `A w >= b` (`A w = b` for the square loss), where the losses of all the samples vanish."""
    if spec["loss"] == "square":
        return X, y
    if spec["loss"] == "max(|y - z| - width, 0)":
        width = spec["loss_parameters"][0]
        return np.concatenate([X, -X]), np.concatenate([y, -y]) - width
    return y[:, None] * X, np.ones(len(y))


def solve_ridge(A: Array, b: Array) -> tuple[Array, float]:
    """Minimise `|w|^2 / 2` with `s = A w - b >= 0`; the dual is to maximise `b.u - |A^T u|^2 / 2` over `u >= 0`."""
    n, d = A.shape
    w, s, u = np.zeros(d), np.ones(n), np.ones(n)
    for _ in range(200):
        if b @ u > 1e5 * np.sqrt(d) * np.linalg.norm(A.T @ u):
            raise InfeasibleError
        tight = u > s
        if tight.sum() <= d and s @ u < 1e-3 * abs(b @ u):
            exact, rows = np.zeros(n), A[tight]
            exact[tight] = np.linalg.solve(rows @ rows.T, b[tight])
            solution = rows.T @ exact[tight]
            gap = abs(1 - b @ exact / (solution @ solution))
            residual = float(max(gap, np.max(b - A @ solution), -exact.min() / exact.max()))
            if residual < TOLERANCE:
                return solution, residual
        root = np.sqrt(u / s)[:, None] * A
        factor = cho_factor(root.T @ root + np.eye(d))
        dual, primal, mean = A.T @ u - w, b + s - A @ w, s @ u / n
        ds, du, size, centre = np.zeros(n), np.zeros(n), 1.0, 0.0
        for _ in range(2):  # Mehrotra's predictor, then the corrector
            product = centre - s * u - ds * du
            dw = cho_solve(factor, dual + A.T @ ((product + u * primal) / s))
            ds = A @ dw - primal
            du = (product - u * ds) / s
            size = min(1.0, 0.995 / max(np.max(-ds / s), np.max(-du / u), 1e-12))
            centre = ((s + size * ds) @ (u + size * du) / n) ** 3 / mean**2
        w, s, u = w + size * dw, s + size * ds, u + size * du
    raise RuntimeError("the interior-point method has not converged")


def solve_l1(A: Array, b: Array, equal: bool) -> tuple[Array, float]:
    """Minimise `|w|_1` with `A w = b` or `A w >= b`; the dual is to maximise `b.u` over `|A^T u| <= 1` (`u >= 0`)."""
    n, d = A.shape
    signed = np.concatenate([A, -A], axis=1)  # of the positive and the negative part of w
    bounds = {"A_eq": signed, "b_eq": b} if equal else {"A_ub": -signed, "b_ub": -b}
    answer = linprog(np.ones(2 * d), **bounds, method="highs-ds")
    if answer.status == 2:
        raise InfeasibleError
    w, u, dual = np.zeros(d), np.zeros(n), answer.eqlin.marginals if equal else -answer.ineqlin.marginals
    tight = np.full(n, True) if equal else dual > answer.slack
    slopes = A.T @ dual  # of size one on the basis of the vertex, which is the support of w unless some entries vanish
    basis = np.argsort(-np.abs(slopes))[: tight.sum()]
    vertex = A[np.ix_(tight, basis)]
    w[basis], u[tight] = np.linalg.solve(vertex, b[tight]), np.linalg.solve(vertex.T, np.sign(slopes[basis]))
    gap, misfit = abs(1 - b @ u / np.sum(np.abs(w))), b - A @ w
    residual = max(gap, np.max(np.abs(A.T @ u)) - 1, np.max(np.abs(misfit) if equal else misfit))
    residual = float(residual if equal else max(residual, -u.min() / u.max()))
    if residual > TOLERANCE:
        raise RuntimeError("the vertex of the linear programme is not optimal")
    return w, residual


def run(spec: dict[str, Any], d: int, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """The metrics of one draw and the residual that certifies its minimiser."""
    teacher = draw_teacher(spec, d, rng)
    X = rng.standard_normal((round(spec["alpha"] * d), d)) / np.sqrt(d)
    y = draw_labels(spec["labels"], X @ teacher, rng)
    A, b = constraints(spec, X, y)
    w, residual = solve_l1(A, b, spec["loss"] == "square") if spec["penalty"] == "l1" else solve_ridge(A, b)
    m, q = float(w @ teacher / d), float(w @ w / d)
    metrics = {"m": m, "q": q, "cosine": m / np.sqrt(q), "estimation_error": 1 - 2 * m + q}
    metrics["training_loss"] = float(np.mean(losses(spec, y, X @ w)))
    if spec["labels"]["target"] == "sign(z)":
        metrics["classification_error"] = float(np.arccos(m / np.sqrt(q)) / np.pi)
    if spec["penalty"] == "l1":
        metrics["active_fraction"] = float(np.mean(np.abs(w) > 1e-7))
    return metrics, residual


def main() -> None:
    entries = []
    for name in sys.argv[1:] or SETTINGS:
        for d, seeds in SIZES.items():
            runs, metrics = [], {}
            for seed in range(seeds):
                try:
                    runs.append(run(SETTINGS[name], d, np.random.default_rng([int(name), d, seed])))
                except InfeasibleError:
                    print(f"setting {name}, d = {d}, seed {seed}: infeasible, left out", file=sys.stderr)
            for key in runs[0][0]:
                x = np.array([values[key] for values, _ in runs])
                metrics[key] = {"mean": x.mean(), "standard_error": x.std(ddof=1) / np.sqrt(len(x))}
            entry = {"id": name, "settings": SETTINGS[name], "d": d, "seeds": len(runs), "metrics": metrics}
            entries.append(entry | {"residual": max(residual for _, residual in runs)})
            print(json.dumps(entries[-1]), flush=True)
    if len(sys.argv) == 1:
        Path(__file__).with_suffix(".json").write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
