r"""Attention-indexed models: one attention layer of extensive rank, seen through its attention matrix.

The scores of T tokens $x_a \sim N(0, I_d)$ are $h_{ab} = (x_a^T S x_b - \delta_{ab} \mathrm{Tr}\, S)/\sqrt d$ with
$S = W W^T/\sqrt{pd}$, W of d x p independent N(0, 1) entries, p = rho d; a label is a function of them. The posterior
mean of S given n = alpha d^2 labels is as good as that given $S + Z/\sqrt{\hat q}$, Z a Gaussian symmetric matrix, with

    qhat = 2 alpha E sum_{a<=b} (1 + delta_ab) g_ab^2,        estimation error = V = mmse(1 / qhat),

the sum being the information of a label at $h_{ab} \sim N(\omega_{ab}, (1 + \delta_{ab}) V)$: for softmax it is
$(T^2 + T - 2)/(2V)$. With untied keys and queries $S = U V^T/\sqrt{pd}$ is not symmetric, and a softmax label is
T (T - 1) measurements of its d^2 entries: solved as the model of a bilinear sequence at $\alpha T(T - 1)$.

**Untied layers of finite rank are approximated.** The score of a token with itself shows the symmetric part of S alone,
so that less is left unknown of that part, V_s, than of the antisymmetric one, V_a; what is solved has one V for both.
A softmax label shows $h = \mathrm{Tr}[M^T X S X^T]/\sqrt d$ for all M with M 1 = 0. With P_s and P_a the quadratic
forms on these M that are the squared norms of their two parts,

    K = V_s P_s + V_a P_a,    qhat_s = 2 alpha Tr[K^-1 P_s],    qhat_a = 2 alpha Tr[K^-1 P_a] .

For Gaussian S each V is 1/(1 + qhat), and their mean is that of one V, $1 - \alpha T(T - 1)$. For spikes, whose left
and right sides have no overlap, V_s = V_a. In between the best estimate from noise of two strengths is not known.

As rho grows, S without its mean eigenvalue $\sqrt\rho$ becomes a Gaussian matrix, $V = 1/(1 + \hat q)$. As rho falls, S
becomes a sum of spikes of height $\rho^{-1/2}$ that are seen from $\hat q = \rho$ on, the same for tied and for untied
keys and queries. [boncoraglio2025bayes]
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.memory import check_memory
from solvable.core.registry import thresholds_of
from solvable.core.results import Prediction
from solvable.engine.amp import AMPReport
from solvable.engine.cosines import cosine_error, cosines, cosines_of
from solvable.engine.erm import ERM
from solvable.engine.operators import PackedFeatures
from solvable.engine.outputs.gaussian import GaussianLabels, GaussianOutput
from solvable.engine.sides import BayesOutput, OutputDenoiser
from solvable.engine.signals.eigenvalues import EigenvalueDenoiser, EigenvalueSignal
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.signals.singular_values import SingularValueSignal
from solvable.engine.signals.spikes import Spikes
from solvable.engine.solvers.base import FixedPoints, Thresholds
from solvable.engine.token_pairs import OrderedPairs, TokenPairs, pairs
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.attention.indexed.hardmax import HardmaxLabels, HardmaxOutput, sample_information
from solvable.models.attention.indexed.hardmax_many import ManyHardmaxLabels, ManyHardmaxOutput, labels_of
from solvable.models.attention.indexed.hardmax_untied import (
    UntiedHardmaxLabels,
    UntiedHardmaxOutput,
    nothing_known,
    shift_of_own,
)
from solvable.models.attention.indexed.sampled import Function, SampledLabels, SampledOutput
from solvable.models.attention.indexed.sampled import labels_of as labels_by
from solvable.models.attention.indexed.softmax import log_softmax, measurements, visible, visible_of_row
from solvable.priors import Gaussian
from solvable.spectra import MarchenkoPastur, Semicircle

OUTPUTS = ("softmax", "hardmax")
MOST_HARDMAX = {True: 4, False: 16}
"""Tokens up to which the information of hardmax labels is tabulated, with tied and with untied keys and queries."""
_LEFT_OUT = 0.08
"""Of untied layers: the largest excess of runs at d = 140 over the theory was 5.1(8) % at V = 0.21 and 0.51."""


class AttentionData(NamedTuple):
    """Tokens `X` (n, T, d); labels `y`: for softmax the logarithms of the attention matrices (n, T, T), for hardmax the
    numbers of the largest scores (n, T), or of two tied tokens the signs of $h_{11} - h_{12}$ and $h_{22} - h_{12}$
    (n, 2), for a function its values (n, k); and `truth`, S (d x d), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


class AttentionIndexed(TwoSided):
    r"""The attention matrix of T tokens by a layer of tied keys and queries, from n = alpha d^2 samples.

    - `rho`: rank of the layer over the dimension, p/d. 0 is the limit of small rank, in which alpha counts samples over
      p d, and which has no runs; `float("inf")` that of large rank, a Gaussian matrix. With tied keys and queries the
      latter is for softmax alone, and S is then taken without its mean eigenvalue.
    - `tokens`: the number T of tokens of a sample, at least 2.
    - `output`: `"softmax"` for $softmax(\beta h)$, row by row, or `"hardmax"` for the token with the largest score in
      each row (T = 2 in closed form, T = 3 and 4 by a sampled table; untied, T up to 16).
      Or a function that maps scores (n, T, T) to n labels, each a number or an array, through a sampled channel.
    - `noise`: the variance of Gaussian noise on each number of a label, for an `output` that is a function; without
      noise its labels must be of a few values.
    - `beta`: the inverse temperature of the softmax, which does not change what can be learned.
    - `tied`: whether keys and queries are the same; if not, $S = U V^T/\sqrt{pd}$ of two independent layers, and the
      scores are $x_a^T S x_b/\sqrt d$, all T^2 of one variance. Their theory is an approximation (`exact`).
    """

    axes = (Axis("alpha", "n/d^2"),)
    without = (ERM,)
    references = ("boncoraglio2025bayes",)
    scaling: ClassVar[str] = "n = alpha d^2"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "Tr[S_hat S] / (|S_hat|_F |S|_F)",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|S_hat - S|_F^2 / d; 1 without samples, since the trace is known from the law",
    }

    rho: float
    tokens: int = eqx.field(static=True)
    output: str | Function = eqx.field(static=True)
    beta: float
    tied: bool = eqx.field(static=True)
    noise: float

    def __init__(
        self,
        rho: float,
        tokens: int,
        output: str | Function = "softmax",
        beta: float = 1.0,
        tied: bool = True,
        noise: float = 0.0,
    ):
        self.rho = check_rank(rho)
        self.tokens = check_count("tokens", tokens, least=2)
        if output not in OUTPUTS and not callable(output):
            names = ", ".join(repr(name) for name in OUTPUTS)
            raise bad_parameter("output", output, f"{names} or a function of the scores")
        if not isinstance(tied, bool):
            raise bad_parameter("tied", tied, "True or False")
        if output == "hardmax" and self.tokens > MOST_HARDMAX[tied]:
            kind = "tied" if tied else "untied"
            raise bad_parameter("tokens", tokens, f"2 to {MOST_HARDMAX[tied]} for hardmax of {kind} keys and queries")
        self.noise = real_number("noise", noise, "a number that is not negative", lambda x: x >= 0)
        if isinstance(output, str) and self.noise > 0:
            raise bad_parameter("noise", noise, f"0 for {output}")
        if tied and output != "softmax" and is_wide(self.rho):
            takes = "finite unless labels are softmax or tied = False: the mean eigenvalue of a layer, sqrt(rho), is"
            raise bad_parameter("rho", rho, f"{takes} known, and would decide every label")
        self.output, self.tied = output, tied
        self.beta = real_number("beta", beta, "a positive number", lambda x: x > 0)

    @property
    def exact(self) -> bool:
        """Whether the theory is exact in the limit of large d.

        Of untied layers it leaves out that the symmetric part of S is known better, which matters at finite rank and,
        but for softmax, at infinite rank.
        """
        return self.tied or not self.rho or (is_wide(self.rho) and self.output == "softmax")

    def left_out(self, V: np.ndarray) -> np.ndarray:
        """What the theory of untied layers may miss of an error V, by runs; nothing at both ends."""
        return np.zeros_like(V) if self.exact else _LEFT_OUT * V * (1 - V)

    @property
    def measurements(self) -> int:
        """The number of linear measurements that a softmax label is, T (T + 1)/2 - 1, or untied T (T - 1)."""
        T = self.tokens
        return T * (T + 1) // 2 - 1 if self.tied else T * (T - 1)

    def gain(self, **axes: Any) -> Any:
        """Labels for each of the d^2/2 unknowns, or untied d^2; for softmax, linear measurements."""
        return axes["alpha"] * self._share * (self.measurements if self.output == "softmax" else 1)

    @property
    def _share(self) -> int:
        """d^2 over the number of unknowns."""
        return 2 if self.tied else 1

    @property
    def known(self) -> float:
        """The square of the mean eigenvalue, by which what is always known of scores counts."""
        return float(self.rho) if self.tied and not is_wide(self.rho) else 0.0

    def signal_side(self) -> EigenvalueSignal | SingularValueSignal | SeparableSignal | Spikes:
        if not self.rho:
            return Spikes()
        if self.tied:
            return self._eigenvalues()
        return SeparableSignal(Gaussian()) if is_wide(self.rho) else SingularValueSignal(float(self.rho), 1.0)

    def _eigenvalues(self) -> EigenvalueSignal:
        return EigenvalueSignal(Semicircle() if is_wide(self.rho) else MarchenkoPastur(self.rho))

    def output_side(self) -> BayesOutput:
        if self.output == "softmax":
            return GaussianOutput(0.0)
        if callable(self.output):
            return self._sampled(self.output)
        if not self.tied:
            return UntiedHardmaxOutput(self.tokens)
        return HardmaxOutput(self.known) if self.tokens == 2 else ManyHardmaxOutput(self.known, self.tokens)

    def _sampled(self, function: Function) -> SampledOutput:
        return SampledOutput(function, self.tokens, self.known, float(self.noise), self.tied)

    def prediction(self, points: FixedPoints) -> Prediction:
        V, qhat = points.variance[:, 0, 0], points.field[:, 0, 0]
        error = points.uncertainty + self.left_out(V)
        power = 1 + self.known
        metrics = cosines(power - V, power - V, power)
        return Prediction(
            metrics=metrics | {"estimation_error": V},
            order_parameters={"qhat": qhat},
            status=points.status,
            residual=points.residual,
            iterations=points.iterations,
            uncertainty={
                "cosine": cosine_error(metrics["squared_overlap"], error / power),
                "squared_overlap": error / power,
                "estimation_error": error,
            },
        )

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> AttentionData:
        """A layer, n = round(alpha d^2) samples of T tokens (at least one) and their labels."""
        p, T = rank_of(self.rho, d), self.tokens
        count = max(1.0, axes["alpha"] * float(d) ** 2)
        check_memory(8.0 * count * T * (3 * d + T), f"{count:.4g} samples of {T} tokens of size {d}", "d", d)
        W = rng.standard_normal((d, p))
        if is_wide(self.rho):
            S = gaussian_layer(W) if self.tied else W / math.sqrt(d)
        else:
            S = W @ (W if self.tied else rng.standard_normal((d, p))).T / math.sqrt(p * d)
        X = rng.standard_normal((round(count), T, d))
        h = scores(X, S) if self.tied else np.matmul(X @ S, X.transpose(0, 2, 1)) / math.sqrt(d)
        if self.output == "softmax":
            return AttentionData(X, log_softmax(float(self.beta) * h), S)
        if callable(self.output):
            first, second, _ = pairs(T)
            y = labels_by(self.output, h[:, first, second] if self.tied else h.reshape(len(h), -1), T)
            return AttentionData(X, y + math.sqrt(float(self.noise)) * rng.standard_normal(y.shape), S)
        if T > 2 or not self.tied:
            return AttentionData(X, labels_of(h), S)
        return AttentionData(X, np.sign(np.stack([h[:, 0, 0], h[:, 1, 1]], 1) - h[:, 0, 1:]), S)

    def instance(self, data: AttentionData) -> Instance:
        if not self.tied:
            return self._untied(data)
        signal, d = self._eigenvalues(), data.X.shape[2]
        linear = self.output == "softmax"
        features = TokenPairs(data.X, visible(self.tokens)) if linear else TokenPairs(data.X, varying=False)
        operator = PackedFeatures(features)
        # The trace is known: its share of the scores is taken off the labels, or added to what is known of them.
        always = signal.mean * features.forward(np.eye(d))[:, None]
        denoiser = EigenvalueDenoiser(signal, operator, by_norm=not linear)
        unit = operator.unit(signal.variance)
        if linear:
            y = (measurements(data.y, float(self.beta)).reshape(-1, 1) - always) / unit
            output = GaussianLabels(y, 0.0, scattered=True)
        elif callable(self.output):
            output = SampledLabels(self.output_side(), data.y, always / unit)  # pyright: ignore[reportArgumentType]
        else:
            labels = HardmaxLabels if self.tokens == 2 else ManyHardmaxLabels
            output = labels(data.y, always / unit)

        def details(report: AMPReport) -> dict[str, Any]:
            return {"effective_noise": denoiser.effective_noise(float(report.A[0, 0]))}

        return Instance(
            operator,
            output,
            denoiser,
            start=lambda rng: np.zeros((operator.dimension, 1)),
            estimate=denoiser.matrix,
            details=details,
        )

    def _untied(self, data: AttentionData) -> Instance:
        """The operator leaves the trace of S out, of order 1/sqrt(d) in a score: softmax and hardmax labels show it."""
        d, linear = data.X.shape[2], self.output == "softmax"
        operator = OrderedPairs(data.X, visible_of_row(self.tokens) if linear else np.eye(self.tokens), varying=linear)
        return Instance(
            operator,
            self._untied_labels(data, operator),
            self.signal_side().denoiser(operator),  # pyright: ignore[reportArgumentType]
            start=lambda rng: np.zeros((d * d, 1)),
            estimate=lambda w: w.reshape(d, d) / math.sqrt(d),
        )

    def _untied_labels(self, data: AttentionData, operator: OrderedPairs) -> OutputDenoiser:
        if callable(self.output):
            return SampledLabels(self._sampled(self.output), data.y)
        if self.output == "hardmax":
            own = shift_of_own(data.y) * np.eye(self.tokens)
            return UntiedHardmaxLabels(data.y, np.tile(own.reshape(-1, 1), (len(data.y), 1)))
        # A label shows each row of scores up to its mean. The trace of S is their mean over samples.
        rows = visible_of_row(self.tokens)
        seen = np.matmul(data.y / float(self.beta), rows.T)
        seen -= rows.T * np.sum(seen * rows.T) / (len(seen) * np.sum(rows**2))
        y = data.X.shape[2] * seen / operator.norms
        return GaussianLabels(y.reshape(-1, 1), 0.0, scattered=True)

    def scores(self, estimate: np.ndarray, data: AttentionData, rng: np.random.Generator) -> dict[str, float]:
        error = float(np.sum((estimate - data.truth) ** 2) / len(data.truth))
        return {**cosines_of(estimate, data.truth), "estimation_error": error}


def check_rank(rho: Any) -> Any:
    """A rank over the dimension: a number that is not negative, or infinity."""
    if isinstance(rho, float) and rho == math.inf:
        return rho
    return real_number("rho", rho, "a number that is not negative, or infinity", lambda x: x >= 0)


def is_wide(rho: Any) -> bool:
    """Whether layers are of infinite rank over the dimension: Gaussian matrices."""
    return math.isinf(float(rho))


def rank_of(rho: Any, d: int) -> int:
    """The rank p of a layer in a run, d for a Gaussian one; refused where there is none."""
    if is_wide(rho):
        return d
    if not rho:
        raise bad_parameter("rho", 0, "positive for a run: the limit of small rank is known to theory alone")
    p = round(float(rho) * d)
    if p < 1:
        raise bad_parameter("d", d, f"at least 1/rho = {1 / float(rho):g}, so that a layer has a rank")
    return p


def gaussian_layer(W: np.ndarray) -> np.ndarray:
    """A symmetric Gaussian matrix of entries of variance 1/d, from W (d x d)."""
    return (W + W.T) / math.sqrt(2 * len(W))


def scores(X: np.ndarray, S: np.ndarray) -> np.ndarray:
    """The centred scores h (n, T, T) of tokens X (n, T, d)."""
    T, d = X.shape[1:]
    first, second, scale = pairs(T)
    h = np.zeros((len(X), T, T))
    h[:, first, second] = TokenPairs(X).forward(S).reshape(len(X), -1) * scale
    h[:, second, first] = h[:, first, second]
    return h


@thresholds_of(AttentionIndexed, references=("boncoraglio2025bayes",))
def attention_thresholds(model: AttentionIndexed) -> Thresholds:
    r"""strong_recovery: where S is known exactly, the number of its unknowns over that of measurements of a sample
    (infinite for hardmax); narrow_weak_recovery: where a layer of small rank begins to be seen, as rho -> 0. At rho = 0
    the latter is weak_recovery, of samples over p d; a layer of infinite rank has none.
    """
    strong = {} if callable(model.output) else {"strong_recovery": math.inf}
    if model.output == "softmax":
        strong = {"strong_recovery": model.at_gain(model.signal_side().dimension)}
    if is_wide(model.rho):
        return Thresholds(strong)
    name, unit = ("narrow_weak_recovery", float(model.rho)) if model.rho else ("weak_recovery", 1.0)
    weak, error = _weak_recovery(model)
    return Thresholds(strong, **{name: unit * weak}, errors={name: unit * error} if error else {})


def _weak_recovery(model: AttentionIndexed) -> tuple[float, float]:
    """The samples over p d from which on a layer of small rank is seen, 1 / (share of V I at V = 1), and the error."""
    error = 0.0
    if model.output == "softmax":
        J = model.measurements
    elif callable(model.output):
        J, error = model._sampled(model.output).at_nothing()
    elif not model.tied:
        J = model.tokens * nothing_known(model.tokens)
    elif model.tokens == 2:
        J = sample_information(0.0)
    else:
        J, error = ManyHardmaxOutput(0.0, model.tokens).at_nothing()
    weak = 1 / (model._share * J)
    return weak, weak * error
