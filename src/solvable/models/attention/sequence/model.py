r"""Deep attention: layers of a few directions, learned from n = alpha d attention matrices.

With $z_{l,t} = x_t\cdot w_l^*/\sqrt d$ the label of one layer is $softmax(z z^T)$, row by row. Its rows show
$z_a (z_b - z_c)$, so that the label is z up to a common sign, whatever the temperature: `SignlessOutput`; of several
directions, up to a turn: `TurnedChannel`; of a query and a key, up to how their product is split: `UntiedChannel`. With
several layers it is a function of all $z_l$: `LayersChannel`, `TurnedLayersChannel`, `UntiedLayersChannel`.
[troiani2025fundamental]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.layers import LayersChannel, signless
from solvable.channels.sequence.network import last_projections, log_attention
from solvable.channels.sequence.turned import MOST_RANK, TurnedChannel
from solvable.channels.sequence.turned_layers import TurnedLayersChannel
from solvable.channels.sequence.untied import UntiedChannel
from solvable.channels.sequence.untied_layers import LEAST_RESIDUAL, UntiedLayersChannel
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.memory import check_memory
from solvable.core.model import Learner
from solvable.core.ranges import UNIT, Range
from solvable.core.registry import thresholds_of
from solvable.core.results import Prediction
from solvable.engine.cosines import cosines_of
from solvable.engine.erm import ERM
from solvable.engine.operators import Dense
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints, Thresholds
from solvable.engine.solvers.continuation import Continuation
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.attention.sequence.metrics import prediction, scores
from solvable.models.attention.sequence.signless import SignlessOutput
from solvable.numerics.subspaces import orthonormal
from solvable.priors import Gaussian

__all__ = ["DeepAttention", "SequenceData", "signless"]

MOST_LAYERS, MOST_WIDE_LAYERS = 4, 3
_RESIDUALS = (0.05, 100.0)


class SequenceData(NamedTuple):
    """Tokens `X` (n, T, d), entries of variance 1/d; labels `y`, of attention the logarithms (n, T, T) of its matrices;
    and the directions `truth` (d x r), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


class DeepAttention(TwoSided):
    r"""The attention matrix of the last of L layers, $y = softmax(u_L u_L^T)$ with $u_L = B_{L-1} z_L$,
    $z_{l,t} = x_t\cdot w_l^*/\sqrt d$, $B_0 = I$ and $B_l = [c I + softmax(u_l u_l^T)] B_{l-1}$.

    - `layers`: the number L of layers, up to 4, and up to 3 of several directions each.
    - `tokens`: the number T of tokens of a sample, at least 2.
    - `residual`: the strength c of the residual connection, from 0.05 to 100, and from 1 on for several layers of
      untied keys and queries; one layer has none.
    - `tied`: False for layers whose keys have a direction of their own: $u u^T$ is then $u_Q u_K^T$, and the directions
      of a layer are those of the query and of the key, one each.
    - `rank`: the number r of directions of a layer of tied keys and queries, less than T: up to 5 for one layer, up to
      2 for several. $u_l$ is T x r, and labels hide a turn of the r directions of each layer.

    Weights are Gaussian, $W^{*T} W^* = d I$ in runs.
    """

    without = (ERM,)
    references = ("troiani2025fundamental",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "of a posterior mean w_hat.w*/d = |w_hat|^2/d, up to the sign, which labels do not show; of several "
        "directions the matrix W*^T W_hat/d",
        "overlap_1": "overlap with the direction of the first layer, up to its sign; of layers of several directions "
        "they are counted layer by layer, up to a turn of those of a layer, or to the sign of its query and key",
        "overlap_2": "overlap with the direction of the second layer, or with the second direction",
        "overlap_3": "the same of the third",
        "overlap_4": "the same of the fourth",
        "overlap_5": "the same of the fifth direction",
        "overlap_6": "the same of the sixth",
        "cosine": "<W_hat, W*> / (|W_hat| |W*|) over the directions of all layers, each up to its sign or turn",
        "cosine_1": "in runs of several layers, that with the first direction, counted as for overlap_1",
        "cosine_2": "the same of the second",
        "cosine_3": "the same of the third",
        "cosine_4": "the same of the fourth",
        "cosine_5": "the same of the fifth",
        "cosine_6": "the same of the sixth",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|W_hat - W*|^2 / d, up to the same signs and turns",
        "generalization_error": "|y - y_hat|^2 of the attention matrix of fresh tokens, y_hat its posterior mean; of "
        "gradient descent the plug_in_error",
        "training_error": "the same of a training sample, with the attention matrix that the estimated directions make",
        "plug_in_error": "the same with y_hat the attention matrix that the estimated directions make",
    }

    layers: int = eqx.field(static=True)
    tokens: int = eqx.field(static=True)
    residual: float
    tied: bool = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    def __init__(self, layers: int, tokens: int, residual: float = 1.0, tied: bool = True, rank: int = 1):
        self.layers = check_count("layers", layers, least=1)
        if self.layers > MOST_LAYERS:
            raise bad_parameter("layers", layers, f"at most {MOST_LAYERS}")
        self.tokens = check_count("tokens", tokens, least=2)
        self.tied = tied
        if not isinstance(tied, bool):
            raise bad_parameter("tied", tied, "True or False")
        self.rank = check_count("rank", rank, least=1)
        if self.rank > 1:
            _check_rank(self)
        if self.width > 1 and self.layers > MOST_WIDE_LAYERS:
            raise bad_parameter("layers", layers, f"at most {MOST_WIDE_LAYERS} where a layer has several directions")
        least, most = _RESIDUALS
        words = f"from {least:g} to {most:g}"
        if not tied and self.layers > 1:
            least = LEAST_RESIDUAL
            words = f"from {least:g} to {most:g} with tied = False: below, a layer may take two tokens to one"
        self.residual = real_number("residual", residual, words, lambda c: least <= c <= most)

    @property
    def quick_thresholds(self) -> bool:
        """Those of several layers are searched for among matrices of overlaps, which takes minutes."""
        return self.layers == 1

    @property
    def width(self) -> int:
        """The number of directions of a layer."""
        return self.rank if self.tied else 2

    @property
    def directions(self) -> int:
        """The number of directions, layer by layer: those of its keys and queries, or of the query and of the key."""
        return self.layers * self.width

    @property
    def numbers(self) -> int:
        """How many numbers a label shows of its sample: T r but for a turn, or T (query) and T - 1 (key) but for a
        factor that they share."""
        T, r = self.tokens, self.rank
        return T * r - r * (r - 1) // 2 if self.tied else 2 * T - 2

    @property
    def channel(self) -> SequenceChannel:
        """P(y|z) of several directions."""
        layers = self.layers, self.tokens, float(self.residual)
        if not self.tied:
            return UntiedLayersChannel(*layers) if self.layers > 1 else UntiedChannel(self.tokens)
        if self.rank > 1:
            return TurnedLayersChannel(*layers) if self.layers > 1 else TurnedChannel(self.tokens, self.rank)
        return LayersChannel(*layers)

    def output_side(self) -> BayesOutput:
        return SignlessOutput(self.tokens) if self.directions == 1 else PosteriorOutput(self.channel)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(Gaussian(), self.directions)

    def hides_sign(self) -> bool:
        return True

    def labels(self) -> functools.partial[np.ndarray]:
        """Attention matrices (n, T, T) of projections (n, T, r)."""
        return _attention(float(self.residual), self.width, self.tied)

    def prediction(self, points: FixedPoints) -> Prediction:
        return prediction(self.labels(), self.tokens, points)

    def ranges(self, learner: Learner) -> dict[str, Range]:
        more = [f"overlap_{k + 1}" for k in range(3, self.directions)] if learner.posterior_mean else []
        return super().ranges(learner) | dict.fromkeys(more, UNIT)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SequenceData:
        """Directions with W*^T W* = d I, n = round(alpha d) samples of T tokens (at least one) and their labels."""
        X, W = drawn(rng, d, axes["alpha"], self.tokens, self.directions)
        u = last_projections(X @ W, float(self.residual), self.width, self.tied)
        return SequenceData(X, log_attention(u, self.tied), W)

    def instance(self, data: SequenceData) -> Instance:
        n, T, d = data.X.shape
        operator = Dense(data.X.reshape(n * T, d))
        signal = self.signal_side().denoiser(operator)
        if self.directions == 1:
            return Instance(operator, SignlessOutput(T).denoiser(signless(data.y)), signal, details=run_details)
        channel = self.channel
        output = PosteriorOutput(channel).denoiser(data.y)
        return Instance(operator, output, signal, self.directions, channel.row_resolution, details=run_details)

    def scores(self, estimate: np.ndarray, data: SequenceData, rng: np.random.Generator) -> dict[str, Any]:
        """The metrics of a posterior mean, the sign or turn of each layer being that of the truth."""
        aligned = np.concatenate([self._aligned(*parts) for parts in self._by_layer(estimate, data.truth)], axis=1)
        found = scores(self.labels(), self.tokens, aligned, data.truth, rng)
        if self.layers == 1:
            return found
        pairs = zip(aligned.T, data.truth.T, strict=True)
        return found | {f"cosine_{k + 1}": cosines_of(*pair)["cosine"] for k, pair in enumerate(pairs)}

    def _by_layer(self, *columns: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """The directions (d x width) of each layer."""
        starts = range(0, self.directions, self.width)
        return (tuple(part[:, start : start + self.width] for part in columns) for start in starts)

    def _aligned(self, estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Directions of a layer, turned as labels hide: by a sign that query and key share, or by any turn."""
        products = estimate.T @ truth
        if self.tied and self.rank > 1 and np.isfinite(products).all():
            left, _, right = np.linalg.svd(products)
            return estimate @ left @ right
        return estimate * (-1.0 if np.trace(products) < 0 else 1.0)


@thresholds_of(DeepAttention, references=("troiani2025fundamental",))
def thresholds(model: DeepAttention) -> Thresholds:
    """weak_recovery; layer_1, .. where each layer begins to be learned; strong_recovery, from which on exact knowledge
    of all layers is stable: a sample has so many `numbers`, and there are `directions` unknowns."""
    T, strong = model.tokens, model.directions / model.numbers
    if model.layers == 1 and model.width > 1:
        weak = model.rank / (T * (T + 1)) if model.tied else 1 / ((T - 1) * (T + np.sqrt(T**2 + 1)))
        return Thresholds(weak_recovery=weak, strong_recovery=strong)
    if model.layers == 1:
        known = model.solver().thresholds()
        return Thresholds(known, layer_1=known["weak_recovery"], strong_recovery=strong, errors=known.errors)
    solver = model.solver()
    assert isinstance(solver, Continuation)
    found, errors = {}, {}
    for step in sorted(solver.steps, key=lambda step: step.alpha):
        for axis in np.flatnonzero(np.abs(step.directions).max(axis=1) > 0.5):
            name = f"layer_{axis // model.width + 1}"
            if name not in found:
                found[name], errors[name] = step.alpha, step.error
    first = min(found, key=found.__getitem__)
    named = {"weak_recovery": found[first]} | {name: found[name] for name in sorted(found)}
    return Thresholds(named, strong_recovery=strong, errors=errors | {"weak_recovery": errors[first]})


def _check_rank(model: DeepAttention) -> None:
    """A `ValueError` for labels that are not undone here, which names what does take them."""
    rank, others = model.rank, "SequenceIndex takes a function of up to 3 projections, with noise"
    if not model.tied:
        takes = f"1 with tied = False: of several untied directions only the sum of products is shown; {others}"
        raise bad_parameter("rank", rank, takes)
    if rank >= model.tokens:
        takes = f"below the number of tokens, {model.tokens}: the label shows all but one of the numbers of z z^T, "
        raise bad_parameter("rank", rank, f"{takes}which fewer directions than tokens determine; {others}")
    if model.layers > 1 and rank > 2:
        raise bad_parameter("rank", rank, "1 or 2 for several layers: the turn of the last is drawn by an angle")
    if rank > MOST_RANK:
        raise bad_parameter("rank", rank, f"at most {MOST_RANK}: draws of turns of more directions are too uneven")


@functools.lru_cache(maxsize=64)
def _attention(residual: float, width: int, tied: bool) -> functools.partial[np.ndarray]:
    return functools.partial(attention_matrices, residual=residual, width=width, tied=tied)


def attention_matrices(z: np.ndarray, residual: float, width: int, tied: bool) -> np.ndarray:
    """The labels (n, T, T) of projections z (n, T, L width)."""
    return np.exp(log_attention(last_projections(z, residual, width, tied), tied))


def drawn(
    rng: np.random.Generator, d: int, alpha: float, tokens: int, directions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n, T, d) with entries of variance 1/d, and orthogonal directions (d x r) of norm sqrt(d)."""
    count = max(1.0, alpha * d)
    check_memory(8.0 * count * tokens * (d + 2 * tokens), f"{count:.4g} samples of {tokens} tokens", "d", d)
    if d < directions:
        raise bad_parameter("d", d, f"at least the number of directions, {directions}")
    if directions == 1:
        W = Gaussian().sample(rng, d)[:, None]
    else:
        W = np.sqrt(d) * orthonormal(rng.standard_normal((d, directions)))
    return rng.standard_normal((round(count), tokens, d)) / np.sqrt(d), W


def run_details(report: Any) -> dict[str, Any]:
    """The overlap that a run believes in."""
    W = report.estimate
    Q = W.T @ W / len(W)
    return {"self_overlap": float(Q[0, 0]) if len(Q) == 1 else Q}
