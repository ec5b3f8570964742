r"""Interactions: an unknown seen through a matrix or a tensor of itself, in the place of a measurement operator.

The field of every row is a polynomial of the estimate, B = F(W), such as the product with a spiked matrix. Written for
the loop of `amp` the map to the labels and the denoiser of the labels are one, X W - O = B and g = B, the way back is
the identity, and the Onsager term holds earlier estimates in the place of g:

    O_t = sum_s w_s dF(W_t; W_s, R_s),        w_s = damping (1 - damping)^(t-1-s),

with R_s the mean response of step s and dF(W; W_s, R) the part of F(W) that W_s caused: $\lambda^2 R W_s$ for a matrix
of signal-to-noise ratio $\lambda$, $(k-1)\,\langle W, W_s\rangle^{k-2} R W_s/\Delta$ for a tensor of order k.
[lesieur2017statistical]

At a fixed point with self-overlap q and mean posterior variance R the Bethe free entropy is that of the rows and

    W . F(W) / k  -  d (q^k + k R q^(k-1)) / (2 k Delta),        1 / Delta = lambda^2 for a matrix (k = 2).
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import dsymv  # pyright: ignore[reportAttributeAccessIssue]

from solvable.engine.sides import OutputStep

_FORGOTTEN = 1e-12
"""The weight below which an earlier estimate is left out of the Onsager term."""


class Interaction(abc.ABC):
    """The map from d unknowns to the field of each; it stands where a measurement operator would."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """The number d of unknowns per direction."""

    @property
    def samples(self) -> int:
        """As many as there are unknowns."""
        return self.dimension

    @abc.abstractmethod
    def forward(self, signal: np.ndarray) -> np.ndarray:
        """The field of each unknown (d, p), in units of its own noise: a new array."""

    @abc.abstractmethod
    def feedback(self, signal: np.ndarray, earlier: np.ndarray, response: np.ndarray) -> np.ndarray:
        """The part of `forward(signal)` that an earlier estimate caused, to whose field the signal responded."""

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """The identity."""
        return residual.copy()

    def bethe(self, estimate: np.ndarray, response: np.ndarray) -> float | None:
        """The part of the Bethe free entropy beside that of the rows, at an estimate of mean `response`; if known."""
        return None

    def memory(self, start: np.ndarray | None = None) -> Past:
        """The Onsager term, at the `start` (d, p) of a run: none if that does not depend on the interaction."""
        return Past(self, start)


class Past:
    """The Onsager term of an interaction whose field is linear: the sum of what earlier estimates caused."""

    def __init__(self, interaction: Interaction, start: np.ndarray | None = None):
        self._interaction = interaction
        self._sum: np.ndarray | float = 0.0 if start is None else np.array(start, dtype=float)

    def onsager(self, W: np.ndarray) -> np.ndarray | float:
        """What is subtracted from the field of W."""
        return self._sum

    def follow(self, W: np.ndarray, g: np.ndarray, response: np.ndarray, damping: float) -> None:
        """A step from W, to whose field the signal answered with a mean `response`."""
        self._sum = (1 - damping) * self._sum + damping * self._interaction.feedback(W, W, response)


class TensorPast(Past):
    """That of a tensor, whose field is not linear: earlier estimates as rows, with the weights of their responses."""

    def __init__(self, interaction: SymmetricTensor, start: np.ndarray | None = None):
        super().__init__(interaction, start)
        self._tensor = interaction
        self._earlier, self._weights = np.empty((0, interaction.dimension)), np.empty(0)

    def onsager(self, W: np.ndarray) -> np.ndarray | float:
        products = self._earlier @ W[:, 0] / len(W)
        caused = (self._weights * self._tensor.share(products)) @ self._earlier
        return self._sum + caused[:, None]

    def follow(self, W: np.ndarray, g: np.ndarray, response: np.ndarray, damping: float) -> None:
        self._sum = (1 - damping) * self._sum
        weights = np.append((1 - damping) * self._weights, damping * response[0, 0])
        kept = weights > _FORGOTTEN
        self._weights, self._earlier = weights[kept], np.concatenate([self._earlier, W.T])[kept]


class Observed(Protocol):
    """What an output that passes the field on needs to know of the interaction."""

    def strength(self, V: np.ndarray) -> np.ndarray:
        """The precision (p, p) of the field that an estimate of covariance V leads to."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class FieldDenoiser:
    """The output side of an interaction: the field is the signal's at once, g = Omega.

    `bethe` is the interaction's, where the free entropy of a run is wanted.
    """

    interaction: Observed
    bethe: Callable[[np.ndarray, np.ndarray], float | None] | None = None

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        return OutputStep(Omega, np.zeros_like(V), strength=self.interaction.strength(V), bethe=self.bethe)


@dataclasses.dataclass(frozen=True, eq=False)
class SymmetricMatrix(Interaction):
    r"""$B = \lambda Y w - \lambda^2 R\, w_{old}$ for a symmetric `Y` (d x d) with noise of variance 1/d.

    `snr` is $\lambda$.
    """

    Y: np.ndarray
    snr: float

    @property
    def dimension(self) -> int:
        return len(self.Y)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        if signal.shape[1] > 1:
            return self.snr * (self.Y @ signal)
        # One triangle is enough, which is half of the memory that a product goes through.
        return dsymv(self.snr, self.Y.T, signal[:, 0])[:, None]

    def feedback(self, signal: np.ndarray, earlier: np.ndarray, response: np.ndarray) -> np.ndarray:
        return self.snr**2 * (earlier @ response)

    def strength(self, V: np.ndarray) -> np.ndarray:
        return self.snr**2 * (np.eye(len(V)) - V)

    def bethe(self, estimate: np.ndarray, response: np.ndarray) -> float:
        return _bethe(self, estimate, response, 2, self.snr**2)


@dataclasses.dataclass(frozen=True, eq=False)
class SymmetricTensor(Interaction):
    r"""$B = Y w^{k-1}/(\Delta\sqrt{(k-1)!\, d^{k-1}})$, less $(k-1)\langle w, w_{old}\rangle^{k-2} R\, w_{old}/\Delta$.

    `Y` is symmetric, of k dimensions d, with noise of variance $\Delta$ = `noise` on each entry.
    """

    Y: np.ndarray
    noise: float

    @property
    def order(self) -> int:
        return self.Y.ndim

    @property
    def dimension(self) -> int:
        return len(self.Y)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        d, field, vector = self.dimension, self.Y, signal[:, 0]
        for _ in range(self.order - 1):
            field = field.reshape(-1, d) @ vector
        scale = self.noise * math.sqrt(math.factorial(self.order - 1)) * d ** ((self.order - 1) / 2)
        return field[:, None] / scale

    def feedback(self, signal: np.ndarray, earlier: np.ndarray, response: np.ndarray) -> np.ndarray:
        return self.share(np.vdot(signal, earlier) / self.dimension) * (earlier @ response)

    def share(self, product: Any) -> Any:
        r"""$(k-1)\,\langle W, W_s\rangle^{k-2}/\Delta$, given the mean `product` of both estimates."""
        return (self.order - 1) / self.noise * product ** (self.order - 2)

    def memory(self, start: np.ndarray | None = None) -> Past:
        return super().memory(start) if self.order == 2 else TensorPast(self, start)

    def strength(self, V: np.ndarray) -> np.ndarray:
        return (1 - V) ** (self.order - 1) / self.noise

    def bethe(self, estimate: np.ndarray, response: np.ndarray) -> float:
        return _bethe(self, estimate, response, self.order, 1 / self.noise)


def _bethe(interaction: Interaction, estimate: np.ndarray, response: np.ndarray, k: int, gain: float) -> float:
    r"""$W\cdot F(W)/k - d\, (q^k + k R q^{k-1})/(2 k \Delta)$ for one direction, `gain` $1/\Delta$."""
    d = interaction.dimension
    q, R = float(np.vdot(estimate, estimate)) / d, float(response[0, 0])
    return float(np.vdot(estimate, interaction.forward(estimate))) / k - d * gain * (q + k * R) * q ** (k - 1) / (2 * k)
