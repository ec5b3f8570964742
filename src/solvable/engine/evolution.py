"""State evolution: the two halves of a step, taken in turn."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import equinox as eqx

from solvable.engine.sides import Output, Overlap, Signal

OutputT = TypeVar("OutputT", bound=Output)
SignalT = TypeVar("SignalT", bound=Signal)


class Evolution(eqx.Module, Generic[OutputT, SignalT]):
    """The iteration of an output and a signal, as message passing follows it step by step when d is large.

    `solvers` find its fixed points; no solver is needed to run it. JAX sees the numbers of sides that are its modules.
    """

    output: OutputT
    signal: SignalT

    def step(self, state: Overlap, gain: Any) -> Overlap:
        """One step from the overlaps (..., r, r), with `gain` samples for each unknown."""
        return self.signal.average(self.output.average(state).times(gain))

    def path(self, state: Overlap, gain: Any, steps: int) -> list[Overlap]:
        """The overlaps before the first step and after each."""
        states = [state]
        for _ in range(steps):
            states.append(self.step(states[-1], gain))
        return states
