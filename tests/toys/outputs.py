"""Channels of several projections whose information is known in closed form, to test the engine alone."""

from __future__ import annotations

import types

import numpy as np
from scipy.special import ndtr

from solvable.channels.base import Average, Channel, Linearisation, TargetChannel
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.solvers.continuation import Continuation
from solvable.numerics.subspaces import complement
from solvable.priors import Gaussian
from solvable.targets.target import Target


def continued(channel: Channel) -> Continuation:
    """The solver of r x r overlaps on a channel, with Gaussian weights."""
    return Continuation(PosteriorOutput(channel), SeparableSignal(Gaussian(), channel.projections))


class scalars:
    """A solver whose points of one overlap go by their letters: q, V, qhat."""

    def __init__(self, solver):
        self._solver = solver

    def __getattr__(self, name):
        return getattr(self._solver, name)

    def uninformed(self, gain):
        return _letters(self._solver.uninformed(gain))

    def optimal(self, gain):
        return _letters(self._solver.optimal(gain))


def _letters(points: FixedPoints) -> types.SimpleNamespace:
    letters = {"q": points.overlap, "V": points.variance, "qhat": points.field}
    return types.SimpleNamespace(**vars(points), **{name: part[:, 0, 0] for name, part in letters.items()})


class Toy(TargetChannel):
    """A channel of which only the averages are known: `at(M)` gives them. Each is equal to itself only."""

    @property
    def definition(self):
        return {"toy": id(self)}

    def average(self, V, fineness):
        return self.at(np.eye(len(V)) - V)


class LinearToy(Toy):
    """y = a.z + sqrt(noise) xi, where E[g g^T] = a a^T / (a V a + noise)."""

    def __init__(self, a, noise=0.0):
        self.a, self.noise = np.asarray(a, float), noise
        self.target = Target(" + ".join(f"{c} * z{i + 1}" for i, c in enumerate(self.a)), projections=len(self.a))

    def at(self, M):
        s = self.a @ (np.eye(len(M)) - M) @ self.a + self.noise
        return Average(np.outer(self.a, self.a) / s, float(-np.log(2 * np.pi * np.e * s) / 2), 1e-12, 1e-12)

    def linearisation(self, M, basis):
        b = basis.T @ self.a
        bb = np.outer(b, b)
        if bb.any():
            bb /= self.a @ (np.eye(len(M)) - M) @ self.a + self.noise
        return Linearisation(basis, bb, 2 * np.kron(bb, bb), 1e-12)

    def pinned_mass(self, directions):
        inside = np.linalg.norm(self.a - directions @ (directions.T @ self.a)) < 1e-6 * np.linalg.norm(self.a)
        return float(inside and self.noise == 0)

    def known(self, directions):
        rest = complement(directions)
        return LinearToy(np.round(rest.T @ self.a, 12), self.noise)


class PotentialToy(Toy):
    """Noisy labels with E[g g^T] = T + sum_k G_k M G_k + c Tr(P M)^3 P, the gradient of twice
    Psi = Tr(T M)/2 + sum_k Tr(G_k M G_k M)/4 + c Tr(P M)^4/8: trivial part, easy part, and a part that makes jumps."""

    noise = 1.0

    def __init__(self, T, G=(), P=None, c=0.0, error=1e-12):
        self.T, self.G, self.c, self.error = np.asarray(T, float), [np.asarray(g, float) for g in G], c, error
        r = len(self.T)
        self.P = np.eye(r) if P is None else np.asarray(P, float)
        self.target = Target("+".join(f"z{i + 1}" for i in range(r)))

    def at(self, M):
        p = np.trace(self.P @ M)
        information = self.T + sum(g @ M @ g for g in self.G) + self.c * p**3 * self.P
        quadratic = sum(np.trace(g @ M @ g @ M) for g in self.G)
        entropy = np.trace(self.T @ M) / 2 + quadratic / 4 + self.c * p**4 / 8
        return Average(information, float(entropy), self.error, self.error)

    def linearisation(self, M, basis):
        trivial = basis.T @ self.at(M).information @ basis
        slope = 3 * self.c * np.trace(self.P @ M) ** 2
        p = basis.T @ self.P @ basis
        inner = [basis.T @ g @ basis for g in self.G]
        k = basis.shape[1]
        easy = sum((np.kron(g, g) for g in inner), np.zeros((k * k, k * k))) + slope * np.outer(p.ravel(), p.ravel())
        return Linearisation(basis, trivial, easy, self.error)

    def known(self, directions):
        return KnownToy(self, directions)


class KnownToy(Toy):
    """Another toy with some directions known exactly."""

    noise = 1.0

    def __init__(self, whole, directions):
        self.whole, self.fixed, self.rest = whole, directions @ directions.T, complement(directions)
        self.target = Target("+".join(f"z{i + 1}" for i in range(self.rest.shape[1])))

    def _whole(self, M):
        return self.fixed + self.rest @ M @ self.rest.T

    def at(self, M):
        found = self.whole.at(self._whole(M))
        return found._replace(information=self.rest.T @ found.information @ self.rest)

    def linearisation(self, M, basis):
        return self.whole.linearisation(self._whole(M), self.rest @ basis)._replace(basis=basis)


class ParityToy(Toy):
    """y = sign(z1 z2) without noise: with a = w1/sqrt(V11), b = w2/sqrt(V22), rho = V12/sqrt(V11 V22),

    Z(+) = 2 Phi2(a, b; rho) + 1 - Phi(a) - Phi(b), and dZ(+)/dw1 = phi(a)/sqrt(V11) (2 Phi((b - rho a)/s) - 1),
    s = sqrt(1 - rho^2), and the same with 1 and 2 exchanged.
    """

    target = Target("sign(z1*z2)")

    @property
    def discrete(self):
        return True

    def at(self, M):
        V = np.eye(2) - M
        step = np.clip(0.35 * np.sqrt(np.linalg.eigvalsh(V)[0]), 0.02, 0.25)
        x = np.arange(-6, 6 + step / 2, step)
        weight = np.exp(-(x**2) / 2)
        weight = np.outer(weight, weight) / weight.sum() ** 2
        q, u = np.linalg.eigh(M)
        root = u * np.sqrt(np.maximum(q, 0))
        w1 = root[0, 0] * x[:, None] + root[0, 1] * x
        w2 = root[1, 0] * x[:, None] + root[1, 1] * x
        s1, s2 = np.sqrt(V[0, 0]), np.sqrt(V[1, 1])
        a, b, rho = w1 / s1, w2 / s2, V[0, 1] / (s1 * s2)
        t, t_weight = np.polynomial.legendre.leggauss(24)
        angle = np.arcsin(rho) * (t + 1) / 2
        density = np.exp(
            -(a[..., None] ** 2 + b[..., None] ** 2 - 2 * (a * b)[..., None] * np.sin(angle)) / (2 * np.cos(angle) ** 2)
        )
        both = ndtr(a) * ndtr(b) + density @ (t_weight * np.arcsin(rho) / 2) / (2 * np.pi)
        # Away from the boundary both values of the label have weight; floor what rounding takes to zero.
        plus = np.clip(2 * both + 1 - ndtr(a) - ndtr(b), 1e-14, 1 - 1e-14)
        s = np.sqrt(1 - rho**2)
        d1 = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi) / s1 * (2 * ndtr((b - rho * a) / s) - 1)
        d2 = np.exp(-(b**2) / 2) / np.sqrt(2 * np.pi) / s2 * (2 * ndtr((a - rho * b) / s) - 1)
        total = weight / (plus * (1 - plus))
        off = np.sum(total * d1 * d2)
        information = np.array([[np.sum(total * d1**2), off], [off, np.sum(total * d2**2)]])
        entropy = float(np.sum(weight * (plus * np.log(plus) + (1 - plus) * np.log1p(-plus))))
        return Average(information, entropy, 2e-6, 2e-6)

    @property
    def resolution(self):
        return 1e-3

    def linearisation(self, M, basis):
        if np.abs(M).max() > 1e-12:
            raise NotImplementedError
        G = 2 / np.pi * basis.T @ np.array([[0, 1], [1, 0]]) @ basis
        return Linearisation(basis, np.zeros((basis.shape[1],) * 2), np.kron(G, G), 1e-12)
