"""Solvers of state evolution: members of one interface, each at its best on another kind of sides."""

from __future__ import annotations

from solvable.core.errors import NotSolvable
from solvable.engine.outputs.explicit import ExplicitOutput
from solvable.engine.outputs.gaussian import GaussianOutput
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesOutput, BayesSignal
from solvable.engine.solvers.base import FixedPoints, Solver
from solvable.engine.solvers.bracket import Bracket
from solvable.engine.solvers.continuation import Continuation
from solvable.engine.solvers.curve import Curve

__all__ = ["Bracket", "Continuation", "Curve", "FixedPoints", "Solver", "solver_for"]


def solver_for(output: BayesOutput, signal: BayesSignal) -> Solver:
    """The solver that suits two sides: r x r overlaps are continued, a single one has an explicit curve, and that of
    linear labels needs no table."""
    if isinstance(output, GaussianOutput) or output.monotone:
        return Bracket(output, signal)
    if isinstance(output, ExplicitOutput):
        return Curve(output, signal)
    if not isinstance(output, PosteriorOutput):
        raise NotSolvable(f"no solver is known for labels of {output!r} and weights of {signal!r}.")
    return Continuation(output, signal) if output.projections > 1 else Curve(output, signal)
