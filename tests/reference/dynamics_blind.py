"""Simulations of gradient descent on index models, written from the definitions of the model alone.

Nothing here uses the library or any theory. `python dynamics_blind.py` rewrites `dynamics_blind.json`, which the tests
compare with the theory; `python dynamics_blind.py 3a 9b` runs these settings only and prints them.

Inputs are x ~ N(0, I_d), the targets w*_k (k = 1..r) are orthonormal (random, others in every run), z_k = w*_k.x and
y = g(z) + sqrt(noise) N(0, 1). The student is f(x) = sum_i a_i sigma(h_i), h_i = w_i.x, with a fixed; D = y - f(x) for
the square loss, D = y for the correlation loss. In one step of the algorithms that see n = round(alpha d) samples one
by one, with G_i(w; x, y) = a_i D sigma'(h_i) x:

- online: w_i <- w_i + (gamma/d) G_i(w; x, y);
- repeated: two such steps, one after the other, on the same sample (the same noise); alpha counts samples;
- extragradient: w~_i = w_i + (rho/d) G_i(w; x, y), then w_i <- w_i + (gamma/d) G_i(w~; x, y) on the same sample. With a
  `similarity` s that is not null the second gradient is on x' = s x + sqrt(1 - s^2) x'', x'' fresh, with the label
  g(z') + sqrt(noise) N(0, 1) of x', whose noise is independent of that of y; alpha counts pairs;
- `spherical`: in the updates of w_i (never in the look-ahead w~) G_i is projected by I - w_i w_i^T, with the w_i from
  before the update, and w_i is divided by its norm after it.

- batch: `|w*_k|^2 = d`, h = w.x/sqrt(d), z = w*.x/sqrt(d), and n = round(alpha d) samples, the same ones at each step
  (reuse) or others: w_i <- w_i + eta sum_mu a_i D_mu sigma'(h_i,mu) x_mu / sqrt(d); overlaps are divided by d.

Every run starts at M_ik = w_i.w*_k = M0 and Q_ij = w_i.w_j = Q0 exactly, in a random direction otherwise.

Measured: M, |M| (entry by entry), Q, the share R = M^T Q^-1 M, cosine = m/sqrt(q) for p = r = 1, and the error
E (f(x) - g(z))^2, from 20 000 draws of (h, z) for every run. Runs with an entry that is not finite, or some Q_ii above
10^6, are counted as diverged and left out; `largest_q` is the largest Q_ii of the others, and medians are given beside
the means as the tails are heavy in some of the settings.
"""

import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

Array = NDArray[np.float64]
SIZES = {150: 256, 600: 96}  # dimension: number of seeds, for samples seen one by one
BATCH_SIZES = {200: 256, 800: 96}
DRAWS = 20_000
DIVERGED = 1e6


def he3(z: Array) -> Array:
    return z**3 - 3 * z


ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "erf(x/sqrt(2))": (lambda x: erf(x / np.sqrt(2)), lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)),
    "tanh(x)": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "tanh(1.5 x)": (lambda x: np.tanh(1.5 * x), lambda x: 1.5 * (1 - np.tanh(1.5 * x) ** 2)),
    "max(x, 0)": (lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0)),
    "max(x + 0.5, 0)": (lambda x: np.maximum(x + 0.5, 0), lambda x: 1.0 * (x > -0.5)),
    "max(x, 0.2 x)": (lambda x: np.maximum(x, 0.2 * x), lambda x: np.where(x > 0, 1.0, 0.2)),
    "abs(x)": (np.abs, np.sign),
    "x^2": (lambda x: x**2, lambda x: 2 * x),
    "log(1 + exp(x))": (lambda x: np.logaddexp(0, x), expit),
    "sin(2 x)": (lambda x: np.sin(2 * x), lambda x: 2 * np.cos(2 * x)),
}

TARGETS: dict[str, Callable[..., Array]] = {  # functions of z1, ..., zr
    "tanh(z1)": np.tanh,
    "tanh(2 z1)": lambda z: np.tanh(2 * z),
    "(z1^3 - 3 z1)/sqrt(6)": lambda z: he3(z) / np.sqrt(6),
    "(z1^2 - 1)/sqrt(2)": lambda z: (z**2 - 1) / np.sqrt(2),
    "sign(z1)": np.sign,
    "z1^2": lambda z: z**2,
    "max(z1, 0)": lambda z: np.maximum(z, 0),
    "abs(z1)": np.abs,
    "2 erf(z1/sqrt(2))": lambda z: 2 * erf(z / np.sqrt(2)),
    "erf(z1/sqrt(2))": lambda z: erf(z / np.sqrt(2)),
    "cos(2 z1) + 0.5 z1": lambda z: np.cos(2 * z) + 0.5 * z,
    "z1 + 0.3 (z1^2 - 1)": lambda z: z + 0.3 * (z**2 - 1),
    "sign(z1 z2) + 0.5 z1": lambda z1, z2: np.sign(z1 * z2) + 0.5 * z1,
    "erf(z1/sqrt(2)) + 0.7 erf(z2/sqrt(2))": lambda z1, z2: erf(z1 / np.sqrt(2)) + 0.7 * erf(z2 / np.sqrt(2)),
    "z1^2 + z1 z2": lambda z1, z2: z1**2 + z1 * z2,
    "z1^2 + 0.5 z2^2": lambda z1, z2: z1**2 + 0.5 * z2**2,
    "z1 z2": lambda z1, z2: z1 * z2,
    "tanh(z1 + z2^3 - 3 z2)": lambda z1, z2: np.tanh(z1 + he3(z2)),
    "z1 + z1 z2 + z1 z2 z3": lambda z1, z2, z3: z1 + z1 * z2 + z1 * z2 * z3,
    "sign(z1 z2 z3)": lambda z1, z2, z3: np.sign(z1 * z2 * z3),
}


def setting(activation: str, target: str, overlaps: list, **more: Any) -> dict[str, Any]:
    """One setting; a is 1 and Q0 has Q_ii = 1 and parts orthogonal to the targets and to each other unless given."""
    m = np.array(overlaps, dtype=float)
    q = m @ m.T
    np.fill_diagonal(q, 1)
    base = {"activation": activation, "target": target, "a": [1.0] * len(m), "loss": "square", "noise": 0.0}
    return base | {"M0": overlaps, "Q0": q.round(12).tolist()} | more


def one_by_one(activation: str, target: str, overlaps: list, alphas: list, **more: Any) -> dict[str, Any]:
    base = {"algorithm": "online", "spherical": False}
    if "rho" in more:
        base |= {"algorithm": "extragradient", "similarity": None}
    return base | setting(activation, target, overlaps, **more) | {"alphas": alphas}


def batch(activation: str, target: str, overlaps: list, steps: int, **more: Any) -> dict[str, Any]:
    return {"algorithm": "batch", "reuse": True} | setting(activation, target, overlaps, **more) | {"steps": steps}


def all_settings() -> Iterator[tuple[str, dict[str, Any]]]:
    e, relu, cubic = "erf(x/sqrt(2))", "max(x, 0)", "(z1^3 - 3 z1)/sqrt(6)"
    yield "1", one_by_one(e, "tanh(z1)", [[0.05]], [1, 2, 4, 8], gamma=0.5, spherical=True)
    for name, noise in (("2a", 0.0), ("2b", 0.1)):
        yield name, one_by_one(e, "tanh(z1)", [[0.05]], [1, 3, 6], gamma=0.5, rho=0.3, noise=noise)

    more: dict[str, Any] = {"spherical": True, "loss": "correlation", "gamma": 0.3}
    yield "3a", one_by_one(relu, cubic, [[0.0]], [10, 20, 40], **more, rho=0.5)
    yield "3b", one_by_one(relu, cubic, [[0.0]], [10, 20, 40], **more, algorithm="repeated")
    yield "3c", one_by_one(relu, cubic, [[0.0]], [10, 20, 40], **more, rho=0.5, similarity=0.6)
    yield "3d", one_by_one(relu, cubic, [[0.3]], [2, 5, 10], **more, rho=-0.8, similarity=0.0, noise=0.4)

    more = {"spherical": True, "gamma": 0.4, "noise": 0.2}
    yield "4", one_by_one("tanh(1.5 x)", "sign(z1 z2) + 0.5 z1", [[0.2, 0.1]], [1, 3, 6], **more)

    more = {"a": [1, -0.5, 0.8], "Q0": [[0.6, 0.1, 0], [0.1, 0.5, 0.05], [0, 0.05, 0.7]], "noise": 0.01, "gamma": 0.7}
    m0 = [[0.2, 0.1], [-0.1, 0.15], [0.05, -0.2]]
    yield "5", one_by_one(e, "erf(z1/sqrt(2)) + 0.7 erf(z2/sqrt(2))", m0, [1, 3, 5], **more)

    more = {"a": [0.6, -0.4, 0.5], "gamma": 0.2, "noise": 0.1}
    m0 = [[0.3, 0.1], [0.1, 0.3], [-0.2, 0.2]]
    for name, spherical in (("6a", True), ("6b", False)):
        yield name, one_by_one("max(x + 0.5, 0)", "z1^2 + z1 z2", m0, [1, 3], **more, spherical=spherical)
    for name, spherical in (("6c", True), ("6d", False)):
        yield name, one_by_one("max(x + 0.5, 0)", "z1^2 + z1 z2", m0, [1, 3], **more, spherical=spherical, rho=0.2)

    more = {"a": [1, 0.5], "gamma": 0.1}
    yield "7", one_by_one("x^2", "z1^2 + 0.5 z2^2", [[0.3, 0.1], [0.1, 0.2]], [1, 3], **more)
    for name, noise in (("8a", 0.0), ("8b", 0.3)):
        yield name, one_by_one(relu, "sign(z1)", [[0.1]], [0.5, 2, 5], gamma=1.0, spherical=True, noise=noise)

    for name, reuse in (("9a", True), ("9b", False)):
        yield name, batch(e, cubic, [[0.0]], 4, alpha=3, eta=1.0, reuse=reuse)
    for name, reuse in (("9c", True), ("9d", False)):
        yield name, batch(e, "tanh(z1)", [[0.0]], 4, alpha=2, eta=0.5, noise=0.2, reuse=reuse)
    a = [0.5**0.5, -(0.5**0.5)]
    for name, reuse in (("9e", True), ("9f", False)):
        m0 = [[0.3, 0.2], [-0.2, 0.3]]
        yield name, batch(relu, "tanh(z1 + z2^3 - 3 z2)", m0, 6, a=a, alpha=3, eta=0.2, reuse=reuse)
    yield "9g", batch(relu, "z1^2", [[0.3]], 8, alpha=4, eta=0.1)
    yield "9h", batch(relu, "(z1^2 - 1)/sqrt(2)", [[0.2]], 5, alpha=1.5, eta=0.5, loss="correlation", noise=0.3)
    more = {"a": [1, -0.5, 0.8], "alpha": 0.7, "eta": 0.8, "noise": 0.2, "Q0": np.eye(3).tolist()}
    yield "9i", batch("tanh(1.5 x)", "sign(z1)", [[0.2], [0.0], [-0.1]], 5, **more)
    yield "9j", batch(e, "erf(z1/sqrt(2))", [[0.1]], 12, alpha=1.2, eta=0.3, noise=0.05)
    more = {"a": [1, -1], "alpha": 2, "eta": 0.15, "noise": 0.3, "reuse": False, "Q0": [[1.0, 0.4], [0.4, 2.0]]}
    yield "9k", batch("log(1 + exp(x))", "z1 z2", [[0.3, 0.2], [0.2, -0.3]], 5, **more)
    yield "9l", batch("abs(x)", "abs(z1)", [[0.0]], 6, alpha=3, eta=0.4, noise=0.1)

    # a norm that starts away from 1, two neurons of unequal length, look-ahead steps of either sign, pairs
    more = {"a": [1, -0.7], "Q0": [[1.5, 0.3], [0.3, 0.4]], "gamma": 0.6, "noise": 0.2}
    for name, other in (
        ("10a", {"rho": -0.4}),
        ("10b", {"rho": 0.7, "similarity": 0.5}),
        ("10c", {"algorithm": "repeated"}),
        ("10d", {"rho": 0.7, "loss": "correlation"}),
    ):
        m0 = [[0.3], [-0.2]]
        yield name, one_by_one("tanh(1.5 x)", "z1 + 0.3 (z1^2 - 1)", m0, [0.5, 2, 5], **more, **other)
    more = {"a": [1, -1], "gamma": 0.5, "noise": 0.3, "spherical": True, "rho": 1.0}
    for name, similarity in (("11a", 0.8), ("11b", 1.0), ("11c", None)):
        m0 = [[0.3, 0.2], [0.2, -0.3]]
        yield name, one_by_one("log(1 + exp(x))", "z1 z2", m0, [1, 3], **more, similarity=similarity)
    # more directions than neurons, and the reverse
    more = {"a": [0.7, 0.7], "gamma": 0.3, "noise": 0.1, "spherical": True}
    m0 = [[0.2, 0.1, 0], [0, 0.1, 0.2]]
    yield "12", one_by_one("max(x, 0.2 x)", "z1 + z1 z2 + z1 z2 z3", m0, [1, 3, 6], **more)
    more = {"gamma": 0.5, "noise": 0.2, "spherical": True, "loss": "correlation", "rho": -0.5}
    yield "13", one_by_one(e, "sign(z1 z2 z3)", [[0.3, 0.2, 0.1]], [1, 3, 6], **more)
    more = {"a": [0.5, 0.5, -0.5, -0.5], "gamma": 0.8, "noise": 0.1, "spherical": True, "rho": 0.5}
    yield "14", one_by_one(relu, "abs(z1)", [[0.3], [-0.3], [0.1], [0.0]], [1, 4], **more)
    # a long step, starts where Q is singular, a start near the target that is left
    yield "15", one_by_one(e, "2 erf(z1/sqrt(2))", [[0.3]], [0.5, 2, 5], Q0=[[2.0]], gamma=4.0, noise=0.1)
    more = {"a": [1, 0.5], "gamma": 0.5, "noise": 0.1}
    yield "16a", one_by_one("tanh(x)", "tanh(2 z1)", [[0.3], [0.3]], [1, 3, 6], **more, Q0=[[1.0, 1.0], [1.0, 1.0]])
    yield "16b", one_by_one("tanh(x)", "tanh(2 z1)", [[0.0], [0.2]], [1, 3, 6], **more, Q0=[[0.0, 0.0], [0.0, 1.0]])
    yield "17", one_by_one(relu, "max(z1, 0)", [[0.9]], [1, 3, 6], gamma=1.0, rho=-1.0, spherical=True, noise=0.5)
    # even and oscillating functions
    more = {"gamma": 0.4, "spherical": True, "noise": 0.5, "algorithm": "repeated"}
    yield "18", one_by_one("abs(x)", "(z1^2 - 1)/sqrt(2)", [[0.1]], [1, 3, 6], **more)
    more = {"gamma": 0.3, "rho": 0.5, "noise": 0.2, "Q0": [[0.5]]}
    yield "19a", one_by_one("sin(2 x)", "cos(2 z1) + 0.5 z1", [[0.2]], [1, 3, 6], **more, loss="correlation")
    yield "19b", one_by_one("sin(2 x)", "cos(2 z1) + 0.5 z1", [[0.2]], [1, 3, 6], **more)


SETTINGS = dict(all_settings())


def start(spec: dict[str, Any], seeds: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Students (seeds x p x d) and orthonormal targets (seeds x r x d), with the overlaps M0 and Q0."""
    m, q = np.array(spec["M0"], dtype=float), np.array(spec["Q0"], dtype=float)
    p, r = m.shape
    values, vectors = np.linalg.eigh(q - m @ m.T)
    assert values.min() > -1e-12, "no vectors have these overlaps"
    root = vectors * np.sqrt(np.clip(values, 0, None))
    frame = np.linalg.qr(rng.standard_normal((seeds, d, p + r)))[0].transpose(0, 2, 1)
    frame = frame * rng.choice([-1.0, 1.0], (seeds, p + r, 1))
    targets, others = np.ascontiguousarray(frame[:, :r]), frame[:, r:]
    students = m @ targets + root @ others
    assert np.allclose(students @ targets.transpose(0, 2, 1), m, atol=1e-9)
    assert np.allclose(students @ students.transpose(0, 2, 1), q, atol=1e-9)
    return students, targets


def label(spec: dict[str, Any], z: Array, rng: np.random.Generator) -> Array:
    """Labels (...) of z (... x r)."""
    clean = TARGETS[spec["target"]](*np.moveaxis(z, -1, 0))
    return clean + np.sqrt(spec["noise"]) * rng.standard_normal(clean.shape)


def slope(spec: dict[str, Any], h: Array, y: Array) -> Array:
    """a_i D sigma'(h_i), for h (... x p) and y (...)."""
    sigma, derivative = ACTIVATIONS[spec["activation"]]
    a = np.array(spec["a"], dtype=float)
    residual = y - sigma(h) @ a if spec["loss"] == "square" else y
    return a * residual[..., None] * derivative(h)


def project(w: Array, x: Array) -> Array:
    """w_i.x, for w (seeds x p x d) and x (seeds x d)."""
    return (w @ x[:, :, None])[:, :, 0]


def update(spec: dict[str, Any], w: Array, x: Array, g: Array) -> Array:
    """w after the step along g_i x."""
    s, d = x.shape
    direction = g[:, :, None] * x[:, None, :]
    if spec["spherical"]:
        along = np.einsum("spd,spd->sp", w, direction)
        direction -= along[:, :, None] * w
    direction *= spec["gamma"] / d
    direction += w
    if spec["spherical"]:
        direction /= np.sqrt(np.einsum("spd,spd->sp", direction, direction))[:, :, None]
    return direction


def run_one_by_one(spec: dict[str, Any], d: int, seeds: int, rng: np.random.Generator) -> Iterator[tuple]:
    w, targets = start(spec, seeds, d, rng)
    stops = {round(alpha * d): alpha for alpha in spec["alphas"]}
    for n in range(1, max(stops) + 1):
        x = rng.standard_normal((seeds, d))
        y = label(spec, project(targets, x), rng)
        g = slope(spec, project(w, x), y)
        if spec["algorithm"] == "extragradient":
            ahead = w + (spec["rho"] / d) * g[:, :, None] * x[:, None, :]
            if spec["similarity"] is not None:
                s = spec["similarity"]
                x = s * x + np.sqrt(1 - s**2) * rng.standard_normal((seeds, d))
                y = label(spec, project(targets, x), rng)
            g = slope(spec, project(ahead, x), y)
        w = update(spec, w, x, g)
        if spec["algorithm"] == "repeated":
            w = update(spec, w, x, slope(spec, project(w, x), y))
        if n in stops:
            yield {"alpha": stops[n]}, w @ targets.transpose(0, 2, 1), w @ w.transpose(0, 2, 1)


def run_batch(spec: dict[str, Any], d: int, seeds: int, rng: np.random.Generator) -> Iterator[tuple]:
    n = round(spec["alpha"] * d)
    group = max(1, 4_000_000 // (n * d))
    found: list[list] = [[] for _ in range(spec["steps"])]
    for first in range(0, seeds, group):
        size = min(group, seeds - first)
        w, targets = start(spec, size, d, rng)
        w, targets = w * np.sqrt(d), targets * np.sqrt(d)
        for step in range(spec["steps"]):
            if step == 0 or not spec["reuse"]:
                x = rng.standard_normal((size, n, d))
                y = label(spec, x @ targets.transpose(0, 2, 1) / np.sqrt(d), rng)
            g = slope(spec, x @ w.transpose(0, 2, 1) / np.sqrt(d), y)
            w = w + spec["eta"] * g.transpose(0, 2, 1) @ x / np.sqrt(d)
            found[step].append((w @ targets.transpose(0, 2, 1) / d, w @ w.transpose(0, 2, 1) / d))
    for step, parts in enumerate(found, 1):
        yield {"step": step}, np.concatenate([m for m, _ in parts]), np.concatenate([q for _, q in parts])


def generalization_error(spec: dict[str, Any], m: Array, q: Array, rng: np.random.Generator) -> Array:
    """E (f - g)^2 for every run, from draws of (h, z) given M and Q."""
    p, r = m.shape[1:]
    values, vectors = np.linalg.eigh(q - m @ m.transpose(0, 2, 1))
    root = vectors * np.sqrt(np.clip(values, 0, None))[:, None, :]
    errors = []
    for i in range(0, len(m), 16):
        z = rng.standard_normal((len(m[i : i + 16]), DRAWS, r))
        h = z @ m[i : i + 16].transpose(0, 2, 1)
        h += rng.standard_normal((len(z), DRAWS, p)) @ root[i : i + 16].transpose(0, 2, 1)
        f = ACTIVATIONS[spec["activation"]][0](h) @ np.array(spec["a"], dtype=float)
        errors.append(np.mean((f - TARGETS[spec["target"]](*np.moveaxis(z, -1, 0))) ** 2, axis=1))
    return np.concatenate(errors)


def rounded(values: Any) -> Any:
    if np.ndim(values):
        return [rounded(v) for v in values]
    return float(f"{values:.7g}")


def summary(runs: Array) -> dict[str, Any]:
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return {
        "mean": rounded(runs.mean(axis=0)),
        "standard_error": rounded(error),
        "median": rounded(np.median(runs, axis=0)),
    }


def measure(spec: dict[str, Any], m: Array, q: Array, rng: np.random.Generator) -> dict[str, Any]:
    norms = np.einsum("sii->si", q)
    good = np.isfinite(m).all((1, 2)) & np.isfinite(q).all((1, 2)) & (norms <= DIVERGED).all(1)
    m, q = m[good], q[good]
    share = m.transpose(0, 2, 1) @ np.linalg.pinv(q, rcond=1e-12, hermitian=True) @ m
    metrics = {"M": summary(m), "absolute_M": summary(np.abs(m)), "Q": summary(q), "R": summary(share)}
    if m.shape[1:] == (1, 1):
        metrics["cosine"] = summary((m / np.sqrt(q))[:, 0, 0])
    metrics["generalization_error"] = summary(generalization_error(spec, m, q, rng))
    return {"diverged": int((~good).sum()), "largest_q": rounded(norms[good].max()), "metrics": metrics}


def simulate(name: str, spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    is_batch = spec["algorithm"] == "batch"
    for d, seeds in (BATCH_SIZES if is_batch else SIZES).items():
        began = time.process_time()
        seed = [2718, zlib.crc32(name.encode()), d]
        rng = np.random.default_rng(seed)
        run = run_batch if is_batch else run_one_by_one
        with np.errstate(all="ignore"):
            at = [where | measure(spec, m, q, rng) for where, m, q in run(spec, d, seeds, rng)]
        print(name, d, f"{time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
        yield {"id": name, "settings": spec, "d": d, "seeds": seeds, "rng": seed, "at": at}


def main(names: list[str]) -> None:
    path = Path(__file__).with_suffix(".json")
    entries: list[dict[str, Any]] = []
    for name in names or SETTINGS:
        entries += simulate(name, SETTINGS[name])
        lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
        if not names:
            path.write_text(f"[\n{lines}\n]\n")
    if names:
        print(json.dumps(entries, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
