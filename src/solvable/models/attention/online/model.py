r"""Labels of T tokens by one direction that they share: the sequence single-index model. [arnaboldi2025asymptotics]

Tokens are $x_t \sim N(0, I_d)$ and $z_t = x_t\cdot w^*$ with $|w^*| = 1$. A function f of T numbers makes the label,

    y = (1 - omega) f(z_1 + b s_1, .., z_T + b s_T) + omega f(a s_1, .., a s_T) + noise,

where b s encodes the places of tokens in what the label sees of them, $s = (1, -1)$ for two tokens, and the second part
knows places only: it is what f makes of tokens that stand at $\pm a$ along one direction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Model
from solvable.targets.target import Target

SOFTMAX = "softmax"
MOST_TOKENS = 3
"""Of functions that are no sums over tokens: averages over them run over a grid in every token."""
SIGNS = np.array([1.0, -1.0])
"""Where two tokens stand."""


def _as_target(target: Any) -> Target | str:
    if isinstance(target, str) and target.strip().lower() == SOFTMAX:
        return SOFTMAX
    return target if isinstance(target, Target) else Target(target)


class SequenceSingleIndex(Model):
    r"""Labels of T tokens $x_t \sim N(0, I_d)$ through $z_t = x_t\cdot w^*$; alpha counts samples seen, n/d.

    - `target`: the function f: a formula in z, summed over tokens, $f = T^{-1/2}\sum_t \varphi(z_t)$; a formula in
      z1, z2, .. for the tokens one by one (up to three); or `"softmax"`, the attention matrix $softmax(z z^T)$.
    - `tokens`: their number T.
    - `positional`: the share $\omega$ of the label that knows positions only, of two tokens at $\pm$`place`.
    - `noise`: variance of Gaussian noise added to every entry of the label.
    - `encoding`: b, by which the label sets two tokens apart, $z_t \pm b$: places that it mixes with the meaning.
    """

    references = ("arnaboldi2025asymptotics",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "w.w*, of weights on the sphere; up to the sign where labels do not show it. Of a plain student of a "
        "formula in z1, z2, .. the length of its part along w* in every token",
        "squared_overlap": "square of the cosine",
        "positional_overlap": "|w.p|, with the direction p along which the student's tokens stand",
        "generalization_error": "E |y - f(x)|^2 over the entries of the noiseless label",
    }

    target: Any = eqx.field(converter=_as_target, static=True)
    tokens: int = eqx.field(static=True)
    positional: float = 0.0
    place: float = 1.0
    noise: float = 0.0
    encoding: float = 0.0

    def __check_init__(self):
        T = check_count("tokens", self.tokens, least=1)
        if self.whole:
            most = f"from 2 to {MOST_TOKENS}" if self.target == SOFTMAX else f"at most {MOST_TOKENS}"
            if T > MOST_TOKENS or (self.target == SOFTMAX and T < 2):
                raise bad_parameter("tokens", T, f"{most} for a function that is no sum over tokens")
            if self.target != SOFTMAX and self.target.projections > T:
                raise bad_parameter(
                    "tokens", T, f"at least {self.target.projections}, the tokens that the target names"
                )
        real_number("positional", self.positional, "between 0 and 1", lambda x: 0 <= x <= 1)
        real_number("place", self.place, "a finite number")
        real_number("noise", self.noise, "zero or positive", lambda x: x >= 0)
        real_number("encoding", self.encoding, "a finite number")
        for name in ("positional", "encoding"):
            if getattr(self, name) != 0 and T != 2:
                raise bad_parameter(name, getattr(self, name), "0 unless there are two tokens: others have no places")

    @property
    def whole(self) -> bool:
        """Whether the function is of all tokens at once, not a sum over them."""
        return self.target == SOFTMAX or self.target.projections > 1

    @property
    def joint(self) -> bool:
        """Whether labels are no sum of one and the same function of every token."""
        return self.whole or self.encoding != 0

    @property
    def function(self) -> Callable[[Any], Any]:
        """f, from T numbers to the entries of the label."""
        return _function(self.target, int(self.tokens), self.whole)

    def labels(self, z: np.ndarray) -> np.ndarray:
        """Labels (n, k) of projections (n, T), without noise."""
        omega = float(self.positional)
        if self.encoding != 0:
            z = z + float(self.encoding) * SIGNS
        with jax.enable_x64(True):
            values = np.asarray(_on_rows(self.function, jnp.asarray(z)))
            if omega == 0:
                return values
            return (1 - omega) * values + omega * np.asarray(self.function(jnp.asarray(float(self.place) * SIGNS)))


@functools.partial(jax.jit, static_argnums=0)
def _on_rows(function: Callable[[Any], Any], z: Any) -> Any:
    return jax.vmap(function)(z)


@functools.lru_cache(maxsize=64)
def _function(target: Any, tokens: int, whole: bool) -> Callable[[Any], Any]:
    if target == SOFTMAX:
        return lambda z: jax.nn.softmax(z[:, None] * z, axis=-1).ravel()
    if whole:
        return lambda z: target(z[: target.projections])[None]
    return lambda z: jnp.sum(target(z[:, None]), keepdims=True) / np.sqrt(tokens)
