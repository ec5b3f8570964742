"""Piecewise Chebyshev interpolation: accurate inside, linear outside, honest about its error."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.numerics.interpolation import chebyshev_nodes, fit

EDGES = np.array([-2.0, -0.5, 0.1, 3.0])
INSIDE = np.linspace(-2, 3, 1001)


def tabulate(function, edges, degree):
    """The interpolant of a function."""
    return fit(edges, degree, function(chebyshev_nodes(edges, degree)))


def test_a_smooth_function_and_its_slope():
    table = tabulate(lambda x: np.exp(np.sin(2 * x)), EDGES, 24)
    assert np.allclose(table(INSIDE), np.exp(np.sin(2 * INSIDE)), atol=1e-6)
    slope = 2 * np.cos(2 * INSIDE) * np.exp(np.sin(2 * INSIDE))
    assert np.allclose(table.derivative(INSIDE), slope, atol=1e-4)


def test_a_polynomial_of_the_degree_is_exact():
    table = tabulate(lambda x: x**5 - 2 * x**3 + 1, EDGES, 5)
    assert np.allclose(table(INSIDE), INSIDE**5 - 2 * INSIDE**3 + 1, rtol=1e-12, atol=1e-12)


def test_a_kink_on_an_edge_is_exact_and_elsewhere_is_not():
    on_edge = tabulate(np.abs, np.array([-1.0, 0.0, 1.0]), 8)
    x = np.linspace(-1, 1, 201)
    assert np.allclose(on_edge(x), np.abs(x), atol=1e-13)
    beside = tabulate(lambda x: np.abs(x - 0.3), np.array([-1.0, 0.0, 1.0]), 8)
    assert np.abs(beside(x) - np.abs(x - 0.3)).max() > 1e-3


def test_outside_it_continues_linearly():
    table = tabulate(np.exp, np.array([0.0, 1.0]), 20)
    assert table(np.array([3.0]))[0] == pytest.approx(np.e * 3, rel=1e-10)
    assert table(np.array([-2.0]))[0] == pytest.approx(1 - 2, rel=1e-10)
    assert table.derivative(np.array([-5.0, 9.0])) == pytest.approx([1, np.e], rel=1e-10)


@pytest.mark.parametrize("degree", [6, 10, 16])
def test_error_estimate_is_within_reach_of_the_true_error(degree):
    def function(x):
        return 1 / (1 + x**2)

    table = tabulate(function, EDGES, degree)
    true_error = np.abs(table(INSIDE) - function(INSIDE)).max()
    estimate = table.error(INSIDE).max()
    assert true_error <= 5 * estimate
    assert estimate <= 100 * true_error + 1e-15


def test_fit_takes_values_at_the_nodes_and_any_shape_of_points():
    nodes = chebyshev_nodes(EDGES, 9)
    assert nodes.shape == (3, 10)
    assert np.all((nodes > EDGES[:-1, None]) & (nodes < EDGES[1:, None]))
    table = fit(EDGES, 9, np.cos(nodes))
    points = np.array([[0.0, 1.0], [-2.0, 3.0]])
    assert table(points).shape == (2, 2)
    assert np.allclose(table(points), np.cos(points), atol=1e-6)
    assert np.shape(table(0.3)) == ()
    assert np.allclose(table(nodes), np.cos(nodes), atol=1e-14)
