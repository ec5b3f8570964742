"""The parser: what it accepts, what it refuses and where it points, and that no text gets past it."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.core.errors import TargetError
from solvable.targets.expression import Expression, evaluate
from solvable.targets.parser import MAX_LENGTH, parse


def value(text: str, *z: float) -> float:
    return float(evaluate(parse(text), z, np))


@pytest.mark.parametrize(
    ("text", "z", "expected"),
    [
        ("z", (2.0,), 2.0),
        ("z + z1", (2.0,), 4.0),
        ("  z1*z2 -\n z3/z4 ", (2.0, 3.0, 4.0, 8.0), 5.5),
        ("-z**2", (3.0,), -9.0),
        ("2**3*z", (1.0,), 8.0),
        ("z**(1/2)", (9.0,), 3.0),
        ("z**-2", (2.0,), 0.25),
        ("z**3", (-2.0,), -8.0),
        ("+z - -z", (1.5,), 3.0),
        ("pi*z", (1.0,), np.pi),
        ("1e-3*z", (2.0,), 2e-3),
        ("z > 0", (0.5,), 1.0),
        ("z > 0", (0.0,), 0.0),
        ("z >= 0", (0.0,), 1.0),
        ("z == 1", (1.0,), 1.0),
        ("z != 1", (1.0,), 0.0),
        ("-1 < z < 1", (0.3,), 1.0),
        ("-1 < z < 1", (1.3,), 0.0),
        ("-1 < z <= z2 < 5", (1.0, 1.0), 1.0),
        ("(z > 0) - (z < 0)", (-2.0,), -1.0),
        ("abs(z) + sign(z)", (-2.0,), 1.0),
        ("sign(z)", (0.0,), 0.0),
        ("step(z)", (0.0,), 0.0),
        ("relu(z) + step(z)", (2.0,), 3.0),
        ("min(z, 1, 0.5) + max(z, 1)", (3.0,), 3.5),
        ("where(z > 0, z, 10)", (-3.0,), 10.0),
        ("he4(z)", (2.0,), -5.0),
        ("he(4, z)", (2.0,), -5.0),
        ("he0(z) + he1(z) + he2(2*z)", (1.0,), 5.0),
        ("he8(z)", (1.0,), -132.0),
        ("he(0, z)", (7.0,), 1.0),
        ("sqrt(exp(log(z)))", (4.0,), 2.0),
        ("sin(z)**2 + cos(z)**2", (0.7,), 1.0),
        ("tan(z)", (0.0,), 0.0),
        ("erf(z) + tanh(z)", (50.0,), 2.0),
    ],
)
def test_values(text, z, expected):
    assert value(text, *z) == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "empty"),
        ("   ", 1, "empty"),
        ("3 + pi", 1, "constant"),
        ("x + 1", 1, "unknown name 'x'"),
        ("z + zz", 5, "did you mean"),
        ("1 + sinn(z)", 5, "did you mean sin?"),
        ("ln(z)", 1, "did you mean log?"),
        ("z5", 1, "the variables are z (= z1), z2, z3 and, to diagnose, z4"),
        ("z0", 1, "the variables are z"),
        ("he9(z)", 1, "write he(9, z)"),
        ("z^2", 2, "write a power as z**2"),
        ("2z", 1, "write a product with *"),
        ("z = 1", 3, "=="),
        ("abs(z", 4, "never closed"),
        ("z)", 2, "unmatched"),
        ("z +", 4, "not a formula"),
        ("z z", 3, "not a formula"),
        ("z, z", 1, "one formula"),
        ("z // 2", 1, "are allowed"),
        ("z % 2", 3, "remainder"),
        ("z if z else 1", 1, "where(condition, a, b)"),
        ("z and z", 1, "product of comparisons"),
        ("z > 0 & z < 1", 7, "product of comparisons"),
        ("not z", 1, "are allowed"),
        ("z is 1", 1, "comparisons"),
        ("z in z", 1, "comparisons"),
        ("True*z", 1, "write 1"),
        ("None", 1, "real numbers"),
        ("z + 1j", 5, "real numbers"),
        ("... + z", 1, "real numbers"),
        ("'z'", 1, "no strings"),
        ('z + "a"', 5, "no strings"),
        ("f'{z}'", 2, "no strings"),
        ("lambda z: z", 9, "no lambda"),
        ("(z := 1)", 4, "not allowed"),
        ("[z]", 1, "z1, z2"),
        ("z[0]", 2, "z1, z2"),
        ("{z}", 1, "not allowed"),
        ("abs(z for z in z)", 4, "comprehension"),
        ("z.real", 1, "dot"),
        ("2 + np.abs(z)", 5, "dot"),
        ("().__class__", 1, "dot"),
        ("abs(*z)", 5, "starred"),
        ("abs(z, x=1)", 8, "no named arguments"),
        ("abs(**z)", 5, "no named arguments"),
        ("abs()", 1, "abs takes 1 argument, not 0"),
        ("abs(z, z)", 1, "abs takes 1 argument, not 2"),
        ("1 + max(z)", 5, "max takes 2 to 20 arguments, not 1"),
        ("where(z, 1)", 1, "where takes 3 arguments, not 2"),
        ("he(z)", 1, "he takes 2 arguments, not 1"),
        ("he(z, z)", 4, "whole number from 0 to 20"),
        ("he(2.0, z)", 4, "whole number from 0 to 20"),
        ("he(-1, z)", 4, "whole number from 0 to 20"),
        ("he(21, z)", 4, "whole number from 0 to 20"),
        ("he(True, z)", 4, "whole number from 0 to 20"),
        ("abs", 1, "abs is a function"),
        ("z(2)", 1, "product with *"),
        ("(z + 1)(z)", 1, "product with *"),
        ("abs(z)(z)", 1, "product with *"),
        ("__import__(1)", 1, "unknown function"),
        ("eval(z)", 1, "unknown function"),
        ("z**z", 4, "exponent must be a constant"),
        ("2**z", 4, "exponent must be a constant"),
        ("z**21", 4, "between -20 and 20"),
        ("z**(-20.5)", 5, "between -20 and 20"),
        ("z**(0/0)", 5, "not finite"),
        ("z + 1/0", 5, "not finite"),
        ("z*log(-1)", 3, "not finite"),
        ("z*exp(exp(9))", 3, "not finite"),
        ("1e16*z", 1, "too large"),
        ("1e999*z", 1, "too large"),
        ("z\0", 2, "not allowed"),
        ("z + \N{GREEK SMALL LETTER ALPHA}", 5, "not allowed"),
        ("\N{MATHEMATICAL ITALIC SMALL Z}", 1, "not allowed"),
        ("z \N{MINUS SIGN} 1", 3, "ordinary minus"),
        ("\ud800", 1, "not allowed"),
        ("z # comment", 3, "not allowed"),
        ("z; z", 2, "not allowed"),
    ],
)
def test_refusals(text, column, reason):
    with pytest.raises(TargetError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert caught.value.column == column
    str(caught.value).encode()


@pytest.mark.parametrize(
    "text",
    [
        "z" * (MAX_LENGTH + 1),
        "z+" * 499 + "z",
        "-" * 999 + "z",
        "(" * 400 + "z" + ")" * 400,
        "abs(" * 150 + "z" + ")" * 150,
        "9" * 900 + "*z",
        "max(" + "z," * 490 + "z)",
        "0<(" * 90 + "z" + ")<1" * 90,
        "z**2" * 249,
    ],
)
def test_large_texts_are_refused(text):
    with pytest.raises(TargetError):
        parse(text)


def test_nested_chains_do_not_grow_exponentially():
    assert len(str(parse("0<(0<(z<1)<1)<1"))) < 100
    with pytest.raises(TargetError, match="parts"):
        parse("0<(" * 20 + "z" + ")<1" * 20)


@pytest.mark.parametrize("text", [None, 3, b"z", ["z"]])
def test_text_must_be_a_string(text):
    with pytest.raises(TargetError, match="text = .* must be a string"):
        parse(text)


def test_error_shows_the_place():
    with pytest.raises(TargetError) as caught:
        parse("z + sinn(z)")
    assert str(caught.value) == "unknown function 'sinn': did you mean sin? (column 5)\n  z + sinn(z)\n      ^"


def test_parsing_emits_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TargetError):
            parse("1if z else 2")


TOKENS = "z z1 z2 z9 pi 0 1 2 0.5 1e3 1e99 + - * / ** // < <= == != ( ) , . = abs he he3 he( max( where( sqrt( "
TOKENS += "lambda if else for in not and is True : [ ] ' \" ^ @ \\ # _ 1j 0x1 1_0"


WORDS = st.lists(st.sampled_from([*TOKENS.split(), " "]), max_size=30).map("".join)
ANY_TEXT = st.one_of(st.text(max_size=60), WORDS)  # a table of all characters is made first, for seconds


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.text("z12+-*/()., \t\n\0\x1béß∞𝔷", max_size=60), WORDS))
def test_any_text_parses_or_raises_target_error(text):
    check_any_text(text)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(ANY_TEXT)
def test_more_texts_parse_or_raise_target_error(text):
    check_any_text(text)


def check_any_text(text):
    try:
        expression = parse(text)
    except TargetError as error:
        assert error.column is not None and 1 <= error.column <= len(text) + 1
    else:
        assert isinstance(expression, Expression) and 1 <= expression.projections <= 4
        assert parse(str(expression)) == expression


@pytest.mark.parametrize("text", ["1if z else 2", "z*1and 2", "0x1for z", "1.5or z", ".5in z", "1e5not z", "1jis z"])
def test_a_number_joined_to_a_word_is_refused_without_a_warning(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TargetError, match="this is not a formula: invalid decimal literal"):
            parse(text)


def test_parsing_in_several_threads_leaves_the_warning_filters_of_the_process_alone():
    before, stop = list(warnings.filters), threading.Event()
    seen = []

    def often():
        while not stop.is_set():
            parse("abs(z) + 2*z2")

    threads = [threading.Thread(target=often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        seen.append(list(warnings.filters) == before)
        parse("sign(z)")
    stop.set()
    for thread in threads:
        thread.join()
    assert all(seen) and list(warnings.filters) == before
