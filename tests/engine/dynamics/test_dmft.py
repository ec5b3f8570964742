"""Descent on one batch: closed forms, two ways to the response, and a signal of another kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from reference.linear_descent import linear_descent
from reference.two_steps import two_steps

from solvable.core.errors import NotSolvable
from solvable.engine.dynamics.dmft import SETS, course, descend
from solvable.engine.dynamics.labels import Labels, kinked
from solvable.engine.dynamics.samples import sobol_samples
from solvable.engine.dynamics.student import Student, as_activation
from solvable.targets.target import Target

VALUES = {row["id"]: row for row in json.loads((Path(__file__).parents[2] / "reference/batch_values.json").read_text())}
FORMULAS = {"He3/sqrt6": ("he3(z)/sqrt(6)", lambda z: (z**3 - 3 * z) / np.sqrt(6)), "tanh": ("tanh(z)", np.tanh)}
NOTHING, UNIT = np.zeros((1, 1)), np.eye(1)


def labels(target: str, activation: str, noise: float = 0.0, decay: float = 0.0, layer=(1.0,)) -> Labels:
    return Labels(Target(target), Student(as_activation(activation), layer), noise, decay)


def mean_and_error(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return part.mean(axis=0), part.std(axis=0, ddof=1) / np.sqrt(len(part))


@pytest.mark.parametrize("id", [id for id in VALUES if id.startswith("d.two_step")])
def test_two_steps_are_those_of_the_closed_formula(id):
    row = VALUES[id]
    alpha, eta = row["params"]["alpha"], row["params"]["eta"]
    text, function = FORMULAS[row["params"]["target"]]
    signal = labels(text, "erf")
    found, other = descend(signal, alpha, eta, 2, NOTHING, UNIT, signal.target)
    exact = two_steps(function, alpha, eta)
    np.testing.assert_allclose(exact, row["value"], atol=row["tol"])
    ours = [found.M[0, 1, 0, 0], found.Q[0, 1, 0, 0], found.M[0, 2, 0, 0]]
    np.testing.assert_allclose(ours, [exact[0], exact[2], exact[3]], atol=1e-7)
    assert np.abs(found.M - other.M).max() < 1e-6 and np.abs(found.Q - other.Q).max() < 1e-6


def test_samples_and_grids_agree_after_two_steps():
    signal = labels("he3(z)/sqrt(6)", "erf")
    grid, _ = descend(signal, 3.0, 1.0, 2, NOTHING, UNIT, signal.target)
    found, _ = descend(signal, 3.0, 1.0, 2, NOTHING, UNIT)
    for ours, exact in ((found.M, grid.M), (found.Q, grid.Q)):
        value, error = mean_and_error(ours)
        assert np.all(np.abs(value - exact[0]) <= 5 * error + 1e-12)


@pytest.mark.parametrize(("alpha", "eta", "steps", "decay"), [(3.0, 0.2, 10, 0.0), (0.6, 0.3, 6, 0.4)])
def test_a_linear_neuron_follows_the_eigenvalues_of_its_inputs(alpha, eta, steps, decay):
    signal = labels("z", "z", 0.5, decay)
    start = np.full((1, 1), 0.3)
    found, other = descend(signal, alpha, eta, steps, start, UNIT)
    assert found.stein and not other.stein
    for part, exact in zip((found.M, found.Q), linear_descent(alpha, eta, steps, 0.5, decay, 0.3), strict=True):
        value, error = mean_and_error(part[..., 0, 0])
        assert np.abs(value - exact).max() < 3e-4
        assert np.all(np.abs(value - exact) <= 6 * error + 3e-6)


def test_derivatives_and_stein_give_the_same_overlaps():
    found, other = descend(labels("tanh(z)", "erf"), 3.0, 0.5, 5, NOTHING, UNIT)
    assert found.stein and not other.stein
    for ours, theirs in ((found.M, other.M), (found.Q, other.Q)):
        (value, error), (second, second_error) = mean_and_error(ours), mean_and_error(theirs)
        assert np.all(np.abs(value - second) <= 6 * np.hypot(error, second_error) + 1e-6)


def test_kinks_are_not_left_to_derivatives():
    assert kinked(as_activation("relu")) and kinked(as_activation("abs(z-0.5)"))
    assert not kinked(as_activation("erf")) and not kinked(as_activation("z*abs(z)"))
    _, other = descend(labels("z", "relu"), 1.0, 0.5, 3, NOTHING, UNIT)
    assert other.stein


def test_derivatives_miss_what_a_kink_adds():
    sets = [sobol_samples(1, 0, 3, 14, number) for number in range(4)]
    signal = labels("z**2", "relu")  # at the kink the force jumps by the label, whose mean there is not zero
    right, wrong = (course(signal, 2.0, 0.5, 3, NOTHING, UNIT, sets, stein=way) for way in (True, False))
    (q, error), (missed, _) = mean_and_error(right.Q[:, -1, 0, 0]), mean_and_error(wrong.Q[:, -1, 0, 0])
    assert abs(q - missed) > 20 * error


def test_no_samples_leave_only_the_decay():
    found, _ = descend(labels("z", "relu", decay=0.5), 0.0, 0.4, 3, np.full((1, 1), 0.5), UNIT)
    np.testing.assert_allclose(found.M[0, :, 0, 0], 0.5 * 0.8 ** np.arange(4), rtol=1e-12)
    np.testing.assert_allclose(found.Q[0, :, 0, 0], 0.64 ** np.arange(4), rtol=1e-12)


def test_what_does_not_fit_is_refused_in_words():
    with pytest.raises(NotSolvable, match="take fewer steps or neurons, or simulate"):
        descend(labels("z", "relu", layer=(0.1,) * 64), 1.0, 0.1, 1000, np.zeros((64, 1)), np.eye(64))


class Spike(NamedTuple):
    """A Boltzmann machine with one +-1 hidden unit, on data with a spike: x = sqrt(theta/d) u w* + noise, u = +-1."""

    theta: float

    width, directions, extra, kinked = 1, 1, 1, False

    def context(self, z, extra):
        return np.sign(extra)

    def force(self, h, context):
        return jnp.tanh(h)

    def direction(self, z, context):
        return z + np.sqrt(self.theta) * context

    def shift(self, M, context):
        return np.sqrt(self.theta) * M @ context

    def decay(self, Q, alpha):
        return alpha * np.eye(1)


def spiked(steps: int, power: int):
    sets = [sobol_samples(1, 1, steps, power, number) for number in range(SETS)]
    found = course(Spike(1.5), 2.0, 0.3, steps, np.full((1, 1), 0.2), UNIT, sets)
    return found.M[:, :, 0, 0].mean(0), found.Q[:, :, 0, 0].mean(0)


RUNS = {1: (0.2575, 0.0037, 0.695, 0.005), 3: (0.493, 0.011, 0.952, 0.015), 5: (0.750, 0.014, 1.442, 0.021)}
"""M and Q of ten runs of the machine at d = 1000 with their standard errors, after so many steps."""


def test_a_boltzmann_machine_on_spiked_data_is_another_signal():
    M, Q = spiked(5, 13)
    x, w = np.polynomial.hermite_e.hermegauss(80)
    g = np.tanh(x + 0.2 * np.sqrt(1.5))
    first = 0.2 * 0.4 + 0.6 * (0.2 * (w @ (1 - g**2)) + np.sqrt(1.5) * (w @ g)) / w.sum()
    assert abs(M[1] - first) < 2e-4
    for t, (m, m_error, q, q_error) in RUNS.items():
        assert abs(M[t] - m) < 3 * m_error and abs(Q[t] - q) < 3 * q_error


@pytest.mark.slow
def test_the_machine_at_size_d_follows_the_theory():
    d, n, rng = 1000, 2000, np.random.default_rng(0)
    M, Q = spiked(10, 16)
    found = []
    for _ in range(12):
        truth = np.sqrt(d) * np.eye(d)[0]
        X = rng.standard_normal((n, d)) + np.sqrt(1.5 / d) * np.outer(rng.choice([-1.0, 1.0], n), truth)
        rest = rng.standard_normal(d)
        rest[0] = 0
        w = 0.2 * truth + np.sqrt(0.96 * d) * rest / np.linalg.norm(rest)
        path = []
        for _ in range(10):
            w = w + 0.3 * (X.T @ np.tanh(X @ w / np.sqrt(d)) / np.sqrt(d) - 2 * w)
            path.append((w @ truth / d, w @ w / d))
        found.append(path)
    value, error = mean_and_error(np.array(found))
    assert np.all(np.abs(value - np.stack([M[1:], Q[1:]], 1)) < 4.5 * error)


@pytest.mark.slow
def test_many_steps_stay_on_the_exact_course():
    found, _ = descend(labels("z", "z", 0.5), 3.0, 0.2, 150, NOTHING, UNIT)
    for part, exact in zip((found.M, found.Q), linear_descent(3.0, 0.2, 150, 0.5), strict=True):
        assert np.abs(part[..., 0, 0].mean(0) - exact).max() < 1e-3
