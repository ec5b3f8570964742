r"""Deep attention: layers of one direction of tied keys and queries, learned from n = alpha d attention matrices.

With $z_{l,t} = x_t\cdot w_l^*/\sqrt d$ the label of one layer is $softmax(z z^T)$, row by row. Its rows show
$z_a (z_b - z_c)$, so that the label is z up to a common sign, whatever the temperature: `SignlessOutput`. With several
layers it is a function of all $z_l$: `LayersChannel`. [troiani2025fundamental]
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.layers import LayersChannel, last_scores, log_softmax, signless
from solvable.channels.sequence.turned import RANK, TurnedChannel
from solvable.channels.sequence.untied import UntiedChannel
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

MOST_LAYERS = 4
UNTIED, TURNED = "untied", "turned"
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

    - `layers`: the number L of layers, up to 4.
    - `tokens`: the number T of tokens of a sample, at least 2.
    - `residual`: the strength c of the residual connection, from 0.05 to 100; one layer has none.
    - `tied`: False for one layer whose keys have a direction of their own: $y = softmax(z_Q z_K^T)$, and the directions
      are those of the query and of the key.
    - `rank`: 2 for one layer of two directions, $y = softmax(z z^T)$ with z of T x 2, of three tokens or more; its
      label hides a turn of the plane of both.

    Weights are Gaussian, $W^{*T} W^* = d I$ in runs.
    """

    without = (ERM,)
    references = ("troiani2025fundamental",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "of a posterior mean w_hat.w*/d = |w_hat|^2/d, up to the sign, which labels do not show; of several "
        "layers the matrix W*^T W_hat/d",
        "overlap_1": "overlap with the direction of the first layer, up to its sign; of a layer of rank two with the "
        "first direction, up to a turn of both",
        "overlap_2": "overlap with the direction of the second layer",
        "overlap_3": "overlap with the direction of the third layer",
        "overlap_4": "overlap with the direction of the fourth layer",
        "cosine": "<W_hat, W*> / (|W_hat| |W*|) over the directions of all layers, each up to its sign",
        "cosine_1": "in runs of several layers, that with the direction of the first layer, up to its sign",
        "cosine_2": "the same of the second layer",
        "cosine_3": "the same of the third layer",
        "cosine_4": "the same of the fourth layer",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|W_hat - W*|^2 / d, up to the same signs",
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
        if not isinstance(tied, bool) or not (tied or self.layers == 1):
            raise bad_parameter("tied", tied, "True, or False for one layer")
        self.rank = check_count("rank", rank, least=1)
        if self.rank > RANK or (self.rank > 1 and not (self.layers == 1 and tied and self.tokens > RANK)):
            takes = f"1, or {RANK} for one layer of tied keys and queries on more than {RANK} tokens"
            raise bad_parameter("rank", rank, f"{takes}; see SequenceIndex for others")
        least, most = _RESIDUALS
        self.residual = real_number("residual", residual, f"from {least:g} to {most:g}", lambda c: least <= c <= most)

    @property
    def quick_thresholds(self) -> bool:
        """Those of several layers are searched for among matrices of overlaps, which takes minutes."""
        return self.layers == 1

    @property
    def directions(self) -> int:
        """The number of directions: layers, query and key, or those of one layer."""
        return max(self.layers, self.rank) if self.tied else 2

    @property
    def form(self) -> float | str:
        """What makes labels of projections: the residual strength, or the name of a layer of its own kind."""
        return float(self.residual) if self.tied and self.rank == 1 else (TURNED if self.tied else UNTIED)

    @property
    def channel(self) -> SequenceChannel:
        """P(y|z) of several directions."""
        if self.rank > 1:
            return TurnedChannel(self.tokens)
        layers = LayersChannel(self.layers, self.tokens, float(self.residual))
        return layers if self.tied else UntiedChannel(self.tokens)

    def output_side(self) -> BayesOutput:
        return SignlessOutput(self.tokens) if self.directions == 1 else PosteriorOutput(self.channel)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(Gaussian(), self.directions)

    def hides_sign(self) -> bool:
        return True

    def labels(self) -> functools.partial[np.ndarray]:
        """Attention matrices (n, T, T) of projections (n, T, r)."""
        return _attention(self.form)

    def prediction(self, points: FixedPoints) -> Prediction:
        return prediction(self.labels(), self.tokens, points)

    def ranges(self, learner: Learner) -> dict[str, Range]:
        more = {"overlap_4": UNIT} if learner.posterior_mean else {}
        return super().ranges(learner) | more

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SequenceData:
        """Directions with W*^T W* = d I, n = round(alpha d) samples of T tokens (at least one) and their labels."""
        X, W = drawn(rng, d, axes["alpha"], self.tokens, self.directions)
        return SequenceData(X, log_attention(X @ W, self.form), W)

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
        """The metrics of a posterior mean, the sign of each direction being that of the truth."""
        # Labels hide the sign of each layer, and of untied keys and queries the common one.
        if self.rank > 1:
            left, _, right = np.linalg.svd(estimate.T @ data.truth)
            return scores(self.labels(), self.tokens, estimate @ left @ right, data.truth, rng)
        products = np.sum(estimate * data.truth, axis=0)
        signs = np.where((products if self.tied else products.sum()) < 0, -1.0, 1.0)
        found = scores(self.labels(), self.tokens, estimate * signs, data.truth, rng)
        if not self.tied or self.layers == 1:
            return found
        pairs = zip(estimate.T * signs[:, None], data.truth.T, strict=True)
        return found | {f"cosine_{k + 1}": cosines_of(*pair)["cosine"] for k, pair in enumerate(pairs)}


@thresholds_of(DeepAttention, references=("troiani2025fundamental",))
def thresholds(model: DeepAttention) -> Thresholds:
    """weak_recovery; layer_1, .. where each layer begins to be learned; strong_recovery, from which on exact knowledge
    of all layers is stable: a sample has T numbers, and there are L unknowns."""
    if not model.tied:
        T = model.tokens
        return Thresholds(weak_recovery=1 / ((T - 1) * (T + np.sqrt(T**2 + 1))), strong_recovery=1 / (T - 1))
    if model.rank > 1:
        T = model.tokens
        return Thresholds(weak_recovery=model.rank / (T * (T + 1)), strong_recovery=2 / (2 * T - 1))
    strong = model.layers / model.tokens
    if model.layers == 1:
        known = model.solver().thresholds()
        return Thresholds(known, layer_1=known["weak_recovery"], strong_recovery=strong, errors=known.errors)
    solver = model.solver()
    assert isinstance(solver, Continuation)
    found, errors = {}, {}
    for step in solver.steps:
        for layer in np.flatnonzero(np.abs(step.directions).max(axis=1) > 0.5):
            found[f"layer_{layer + 1}"] = step.alpha
            errors[f"layer_{layer + 1}"] = step.error
    first = min(found, key=found.__getitem__)
    named = {"weak_recovery": found[first]} | {name: found[name] for name in sorted(found)}
    return Thresholds(named, strong_recovery=strong, errors=errors | {"weak_recovery": errors[first]})


@functools.lru_cache(maxsize=64)
def _attention(form: float | str) -> functools.partial[np.ndarray]:
    return functools.partial(attention_matrices, form=form)


def attention_matrices(z: np.ndarray, form: float | str) -> np.ndarray:
    """The labels (n, T, T) of projections z (n, T, r)."""
    return np.exp(log_attention(z, form))


def log_attention(z: np.ndarray, form: float | str) -> np.ndarray:
    """Logarithms of labels: of the last of r layers with a residual strength, or of one layer of two directions, query
    and key (`UNTIED`) or both of both (`TURNED`)."""
    if form == UNTIED:
        return log_softmax(z[:, :, None, 0] * z[:, None, :, 1])
    if isinstance(form, str):
        return log_softmax(z @ z.swapaxes(1, 2))
    u = last_scores(z, form)
    return log_softmax(u[:, :, None] * u[:, None, :])


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
