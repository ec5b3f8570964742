r"""Labels that are any function of the projections of the T tokens of a sample, from n = alpha d samples.

$y = g(z) + \sqrt{noise}\,\xi$ with z (T x r), $z_{t,k} = x_t\cdot w_k^*/\sqrt d$. With one token it is the multi-index
model, and attention is a member. [troiani2025fundamental]
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.channels.sequence.function import FunctionChannel
from solvable.core.checks import check_count
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.registry import thresholds_of
from solvable.core.results import Prediction
from solvable.engine.erm import ERM
from solvable.engine.operators import Dense
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers import Continuation, Solver
from solvable.engine.solvers.base import FixedPoints, Thresholds
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.attention.sequence.metrics import prediction, scores
from solvable.models.attention.sequence.model import SequenceData, drawn, run_details
from solvable.priors import Gaussian
from solvable.targets.expression import Expression, evaluate
from solvable.targets.parser import parse_tokens

MOST_PROJECTIONS = 3


class SequenceIndex(TwoSided):
    r"""y = g(z) + sqrt(noise) xi, g of the projections $z_{t,k} = x_t\cdot w_k^*/\sqrt d$ of T tokens.

    - `target`: text in `z1[1]`, `z2[1]`, .. (projection 1 and 2 of the first token), such as `"sign(z1[1]*z1[2])"`; or
      a NumPy function of z (n, T, r) that returns labels (n,) or (n, m).
    - `tokens`: the number T of tokens of a sample.
    - `noise`: variance of the Gaussian noise added to each number of a label, at least 0.01; 0 where labels take
      finitely many values.
    - `projections`: the number r, up to 3; read off a text.

    Weights are Gaussian, $W^{*T} W^* = d I$ in runs.
    """

    without = (ERM,)
    references = ("troiani2025fundamental",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "of a posterior mean w_hat.w*/d = |w_hat|^2/d, or the matrix W*^T W_hat/d, up to signs and "
        "exchanges of projections that leave the target as it is",
        "overlap_1": "overlap with the first projection",
        "overlap_2": "overlap with the second projection",
        "overlap_3": "overlap with the third projection",
        "cosine": "<W_hat, W*> / (|W_hat| |W*|) over all entries, up to the same symmetries",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|W_hat - W*|^2 / d, up to the same symmetries",
        "generalization_error": "|g(z) - y_hat|^2 on fresh tokens, y_hat the posterior mean of the label",
        "plug_in_error": "the same with y_hat the target at the estimated projections",
    }

    target: str | Callable[[np.ndarray], np.ndarray] = eqx.field(static=True)
    tokens: int = eqx.field(static=True)
    noise: float
    projections: int = eqx.field(static=True)

    def __init__(
        self,
        target: str | Callable[[np.ndarray], np.ndarray],
        tokens: int,
        noise: float = 0.0,
        projections: int | None = None,
    ):
        self.tokens = check_count("tokens", tokens, least=1)
        self.target, self.noise = target, checked_variance(noise)
        if isinstance(target, str):
            found = -(-parse_tokens(target, self.tokens).projections // self.tokens)
            if projections not in (None, found):
                raise bad_parameter("projections", projections, f"{found}, those of the target, or left out")
            projections = found
        elif not callable(target):
            raise bad_parameter("target", target, "a text such as 'z1[1]*z1[2]' or a function")
        elif projections is None:
            raise bad_parameter("projections", None, "given with a function")
        self.projections = check_count("projections", projections, least=1)
        if self.projections > MOST_PROJECTIONS:
            raise bad_parameter("projections", self.projections, f"at most {MOST_PROJECTIONS}")
        _ = self.channel

    @property
    def quick_thresholds(self) -> bool:
        """They are searched for among averages over draws, which can take minutes."""
        return False

    @property
    def channel(self) -> FunctionChannel:
        """P(y|z)."""
        return _channel(self.target, self.tokens, self.projections, float(self.noise))

    def output_side(self) -> PosteriorOutput:
        return PosteriorOutput(self.channel)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(Gaussian(), self.projections)

    def solver(self) -> Solver:
        return _solver(self.channel)

    def prediction(self, points: FixedPoints) -> Prediction:
        return prediction(self.channel.clean, self.tokens, points)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SequenceData:
        """Directions with W*^T W* = d I, n = round(alpha d) samples of T tokens (at least one) and their labels."""
        X, W = drawn(rng, d, axes["alpha"], self.tokens, self.projections)
        return SequenceData(X, self.channel.sample(X @ W, rng), W)

    def instance(self, data: SequenceData) -> Instance:
        n, T, d = data.X.shape
        operator, channel = Dense(data.X.reshape(n * T, d)), self.channel
        signal, output = self.signal_side().denoiser(operator), PosteriorOutput(channel).denoiser(data.y)
        return Instance(operator, output, signal, self.projections, channel.row_resolution, details=run_details)

    def scores(self, estimate: np.ndarray, data: SequenceData, rng: np.random.Generator) -> dict[str, Any]:
        """The metrics of a posterior mean, turned by the symmetry of the target that brings it closest to the truth."""
        turned = max((estimate @ P for P in _symmetries(self.channel)), key=lambda W: np.vdot(W, data.truth))
        return scores(self.channel.clean, self.tokens, turned, data.truth, rng)


@thresholds_of(SequenceIndex, references=("troiani2025fundamental",))
def thresholds(model: SequenceIndex) -> Thresholds:
    """weak_recovery, and step_2, .. where the next directions are learned (0: at once, inf: not at n = alpha d)."""
    solver = model.solver()
    assert isinstance(solver, Continuation)
    steps = sorted(solver.steps, key=lambda step: step.alpha)
    found = {"weak_recovery" if not number else f"step_{number + 1}": step for number, step in enumerate(steps)}
    errors = {name: step.error for name, step in found.items()}
    return Thresholds({name: step.alpha for name, step in found.items()}, errors=errors)


@functools.lru_cache(maxsize=64)
def _solver(channel: FunctionChannel) -> Continuation:
    return Continuation(PosteriorOutput(channel), SeparableSignal(Gaussian(), channel.projections))


@functools.lru_cache(maxsize=64)
def _channel(target: Any, tokens: int, projections: int, noise: float) -> FunctionChannel:
    function: Any = target if callable(target) else functools.partial(_value, parse_tokens(target, tokens))
    return FunctionChannel(function, target, tokens, projections, noise)


def _value(expression: Expression, z: np.ndarray) -> np.ndarray:
    flat = np.swapaxes(z, -1, -2).reshape(len(z), -1)
    return np.broadcast_to(evaluate(expression, list(flat.T), np), len(z))


@functools.lru_cache(maxsize=64)
def _symmetries(channel: FunctionChannel) -> list[np.ndarray]:
    """The signed permutations of the projections that leave every label as it is."""
    z = np.random.default_rng(1).standard_normal((256, channel.tokens, channel.projections))
    labels, one = channel.clean(z), np.eye(channel.projections)
    found = []
    for order in itertools.permutations(range(channel.projections)):
        for signs in itertools.product((1.0, -1.0), repeat=channel.projections):
            P = one[:, list(order)] * signs
            if np.allclose(channel.clean(z @ P), labels):
                found.append(P)
    return found
