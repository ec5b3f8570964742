r"""Several attention layers of extensive rank, seen through the attention matrix of the last.

The layers are $S_l = W_l W_l^T/\sqrt{pd}$ less their mean eigenvalue, or symmetric Gaussian matrices in the limit of
large rank. Their scores $h_l = X S_l X^T/\sqrt d$ of T tokens make the label alone (`IndexedLayersChannel`), so that
the order parameters are L x L matrices,

    qhat = 2 alpha E sum_t g_t g_t^T,        Y_l = S_l + sum_k (qhat^{-1/2})_{lk} Z_k,        V = the error matrix,

over the k = T (T + 1)/2 - 1 coordinates t that labels show. Independent layers seen with noises that are correlated,
the *multiplexed* denoising, is open. But **with two layers the noises are not correlated**: scores of zero mean have
the law of their negatives, and of (h_1, -h_2) the label is that with u_2 turned around, so that $g_1\cdot g_2$ is odd
and qhat diagonal wherever V is. Each layer is then denoised alone. For more layers of finite rank that is an
approximation.

Without the mean eigenvalue scores do not know how alike tokens are by themselves; with it, all layers would have the
same part $\sqrt\rho\, x_a\cdot x_b/\sqrt d$ of scores known, which correlates them. [boncoraglio2025bayes]
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.channels.sequence.indexed_layers import IndexedLayersChannel, last_scores, scores_of
from solvable.channels.sequence.network import log_softmax
from solvable.core.axis import Axis
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.memory import check_memory
from solvable.core.registry import thresholds_of
from solvable.core.results import Prediction
from solvable.engine.erm import ERM
from solvable.engine.operators import PackedFeatures
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesSignal, OutputStep, SignalStep
from solvable.engine.signals.eigenvalues import EigenvalueDenoiser, EigenvalueSignal
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.signals.spikes import Spikes
from solvable.engine.solvers.apart import Apart
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds
from solvable.engine.solvers.continuation import Continuation
from solvable.engine.token_pairs import TokenPairs
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.attention.indexed.model import check_rank, gaussian_layer, is_wide, rank_of, scores
from solvable.models.attention.indexed.softmax import measurements, visible
from solvable.models.attention.sequence.metrics import prediction
from solvable.models.attention.sequence.metrics import scores as scores_of_directions
from solvable.numerics.roots import regula_falsi
from solvable.priors import Gaussian
from solvable.spectra import MarchenkoPastur

MOST_LAYERS = 3
_RESIDUALS = (1.0, 100.0)
_NARROW = 1e-4
"""To what relative precision the thresholds of small rank are sought."""
_SCATTER = 1e-3, 2.0
"""The least and the largest V that labels may show."""


class DeepAttentionData(NamedTuple):
    """Tokens `X` (n, T, d); the logarithms `y` (n, T, T) of attention matrices; and `truth`, the layers (L, d, d)."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


class DeepAttentionIndexed(TwoSided):
    r"""The attention matrix of the last of several layers of extensive rank, from n = alpha d^2 samples.

    - `rho`: rank p of each layer over the dimension. `float("inf")` is the limit of large rank, Gaussian layers; 0 that
      of small rank, in which alpha counts samples over p d, and which has no runs.
    - `layers`: their number, 2 or 3. One layer is `AttentionIndexed`.
    - `tokens`: the number T of tokens of a sample.
    - `residual`: strength c of the residual connection, at least 1, so that every layer can be undone.
    - `beta`: the inverse temperature of the softmax.

    Two layers, and both limits, are solved exactly. Three layers of finite rank are solved as if the noises of
    their matrices were not correlated: an approximation, never marked converged.
    """

    axes = (Axis("alpha", "n/d^2"),)
    without = (ERM,)
    references = ("boncoraglio2025bayes",)
    scaling: ClassVar[str] = "n = alpha d^2"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "of a posterior mean Tr[S_hat_l S_k]/d, a matrix over layers",
        "overlap_1": "that of the first layer",
        "overlap_2": "that of the second layer",
        "overlap_3": "that of the third layer",
        "cosine": "Tr[S_hat S] / (|S_hat|_F |S|_F) over the entries of all layers",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|S_hat - S|_F^2 / d, summed over layers; each layer has 1 without samples",
        "generalization_error": "|y - y_hat|^2 of the attention matrix of fresh tokens, y_hat its posterior mean",
        "plug_in_error": "the same with y_hat the attention matrix that the estimated layers make",
    }

    rho: float
    layers: int = eqx.field(static=True)
    tokens: int = eqx.field(static=True)
    residual: float
    beta: float

    def __init__(self, rho: float, layers: int, tokens: int, residual: float = 1.0, beta: float = 1.0):
        self.rho = check_rank(rho)
        self.layers = check_count("layers", layers, least=2)
        if self.layers > MOST_LAYERS:
            raise bad_parameter("layers", layers, f"2 or {MOST_LAYERS}; one layer is AttentionIndexed")
        self.tokens = check_count("tokens", tokens, least=2)
        least, most = _RESIDUALS
        self.residual = real_number("residual", residual, f"from {least:g} to {most:g}", lambda c: least <= c <= most)
        self.beta = real_number("beta", beta, "a positive number", lambda x: x > 0)

    @property
    def quick_thresholds(self) -> bool:
        """They are averages over labels, which take seconds."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether the layers are Gaussian matrices."""
        return is_wide(self.rho)

    @property
    def exact(self) -> bool:
        """Whether the theory is exact in the limit of large d: not for three layers of finite rank."""
        return self.gaussian or self.layers == 2 or float(self.rho) == 0

    @property
    def channel(self) -> IndexedLayersChannel:
        """P(y|z) of the scores."""
        return _channel(self.layers, self.tokens, float(self.residual), float(self.beta))

    def gain(self, **axes: Any) -> Any:
        """Labels for each of the d^2/2 unknowns of a layer."""
        return 2 * axes["alpha"]

    def output_side(self) -> PosteriorOutput:
        return _output(self.channel)

    def signal_side(self) -> BayesSignal:
        """That of one layer of finite rank, or of all Gaussian ones."""
        return SeparableSignal(Gaussian(), self.layers) if self.gaussian else _signal(float(self.rho))

    def solver(self) -> Solver:
        return _solver(self.channel, float(self.rho), self.exact)

    def prediction(self, points: FixedPoints) -> Prediction:
        return prediction(self.labels(), self.channel.tokens, points)

    def labels(self) -> functools.partial[np.ndarray]:
        """Attention matrices (n, T, T) of coordinates (n, k, L) of scores."""
        return _labels(self.tokens, float(self.residual), float(self.beta))

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> DeepAttentionData:
        """The layers, n = round(alpha d^2) samples of T tokens (at least one) and their labels."""
        T, p = self.tokens, rank_of(self.rho, d)
        count = max(1.0, axes["alpha"] * float(d) ** 2)
        check_memory(8.0 * count * T * (3 * d + T), f"{count:.4g} samples of {T} tokens of size {d}", "d", d)
        S = np.stack([self._layer(rng, d, p) for _ in range(self.layers)])
        X = rng.standard_normal((round(count), T, d))
        h = np.stack([scores(X, layer) for layer in S], axis=-1)
        u = last_scores(h, float(self.residual), float(self.beta))
        return DeepAttentionData(X, log_softmax(float(self.beta) * u), S)

    def _layer(self, rng: np.random.Generator, d: int, p: int) -> np.ndarray:
        W = rng.standard_normal((d, p))
        S = gaussian_layer(W) if self.gaussian else W @ W.T / math.sqrt(p * d)
        S.flat[:: d + 1] -= np.trace(S) / d
        return S

    def instance(self, data: DeepAttentionData) -> Instance:
        d = data.X.shape[2]
        operator = PackedFeatures(TokenPairs(data.X, visible(self.tokens), varying=False))
        N, scale = operator.dimension, math.sqrt(operator.dimension / d)
        output = ScatteredLabels(PosteriorOutput(self.channel).denoiser(measurements(data.y, float(self.beta))))
        side = self.signal_side()
        if isinstance(side, EigenvalueSignal):
            signal = _EachLayer(EigenvalueDenoiser(side, operator))
        else:
            signal = side.denoiser(operator)

        def matrices(W: np.ndarray) -> np.ndarray:
            return np.stack([operator.matrix(column) / scale for column in W.T])

        return Instance(
            operator,
            output,
            signal,
            self.layers,
            self.channel.row_resolution,
            start=lambda rng: np.zeros((N, self.layers)),
            estimate=matrices,
        )

    def scores(self, estimate: np.ndarray, data: DeepAttentionData, rng: np.random.Generator) -> dict[str, Any]:
        d = data.X.shape[2]
        # Columns of norm d, the root of the number of their entries.
        found, truth = (np.sqrt(d) * part.reshape(self.layers, -1).T for part in (estimate, data.truth))
        return scores_of_directions(self.labels(), self.channel.tokens, found, truth, rng)


class ScatteredLabels:
    r"""A posterior at the V that labels show: the mean over samples of $E[(z_l - \omega_l)^2 | y]$ at the V given.

    At small d the norm of an estimate says too little of its error, and message passing would run away.
    """

    def __init__(self, labels: Any):
        self._labels = labels

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        V = np.diag(np.diag(V))
        found = self._labels(Omega, V)
        # From g and its derivative: V - V a V is the mean covariance, V g the shift of the mean.
        spread = np.diag(V - V @ found.minus_derivative @ V) + np.diag(V) ** 2 * np.mean(found.g**2, axis=0)
        seen = np.diag(np.clip(spread, *_SCATTER))
        found = self._labels(Omega, seen)
        return found._replace(variance=seen)


class _EachLayer:
    """The denoiser of several layers, each by itself."""

    def __init__(self, one: EigenvalueDenoiser):
        self._one = one

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        steps = [self._one(B[:, [k]], precision[k : k + 1, k : k + 1]) for k in range(B.shape[1])]
        response, A = (
            np.diag([float(part[0, 0]) for part in parts]) for parts in zip(*[s[1:3] for s in steps], strict=True)
        )
        return SignalStep(np.concatenate([step.estimate for step in steps], axis=1), response, A)


@thresholds_of(DeepAttentionIndexed, references=("boncoraglio2025bayes",))
def thresholds(model: DeepAttentionIndexed) -> Thresholds:
    """strong_recovery: where labels have as many numbers as the layers have unknowns; layer_1, .. where each layer of
    small rank begins to be seen, and for a finite rank the same times rho, narrow_layer_1, ..
    """
    solver = model.solver()
    strong = model.at_gain(solver.gain_perfect if isinstance(solver, Apart) else model.layers / model.channel.tokens)
    if model.gaussian:
        return Thresholds(strong_recovery=strong)
    narrow, rho = narrow_thresholds(model.with_field("rho", 0.0)), float(model.rho)
    unit, prefix = (rho, "narrow_") if rho else (1.0, "")
    errors = {f"{prefix}{name}": unit * error for name, error in narrow.errors.items()}
    named = {f"{prefix}{name}": unit * value for name, value in narrow.items()}
    return Thresholds(named, strong_recovery=strong, errors=errors)


def narrow_thresholds(model: DeepAttentionIndexed) -> Thresholds:
    r"""layer_1, .. of layers of small rank: each is seen where $\hat q_{ll}/\rho$ reaches one, given what is known of
    those that were seen before.
    """
    solver = model.solver()
    assert isinstance(solver, Apart)

    def reached(alpha: float, layer: int) -> tuple[float, float]:
        """$\\hat q_{ll}/\\rho$ at the fixed point, and its relative error."""
        gain = model.gain(alpha=alpha)
        average = solver.labels(solver.uninformed(np.array([gain])))
        return gain * average.information[layer, layer], average.error / average.information[layer, layer]

    nothing = solver.labels(FixedPoints.nothing(model.layers))
    information = np.diag(nothing.information)
    alone = 1 / (model.gain(alpha=1.0) * information)
    order, top = np.argsort(alone), model.at_gain(solver.gain_perfect)
    places = {int(order[0]): (float(alone[order[0]]), float(nothing.error / information[order[0]]))}
    low = alone[order[0]]
    for layer in map(int, order[1:]):
        found = regula_falsi(
            lambda alpha, layer=layer: np.log(reached(float(alpha), layer)[0]),
            low,
            min(alone[layer], top),
            tolerance=_NARROW,
            max_steps=12,
        )
        places[layer] = float(found.x), reached(float(found.x), layer)[1] + _NARROW
    named = {f"layer_{layer + 1}": places[layer][0] for layer in sorted(places)}
    return Thresholds(
        named, errors={f"layer_{layer + 1}": places[layer][0] * places[layer][1] for layer in sorted(places)}
    )


@functools.lru_cache(maxsize=64)
def _channel(layers: int, tokens: int, residual: float, beta: float) -> IndexedLayersChannel:
    return IndexedLayersChannel(layers, tokens, residual, beta)


@functools.lru_cache(maxsize=64)
def _output(channel: IndexedLayersChannel) -> PosteriorOutput:
    return PosteriorOutput(channel)


@functools.lru_cache(maxsize=64)
def _signal(rho: float) -> BayesSignal:
    return EigenvalueSignal(MarchenkoPastur(rho)) if rho else Spikes()


@functools.lru_cache(maxsize=64)
def _solver(channel: IndexedLayersChannel, rho: float, exact: bool) -> Solver:
    if math.isinf(rho):
        return Continuation(_output(channel), SeparableSignal(Gaussian(), channel.layers))
    return Apart(_output(channel), _signal(rho), exact)


@functools.lru_cache(maxsize=64)
def _labels(tokens: int, residual: float, beta: float) -> functools.partial[np.ndarray]:
    return functools.partial(_attention, tokens=tokens, residual=residual, beta=beta)


def _attention(z: np.ndarray, tokens: int, residual: float, beta: float) -> np.ndarray:
    return np.exp(log_softmax(beta * last_scores(scores_of(z, tokens), residual, beta)))
