"""One step of the relaxation of an overlap matrix: where to go from an L, given the residual and the slope there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.engine.labels import DEEPEST
from solvable.numerics.symmetric import clipped, smat, svec


class State(NamedTuple):
    """One L on the way: the labels' information there, R = Phi(L) - L, and the matrices d log(I + A)/dA and J."""

    x: np.ndarray
    value: np.ndarray
    error: float
    R: np.ndarray
    slope: np.ndarray
    J: np.ndarray
    measured_at: np.ndarray

    @property
    def size(self) -> float:
        return float(np.abs(self.R).max())

    @property
    def measured(self) -> bool:
        return self.measured_at is self.x


def well_inside(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """x + step, but not below a tenth of x: a fixed point close to zero must not be missed for zero itself."""
    least = 0.1 * smat(x)
    return svec(clipped(least + clipped(smat(x + step) - least, np.inf), DEEPEST))


def entry_errors(state: State) -> np.ndarray:
    """The errors of the entries of E[g g^T]: that reported belongs to the largest, others are smaller as they are."""
    size = np.sqrt(np.maximum(np.diag(smat(state.value)), 0.0))
    return state.error * svec(np.outer(size, size)) / max(float(size.max()) ** 2, 1e-300)


def least_on_the_way(state: State, step: np.ndarray, R: np.ndarray) -> float | None:
    """The part of a step at which the residual, a parabola along it, is zero or least; None if it stays well above."""
    start = float(state.R @ state.R)
    fall = float(state.R @ (step - state.J @ step))
    bend = float(state.R @ R) - start + fall
    if bend <= 0 or fall <= 0 or start - fall**2 / (4 * bend) > 0.25 * start:
        return None
    root = fall**2 - 4 * bend * start
    return (fall - np.sqrt(root)) / (2 * bend) if root > 0 else fall / (2 * bend)


def next_step(state: State, stretch: float) -> tuple[np.ndarray, bool]:
    """Newton's step in the modes of J that decay, the plain step in those that grow; and whether it is mostly Newton's.

    `stretch` lengthens all of it, or the plain part where that leads.
    """
    values, modes = np.linalg.eig(state.J)
    grows = np.real(values) >= 1
    parts = np.linalg.solve(modes, state.R)
    gain = np.where(grows, 1.0, 1 / np.where(grows, 1.0, 1 - values))
    newton = bool(np.linalg.norm(parts[grows]) < 0.1 * np.linalg.norm(parts))
    return np.real(modes @ (np.where(grows | newton, stretch, 1.0) * gain * parts)), newton


def spectral_radius(J: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest real eigenvalue of J and its eigenvector, signed to have a positive trace."""
    values, vectors = np.linalg.eig(J)
    top = int(np.argmax(np.real(values)))
    push = np.real(vectors[:, top])
    push = push / np.linalg.norm(push)
    return float(np.real(values[top])), push if np.trace(smat(push)) >= 0 else -push
