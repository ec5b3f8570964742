"""Which channel a target has: in closed form where there is one, else one that works for any target."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from solvable.channels.base import Channel
from solvable.channels.closed import (
    Absolute,
    Linear,
    Logit,
    Majority,
    Norm2,
    Norm3,
    Parity,
    Probit,
    Product,
    Sign,
    SignSum2,
    SignSum3,
    Square,
    Staircase,
)
from solvable.channels.contamination import Component, merged
from solvable.channels.finite import ClassMixture, FlippedLabels
from solvable.channels.generic import GenericChannel
from solvable.channels.levels.levelset import LevelSetChannel
from solvable.channels.mixture import LinearMixture, NoisyMixture
from solvable.channels.noisy import NoisyChannel
from solvable.channels.scalar import ScalarChannel
from solvable.channels.single_direction import SingleDirection
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.targets.adapted import relevant_directions
from solvable.targets.admissible import check_admissible
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.landscape import landscape
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

MOST_PROJECTIONS = 3
_LEAST_NOISE, _LEAST_NOISE_ON_SURFACES = 1e-12, 1e-10
"""Noise below this, relative to the variance of the labels, is below what one projection or level sets resolve."""
_CLOSED = {Target(c.formula): c for c in (Linear, Parity, Product)}
_NOISELESS_CLOSED = {
    Target(c.formula): c for c in (Absolute, Square, Sign, Staircase, Norm2, Norm3, SignSum2, SignSum3, Majority)
}


def channel_of(target: Target | Channel, noise: float = 0.0, components: Sequence[Component] | None = None) -> Channel:
    """The channel y = g(z) + sqrt(noise) xi of a target of up to three projections.

    `components` ((probability, slope, noise), ...), where given, make the labels of one projection a mixture of
    y = slope g(z) + sqrt(noise) xi instead. A channel in the place of the target is itself, or, if it is binary, has
    the share of its labels flipped that components of slope -1 have.
    """
    if components is None:
        return target if isinstance(target, Channel) else _plain_channel(target, float(noise))
    parts = merged(components)
    if len(parts) == 1 and parts[0][1] == 1:
        return target if isinstance(target, Channel) else _plain_channel(target, parts[0][2])
    return _flipped(target, parts) if isinstance(target, Channel) else _mixture(target, parts)


def generic_channel(target: Target, noise: float = 0.0) -> Channel:
    """The channel that works for any target, even where a closed form exists."""
    if target.projections > 1:
        return GenericChannel(target, noise)
    shape = landscape(target)
    return NoisyChannel(shape, noise) if noise > 0 else LevelSetChannel(shape)


def refuse_tiny_noise(target: Target, noise: float) -> None:
    """Noise far below what the averages resolve is neither noise nor its absence."""
    if noise == 0:
        return
    if target.projections == 1:
        least = _LEAST_NOISE * _variance(target)
    else:
        z = np.random.default_rng(0).standard_normal((4096, target.projections))
        least = _LEAST_NOISE_ON_SURFACES * float(np.var(target.numpy(z)))
    if noise < least:
        raise bad_parameter("noise", noise, f"0, or at least {least:.2g} for labels of this scale")


@functools.lru_cache(maxsize=64)
def _plain_channel(target: Target, noise: float) -> Channel:
    one = target.projections == 1
    if one:
        landscape(target)
    else:
        check_admissible(target)
    directions = np.eye(1) if one else relevant_directions(target)
    if directions.shape[1] > MOST_PROJECTIONS:
        raise NotSolvable(
            f"the target {target.name!r} depends on {directions.shape[1]} projections; learning curves are computed "
            f"for up to {MOST_PROJECTIONS} (`diagnose` takes 4)."
        )
    refuse_tiny_noise(target, noise)
    if directions.shape[1] == 1 and not one:
        scalar = _plain_channel(rotate(target, directions), noise)
        assert isinstance(scalar, ScalarChannel)
        return SingleDirection(target, scalar, directions[:, 0])
    if target in _CLOSED:
        return _CLOSED[target](noise)
    if noise == 0 and target in _NOISELESS_CLOSED:
        return _NOISELESS_CLOSED[target]()
    return generic_channel(target, noise)


@functools.lru_cache(maxsize=64)
def _mixture(target: Target, components: tuple[Component, ...]) -> ScalarChannel:
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
    for _, slope, noise in components:
        least = _LEAST_NOISE * _variance(target) * slope**2
        if 0 < noise < least:
            raise bad_parameter("noise", noise, f"at least {least:.2g} for contaminated labels of this scale")
    return NoisyMixture(shape, components)


@functools.lru_cache(maxsize=64)
def _flipped(channel: Channel, components: tuple[Component, ...]) -> Channel:
    """A named binary channel with the share of labels flipped that components of slope -1 have."""
    assert isinstance(channel, (Probit, Logit))
    flip = float(sum(p for p, slope, _ in components if slope < 0))
    return FlippedLabels(channel, flip) if flip > 0 else channel


def _variance(target: Target) -> float:
    return float(np.sum(hermite_coefficients(target, 32)[1:] ** 2))
