r"""Inputs without labels that hide a spike, as a learner sees them that minimises a loss of its projections alone.

An input is $x = \sqrt{\theta/d}\, u\, w^* + z$ with z ~ N(0, I) and a latent u of unit variance, a mixture of
Gaussians. The projection of a left-out input on weights with overlap m and self-overlap q is
$\omega = \sqrt\theta\, m\, u + N(0, q)$, and it pushes the weights by $\sqrt\theta\, u\, g$ towards w*. Given the
component of u, of mean a and variance v, $\omega \sim N(\sqrt\theta\, m a, q + \theta m^2 v)$ and
$E[u g] = a E[g] - v \sqrt\theta\, m\, E[h]$ with $h = -dg/d\omega$.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses import Loss
from solvable.channels.losses.quadrature import Panel, field_rule
from solvable.engine.outputs.proximal import Averages, LabelModel, slope_moments
from solvable.priors import Prior


class SpikedInputs(LabelModel):
    r"""Inputs with a spike of strength $\theta$ = `snr`; `mixture` are (weight, mean, variance) of the latent u."""

    snr: Any
    mixture: Any

    @classmethod
    def of(cls, snr: float, latent: Prior) -> SpikedInputs:
        """The inputs whose latent variables have the law `latent`."""
        columns = zip(*latent.mixture(), strict=True)
        return cls(np.float64(snr), tuple(np.array(column, float) for column in columns))

    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        weight, mean, variance = self.mixture
        spike = jnp.sqrt(self.snr) * m

        def component(a: Any, v: Any) -> tuple[Any, ...]:
            rule = field_rule(loss, 0.0, V, spike * a, jnp.sqrt(q + spike**2 * v), panel)
            slope, *others = slope_moments(rule)
            return -jnp.sqrt(self.snr) * (a * slope + v * spike * others[1]), *others

        parts = jax.vmap(component)(mean, variance)
        return Averages(*(weight @ part for part in parts))
