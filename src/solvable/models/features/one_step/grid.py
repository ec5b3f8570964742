r"""Spiked features given the projection $\kappa = \langle v, x\rangle$ on the spike: conditional Gaussian equivalence.

A feature of a unit with spike s and row variance c acts as $\mu_0(\kappa) + \mu_1(\kappa) w\cdot x + \mu_2(\kappa)\xi$,

    mu0 = E sigma(s kappa + sqrt(c) z),  mu1 = E sigma'(s kappa + sqrt(c) z),  mu2^2 = E sigma^2 - mu0^2 - c mu1^2,

and the label is $g(\gamma\kappa + \sqrt{1-\gamma^2}\, z)$, of which h = E g, h1 = E[g z] and hh = E[g^2] matter
[cui2024asymptotics, dandi2024random]. Averages over kappa are sums over panels that end, and shrink, at what breaks or
bends in these functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.models.features.two_layer.averages import smoothed
from solvable.numerics.batches import rounded_up
from solvable.numerics.gaussian import ladder_edges, normal_density, panels
from solvable.targets.target import Target

NODES = 14
"""Nodes on each panel; two less show the error."""
_FINEST = 1e-6
_SHARP = 1e-7
"""Below this spread the label is a function of kappa."""
_LENGTH = 128


class Grid(NamedTuple):
    """`kappa` with its `weight`; `mu0`, `mu1`, `mu2` (the square of mu_2) for each value of the second layer; `h`,
    `h1`, `hh` of the label. Nodes of weight zero fill it up."""

    kappa: Any
    weight: Any
    mu0: Any
    mu1: Any
    mu2: Any
    h: Any
    h1: Any
    hh: Any


def spiked_grid(activation: Target, target: Target, spikes: Any, norms: Any, alignment: Any, fine: bool = True) -> Grid:
    """The averages of features and labels on nodes of kappa, for spikes and row variances of several values."""
    spikes, norms = jnp.atleast_1d(spikes), jnp.atleast_1d(norms)
    s, c, gamma = (np.asarray(jax.lax.stop_gradient(part), float) for part in (spikes, norms, alignment))
    kappa, weight = kappa_nodes(activation, target, s, c, float(gamma), fine)
    rows = []
    for i in range(len(s)):
        if s[i] == 0:  # nothing depends on kappa, and one row serves all
            row = smoothed(activation, spikes[i] * np.zeros(1), jnp.sqrt(norms[i]), fine)
            row = jax.tree.map(lambda part: jnp.broadcast_to(part, kappa.shape), row)
        else:
            row = smoothed(activation, spikes[i] * kappa, jnp.sqrt(norms[i]), fine)
        mu2 = jnp.maximum(row.square - row.mean**2 - norms[i] * row.slope**2, 0.0)
        rows.append((row.mean, row.slope, mu2))
    features = [jnp.stack(part) for part in zip(*rows, strict=True)]
    spread = np.sqrt(max(1 - float(gamma) ** 2, 0.0))
    if spread < _SHARP:
        h = target.numpy(kappa[:, None])
        labels = h, np.zeros_like(h), h**2
    else:
        loose = jnp.sqrt(1 - jnp.square(alignment))
        found = smoothed(target, alignment * kappa, loose, fine)
        labels = found.mean, found.slope * loose, found.square
    length = len(kappa) if fine else len(kappa) // (NODES - 2) * NODES
    return Grid(*filled(rounded_up(length, _LENGTH), kappa, weight, *features, *labels))


def kappa_nodes(
    activation: Target, target: Target, spikes: np.ndarray, norms: np.ndarray, gamma: float, fine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for averages over kappa ~ N(0, 1)."""
    moving = np.abs(spikes) > _FINEST
    scales = [*(np.sqrt(norms[moving]) / np.abs(spikes[moving]))]
    places = [np.zeros(1), *(activation.breaks / s for s in spikes[moving])]
    if abs(gamma) > _FINEST and target.breaks.size:
        spread = np.sqrt(max(1 - gamma**2, 0.0))
        scales += [spread / abs(gamma)] if spread >= _SHARP else []
        places.append(target.breaks / gamma)
    finest = float(np.clip(0.5 * min([1.0, *scales]), _FINEST, 0.5))
    breaks = np.unique(np.round(np.concatenate(places), 12))
    edges = ladder_edges(breaks[np.abs(breaks) < 8.9], finest=finest)
    kappa, weight = panels(edges, NODES if fine else NODES - 2, graded=False)
    return kappa, weight * normal_density(kappa)


def filled(length: int, nodes: Any, weight: Any, *rest: Any) -> list[Any]:
    """Nodes and what is known at them, with copies of weight zero up to a length, so that few lengths are compiled."""
    more = length - len(nodes)

    def longer(part: Any) -> Any:
        part = jnp.asarray(part)
        return jnp.concatenate([part, jnp.broadcast_to(part[..., -1:], (*part.shape[:-1], more))], axis=-1)

    return [longer(nodes), jnp.where(jnp.arange(length) < len(nodes), longer(weight), 0.0), *map(longer, rest)]
