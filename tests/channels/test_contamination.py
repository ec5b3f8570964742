"""Contaminations: what they accept, what they refuse in which words, and the labels they make."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.channels.contamination import as_contamination, components_of, contaminate, merged

ONE = sv.Contamination(0.3, 0.0, 5.0)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, ()),
        ("none", ()),
        ("", ()),
        ([], ()),
        (ONE, (ONE,)),
        ([ONE], (ONE,)),
        ("0.3:0:5", (ONE,)),
        (" 0.3 : 0 : 5 ", (ONE,)),
        ("0.3:0:5+0.1:-1:1e+2", (ONE, sv.Contamination(0.1, -1.0, 100.0))),
        ((ONE, sv.Contamination(0.7)), (ONE, sv.Contamination(0.7, 0.0, 0.0))),
    ],
)
def test_what_makes_a_contamination(given, found):
    assert as_contamination(given) == found


def test_text_brings_it_back():
    parts = (sv.Contamination(1 / 3, -0.1, 1e22), sv.Contamination(0.25, 2.0, 1e-9))
    assert as_contamination("+".join(map(str, parts))) == parts


def test_it_is_hashable_and_immutable():
    assert hash(ONE) == hash(sv.Contamination(0.3, 0, 5)) and sv.Contamination(0.3, 0, 5.1) != ONE
    with pytest.raises(AttributeError):
        ONE.fraction = 0.5  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.2,), "fraction = 1.2 is not allowed: fraction must be a probability: a number from 0 to 1."),
        ((-0.1,), "fraction = -0.1 is not allowed: fraction must be a probability: a number from 0 to 1."),
        ((float("nan"),), "fraction = nan is not allowed: fraction must be a probability: a number from 0 to 1."),
        (("a",), "fraction = 'a' is not allowed: fraction must be a probability: a number from 0 to 1."),
        ((True,), "fraction = True is not allowed: fraction must be a probability: a number from 0 to 1."),
        ((0.1, float("inf")), "slope = inf is not allowed: slope must be a finite number."),
        ((0.1, 0, -1), "noise = -1 is not allowed: noise must be a variance: a finite number, zero or positive."),
    ],
)
def test_bad_numbers_are_named(arguments, message):
    with pytest.raises(ValueError) as error:
        sv.Contamination(*arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("bad", ["0.3", "0.3:0", "a:b:c", 0.3, [0.3], "0.3:0:5:1"])
def test_what_is_no_contamination_is_refused(bad):
    with pytest.raises(ValueError, match=r"text 'fraction:slope:noise' such as '0.3:0:5', joined with '\+'\.$"):
        as_contamination(bad)


def test_fractions_add_up_to_at_most_one():
    with pytest.raises(ValueError, match="must be such that the fractions add up to at most 1"):
        as_contamination("0.3:0:1+0.8:0:1")
    assert len(as_contamination("+".join(["0.1:0:1"] * 10))) == 10


def test_numbers_that_jax_traces_pass():
    def clean_share(fraction):
        return components_of(0.1, as_contamination(sv.Contamination(fraction, fraction, fraction)))[0][0]

    assert jax.grad(clean_share)(0.3) == -1.0


def test_components_keep_every_part_and_merging_only_what_matters():
    parts = as_contamination("0.2:1:0.1+0:5:5+0.1:0:2")
    assert components_of(0.1, parts) == (
        (pytest.approx(0.7), 1.0, 0.1),
        (0.2, 1.0, 0.1),
        (0.0, 5.0, 5.0),
        (0.1, 0.0, 2.0),
    )
    assert merged(components_of(0.1, parts)) == ((pytest.approx(0.9), 1.0, 0.1), (pytest.approx(0.1), 0.0, 2.0))


def test_labels_follow_the_mixture():
    rng = np.random.default_rng(0)
    g = rng.standard_normal(200_000)
    components = ((0.5, 1.0, 0.1), (0.3, -2.0, 0.4), (0.2, 0.0, 5.0))
    y = contaminate(g, components, rng)
    products = {"gy": g * y, "yy": y**2, "ggyy": (g * y) ** 2}
    expected = {
        "gy": 0.5 - 0.6,
        "yy": 0.5 * 1.1 + 0.3 * 4.4 + 0.2 * 5,
        "ggyy": 0.5 * 3.1 + 0.3 * (12 + 0.4) + 0.2 * 5,
    }
    for name, values in products.items():
        assert abs(values.mean() - expected[name]) < 4 * values.std() / np.sqrt(len(y))
