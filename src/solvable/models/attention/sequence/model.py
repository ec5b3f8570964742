r"""Attention of one direction of tied keys and queries, learned from the attention matrices of n = alpha d samples.

With $z_t = x_t\cdot w^*/\sqrt d$ the label is $softmax(z z^T)$, row by row. Its rows show $z_a (z_b - z_c)$, so that
the label is z up to a common sign, whatever the temperature: `SignlessOutput`. [troiani2025fundamental]
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter
from solvable.core.memory import check_memory
from solvable.engine.erm import ERM
from solvable.engine.operators import Dense
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.attention.indexed.softmax import log_softmax
from solvable.models.attention.sequence.signless import SignlessOutput
from solvable.priors import Gaussian


class SequenceData(NamedTuple):
    """Tokens `X` (n, T, d), entries of variance 1/d; the logarithms of the attention matrices `y` (n, T, T); and the
    direction `truth` (d x 1), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


class DeepAttention(TwoSided):
    r"""The attention matrix of T tokens by one direction, $y = softmax(z z^T)$ with $z_t = x_t\cdot w^*/\sqrt d$.

    - `layers`: the number of layers; 1, since deeper ones are not solved here yet.
    - `tokens`: the number T of tokens of a sample, at least 2.

    Weights are Gaussian, $|w^*|^2 = d$ in runs.
    """

    without = (ERM,)
    references = ("troiani2025fundamental",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "of a posterior mean w_hat.w*/d = |w_hat|^2/d, up to the sign, which labels do not show",
        "cosine": "w_hat.w* / (|w_hat| |w*|), up to the same sign",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|w_hat - w*|^2 / d, up to the same sign",
    }

    layers: int = eqx.field(static=True)
    tokens: int = eqx.field(static=True)

    def __init__(self, layers: int, tokens: int):
        self.layers = check_count("layers", layers, least=1)
        if self.layers > 1:
            raise bad_parameter("layers", layers, "1: deeper attention is not solved yet")
        self.tokens = check_count("tokens", tokens, least=2)

    def output_side(self) -> SignlessOutput:
        return SignlessOutput(self.tokens)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(Gaussian())

    def hides_sign(self) -> bool:
        return True

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SequenceData:
        """A direction with |w*|^2 = d, n = round(alpha d) samples of T tokens (at least one) and their labels."""
        count, T = max(1.0, axes["alpha"] * d), self.tokens
        check_memory(8.0 * count * T * (d + 2 * T), f"{count:.4g} samples of {T} tokens of size {d}", "d", d)
        w = Gaussian().sample(rng, d)
        X = rng.standard_normal((round(count), T, d))
        X /= np.sqrt(d)
        z = X @ w
        return SequenceData(X, log_softmax(z[:, :, None] * z[:, None, :]), w[:, None])

    def instance(self, data: SequenceData) -> Instance:
        n, T, d = data.X.shape
        operator = Dense(data.X.reshape(n * T, d))
        output = self.output_side().denoiser(signless(data.y))
        return Instance(operator, output, self.signal_side().denoiser(operator), details=_details)


def _details(report: Any) -> dict[str, Any]:
    return {"self_overlap": float(np.mean(report.estimate**2))}


def signless(log_y: np.ndarray) -> np.ndarray:
    r"""u = +-z (n, T) from the logarithms of labels (n, T, T).

    Rows without their means are $z v^T$ with $v = z - \bar z$: a rank-one matrix of size $\sigma = |z||v|$, which
    fixes the length of z, given its direction, by $\sigma = |z|^2 |\hat z - mean|$.
    """
    centred = log_y - log_y.mean(axis=-1, keepdims=True)
    left, sizes, _ = np.linalg.svd(centred)
    direction = left[..., 0]
    spread = np.linalg.norm(direction - direction.mean(axis=-1, keepdims=True), axis=-1)
    length = np.sqrt(sizes[..., 0] / np.maximum(spread, np.finfo(float).tiny))
    return direction * length[:, None]
