"""From text to an `Expression`, by a whitelist over Python's syntax tree.

Nothing of the text is ever executed: Python's `ast` only splits it into a tree, every node of which must be one of
the few kinds below. Length, depth, size, numbers and powers are bounded. Whatever is not a formula raises
`TargetError`, which points at the column.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from typing import NoReturn

import numpy as np

from solvable.core.errors import TargetError
from solvable.targets.expression import (
    FUNCTIONS,
    Expression,
    Hermite,
    Number,
    Operation,
    Power,
    Variable,
    evaluate,
    walk,
)

MAX_LENGTH = 1000
MAX_DEPTH = 100
MAX_NODES = 500
MAX_EXPONENT = 20
MAX_DEGREE = 20
MAX_NUMBER = 1e15
MAX_CONSTANT = 1e100
MAX_PROJECTIONS = 4

VARIABLES = {"z": 1} | {f"z{i}": i for i in range(1, MAX_PROJECTIONS + 1)}
HERMITE = {f"he{k}": k for k in range(9)}
NAMES = [*VARIABLES, "pi", *FUNCTIONS, "he", *HERMITE]

_JOINED = re.compile(r"(?<![A-Za-z0-9_.])[.0-9][A-Za-z0-9_.]*?(and|else|for|i[fns]|or|not)")
"""A number joined to a word: what Python's parser warns of, and a filter of warnings is that of the whole process."""
_NO_NUMBER = "invalid decimal literal (write a product with *, as in 2*z)"
_ALLOWED = re.compile(r"[A-Za-z0-9_ .,+\-*/()<>=!]")
_TOKENS_ALLOWED = re.compile(r"[A-Za-z0-9_ .,+\-*/()<>=!\[\]]")
_CHARACTER_HINTS = {
    "^": "write a power as z**2",
    "&": "write 'and' as a product of comparisons: (z > 0) * (z < 1)",
    "|": "write 'or' with max: max(z < 0, z > 1), or use abs(z)",
    "[": "write the projections as z1, z2, z3",
    "%": "there is no remainder here",
    ":": "a formula has no lambda, slice or assignment",
    "'": "a formula has no strings",
    '"': "a formula has no strings",
    "\N{MINUS SIGN}": "use the ordinary minus sign -",
    "\N{MULTIPLICATION SIGN}": "use * for products",
    "\N{GREEK SMALL LETTER PI}": "write pi",
}
_NAME_HINTS = {
    "ln": "log",
    "sgn": "sign",
    "heaviside": "step",
    "theta": "step",
    "minimum": "min",
    "maximum": "max",
    "absolute": "abs",
    "fabs": "abs",
}
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_REFUSED = {
    ast.Attribute: "a dot after a name has no meaning here: write functions by their bare names, as in abs(z)",
    ast.BoolOp: "write 'and' as a product of comparisons and 'or' with max",
    ast.IfExp: "write a choice as where(condition, a, b)",
    ast.Tuple: "one formula is expected, not several separated by commas",
    ast.Starred: "a starred argument is not allowed",
    ast.GeneratorExp: "a comprehension is not allowed",
}


def parse(text: str) -> Expression:
    """The expression tree of a formula in `z` (= `z1`), `z2`, `z3`, `z4`.

    Numbers, `pi`, `+ - * / **`, comparisons (1 where true, 0 where false; chains multiply), the functions
    `abs sign sqrt exp log sin cos tan tanh erf relu step min max where`, and the Hermite polynomials `he(k, z)` and
    `he0(z)`..`he8(z)` may be used. Anything else raises `TargetError`.
    """
    if not isinstance(text, str):
        raise TargetError(f"text = {text!r:.60} is not allowed: text must be a string such as 'abs(z)'.")
    return _Parser(text).run()


def parse_tokens(text: str, tokens: int) -> Expression:
    """The expression tree of a formula in `z1[1]`, `z2[1]`, .., `z1[2]`, ..: the projections of several tokens.

    Projection k of token t is the variable number (k - 1) `tokens` + t. All else is as for `parse`.
    """
    if not isinstance(text, str):
        raise TargetError(f"text = {text!r:.60} is not allowed: text must be a string such as 'z1[1]*z1[2]'.")
    return _Parser(text, tokens).run()


class _Parser:
    """One pass over one text; keeps the text for its errors and counts the nodes. With `tokens`, names are z1[2]."""

    def __init__(self, text: str, tokens: int = 0):
        self.tokens = tokens
        # White space of any kind separates, and what cannot be shown must not move the caret of an error.
        self.raw = re.sub(r"[\t\n\r\f\v]", " ", text)
        self.shown = "".join(c if c.isprintable() else "?" for c in self.raw)
        self.start = len(self.raw) - len(self.raw.lstrip(" "))
        self.nodes = 0

    def fail(self, message: str, where: ast.AST | int) -> NoReturn:
        offset = where if isinstance(where, int) else self.start + getattr(where, "col_offset", 0)
        column = min(max(offset, 0), len(self.shown)) + 1
        raise TargetError(message, self.shown[: max(MAX_LENGTH + 1, column)], column) from None

    def run(self) -> Expression:
        self.check_characters()
        tree = self.syntax_tree()
        expression = self.convert(tree.body, 0)
        if not expression.projections:
            self.fail("the formula is a constant: it must use z (or z1, z2, z3)", self.start)
        return expression

    def check_characters(self) -> None:
        if len(self.raw) > MAX_LENGTH:
            self.shown = self.shown[: MAX_LENGTH + 1]
            self.fail(f"the text has {len(self.raw)} characters, and at most {MAX_LENGTH} are allowed", MAX_LENGTH)
        if not self.raw.strip(" "):
            self.fail("the text is empty: a formula such as 'abs(z)' is expected", 0)
        for position, character in enumerate(self.raw):
            if not (_TOKENS_ALLOWED if self.tokens else _ALLOWED).match(character):
                hint = _CHARACTER_HINTS.get(character)
                self.fail(f"the character {ascii(character)} is not allowed" + (f": {hint}" if hint else ""), position)

    def syntax_tree(self) -> ast.Expression:
        joined = _JOINED.search(self.raw)
        if joined:
            self.fail(f"this is not a formula: {_NO_NUMBER}", joined.start(1))
        try:
            return ast.parse(self.raw.strip(" "), mode="eval")
        except SyntaxError as error:
            # Python reports a text that stops too early at offset 0 of no line.
            offset = self.start + error.offset - 1 if error.offset else len(self.raw.rstrip(" "))
            reason = error.msg.rstrip(".?") if error.msg else "invalid syntax"
            if reason == "invalid decimal literal":
                reason = _NO_NUMBER
            elif self.raw[offset : offset + 1] == "=":
                reason += " (write an equality test as ==)"
            self.fail(f"this is not a formula: {reason}", offset)
        except (RecursionError, MemoryError, ValueError, OverflowError):
            self.fail("the formula is nested too deeply", self.start)

    def convert(self, node: ast.AST, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            self.fail(f"the formula is nested more than {MAX_DEPTH} deep", node)
        self.count(1, node)
        match node:
            case ast.Constant():
                return self.number(node)
            case ast.Name():
                return self.name(node)
            case ast.Subscript() if self.tokens:
                return self.token(node)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.convert(node.operand, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                return self.operation("neg", [node.operand], node, depth)
            case ast.BinOp(op=ast.Pow()):
                return self.power(node, depth)
            case ast.BinOp() if type(node.op) in _BINARY:
                return self.operation(_BINARY[type(node.op)], [node.left, node.right], node, depth)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Call():
                return self.call(node, depth)
        self.fail(_REFUSED.get(type(node), "only numbers, z, + - * / **, comparisons and functions are allowed"), node)

    def count(self, nodes: int, node: ast.AST) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            self.fail(f"the formula has more than {MAX_NODES} parts", node)

    def operation(self, name: str, operands: list[ast.expr], node: ast.AST, depth: int) -> Expression:
        return self.checked(Operation(name, tuple(self.convert(operand, depth + 1) for operand in operands)), node)

    def checked(self, expression: Expression, node: ast.AST) -> Expression:
        """Refuse a constant part that is not finite, such as 1/0 or log(-1)."""
        constant = not any(argument.projections for argument in expression.arguments)
        if constant and not abs(evaluate(expression, (), np)) <= MAX_CONSTANT:
            self.fail(f"{expression} is not finite", node)
        return expression

    def number(self, node: ast.Constant) -> Number:
        if isinstance(node.value, bool):
            self.fail(f"write {int(node.value)} in place of {node.value}", node)
        if not isinstance(node.value, (int, float)):
            self.fail("only real numbers are allowed", node)
        if not node.value <= MAX_NUMBER:
            self.fail(f"the number is too large: at most {MAX_NUMBER:g} is allowed", node)
        return Number(float(node.value))

    def token(self, node: ast.Subscript) -> Variable:
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(node.value, ast.Name) or node.value.id not in VARIABLES:
            self.fail("only a projection has tokens: write projection 1 of token 2 as z1[2]", node)
        if type(place) is not int or not 1 <= place <= self.tokens:
            self.fail(f"a token is a whole number from 1 to {self.tokens}", node)
        return Variable((VARIABLES[node.value.id] - 1) * self.tokens + place)

    def name(self, node: ast.Name) -> Expression:
        if node.id in VARIABLES and self.tokens:
            self.fail(f"{node.id} is that of all tokens: write {node.id}[1] for that of the first", node)
        if node.id in VARIABLES:
            return Variable(VARIABLES[node.id])
        if node.id == "pi":
            return Number(math.pi)
        if node.id in NAMES:
            self.fail(f"{node.id} is a function: write {node.id}(...)", node)
        self.fail(self.unknown("name", node.id), node)

    def unknown(self, kind: str, name: str) -> str:
        close = [_NAME_HINTS[name]] if name in _NAME_HINTS else difflib.get_close_matches(name.lower(), NAMES, 1)
        if re.fullmatch(r"z\d+", name):
            return f"unknown variable '{name}': the variables are z (= z1), z2, z3 and, to diagnose, z4"
        if re.fullmatch(r"he\d+", name):
            return f"unknown function '{name}': write he({name[2:].lstrip('0') or 0}, z), with a degree of at most 20"
        shown = name if len(name) <= 30 else name[:27] + "..."
        if close:
            return f"unknown {kind} '{shown}': did you mean {close[0]}?"
        known = ", ".join([*FUNCTIONS, "he"]) if kind == "function" else "z (= z1), z2, z3 and pi"
        return f"unknown {kind} '{shown}': the {kind}s are {known}"

    def comparison(self, node: ast.Compare, depth: int) -> Expression:
        values = [self.convert(operand, depth + 1) for operand in (node.left, *node.comparators)]
        for shared in values[1:-1]:
            # A chain uses its inner operands twice: uncounted, nested chains would grow exponentially.
            self.count(sum(1 for _ in walk(shared)), node)
        result: Expression | None = None
        for a, operator, b in zip(values, node.ops, values[1:], strict=False):
            if type(operator) not in _COMPARE:
                self.fail("only the comparisons < <= > >= == != are allowed", node)
            link = self.checked(Operation(_COMPARE[type(operator)], (a, b)), node)
            result = link if result is None else Operation("*", (result, link))
        assert result is not None
        return result

    def power(self, node: ast.BinOp, depth: int) -> Expression:
        base, exponent = self.convert(node.left, depth + 1), self.convert(node.right, depth + 1)
        if exponent.projections:
            self.fail("an exponent must be a constant: write exp(z*log(2)) for a power of 2", node.right)
        value = float(evaluate(exponent, (), np))
        if not abs(value) <= MAX_EXPONENT:
            self.fail(f"an exponent must lie between -{MAX_EXPONENT} and {MAX_EXPONENT}", node.right)
        return self.checked(Power(base, value), node)

    def call(self, node: ast.Call, depth: int) -> Expression:
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute):
                self.fail(_REFUSED[ast.Attribute], node.func)
            self.fail("only a function's name can be called: write a product with *", node)
        name = node.func.id
        if name in VARIABLES or name == "pi":
            self.fail(f"{name} is not a function: write a product with *, as in {name}*(...)", node)
        if name != "he" and name not in FUNCTIONS and name not in HERMITE:
            self.fail(self.unknown("function", name), node)
        if node.keywords:
            self.fail(f"{name} takes no named arguments", node.keywords[0])
        if name == "he" or name in HERMITE:
            return self.hermite(name, node, depth)
        least, most = FUNCTIONS[name]
        self.check_count(name, node, least, most)
        return self.operation(name, node.args, node, depth)

    def check_count(self, name: str, node: ast.Call, least: int, most: int) -> None:
        count = len(node.args)
        if not least <= count <= most:
            takes = f"{least} argument{'s' * (least > 1)}" if least == most else f"{least} to {most} arguments"
            self.fail(f"{name} takes {takes}, not {count}", node)

    def hermite(self, name: str, node: ast.Call, depth: int) -> Expression:
        if name in HERMITE:
            self.check_count(name, node, 1, 1)
            return self.checked(Hermite(HERMITE[name], self.convert(node.args[0], depth + 1)), node)
        self.check_count(name, node, 2, 2)
        degree = node.args[0]
        if not isinstance(degree, ast.Constant) or type(degree.value) is not int or degree.value > MAX_DEGREE:
            self.fail(f"the degree of he(k, z) must be a whole number from 0 to {MAX_DEGREE}", degree)
        return self.checked(Hermite(degree.value, self.convert(node.args[1], depth + 1)), node)
