"""Channels of several projections: averages and row posteriors against their targets, and matrix products against sums.

The naive average evaluates one exponential for every pair of a point of a level set and an omega; the library's are
products of small matrices. Times are the best of a few runs of warm code.
"""

from __future__ import annotations

import time

import numpy as np

import solvable as sv
from solvable.channels import GenericChannel, channel_of
from solvable.channels.levels.averages import information
from solvable.numerics.gaussian_many import frame
from solvable.targets.target import Target


def best(function, repeats: int = 3) -> float:
    """Seconds of the fastest of a few calls, after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def naive_information(channel: GenericChannel, M: np.ndarray) -> np.ndarray:
    """E[g g^T] with an exponential for every pair of a point and an omega."""
    rule, grid = channel.rule(), frame(M)
    V = np.eye(len(M)) - M
    inverse, scale = np.linalg.inv(V), 1 / np.sqrt(np.linalg.det(2 * np.pi * V))
    omega = np.stack(np.meshgrid(*grid.omega, indexing="ij"), -1).reshape(-1, len(M)) @ grid.basis.T
    total = np.zeros(M.shape)
    for label, mu in enumerate(rule.mu):
        here = slice(rule.sets.start[label], rule.sets.start[label + 1])
        gap = rule.sets.z[here, None] - omega
        kernel = rule.sets.weight[here, None] * np.exp(-np.einsum("kwi,ij,kwj->kw", gap, inverse, gap) / 2) * scale
        slopes = np.einsum("kw,kwi->wi", kernel, gap) @ inverse
        total += mu * (slopes * (grid.weights / np.maximum(kernel.sum(0), 1e-250))[:, None]).T @ slopes
    return total


def report(text: str, noise: float) -> None:
    """Print the cost of an average, with its error estimate, and of the posteriors of a step of message passing."""
    channel = GenericChannel(Target(text), noise)
    r = channel.projections
    V = 0.6 * np.eye(r)
    found = channel.information(V[None])
    seconds = best(lambda: channel.information(V[None]).error)
    print(f"E[g g^T] of {text}, noise {noise:g}: {1e3 * seconds:.0f} ms, error at most {found.error[0]:.1e}")
    rng = np.random.default_rng(0)
    omega = np.sqrt(0.4) * rng.standard_normal((2000, r))
    seen = channel.observe(channel.sample(omega + np.sqrt(0.6) * rng.standard_normal((2000, r)), rng))
    print(f"  posterior of 2000 rows: {1e3 * best(lambda: channel.posterior(seen, omega, V)):.0f} ms")


def main() -> None:
    """Print the table."""
    for text, noise in [("z1*z2 + 0.3*z1**3", 0.0), ("z1*z2 + 0.3*z1**3", 0.1), ("tanh(z1)*z2 + 0.5*z3**2", 0.0)]:
        report(text, noise)
    plain = GenericChannel(Target("z1*z2 + 0.3*z1**3"))
    M = 0.4 * np.eye(2)
    ratio = best(lambda: naive_information(plain, M), 1) / best(lambda: information(plain.rule(), M))
    print(f"matrix products against an exponential a pair: {ratio:.0f} times faster")
    parity = channel_of(Target("sign(z1*z2)"), 0.0)
    seconds = best(lambda: parity.information((np.eye(2) - M)[None]).error)
    print(f"E[g g^T] of sign(z1*z2), closed form: {1e3 * seconds:.1f} ms")
    model = sv.MultiIndex("sign(z1*z2)")
    start = time.perf_counter()
    sv.predict(model, sv.AMP(), alpha=np.linspace(1.0, 6.0, 30))
    print(f"30-point learning curve of sign(z1*z2), first call: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
