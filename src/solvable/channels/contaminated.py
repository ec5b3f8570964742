"""Which channel contaminated labels have: in closed form, by quadrature, or over finitely many labels."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from solvable.channels.base import Channel
from solvable.channels.closed import Probit
from solvable.channels.contamination import Component
from solvable.channels.flips import ClassMixture, flipped
from solvable.channels.logit import Logit
from solvable.channels.mixture import LinearMixture, NoisyMixture
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

_LEAST_NOISE = 1e-12


def merged(components: Sequence[Component]) -> tuple[Component, ...]:
    """The components of positive probability, those of one law joined: what the labels' law depends on."""
    share: dict[tuple[float, float], float] = {}
    for p, slope, noise in components:
        if p > 0:
            law = float(slope) + 0.0, float(noise)
            share[law] = share.get(law, 0.0) + float(p)
    total = sum(share.values())
    return tuple((p / total, *law) for law, p in share.items())


@functools.lru_cache(maxsize=64)
def mixture_channel(target: Target, components: tuple[Component, ...]) -> Channel:
    """The channel of merged components of a one-projection target, or `NotSolvable` that says what to change."""
    shape = landscape(target)
    if all(slope == 0 and noise == 0 for _, slope, noise in components):
        raise NotSolvable("every label is 0 with this contamination: there is nothing to learn from.")
    if target == Target("z"):
        return LinearMixture(shape, components)
    if shape.flat.all() and all(noise == 0 for _, _, noise in components):
        return ClassMixture(shape, components)
    exact = [slope for _, slope, noise in components if noise == 0 and slope != 0]
    if exact:
        raise NotSolvable(
            f"contaminated labels of {target.name!r} without noise (the component of slope {exact[0]:g}) have no "
            "posterior here: give the model and each contamination noise > 0. Without noise, contamination is solved "
            "for the target 'z', and for targets with finitely many values if no component has noise."
        )
    variance = float(np.sum(hermite_coefficients(target, 32)[1:] ** 2))
    for _, slope, noise in components:
        least = _LEAST_NOISE * variance * slope**2
        if 0 < noise < least:
            raise bad_parameter("noise", noise, f"at least {least:.2g} for contaminated labels of this scale")
    return NoisyMixture(shape, components)


@functools.lru_cache(maxsize=64)
def flipped_channel(channel: Probit | Logit, components: tuple[Component, ...]) -> Channel:
    """A named binary channel with the share of labels flipped that components of slope -1 have."""
    return flipped(channel, float(sum(p for p, slope, _ in components if slope < 0)))
