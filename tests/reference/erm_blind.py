"""Simulations of empirical risk minimisation, written from the definitions of the model alone.

Nothing here uses the library or any theory. `python erm_blind.py` rewrites `erm_blind.json`, which the tests compare
with the theory; `python erm_blind.py 3 10` runs the settings of these numbers only and prints them.

Entries of X (n = round(alpha d) rows) are N(0, 1/d), the teacher has `|w*|^2 = d`, and the sum over the samples of
`l(y, x.w)` plus `lam/2 |w|^2` or `lam |w|_1` is minimised. Noises are variances; label flips are independent. How a run
is solved and certified (an entry keeps the worst `residual` of its runs):

- smooth losses with a ridge: Newton steps with backtracking from `w = 0`, preceded, for the losses whose slope over the
  residual falls with its size, by reweighted least squares, which descends monotonically and so stays in the basin of
  `w = 0` where the risk is not convex; residual = norm of the gradient relative to that at `w = 0`;
- absolute and hinge losses: an interior-point method on the dual quadratic programme in a box, then an exact solve on
  the set of samples at the kink; residual = relative duality gap, which bounds the distance to the minimiser;
- l1 penalties: accelerated proximal gradient with restarts, then Newton steps on the support; residual = largest
  distance of a coordinate to the subgradient condition, relative to lam;
- lam -> 0+ (alpha < 1): the pseudo-inverse for the square loss (residual = relative misfit of the labels), a ridge of
  1e-7 for the Huber loss; both are the interpolator of least norm.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

Array = NDArray[np.float64]
SIZES = {300: 200, 900: 48}  # dimension: number of seeds


class Loss(NamedTuple):
    """A loss `l(y, z)`, its first two derivatives in z, and whether the solver starts with reweighted squares."""

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]
    reweighted: bool = False


def of_residual(rho: Callable, psi: Callable, dpsi: Callable, reach: float = np.inf, reweighted: bool = False) -> Loss:
    """The loss `rho(y - z)`, constant for residuals beyond `reach`."""
    return Loss(
        lambda y, z: rho(np.clip(y - z, -reach, reach)),
        lambda y, z: -psi(np.clip(y - z, -reach, reach)),
        lambda y, z: dpsi(y - z) * (np.abs(y - z) < reach),
        reweighted,
    )


def of_margin(phi: Callable, dphi: Callable, d2phi: Callable) -> Loss:
    """The loss `phi(y z)` for labels +-1."""
    return Loss(lambda y, z: phi(y * z), lambda y, z: y * dphi(y * z), lambda y, z: d2phi(y * z))


LOSSES: dict[str, Callable[..., Loss]] = {
    "square": lambda: of_residual(lambda r: r**2 / 2, lambda r: r, np.ones_like),
    "huber": lambda a: of_residual(
        lambda r: np.where(np.abs(r) < a, r**2 / 2, a * np.abs(r) - a**2 / 2),
        lambda r: np.clip(r, -a, a),
        lambda r: 1.0 * (np.abs(r) < a),
        reweighted=True,
    ),
    "tukey": lambda c: of_residual(
        lambda r: c**2 / 6 * (1 - (1 - (r / c) ** 2) ** 3),
        lambda r: r * (1 - (r / c) ** 2) ** 2,
        lambda r: (1 - (r / c) ** 2) * (1 - 5 * (r / c) ** 2),
        reach=c,
        reweighted=True,
    ),
    "cosine": lambda c: of_residual(
        lambda r: c**2 * (1 - np.cos(r / c)), lambda r: c * np.sin(r / c), lambda r: np.cos(r / c), np.pi * c, True
    ),
    "absolute": lambda: of_residual(np.abs, np.sign, np.zeros_like),
    "log(cosh(y - z))": lambda: of_residual(lambda r: np.log(np.cosh(r)), np.tanh, lambda r: 1 / np.cosh(r) ** 2),
    "(y - z)^4 / 4 + (y - z)^2 / 2": lambda: of_residual(
        lambda r: r**4 / 4 + r**2 / 2, lambda r: r**3 + r, lambda r: 3 * r**2 + 1
    ),
    "logistic": lambda: of_margin(lambda s: np.logaddexp(0, -s), lambda s: -expit(-s), lambda s: expit(s) * expit(-s)),
    "hinge": lambda: of_margin(lambda s: np.maximum(0, 1 - s), lambda s: -1.0 * (s < 1), np.zeros_like),
    "exponential": lambda: of_margin(lambda s: np.exp(-s), lambda s: -np.exp(-s), lambda s: np.exp(-s)),
    "exp(z) - y z": lambda: Loss(lambda y, z: np.exp(z) - y * z, lambda y, z: np.exp(z) - y, lambda y, z: np.exp(z)),
}

TARGETS: dict[str, Callable[[Any], Any]] = {
    "z": lambda z: z,
    "tanh(2z)": lambda z: np.tanh(2 * z),
    "z + 0.3 z^3 - 0.5 |z|": lambda z: z + 0.3 * z**3 - 0.5 * np.abs(z),
    "max(z, 0)": lambda z: np.maximum(z, 0),
    "sign(z)": np.sign,
}


def mixture(*components: tuple[float, float, float], target: str = "z") -> dict[str, Any]:
    """Labels `beta t(z) + sqrt(Delta) N(0, 1)`, with (probability, beta, Delta) of each component."""
    return {"kind": "mixture", "target": target, "components": [list(c) for c in components]}


def setting(loss: str, args: list[float], lam: float, alpha: float, labels: dict, **more: Any) -> dict[str, Any]:
    """One setting; `teacher` is the law of the entries of the teacher that are not zero, a share `density` of them."""
    base = {"loss": loss, "loss_parameters": args, "penalty": "ridge", "lam": lam, "alpha": alpha}
    return base | {"labels": {"target": "sign(z)"} | labels, "teacher": "gaussian", "density": 1.0} | more


SETTINGS: dict[str, dict[str, Any]] = {
    "1": setting("huber", [0.7], 0.15, 2.2, mixture((0.8, 1, 0.2), (0.2, 0.3, 4))),
    "2": setting("tukey", [2.5], 0.25, 3.5, mixture((0.75, 1, 0.15), (0.25, 0, 3))),
    "3": setting("absolute", [], 0.4, 2.5, mixture((0.9, 1, 0.1), (0.1, -1, 2))),
    "4": setting("cosine", [1.1], 0.3, 4, mixture((1, 1, 0.3))),
    "5": setting("huber", [1.0], -0.5, 8, mixture((0.7, 1, 0.1), (0.3, 0, 1))),
    "6": setting("huber", [0.5], 0.1, 3, mixture((1, 1, 0.05), target="tanh(2z)")),
    "7": setting("tukey", [3.0], 0.4, 4, mixture((1, 1, 0.2), target="z + 0.3 z^3 - 0.5 |z|")),
    "8": setting("absolute", [], 0.5, 2, mixture((1, 1, 0.1), target="max(z, 0)")),
    "9": setting("logistic", [], 0.05, 2.5, {"kind": "probit", "variance": 0.3}),
    "10": setting("hinge", [], 0.2, 3.5, {"kind": "logistic", "slope": 2.0}),
    "11": setting("square", [], 0.3, 1.7, {"kind": "sign", "flip": 0.15}),
    "12": setting("logistic", [], 0.1, 4, {"kind": "sign", "flip": 0.15}),
    "13": setting("huber", [0.3], 0.2, 2, {"kind": "sign", "flip": 0.0}),
    "14": setting("square", [], 0.2, 0.7, mixture((1, 1, 0.1)), penalty="l1", density=0.15),
    "15": setting("huber", [0.5], 0.15, 0.9, mixture((0.85, 1, 0.05), (0.15, 0, 6)), penalty="l1", density=0.25),
    "16": setting("logistic", [], 0.3, 3, {"kind": "sign", "flip": 0.0}, penalty="l1"),
    "17": setting("square", [], 0.4, 1.2, mixture((1, 1, 0.2)), penalty="l1", teacher="rademacher"),
    "18": setting("log(cosh(y - z))", [], 0.2, 2, mixture((1, 1, 0.4))),
    "19": setting("(y - z)^4 / 4 + (y - z)^2 / 2", [], 0.5, 3, mixture((1, 1, 0.3))),
    "20": setting("exponential", [], 0.5, 3, {"kind": "probit", "variance": 0.5}),
    "21": setting("exp(z) - y z", [], 0.6, 3, mixture((1, 1, 0.2))),
    "22a": setting("square", [], 0.0, 0.6, mixture((1, 1, 0.25)), limit="lam -> 0+"),
    "22b": setting("huber", [0.8], 0.0, 0.6, mixture((1, 1, 0.25)), limit="lam -> 0+"),
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
        return beta[c] * TARGETS[spec["target"]](z) + np.sqrt(variance[c]) * rng.standard_normal(len(z))
    if spec["kind"] == "probit":
        return np.sign(z + np.sqrt(spec["variance"]) * rng.standard_normal(len(z)))
    if spec["kind"] == "logistic":
        return np.where(rng.random(len(z)) < expit(spec["slope"] * z), 1.0, -1.0)
    return np.sign(z) * np.where(rng.random(len(z)) < spec["flip"], -1.0, 1.0)


def weighted_gram(X: Array, h: Array) -> Array:
    if np.min(h) < 0:
        return X.T @ (h[:, None] * X)
    root = np.sqrt(h)[:, None] * X
    return root.T @ root


def solve_ridge(X: Array, y: Array, loss: Loss, lam: float) -> tuple[Array, float]:
    def risk(w: Array) -> float:
        return float(np.sum(loss.value(y, X @ w)) + lam / 2 * w @ w)

    w, residual, scale = np.zeros(X.shape[1]), np.inf, np.linalg.norm(X.T @ loss.slope(y, 0 * y))
    for _ in range(300):
        z = X @ w
        gradient = X.T @ loss.slope(y, z) + lam * w
        residual = float(np.linalg.norm(gradient) / scale)
        if residual < 1e-11:
            break
        h = loss.slope(y, z) / (z - y) if loss.reweighted and residual > 1e-3 else loss.curvature(y, z)
        step = cho_solve(cho_factor(weighted_gram(X, h) + lam * np.eye(len(w))), -gradient)
        size, start = 1.0, risk(w)
        while risk(w + size * step) > start + 1e-4 * size * gradient @ step + 1e-12 * abs(start) and size > 1e-8:
            size /= 2
        w = w + size * step
    return w, residual


def solve_box(A: Array, c: Array, low: float, high: float, lam: float) -> tuple[Array, float]:
    """Minimise `sum_i max_{low <= u <= high} u (c_i - a_i.w) + lam/2 |w|^2` by its dual in u, `w = A^T u / lam`."""
    n, d = A.shape
    u, p, q, size = np.full(n, (low + high) / 2), np.ones(n), np.ones(n), 1.0

    def certify(u: Array) -> tuple[Array, float]:
        w = A.T @ u / lam
        slack = c - A @ w
        primal = np.sum(np.maximum(low * slack, high * slack)) + lam / 2 * w @ w
        return w, abs(float((primal - (c @ u - lam / 2 * w @ w)) / primal))

    while True:
        s, t = u - low, high - u
        w, gap = certify(u)
        guess = np.where((s > p) & (t > q), u, np.where(s < t, low, high))
        for _ in range(5 * (gap < 1e-5)):  # guess which samples sit at the kink, and solve for their variables
            kink = (low < guess) & (guess < high)
            exact, rows = np.where(kink, 0.0, np.clip(guess, low, high)), A[kink]
            exact[kink] = np.linalg.solve(rows @ rows.T, lam * c[kink] - rows @ (A.T @ exact))
            solution, gap = certify(np.clip(exact, low, high))
            if gap < 1e-13:
                return solution, gap
            guess = exact + c - A @ (A.T @ exact) / lam
        diagonal, mean = p / s + q / t, (s @ p + t @ q) / (2 * n)
        factor = cho_factor(weighted_gram(A, 1 / diagonal) + lam * np.eye(d))
        du = dp = dq = centre = 0.0
        for _ in range(2):  # Mehrotra's predictor, then the corrector
            to_p, to_q = (centre - du * dp) / s - p, (centre + du * dq) / t - q
            scaled = (c - A @ w + p - q + to_p - to_q) / diagonal
            du = scaled - (A @ cho_solve(factor, A.T @ scaled)) / diagonal
            dp, dq = to_p - p / s * du, to_q + q / t * du
            size = min(1.0, 0.995 / max(np.concatenate([-du / s, du / t, -dp / p, -dq / q]).max(), 1e-12))
            after = ((s + size * du) @ (p + size * dp) + (t - size * du) @ (q + size * dq)) / (2 * n)
            centre = after**3 / mean**2
        u, p, q = u + size * du, p + size * dp, q + size * dq


def solve_l1(X: Array, y: Array, loss: Loss, lam: float) -> tuple[Array, float]:
    rate = 1 / np.linalg.norm(X, 2) ** 2  # the losses used here have a curvature of at most one

    def gradient(w: Array) -> Array:
        return X.T @ loss.slope(y, X @ w)

    def violation(w: Array) -> float:
        g = gradient(w)
        return float(np.max(np.where(w == 0, np.maximum(np.abs(g) - lam, 0), np.abs(g + lam * np.sign(w)))) / lam)

    age, w, v = 0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for iteration in range(1, 20001):
        moved = v - rate * gradient(v)
        new = np.sign(moved) * np.maximum(np.abs(moved) - rate * lam, 0)
        age = 0 if (v - new) @ (new - w) > 0 else age + 1
        w, v = new, new + age / (age + 3) * (new - w)
        if iteration % 100 == 0:
            signs, on, polished = np.sign(w), w != 0, w.copy()
            for _ in range(8):
                hessian = weighted_gram(X[:, on], loss.curvature(y, X @ polished)) + 1e-12 * np.eye(int(on.sum()))
                polished[on] -= np.linalg.solve(hessian, (gradient(polished) + lam * signs)[on])
                if np.all(np.sign(polished) == signs) and violation(polished) < 1e-10:
                    return polished, violation(polished)
    return w, violation(w)


def mean(f: Callable[[float], float]) -> float:
    """The mean of f(z) over a standard Gaussian z, split at zero, where the targets have kinks."""
    return sum(quad(lambda z: f(z) * np.exp(-(z**2) / 2), *e)[0] for e in ((-12, 0), (0, 12))) / np.sqrt(2 * np.pi)


def run(spec: dict[str, Any], d: int, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """The metrics of one draw and the residual that certifies its minimiser."""
    n, lam, labels = round(spec["alpha"] * d), spec["lam"], spec["labels"]
    teacher = draw_teacher(spec, d, rng)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    y = draw_labels(labels, X @ teacher, rng)
    loss = LOSSES[spec["loss"]](*spec["loss_parameters"])
    if "limit" in spec and spec["loss"] == "square":
        w = np.linalg.pinv(X) @ y
        residual = float(np.linalg.norm(X @ w - y) / np.linalg.norm(y))
    elif spec["penalty"] == "l1":
        w, residual = solve_l1(X, y, loss, lam)
    elif spec["loss"] == "absolute":
        w, residual = solve_box(X, y, -1.0, 1.0, lam)
    elif spec["loss"] == "hinge":
        w, residual = solve_box(y[:, None] * X, np.ones(n), 0.0, 1.0, lam)
    else:
        w, residual = solve_ridge(X, y, loss, 1e-7 if "limit" in spec else lam)
    m, q = float(w @ teacher / d), float(w @ w / d)
    target = TARGETS[labels["target"]]
    distance = mean(lambda z: target(z) ** 2) - 2 * m * mean(lambda z: z * target(z)) + q
    metrics = {"m": m, "q": q, "cosine": m / np.sqrt(q), "estimation_error": 1 - 2 * m + q}
    metrics |= {"generalization_error": distance, "training_loss": float(np.mean(loss.value(y, X @ w)))}
    if labels["target"] == "sign(z)":
        metrics["classification_error"] = float(np.arccos(m / np.sqrt(q)) / np.pi)
    if spec["penalty"] == "l1":
        metrics["active_fraction"] = float(np.mean(w != 0))
    return metrics, residual


def main() -> None:
    entries = []
    for name in sys.argv[1:] or SETTINGS:
        for d, seeds in SIZES.items():
            number, spec, metrics = int(name.rstrip("ab")), SETTINGS[name], {}
            runs = [run(spec, d, np.random.default_rng([number, d, seed])) for seed in range(seeds)]
            for key in runs[0][0]:
                x = np.array([values[key] for values, _ in runs])
                metrics[key] = {"mean": x.mean(), "standard_error": x.std(ddof=1) / np.sqrt(seeds)}
            entry = {"id": name, "settings": spec, "d": d, "seeds": seeds, "metrics": metrics}
            entry["residual"] = max(residual for _, residual in runs)
            entries.append(entry)
            print(json.dumps(entry), flush=True)
    if len(sys.argv) == 1:
        Path(__file__).with_suffix(".json").write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
