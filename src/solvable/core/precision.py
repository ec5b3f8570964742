"""Double precision where the theory needs it, without changing a user's process.

JAX computes in single precision by default, and its switch is global. Theory functions here are wrapped in
`float64`, which turns double precision on for the duration of the call in the calling thread only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with JAX in double precision, whatever the process-wide setting."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
