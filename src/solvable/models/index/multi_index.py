"""The multi-index model: labels that depend on the input through a few hidden projections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.channels import Channel, channel_of
from solvable.core.errors import NotSolvable, bad_parameter, checked_variance
from solvable.core.model import Data, Model
from solvable.priors import Prior, as_prior
from solvable.targets.target import Target


class MultiIndex(Model):
    """y = g(z) + sqrt(noise) xi with z = X w*, X of n x d independent N(0, 1/d) entries, and n = alpha d samples.

    - `target`: g, as text (`"abs(z)"`), a `Target`, or a function of one projection written with `jax.numpy`; or a
      named channel such as `sv.channels.Probit(noise=0.5)`, which brings its own noise.
    - `noise`: variance of the Gaussian noise added to the label.
    - `prior`: law of the weights w*: `"gaussian"`, `"rademacher"`, `"gauss-bernoulli:RHO"`, or a `Prior`.

    Simulated teachers are normalised, |w*|^2 = d exactly.
    """

    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {
        "overlap": "w_hat.w*/d for Bayes-optimal learning and AMP, where it equals |w_hat|^2/d; else the cosine",
        "squared_overlap": "squared cosine between w_hat and w*; equals the overlap for Bayes-optimal learning and AMP",
        "estimation_error": "|w_hat - w*|^2 / d, up to the symmetry w* -> -w* of even targets",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "classification_error": "probability that the most probable label is wrong, against the noiseless label",
    }

    target: Target = eqx.field(static=True)
    noise: float
    prior: Prior
    named_channel: Channel | None = eqx.field(static=True)

    def __init__(
        self,
        target: str | Target | Channel | Callable[..., Any],
        noise: float = 0.0,
        prior: str | Prior = "gaussian",
        named_channel: Channel | None = None,
    ):
        if isinstance(target, Channel):
            named_channel, target = target, target.landscape.target
        if named_channel is not None and noise != 0:
            raise bad_parameter("noise", noise, f"0 with the named channel {named_channel!r}, which has its own")
        self.target = _as_target(target)
        self.noise = checked_variance(noise)
        self.prior = as_prior(prior)
        self.named_channel = named_channel

    @property
    def channel(self) -> Channel:
        """The output channel P(y|z); for one projection."""
        if self.target.projections != 1:
            raise NotSolvable(
                f"the target {self.target.name!r} has {self.target.projections} projections; "
                "only targets of one projection (z) are solved so far."
            )
        return self.named_channel or channel_of(self.target, self.noise)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Data:
        """A teacher of norm sqrt(d), n = round(alpha d) inputs (at least one) and their labels."""
        n = max(1, round(axes["alpha"] * d))
        w = self.prior.sample(rng, d)
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        return Data(X, self.channel.sample(X @ w, rng), w[:, None])


def _as_target(target: str | Target | Callable[..., Any]) -> Target:
    if isinstance(target, Target):
        return target
    return Target(target, projections=1) if callable(target) else Target(target)
