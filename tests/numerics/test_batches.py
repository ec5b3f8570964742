"""Padded batches: the same values as one call, few lengths compiled, any structure of rows."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.numerics.batches import in_batches, in_blocks, rounded_up, rounded_up_to_power


class Pair(NamedTuple):
    total: jax.Array
    double: jax.Array


@pytest.fixture
def compiled():
    """A compiled function of rows (n, 2) and a pytree of rows, and the lengths that it was compiled for."""
    lengths = []

    @jax.jit
    def function(z, others):
        lengths.append(len(z))
        return Pair(z.sum(-1), 2 * others["w"])

    return function, lengths


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [2, 4, 9, 16])
def test_batches_give_the_values_of_one_call(compiled, count, threads):
    function, lengths = compiled
    z, w = np.random.default_rng(0).standard_normal((count, 2)), np.arange(float(count))
    found = in_batches(function, z, {"w": w}, batch=4, threads=threads)
    assert isinstance(found, Pair) and lengths == [4]
    assert found.total.dtype == found.double.dtype == np.float64
    np.testing.assert_allclose(found.total, z.sum(-1), rtol=1e-15)
    np.testing.assert_array_equal(found.double, 2 * w)
    found.total[0] = 0  # the arrays are the caller's own


def test_a_single_row_is_given_alone_unless_told(compiled):
    function, lengths = compiled
    for alone, length in ((True, 1), (False, 4)):
        found = in_batches(function, np.ones((1, 2)), {"w": np.ones(1)}, batch=4, alone=alone)
        assert found.total.tolist() == [2.0] and lengths[-1] == length


def test_no_rows_give_no_values(compiled):
    found = in_batches(compiled[0], np.ones((0, 2)), {"w": np.ones(0)}, batch=4)
    assert found.total.shape == found.double.shape == (0,)


def test_bare_arrays_and_many_columns():
    found = in_batches(lambda x: jnp.outer(x, jnp.arange(3.0)), np.arange(7.0), batch=3)
    np.testing.assert_array_equal(found, np.outer(np.arange(7.0), np.arange(3.0)))


def test_rounded_numbers_of_rows():
    assert [rounded_up(n, 8) for n in (0, 1, 8, 9)] == [8, 8, 8, 16]
    assert [rounded_up_to_power(n, 8) for n in (1, 8, 9, 33)] == [8, 8, 16, 64]


def test_a_function_in_blocks_gives_the_same_for_any_number_of_rows():
    lengths = []

    def double(rows):
        lengths.append(len(rows))
        return 2 * rows[:, 0]

    for count, expected in ((0, [0]), (3, [3]), (7, [3, 3, 1])):
        lengths.clear()
        rows = np.arange(2.0 * count).reshape(count, 2)
        np.testing.assert_array_equal(in_blocks(double, 3)(rows), 2 * rows[:, 0])
        assert lengths == expected
