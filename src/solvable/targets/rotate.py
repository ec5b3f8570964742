"""A target written in other coordinates: u -> g(B u)."""

from __future__ import annotations

import numpy as np

from solvable.core.errors import TargetError
from solvable.targets.expression import Expression, Hermite, Number, Operation, Power, Variable, evaluate, walk
from solvable.targets.target import Target

_ROUNDING = 1e-13


def rotate(target: Target, basis: np.ndarray) -> Target:
    """The target g(B u) of u = B^T z, for orthonormal columns B (r x r').

    A formula stays a formula: its affine parts are gathered, so that sign(z1 + z2) becomes sign(1.414*u1), and a
    coefficient that is only rounding is dropped.
    """
    basis = np.asarray(basis, float)
    projections = basis.shape[1]
    if target.expression is not None:
        formula = _substitute(target.expression, basis)
        _check_constants(formula, target)
        return Target(formula, projections)
    columns = basis.tolist()

    def rotated(u):
        import jax.numpy as jnp

        return target(jnp.asarray(columns, u.dtype) @ u)

    rotated.__name__ = f"{target.name}, rotated"
    return Target(rotated, projections)


def _substitute(node: Expression, basis: np.ndarray) -> Expression:
    affine = _affine(node, len(basis))
    if affine is not None:
        slope, constant = affine
        return _combination(slope @ basis, constant)
    arguments = tuple(_substitute(argument, basis) for argument in node.arguments)
    if isinstance(node, Power):
        return Power(arguments[0], node.exponent)
    if isinstance(node, Hermite):
        return Hermite(node.degree, arguments[0])
    assert isinstance(node, Operation)
    return Operation(node.name, arguments)


def _check_constants(formula: Expression, target: Target) -> None:
    """Refuse a formula that rotates to one with a constant part of no finite value, such as 1/0."""
    for node in walk(formula):
        if not node.projections and not np.isfinite(evaluate(node, [], np)):
            raise TargetError(
                f"the target {target.name!r} does not depend on all the directions in its formula, and where z is zero "
                f"along the others the part {node} has no finite value: write the formula without them"
            )


def _affine(node: Expression, size: int) -> tuple[np.ndarray, float] | None:
    """The slope and the constant of an affine expression, else None."""
    if isinstance(node, Number):
        return np.zeros(size), node.value
    if isinstance(node, Variable):
        return np.eye(size)[node.index - 1], 0.0
    if not isinstance(node, Operation) or node.name not in ("+", "-", "*", "/", "neg"):
        return None
    parts = [_affine(operand, size) for operand in node.operands]
    (a, b), (c, d) = parts[0] or (None, 0.0), parts[-1] or (None, 0.0)
    if a is None or c is None:
        return None
    if node.name == "neg":
        return -a, -b
    if node.name in "+-":
        sign = 1.0 if node.name == "+" else -1.0
        return a + sign * c, b + sign * d
    if not np.any(c) and (node.name == "*" or d != 0):
        factor = d if node.name == "*" else 1 / d
        return a * factor, b * factor
    return (c * b, d * b) if node.name == "*" and not np.any(a) else None


def _combination(slope: np.ndarray, constant: float) -> Expression:
    """slope.u + constant, without the terms that are only rounding."""
    terms: list[Expression] = []
    for index, coefficient in enumerate(slope, 1):
        if abs(coefficient) > _ROUNDING * max(np.abs(slope).max(), 1e-300):
            one = abs(coefficient - 1) < _ROUNDING
            terms.append(Variable(index) if one else Operation("*", (Number(float(coefficient)), Variable(index))))
    if constant or not terms:
        terms.append(Number(constant))
    total = terms[0]
    for term in terms[1:]:
        total = Operation("+", (total, term))
    return total
