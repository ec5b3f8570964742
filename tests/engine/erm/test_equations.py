"""The order parameters of empirical risk minimisation, put into an evaluation of the equations of its own.

`reference/erm_equations.py` evaluates them by NumPy and SciPy from the definitions: the proximal operator by bisection,
averages by fine quadrature over the field. Nothing of the library's quadrature is used, save in the test of its error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import erm_equations as equations

import solvable as sv
from solvable.channels.losses.quadrature import Panel
from solvable.engine.outputs.proximal import CurvedLabels
from solvable.numerics.gaussian import gauss_legendre

TOLERANCE = 1e-7
PARTS = ((0.7, 1.0, 0.1), (0.3, 0.0, 5.0))
TILTED = ((0.65, 1.0, 0.1), (0.35, -0.4, 5.0))  # two parts: compiled for other tests as well
SKEWED = ((0.65, 1.0, 0.1), (0.2, -0.4, 5.0), (0.15, 1.6, 0.7))


def contaminated(parts=PARTS) -> sv.MultiIndex:
    (_, _, noise), *others = parts
    return sv.MultiIndex("z", noise=noise, contamination=[sv.Contamination(*part) for part in others])


def quartic(y, z):
    return (y - z) ** 4 / 4 + (y - z) ** 2 / 2


def poisson(y, z):
    return jnp.exp(z) - y * z


class Setting(NamedTuple):
    """A model and learner, and their equations: averages over the labels at (m, q, V), and over the weights."""

    model: sv.MultiIndex
    learner: sv.ERM
    alpha: float
    labels: Callable
    weights: Callable


def regression(loss, profile, strength, alpha, parts=PARTS) -> Setting:
    labels = partial(equations.linear_labels, profile, parts)
    return Setting(contaminated(parts), sv.ERM(loss, strength), alpha, labels, equations.ridge(strength))


def classification(target, law, loss, profile, strength, alpha, margin=True) -> Setting:
    labels = partial(equations.class_labels, profile, law, margin=margin)
    return Setting(sv.MultiIndex(target), sv.ERM(loss, strength), alpha, labels, equations.ridge(strength))


def sparse(prior, mixture, strength, alpha) -> Setting:
    model = sv.MultiIndex("z", noise=0.05, prior=prior)
    labels = partial(equations.linear_labels, equations.SQUARE, [(1.0, 1.0, 0.05)])
    return Setting(model, sv.ERM("square", sv.Lasso(strength)), alpha, labels, equations.lasso(strength, mixture))


def poisson_setting() -> Setting:
    labels = partial(
        equations.general_labels,
        lambda y, z: np.exp(z) - y * z,
        lambda y, z: np.exp(z) - y,
        lambda y, z: np.exp(z),
        1.0,
        0.3,
    )
    model = sv.MultiIndex("z", noise=0.3)
    return Setting(model, sv.ERM(poisson, 0.5), 2.0, labels, equations.ridge(0.5))


def curved(text, target, noise, alpha=1.8) -> Setting:
    labels = partial(equations.curved_labels, equations.huber(0.4), target, noise)
    model = sv.MultiIndex(text, noise=noise)
    return Setting(model, sv.ERM(sv.losses.Huber(0.4), 0.07), alpha, labels, equations.ridge(0.07))


losses = sv.losses
SIGN = ("sign(z)", equations.probit_law(0.0))
SETTINGS: dict[str, Callable[[], Setting]] = {
    "square": lambda: regression(losses.Square(), equations.SQUARE, 0.1, 3.0, SKEWED),
    "square, negative ridge": lambda: regression(losses.Square(), equations.SQUARE, -0.3, 3.0),
    "huber": lambda: regression(losses.Huber(0.8), equations.huber(0.8), 0.1, 3.0, TILTED),
    "huber, three parts": lambda: regression(losses.Huber(0.8), equations.huber(0.8), 0.1, 3.0, SKEWED),
    "huber, negative ridge": lambda: regression(losses.Huber(1.0), equations.huber(1.0), -1.0, 10.0, TILTED),
    "huber, nearly no ridge": lambda: regression(losses.Huber(0.1), equations.huber(0.1), 1e-4, 1.2, TILTED),
    "absolute": lambda: regression(losses.Absolute(), equations.ABSOLUTE, 0.3, 2.0, SKEWED),
    "absolute, few samples": lambda: regression(losses.Absolute(), equations.ABSOLUTE, 0.02, 0.3, SKEWED),
    "tukey": lambda: regression(losses.Tukey(3.0), equations.tukey(3.0), 0.1, 3.0, SKEWED),
    "cosine": lambda: regression(losses.Cosine(1.2), equations.cosine(1.2), 0.2, 3.0, SKEWED),
    "custom of the residual": lambda: regression(quartic, equations.QUARTIC, 0.2, 1.5, SKEWED),
    "custom of label and output": poisson_setting,
    "curved target": lambda: curved("tanh(2*z)", lambda z: np.tanh(2 * z), 0.05),
    "steep target": lambda: curved("tanh(8*z)", lambda z: np.tanh(8 * z), 0.05),
    "cubic target": lambda: curved("z**3", lambda z: z**3, 0.0),
    "logistic, sign": lambda: classification(*SIGN, losses.Logistic(), equations.LOGISTIC, 0.1, 3.0),
    "logistic, sign, weak ridge": lambda: classification(*SIGN, losses.Logistic(), equations.LOGISTIC, 1e-3, 8.0),
    "hinge, sign": lambda: classification(*SIGN, losses.Hinge(), equations.HINGE, 0.1, 3.0),
    "huber, sign": lambda: classification(*SIGN, losses.Huber(0.3), equations.huber(0.3), 0.1, 3.0, margin=False),
    "logistic, logit": lambda: classification(
        sv.channels.Logit(1.7), equations.logit_law(1.7), losses.Logistic(), equations.LOGISTIC, 0.05, 2.5
    ),
    "logistic, probit": lambda: classification(
        sv.channels.Probit(noise=0.4), equations.probit_law(0.4), losses.Logistic(), equations.LOGISTIC, 0.05, 2.5
    ),
    "lasso, sparse": lambda: sparse("gauss-bernoulli:0.2", ((0.8, 0.0, 0.0), (0.2, 0.0, 5.0)), 0.15, 0.8),
    "lasso, gaussian": lambda: sparse("gaussian", ((1.0, 0.0, 1.0),), 0.15, 1.4),
    "lasso, rademacher": lambda: sparse("rademacher", ((0.5, -1.0, 0.0), (0.5, 1.0, 0.0)), 0.15, 1.4),
}
SLOW = {
    "huber, three parts",
    "logistic, probit",
    "lasso, rademacher",
    "lasso, sparse",
    "steep target",
    "custom of the residual",
    "cosine",
    "custom of label and output",
    "huber, sign",
    "lasso, gaussian",
    "logistic, logit",
    "cubic target",
    "curved target",
    "tukey",
    "absolute",
    "absolute, few samples",
}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SETTINGS]


@functools.cache
def solve(name: str) -> tuple[Setting, sv.Prediction, tuple[float, float, float]]:
    setting = SETTINGS[name]()
    found = sv.predict(setting.model, setting.learner, alpha=setting.alpha)
    assert found.converged
    return setting, found, tuple(found.order_parameters[key] for key in ("m", "q", "V"))


@pytest.mark.parametrize("name", NAMES)
def test_order_parameters_solve_the_equations(name):
    setting, found, point = solve(name)
    averages = setting.labels(*point)
    back = equations.image(averages, setting.weights, setting.alpha)
    assert back[:3] == pytest.approx(point, rel=TOLERANCE)
    expected = {
        "m_hat": setting.alpha * averages.push,
        "q_hat": setting.alpha * averages.power,
        "V_hat": setting.alpha * averages.response,
        "energy": setting.alpha * averages.loss + back.cost,
    }
    assert {key: found.order_parameters[key] for key in expected} == pytest.approx(expected, rel=TOLERANCE)
    assert found["training_loss"] == pytest.approx(averages.loss, rel=TOLERANCE)
    replicon = setting.alpha * averages.stiffness * back.stiffness
    assert found["replicon"] == pytest.approx(replicon, rel=TOLERANCE)
    assert found["replicon"] < 1


@eqx.filter_jit
def fine_averages(output, m, q, V, panel):
    return output.averages(m, q, V, panel)


QUICK = {"huber"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in SETTINGS],
)
def test_uncertainty_covers_what_fine_quadrature_changes(name):
    """The averages by 40 nodes on each panel, at the order parameters reported, and what the penalty makes of them.

    The change of one step is compared, which the slope of the map turns into that of the fixed point; five times the
    reported numbers, and rounding, are allowed.
    """
    setting, found, (m, q, V) = solve(name)
    with jax.enable_x64(True):
        output = jax.tree.map(jnp.asarray, setting.model.likelihood().with_loss(setting.learner.loss))
        fine = fine_averages(output, m, q, V, Panel(*gauss_legendre(40)))
    fine = equations.Averages(*(float(part) for part in fine))
    back = equations.image(fine, setting.weights, setting.alpha)
    allowed = {key: 5 * value + 1e-9 for key, value in found.uncertainty.items()}
    if isinstance(output.labels, CurvedLabels):  # their rows over z are fixed: only an evaluation of its own has others
        fine = setting.labels(m, q, V)
        back = equations.image(fine, setting.weights, setting.alpha)
    assert abs(fine.loss - found["training_loss"]) < allowed["training_loss"]
    assert abs(setting.alpha * fine.stiffness * back.stiffness - found["replicon"]) < allowed["replicon"]
    assert abs(1 - 2 * back.m + back.q - found["estimation_error"]) < allowed["estimation_error"]
    assert all(0 < value < 1e-5 for value in found.uncertainty.values())


def free_energy(profile, components, strength, alpha, x) -> float:
    """f of the six order parameters, for linear labels, a loss of the residual and a ridge."""
    m, q, V, m_hat, q_hat, V_hat = x
    moreau = 0.0
    for p, beta, Delta in components:
        R, weight = equations.nodes(profile.corners(V), 0.0, np.sqrt(Delta + q - 2 * beta * m + beta**2))
        r = equations.prox(profile, R, V)
        moreau += p * (weight @ ((R - r) ** 2 / (2 * V) + profile.value(r)))
    least = -(m_hat**2 + q_hat) / (2 * (strength + V_hat))
    return m * m_hat - q * V_hat / 2 + V * q_hat / 2 + least + alpha * moreau


@pytest.mark.parametrize(
    "name, profile, parts",
    [
        ("huber", equations.huber(0.8), TILTED),
        pytest.param("huber, three parts", equations.huber(0.8), SKEWED, marks=pytest.mark.slow),
        pytest.param("absolute", equations.ABSOLUTE, SKEWED, marks=pytest.mark.slow),
    ],
)
def test_free_energy_is_stationary_and_equals_the_least_risk(name, profile, parts):
    setting, found, _ = solve(name)
    strength = setting.learner.penalty.strength
    x = np.array([found.order_parameters[key] for key in ("m", "q", "V", "m_hat", "q_hat", "V_hat")])
    f = partial(free_energy, profile, parts, strength, setting.alpha)
    assert f(x) == pytest.approx(found.order_parameters["energy"], rel=1e-9)
    assert f(x) == pytest.approx(setting.alpha * found["training_loss"] + strength * x[1] / 2, rel=1e-9)
    for k in range(6):
        step = 1e-4 * np.eye(6)[k]
        slope, other = (f(x + step) - f(x - step)) / 2e-4, (f(x + 2 * step) - f(x - 2 * step)) / 4e-4
        assert abs(4 * slope - other) / 3 < 1e-8
    # Moved away from the fixed point it is not stationary: the test can fail.
    step = 1e-4 * np.eye(6)[0]
    moved = x + 0.01
    assert abs(f(moved + step) - f(moved - step)) / 2e-4 > 1e-4
