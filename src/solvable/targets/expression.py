"""The tree of a typed target: immutable nodes, evaluated with NumPy or JAX, printed as canonical text.

A formula is a tree of `Number`, `Variable`, `Power` (constant exponent), `Hermite` and `Operation` nodes. The tree
is data: evaluating it calls only the functions listed here. Comparisons have the values 0 and 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
COMPARISONS |= {"==": np.equal, "!=": np.not_equal}
ARITHMETIC = ("+", "-", "*", "/")
ONE_ARGUMENT = ("abs", "sign", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "erf", "relu", "step")
FUNCTIONS = dict.fromkeys(ONE_ARGUMENT, (1, 1)) | {"min": (2, 20), "max": (2, 20), "where": (3, 3)}
"""The functions a formula may call, each with the smallest and largest number of arguments."""


class Expression:
    """A node of the tree. Nodes compare and hash by content; `str` gives text that parses back to the same tree."""

    __slots__ = ()

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """The nodes directly below."""
        return ()

    @property
    def projections(self) -> int:
        """The highest index of a variable, 0 for a constant."""
        return max((node.index for node in walk(self) if isinstance(node, Variable)), default=0)

    def __str__(self) -> str:
        return _text(self, "z" if self.projections == 1 else "z1", 0)


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A constant."""

    value: float

    __str__ = Expression.__str__


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """The projection z_index, from 1."""

    index: int

    __str__ = Expression.__str__


@dataclass(frozen=True, slots=True)
class Power(Expression):
    """base ** exponent, with a constant exponent."""

    base: Expression
    exponent: float

    __str__ = Expression.__str__

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.base,)


@dataclass(frozen=True, slots=True)
class Hermite(Expression):
    """The probabilists' Hermite polynomial He_degree of an argument: He_4(u) = u^4 - 6 u^2 + 3."""

    degree: int
    argument: Expression

    __str__ = Expression.__str__

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.argument,)


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """An arithmetic operation, a comparison, a negation (`neg`) or a named function of its operands."""

    name: str
    operands: tuple[Expression, ...]

    __str__ = Expression.__str__

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return self.operands


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node, those below a node before it."""
    for argument in expression.arguments:
        yield from walk(argument)
    yield expression


def evaluate(expression: Expression, coordinates: Sequence[Any], xp: ModuleType) -> Any:
    """The value at `coordinates` (z1, z2, ... as arrays of one shape), with `xp` either `numpy` or `jax.numpy`.

    With NumPy the result is float64 and floating-point warnings are silent: infinities and NaN are values here.
    """
    if xp is not np:
        return _evaluate(expression, coordinates, xp)
    with np.errstate(all="ignore"):
        return np.asarray(_evaluate(expression, [np.asarray(z, dtype=np.float64) for z in coordinates], np))


def _evaluate(node: Expression, z: Sequence[Any], xp: ModuleType) -> Any:
    if isinstance(node, Number):
        return np.float64(node.value) if xp is np else node.value
    if isinstance(node, Variable):
        return z[node.index - 1]
    if isinstance(node, Power):
        return _power(_evaluate(node.base, z, xp), node.exponent, xp)
    if isinstance(node, Hermite):
        return _hermite(_evaluate(node.argument, z, xp), node.degree, xp)
    assert isinstance(node, Operation)
    if node.name == "where":
        return _where(node.operands, z, xp)
    values = [_evaluate(operand, z, xp) for operand in node.operands]
    return _apply(node.name, values, xp)


def _apply(name: str, values: list[Any], xp: ModuleType) -> Any:
    if name in COMPARISONS:
        return xp.where(getattr(xp, COMPARISONS[name].__name__)(*values), 1.0, 0.0)
    if name == "+":
        return values[0] + values[1]
    if name == "-":
        return values[0] - values[1]
    if name == "*":
        return values[0] * values[1]
    if name == "/":
        return values[0] / values[1]
    if name == "neg":
        return -values[0]
    if name in ("min", "max"):
        return functools.reduce(xp.minimum if name == "min" else xp.maximum, values)
    if name == "relu":
        return xp.maximum(values[0], 0.0)
    if name == "step":
        return xp.where(values[0] > 0, 1.0, 0.0)
    if name == "erf":
        return _erf(xp)(values[0])
    return getattr(xp, name)(values[0])


def _where(operands: tuple[Expression, ...], z: Sequence[Any], xp: ModuleType) -> Any:
    condition = _evaluate(operands[0], z, xp) != 0
    if xp is np:
        return np.where(condition, _evaluate(operands[1], z, np), _evaluate(operands[2], z, np))
    # The branch that is not chosen may have an infinite slope, and 0 * inf would spoil a reverse-mode gradient:
    # cutting the coordinates off from the derivative there keeps the gradient that of the chosen branch.
    from jax.lax import stop_gradient

    yes = [xp.where(condition, c, stop_gradient(c)) for c in z]
    no = [xp.where(condition, stop_gradient(c), c) for c in z]
    return xp.where(condition, _evaluate(operands[1], yes, xp), _evaluate(operands[2], no, xp))


def _erf(xp: ModuleType) -> Callable[[Any], Any]:
    if xp is np:
        from scipy.special import erf
    else:
        from jax.scipy.special import erf
    return erf


def _power(base: Any, exponent: float, xp: ModuleType) -> Any:
    if exponent != int(exponent):
        return xp.sqrt(base) if exponent == 0.5 else xp.power(base, exponent)
    # Repeated multiplication: exact for negative bases, and differentiable at zero.
    remaining, square, result = abs(int(exponent)), base, None
    while remaining:
        if remaining % 2:
            result = square if result is None else result * square
        remaining //= 2
        square = square * square if remaining else square
    if result is None:
        return xp.ones_like(base)
    return 1.0 / result if exponent < 0 else result


def _hermite(u: Any, degree: int, xp: ModuleType) -> Any:
    if degree == 0:
        return xp.ones_like(u)
    previous, current = 1.0, u
    for k in range(1, degree):
        previous, current = current, u * current - k * previous
    return current


def _text(node: Expression, first: str, around: int) -> str:
    """Text of a node inside an operator that binds with strength `around`, in brackets where it binds less."""
    text, strength = _text_and_strength(node, first)
    return text if strength >= around else f"({text})"


def _text_and_strength(node: Expression, first: str) -> tuple[str, int]:
    compare, add, multiply, negate, power, atom = range(6)
    if isinstance(node, Number):
        return _number(node.value), atom if node.value >= 0 else negate
    if isinstance(node, Variable):
        return (first if node.index == 1 else f"z{node.index}"), atom
    if isinstance(node, Power):
        exponent = _number(node.exponent)
        return f"{_text(node.base, first, atom)}**{exponent if node.exponent >= 0 else f'({exponent})'}", power
    if isinstance(node, Hermite):
        inside = _text(node.argument, first, compare)
        return (f"he{node.degree}({inside})" if node.degree <= 8 else f"he({node.degree}, {inside})"), atom
    assert isinstance(node, Operation)
    if node.name == "neg":
        return f"-{_text(node.operands[0], first, negate)}", negate
    if node.name not in COMPARISONS and node.name not in ARITHMETIC:
        return f"{node.name}({', '.join(_text(operand, first, compare) for operand in node.operands)})", atom
    # Comparisons chain and arithmetic associates to the left: what does not is bracketed.
    strength = compare if node.name in COMPARISONS else add if node.name in "+-" else multiply
    left = _text(node.operands[0], first, strength + (strength == compare))
    right = _text(node.operands[1], first, strength + 1)
    return (f"{left}{node.name}{right}" if strength == multiply else f"{left} {node.name} {right}"), strength


def _number(value: float) -> str:
    if value == math.pi:
        return "pi"
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


class Break(NamedTuple):
    """A function of z whose zero set may carry a singularity, and its `kind`: kink, jump, pole or edge."""

    expression: Expression
    kind: str


def break_expressions(expression: Expression) -> list[Break]:
    """The sub-expressions u whose zeros may be kinks, jumps, poles or domain edges of the whole.

    The innermost come first, so that the breaks of u itself are known when its zeros are sought. Constants are left
    out: they have no zero set.
    """
    found: dict[Expression, Break] = {}
    for node in walk(expression):
        for u, kind in _own_breaks(node):
            if u.projections:
                found.setdefault(u, Break(u, kind))
    return list(found.values())


def _own_breaks(node: Expression) -> list[tuple[Expression, str]]:
    if isinstance(node, Power):
        if node.exponent == int(node.exponent):
            return [(node.base, "pole")] if node.exponent < 0 else []
        return [(node.base, "edge")]
    if not isinstance(node, Operation):
        return []
    name, operands = node.name, node.operands
    if name in ("abs", "relu"):
        return [(operands[0], "kink")]
    if name in ("sign", "step"):
        return [(operands[0], "jump")]
    if name in ("log", "sqrt"):
        return [(operands[0], "edge")]
    if name == "/":
        return [(operands[1], "pole")]
    if name == "tan":
        return [(Operation("cos", operands), "pole")]
    if name in COMPARISONS:
        return [(_difference(*operands), "jump")]
    if name in ("min", "max"):
        # max(a, b, c) = max(max(a, b), c): each operand against the extreme of those before it.
        before = [operands[0], *(Operation(name, operands[:k]) for k in range(2, len(operands)))]
        return [(_difference(a, b), "kink") for a, b in zip(before, operands[1:], strict=True)]
    if name == "where" and not _is_indicator(operands[0]):
        return [(operands[0], "jump")]
    return []


def _difference(a: Expression, b: Expression) -> Expression:
    return a if b == Number(0.0) else b if a == Number(0.0) else Operation("-", (a, b))


def _is_indicator(node: Expression) -> bool:
    """Whether the node is a comparison, a step or a product of these, whose own breaks say it all."""
    if not isinstance(node, Operation):
        return False
    if node.name == "*":
        return all(map(_is_indicator, node.operands))
    return node.name in COMPARISONS or node.name == "step"
