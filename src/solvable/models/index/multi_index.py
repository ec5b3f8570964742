"""The multi-index model: labels that depend on the input through a few hidden projections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.channels import Channel, Logit, MultiChannel, Probit, channel_of, multi_channel_of
from solvable.channels.contaminated import flipped_channel, merged, mixture_channel
from solvable.channels.contamination import Component, Contamination, as_contamination, components_of, contaminate
from solvable.core.errors import NotSolvable, bad_parameter, checked_variance
from solvable.core.model import Data, Model, Stream
from solvable.models.index.instance import orthonormal_teacher
from solvable.priors import Gaussian, Prior, as_prior
from solvable.targets.target import Target


class MultiIndex(Model):
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
        "overlap": "w_hat.w*/d for Bayes-optimal learning and AMP, where it equals |w_hat|^2/d; else the cosine. With "
        "several projections the matrix W*^T W_hat/d, aligned over the target's symmetries",
        "overlap_1": "overlap with the first projection, the first diagonal entry of the overlap matrix",
        "overlap_2": "overlap with the second projection",
        "overlap_3": "overlap with the third projection",
        "squared_overlap": "squared cosine between w_hat and w*; equals the overlap for Bayes-optimal learning and "
        "AMP; with several projections the share of the estimate that lies along the teacher",
        "estimation_error": "|W_hat - W*|^2 / d, up to the symmetries of the target, such as w* -> -w* for an even one",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "classification_error": "probability that the most probable label is wrong, against the noiseless label",
        "training_loss": "mean loss on the training samples, without the penalty",
        "replicon": "stability of a minimum of the risk against splitting into many: theory holds below 1",
        "active_fraction": "share of the weights that are not zero",
    }

    target: Target = eqx.field(static=True)
    noise: float
    prior: Prior
    named_channel: Channel | None = eqx.field(static=True)
    # Points of sweeps are filed under every field but this one where it is empty: they keep the ids they had before it.
    contamination: tuple[Contamination, ...] = eqx.field(metadata={"left_out": ()})

    def __init__(
        self,
        target: str | Target | Channel | Callable[..., Any],
        noise: float = 0.0,
        prior: str | Prior = "gaussian",
        named_channel: Channel | None = None,
        contamination: Contamination | Sequence[Contamination] | str | None = None,
    ):
        if isinstance(target, Channel):
            named_channel, target = target, target.landscape.target
        if named_channel is not None and noise != 0:
            raise bad_parameter("noise", noise, f"0 with the named channel {named_channel!r}, which has its own")
        self.target = _as_target(target)
        self.noise = checked_variance(noise)
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
    def components(self) -> tuple[Component, ...]:
        """The (probability, slope, noise) of each component of the labels' mixture, that of the clean ones first."""
        return components_of(self.noise, self.contamination)

    @property
    def channel(self) -> Channel:
        """The output channel P(y|z) of one projection."""
        if self.projections != 1:
            raise NotSolvable(f"the target {self.target.name!r} has {self.projections} projections: use multi_channel.")
        components = merged(self.components)
        if len(components) == 1 and components[0][1] == 1:
            return self.named_channel or channel_of(self.target, components[0][2])
        if self.named_channel is None:
            return mixture_channel(self.target, components)
        assert isinstance(self.named_channel, (Probit, Logit))
        return flipped_channel(self.named_channel, components)

    @property
    def multi_channel(self) -> MultiChannel:
        """The output channel P(y|z) of several projections; their weights are Gaussian."""
        if not isinstance(self.prior, Gaussian):
            raise NotSolvable(
                f"the prior {self.prior} is solved for one projection; with {self.projections} projections the weights "
                'are Gaussian: use prior="gaussian".'
            )
        return multi_channel_of(self.target, float(self.noise))

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
        truth, samples = self._instance(rng, d)
        return Data(*samples(max(1, round(axes["alpha"] * d))), truth)

    def stream(self, rng: np.random.Generator, d: int, **axes: float) -> Stream:
        """A teacher as that of `sample`, and fresh inputs with their labels as they are asked for."""
        return Stream(*self._instance(rng, d))

    def _instance(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, Callable[[int], Any]]:
        several = self.projections > 1
        W = orthonormal_teacher(rng, d, self.projections) if several else self.prior.sample(rng, d)[:, None]

        def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
            X = rng.standard_normal((n, d)) / np.sqrt(d)
            return X, self.multi_channel.sample(X @ W, rng) if several else self._labels(X @ W[:, 0], rng)

        return W, samples

    def _labels(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not self.contamination:
            return self.channel.sample(z, rng)
        channel = self.named_channel
        clean = self.target.numpy(np.asarray(z, float)[:, None]) if channel is None else channel.sample(z, rng)
        return contaminate(clean, self.components, rng)


def _as_target(target: str | Target | Callable[..., Any]) -> Target:
    if isinstance(target, Target):
        return target
    return Target(target, projections=1) if callable(target) else Target(target)


def _check_contamination(target: Target, channel: Channel | None, parts: tuple[Contamination, ...]) -> None:
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
