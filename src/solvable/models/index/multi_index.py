"""The multi-index model: labels that depend on the input through a few hidden projections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.channels import Channel, Logit, Probit, channel_of
from solvable.channels.base import TargetChannel
from solvable.channels.contamination import (
    Component,
    Contamination,
    as_contamination,
    components_of,
    contaminate,
    merged,
)
from solvable.core.errors import NotSolvable, bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import BLOCK, Data, Stream
from solvable.core.results import Prediction
from solvable.engine.amp import AMPReport
from solvable.engine.operators import Dense
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.two_sided import SMALLEST_V, Instance, TwoSided
from solvable.models.index.metrics import knowing_nothing, prediction
from solvable.models.index.scores import aligned, scores
from solvable.numerics.subspaces import orthonormal
from solvable.priors import Gaussian, Prior, as_prior
from solvable.targets.target import Target


class MultiIndex(TwoSided):
    """y = g(z) + sqrt(noise) xi with z = X W*, X of n x d independent N(0, 1/d) entries, and n = alpha d samples.

    - `target`: g of one to three projections, as text (`"abs(z)"`, `"z1**2 + sign(z1*z2*z3)"`), a `Target`, or a
      function of one projection written with `jax.numpy`; or a named channel such as `sv.channels.Probit(noise=0.5)`,
      which brings its own noise.
    - `noise`: variance of the Gaussian noise added to the label.
    - `prior`: law of the weights W*: `"gaussian"`; for one projection also `"rademacher"`, `"gauss-bernoulli:RHO"`, or
      any `Prior`.
    - `contamination`: for one projection, `sv.Contamination(fraction, slope, noise)` or several: that share of the
      labels is y = slope g(z) + sqrt(noise) xi instead. As text, `"0.3:0:5"` is fraction 0.3, slope 0, noise 5.

    With r projections W* is d x r and overlaps are r x r matrices. Simulated teachers are normalised, W*^T W* = d I.
    """

    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "<W_hat, W*> / (|W_hat| |W*|) over all entries, aligned over the target's symmetries; of a "
        "network, the root of the mean share of the directions in the span of its neurons, signed for one and one; of "
        "a kernel W_hat is its gradient at x = 0 times the unit vector along E[y z]",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "overlap": "of a posterior mean w_hat.w*/d = |w_hat|^2/d; with several projections the matrix W*^T W_hat/d, "
        "aligned over the target's symmetries (of Spectral too: the posterior mean given its eigenvectors)",
        "overlap_1": "overlap with the first projection, the first diagonal entry of the overlap matrix",
        "overlap_2": "overlap with the second projection",
        "overlap_3": "overlap with the third projection",
        "estimation_error": "|W_hat - W*|^2 / d, up to the symmetries of the target, such as w* -> -w* for an even one",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "classification_error": "probability that the most probable label is wrong, against the noiseless label",
        "training_error": "of a kernel: mean squared error on the labels seen, with their noise",
        "training_loss": "mean loss on the training samples, without the penalty",
        "replicon": "stability of a minimum of the risk against splitting into many: theory holds below 1",
        "share_1": "of a network: how much of the first direction lies in the span of its neurons, [M^T Q^-1 M]_11",
        "share_2": "how much of the second direction lies in the span of the neurons",
        "share_3": "how much of the third direction lies in the span of the neurons",
        "norm": "of a network: root of the mean of |w_i|^2 over its neurons",
        "active_fraction": "share of the weights that are not zero",
    }

    target: Target = eqx.field(static=True)
    noise: float
    prior: Prior
    named_channel: TargetChannel | None = eqx.field(static=True)
    # Points of sweeps are filed under every field but this one where it is empty: they keep the ids they had before it.
    contamination: tuple[Contamination, ...] = eqx.field(metadata={"left_out": ()})

    def __init__(
        self,
        target: str | Target | TargetChannel | Callable[..., Any],
        noise: float = 0.0,
        prior: str | Prior = "gaussian",
        named_channel: TargetChannel | None = None,
        contamination: Contamination | Sequence[Contamination] | str | None = None,
    ):
        if isinstance(target, TargetChannel):
            named_channel, target = target, target.target
        self.noise = checked_variance(noise)
        if named_channel is not None and noise != 0:
            raise bad_parameter("noise", noise, f"0 with the named channel {named_channel!r}, which has its own")
        self.target = _as_target(target)
        self.prior = as_prior(prior)
        self.named_channel = named_channel
        self.contamination = as_contamination(contamination)
        if self.contamination:
            _check_contamination(self.target, named_channel, self.contamination)

    @property
    def projections(self) -> int:
        """The number r of projections."""
        return self.target.projections

    @property
    def quick_thresholds(self) -> bool:
        """Those of several projections are searched for among matrices of overlaps, which can take minutes."""
        return self.projections == 1

    @property
    def components(self) -> tuple[Component, ...]:
        """The (probability, slope, noise) of each component of the labels' mixture, that of the clean ones first."""
        return components_of(self.noise, self.contamination)

    @property
    def channel(self) -> Channel:
        """The output channel P(y|z)."""
        if self.projections > 1 and not isinstance(self.prior, Gaussian):
            raise NotSolvable(
                f"the prior {self.prior} is solved for one projection; with {self.projections} projections the weights "
                'are Gaussian: use prior="gaussian".'
            )
        return channel_of(self.named_channel or self.target, components=self.components)

    def output_side(self) -> PosteriorOutput:
        return PosteriorOutput(self.channel)

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(self.prior, self.projections)

    def likelihood(self) -> Likelihood:
        if self.named_channel is not None or self.projections > 1:
            return super().likelihood()
        # Not by the channel: contaminated labels may have no posterior that is known, and a loss needs none.
        return Likelihood(self.target, tuple(part for part in self.components if part[0] > 0))

    def instance(self, data: Data) -> Instance:
        channel, r = self.channel, self.projections

        def details(report: AMPReport) -> dict[str, Any]:
            estimate = aligned(self, report.estimate, data.truth)
            Q = estimate.T @ estimate / len(estimate)
            if r == 1:
                return {"self_overlap": float(Q[0, 0])}
            spread = report.spread(np.linalg.lstsq(report.estimate, estimate)[0])
            return {"self_overlap": Q, "spread": {f"overlap_{i + 1}": float(spread[i, i]) for i in range(r)}}

        def spectral(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
            from solvable.models.index.spectral.run import informative_start

            try:
                return informative_start(self, data, rng)
            except NotSolvable:
                return None

        operator = Dense(data.X)
        signal = self.signal_side().denoiser(operator)
        floor = _smallest_variance(channel, len(data.y))
        output = self.output_side().denoiser(data.y)
        return Instance(operator, output, signal, r, floor, spectral=spectral, details=details)

    def prediction(self, points: FixedPoints) -> Prediction:
        return prediction(self.channel, points)

    def knowing_nothing(self) -> Prediction:
        return knowing_nothing(self.channel)

    def scores(self, estimate: np.ndarray, data: Data, rng: np.random.Generator) -> dict[str, Any]:
        return scores(self, estimate, data.truth, rng)

    def spectral_start(self, data: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        from solvable.models.index.spectral.run import spectral_start

        return spectral_start(self, data, rng)

    def hides_sign(self) -> bool:
        """Whether labels of one projection say nothing of the sign of w*: those of -w* have the same law.

        So it is for an even target, and for an odd one whose components come in pairs of opposite slopes.
        """
        if self.target.is_even() or not self.contamination:
            return self.target.is_even()
        share = {(slope, noise): p for p, slope, noise in merged(self.components) if slope != 0}
        paired = all(math.isclose(share.get((-slope, noise), 0.0), p) for (slope, noise), p in share.items())
        return paired and self.target.is_odd()

    def describe(self) -> dict[str, Any]:
        """The name and the fields as plain values; contamination, where there is any, as the text that makes it."""
        fields = super().describe()
        del fields["contamination"]
        return fields | ({"contamination": "+".join(map(str, self.contamination))} if self.contamination else {})

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Data:
        """A teacher with W*^T W* = d I, n = round(alpha d) inputs (at least one) and their labels."""
        count = max(1.0, axes["alpha"] * d)
        check_memory(8.0 * count * d, f"the inputs, {count:.4g} x {d} numbers,", "d", d)
        truth, samples = self._drawn(rng, d)
        X, y = samples(round(count))
        return Data(X, y, truth)

    def stream(self, rng: np.random.Generator, d: int, **axes: float) -> Stream:
        """A teacher as that of `sample`, and fresh inputs with their labels as they are asked for."""
        check_memory(8.0 * BLOCK * d, f"{BLOCK} inputs of {d} numbers", "d", d)
        return Stream(*self._drawn(rng, d))

    def _drawn(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, Callable[[int], Any]]:
        one = self.projections == 1
        W = self.prior.sample(rng, d)[:, None] if one else orthonormal_teacher(rng, d, self.projections)

        def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
            X = rng.standard_normal((n, d)) / np.sqrt(d)
            return X, self._labels(X @ W, rng)

        return W, samples

    def _labels(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of projections z (n, r); contaminated ones part by part, also where their law is not solved."""
        if not self.contamination:
            return self.channel.sample(z, rng)
        channel = self.named_channel
        clean = self.target.numpy(np.asarray(z, float)) if channel is None else channel.sample(z, rng)
        return contaminate(clean, self.components, rng)


def orthonormal_teacher(rng: np.random.Generator, d: int, r: int) -> np.ndarray:
    """Gaussian weights W* (d x r) made orthogonal, each column of norm sqrt(d): W*^T W* = d I exactly.

    The columns are those of a Gaussian matrix after Gram-Schmidt, so their span is uniformly distributed.
    """
    if d < r:
        raise bad_parameter("d", d, f"at least the number of projections, {r}")
    return np.sqrt(d) * orthonormal(rng.standard_normal((d, r)))


def _smallest_variance(channel: Channel, n: int) -> float:
    """The floor of V. A discrete label informs only where z is within sqrt(V) of a jump, so at least a few of the n
    samples must stay that close: without any, g and its derivative vanish and a perfect estimate would be forgotten.
    """
    floor = max(SMALLEST_V, channel.row_resolution)
    steep = channel.discrete and (channel.deterministic or channel.projections == 1)
    return max(floor, min((10 / n) ** 2, 0.01)) if steep else floor


def _as_target(target: str | Target | Callable[..., Any]) -> Target:
    if isinstance(target, Target):
        return target
    return Target(target, projections=1) if callable(target) else Target(target)


def _check_contamination(target: Target, channel: TargetChannel | None, parts: tuple[Contamination, ...]) -> None:
    text = "+".join(map(str, parts))
    if target.projections > 1:
        takes = f"left out for a target of {target.projections} projections (contaminated labels take one)"
        raise bad_parameter("contamination", text, takes)
    if channel is not None:
        if not isinstance(channel, (Probit, Logit)):
            takes = f"left out with the named channel {channel!r}: write its target as text, such as 'abs(z)'"
            raise bad_parameter("contamination", text, takes)
        if any(abs(part.slope) != 1 or part.noise != 0 for part in parts):
            takes = f"of slope -1 and noise 0, which flips labels, with the binary channel {channel!r}"
            raise bad_parameter("contamination", text, takes)
