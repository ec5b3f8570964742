r"""Tokens at their places, labels made by attention to meaning and to places. [cui2024phase]

Two tokens $x_t = u_t + s_t p$ carry noise $u_t \sim N(0, \sigma^2 I_d)$ and stand at $\pm p$, $p = (1, .., 1)/\sqrt d$,
s = (1, -1). With $z_t = u_t\cdot w^*/\sqrt d$ and $|w^*|^2 = d$ the label is

    y = T u,      T = (1 - omega) softmax(z z^T) + omega softmax(a s (a s)^T),

and the student $S x$ with $S = softmax(h h^T)$, $h_t = x_t\cdot w/\sqrt d$. It minimises the risk

    sum_mu |y_mu - S_mu x_mu|^2 / (2 d) + penalty |w|^2 / 2,      n = alpha d .
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from solvable.core.checks import real_number
from solvable.core.memory import check_memory
from solvable.core.model import Model

SIGNS = np.array([1.0, -1.0])
"""Where the two tokens stand."""
SEMANTIC, POSITIONAL = "semantic", "positional"


class PositionalData(NamedTuple):
    """Tokens `X` (n, 2, d), labels `y` (n, 2, d), and the teacher's weights `truth` (d), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


class PositionalSemantic(Model):
    r"""Labels of two tokens that attend to each other by meaning and by place; alpha = n/d.

    - `positional`: the share $\omega$ of the label's attention that knows places only.
    - `place`: a; that part is softmax(a s (a s)^T), whose diagonal is $1/(1 + e^{-2a^2})$.
    - `variance`: $\sigma^2$ of the entries of tokens around their places.

    `ERM(penalty=..., start=...)` learns it, with a ridge: `start` is "semantic", "positional", or None for the lower
    of these two minima.
    """

    references = ("cui2024phase",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "|w.w*| / (|w| |w*|): labels do not show the sign",
        "squared_overlap": "square of the cosine",
        "positional_overlap": "|w.p| / |w|, with the unit vector p along which tokens stand",
        "generalization_error": "E |y - S x|^2 / d",
        "training_loss": "mean of |y - S x|^2 / (2 d) over the samples",
        "risk": "the minimum over d",
    }

    positional: float
    place: float = 1.0
    variance: float = 1.0

    def __check_init__(self):
        real_number("positional", self.positional, "between 0 and 1", lambda x: 0 <= x <= 1)
        real_number("place", self.place, "a finite number")
        real_number("variance", self.variance, "a positive number", lambda x: x > 0)

    @property
    def quick_thresholds(self) -> bool:
        """They take minutes."""
        return False

    def sample(self, rng: np.random.Generator, d: int, alpha: float) -> PositionalData:
        """Tokens and labels of round(alpha d) samples; the teacher is orthogonal to p."""
        n = round(alpha * d)
        check_memory(32.0 * n * d, f"{n} samples", "alpha", alpha)
        truth = rng.standard_normal(d)
        truth -= truth.mean()
        truth *= np.sqrt(d) / np.linalg.norm(truth)
        noise = np.sqrt(float(self.variance)) * rng.standard_normal((n, 2, d))
        omega = float(self.positional)
        T = (1 - omega) * attention(noise @ truth / np.sqrt(d)) + omega * attention(float(self.place) * SIGNS)
        return PositionalData(noise + SIGNS[:, None] / np.sqrt(d), T @ noise, truth)


def attention(h: np.ndarray) -> np.ndarray:
    """softmax(h h^T) (..., 2, 2) of scores (..., 2)."""
    own = 1 / (1 + np.exp(-h * (h - h[..., ::-1])))
    first, second = own[..., 0], own[..., 1]
    return np.stack([np.stack([first, 1 - first], axis=-1), np.stack([1 - second, second], axis=-1)], axis=-2)
