"""Which channel a target of several projections has: a closed form where there is one, else the generic channel."""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels.embedded import EmbeddedChannel
from solvable.channels.generic import GenericChannel
from solvable.channels.multi import MultiChannel
from solvable.channels.multi_closed import Majority, Norm2, Norm3, Parity, Product, SignSum2, SignSum3, Staircase
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.targets.adapted import relevant_directions
from solvable.targets.admissible import check_admissible
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

MOST_PROJECTIONS = 3
_LEAST_NOISE = 1e-10
_CLOSED = {Target(c.formula): c for c in (Parity, Product)}
_NOISELESS_CLOSED = {Target(c.formula): c for c in (Staircase, Norm2, Norm3, SignSum2, SignSum3, Majority)}


@functools.lru_cache(maxsize=32)
def multi_channel_of(target: Target, noise: float) -> MultiChannel:
    """The channel y = g(z) + sqrt(noise) xi of a target of up to three projections."""
    check_admissible(target)
    directions = relevant_directions(target)
    if directions.shape[1] > MOST_PROJECTIONS:
        raise NotSolvable(
            f"the target {target.name!r} depends on {directions.shape[1]} projections; learning curves are computed "
            f"for up to {MOST_PROJECTIONS} (`diagnose` takes 4)."
        )
    refuse_tiny_noise(target, noise)
    if directions.shape[1] == 1:
        from solvable.channels import channel_of

        return EmbeddedChannel(target, channel_of(rotate(target, directions), noise), directions[:, 0])
    return closed_form(target, noise) or GenericChannel(target, noise)


def closed_form(target: Target, noise: float) -> MultiChannel | None:
    """The closed-form channel of a target that has one."""
    if target in _CLOSED:
        return _CLOSED[target](noise)
    return _NOISELESS_CLOSED[target]() if noise == 0 and target in _NOISELESS_CLOSED else None


def refuse_tiny_noise(target: Target, noise: float) -> None:
    """Noise far below the resolution of the level sets is neither noise nor its absence."""
    z = np.random.default_rng(0).standard_normal((4096, target.projections))
    variance = float(np.var(target.numpy(z)))
    if 0 < noise < _LEAST_NOISE * variance:
        raise bad_parameter("noise", noise, f"0, or at least {_LEAST_NOISE * variance:.2g} for labels of this scale")
