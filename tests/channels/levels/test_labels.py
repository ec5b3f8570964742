"""Level sets as weighted points: densities, flat sets, moments and the label spectrum, against known laws."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import k0, ndtr

from solvable.channels import GenericChannel
from solvable.channels.levels.averages import label_moments
from solvable.channels.levels.fibres import coordinate_rule
from solvable.channels.levels.labels import LabelRule, Resolution, label_rule
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian_many import frame
from solvable.targets.target import Target


def surface_of(text: str) -> Surface:
    target = Target(text)
    return Surface.of(target, np.eye(target.projections))


@functools.cache
def rule_of(text: str, fineness: float = 1.0) -> LabelRule:
    """The rule that channels use, in the coordinates adapted to the target."""
    return GenericChannel(Target(text)).rule(fineness)


def density(rule: LabelRule) -> np.ndarray:
    """The density of each label (the probability of an atom) under z ~ N(0, I)."""
    r = rule.sets.z.shape[1]
    return label_moments(rule, frame(np.zeros((r, r))), [(0,) * r])[:, 0, 0]


DENSITIES = {
    "z1*z2": lambda y: k0(np.abs(y)) / np.pi,
    "z1**2+z2**2": lambda y: np.exp(-y / 2) / 2,
    "z1+z2": lambda y: np.exp(-(y**2) / 4) / np.sqrt(4 * np.pi),
    "max(z1,z2)": lambda y: 2 * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi) * ndtr(y),
    "abs(z1)+abs(z2)": lambda y: 2 / np.sqrt(np.pi) * np.exp(-(y**2) / 4) * (2 * ndtr(y / np.sqrt(2)) - 1),
    "z1**2+z2**2+z3**2": lambda y: np.sqrt(y / (2 * np.pi)) * np.exp(-y / 2),
}


@pytest.mark.parametrize("text", [pytest.param(text, marks=[pytest.mark.slow] * ("z3" in text)) for text in DENSITIES])
def test_density_of_the_label(text):
    """The density of the label; level sets smaller than the distance of lines are coarse, but have little mass."""
    rule = rule_of(text)
    exact = DENSITIES[text](rule.y)
    weight = rule.mu * exact
    promised = 5e-4 if rule.sets.z.shape[1] <= 2 else 5e-3
    assert np.sum(rule.mu * np.abs(density(rule) - exact)) < promised
    assert np.sum(weight) == pytest.approx(1, abs=promised)


@pytest.mark.parametrize("text", ["z1*z2", "z1**2+z2**2", "tanh(z1)*z2+0.3*z1**2", "relu(z1)+relu(z2)", "z1*z2+z3"])
def test_points_lie_on_their_level_set(text):
    rule, target = rule_of(text), Target(text)
    label = rule.y[rule.sets.label]
    assert np.max(np.abs(target.numpy(rule.sets.z) - label) / (1 + np.abs(label))) < 1e-9
    # Gradients by differences with another step, away from the kinks of relu.
    some = np.flatnonzero(np.abs(rule.sets.z).min(1) > 1e-3)[::50]
    z = rule.sets.z[some]
    slope = np.stack([(target.numpy(z + e) - target.numpy(z - e)) / 2e-5 for e in 1e-5 * np.eye(z.shape[1])], 1)
    np.testing.assert_allclose(rule.sets.gradient[some], slope, atol=1e-6, rtol=1e-6)


ORDINARY = [
    "z1*z2",
    "z1**2+z2**2",
    "relu(z1)+relu(z2)",
    "tanh(z1)*z2+0.3*z1**2",
    "sign(z1)*z2",
    "sign(z1)*abs(z2)+z1",
    "he4(z1)+he3(z2)",
    "abs(z1*z2)**0.5",
    "(abs(z1)<1)*z2",
    "exp(z1)+z2",
    "exp(z1*z2/3)",
    "he4(z1)+z2**2",
    "z1**2*z2**2",
    "exp(-z1**2-z2**2)",
    "max(1-z1**2-z2**2,0)",
    "cos(z1)+z2**2",
    "1e4*z1*z2",
    "1e-4*z1*z2",
    "z1**2 + sign(z1*z2)",
    "z1*z2+z3",
    "relu(z1)+relu(z2)+relu(z3)",
    "z1**2+sign(z1*z2*z3)",
]


QUICK = ["z1*z2", "relu(z1)+relu(z2)", "sign(z1)*z2", "(abs(z1)<1)*z2", "1e4*z1*z2", "max(1-z1**2-z2**2,0)", "z1*z2+z3"]


@pytest.mark.parametrize(
    "text", [text if text in QUICK else pytest.param(text, marks=pytest.mark.slow) for text in ORDINARY]
)
def test_points_of_all_labels_are_gaussian(text):
    """Summed over labels, the points are a rule for z ~ N(0, I): its mass, mean and covariance."""
    rule = rule_of(text)
    z, mass = rule.sets.z, rule.mass
    r = z.shape[1]
    promised = 1e-3 if r == 2 else 3e-3
    assert np.sum(mass) == pytest.approx(1, abs=promised)
    assert np.abs(mass @ z).max() < promised
    assert np.abs((mass[:, None] * z).T @ z - np.eye(r)).max() < promised


@pytest.mark.parametrize(
    "text, mean, square",
    [
        ("z1*z2", 0.0, 1.0),
        ("z1**2+z2**2", 2.0, 8.0),
        ("relu(z1)+relu(z2)", np.sqrt(2 / np.pi), 1 + 1 / np.pi),
        ("exp(z1)+z2", np.exp(0.5), np.exp(2) + 1),
        ("z1*z2+z3", 0.0, 2.0),
        pytest.param("z1**2+sign(z1*z2*z3)", 1.0, 4.0, marks=pytest.mark.slow),
    ],
)
def test_moments_of_the_label(text, mean, square):
    rule = rule_of(text)
    weight = rule.mu * density(rule)
    assert weight @ rule.y == pytest.approx(mean, abs=2e-3)
    assert weight @ rule.y**2 == pytest.approx(square, rel=2e-3)


def test_flat_set_of_two_relus():
    """relu(z1) + relu(z2) is 0 on a quarter of the plane, where the mean of z is -sqrt(2/pi) in each coordinate."""
    rule = rule_of("relu(z1)+relu(z2)")
    np.testing.assert_array_equal(rule.atoms, [0.0])
    assert rule.y[-1] == 0 and rule.mu[-1] == 1
    here = slice(rule.sets.start[-2], rule.sets.start[-1])
    mass, z = rule.mass[here], rule.sets.z[here]
    assert mass.sum() == pytest.approx(0.25, abs=1e-7)
    np.testing.assert_allclose(mass @ z / mass.sum(), -np.sqrt(2 / np.pi), atol=1e-6)
    np.testing.assert_array_equal(rule.sets.gradient[here], 0)


@pytest.mark.parametrize(
    "text, atoms, chances",
    [
        ("sign(z1)+sign(z2)", [-2, 0, 2], [0.25, 0.5, 0.25]),
        ("sign(z1*z2*z3)", [-1, 1], [0.5, 0.5]),
        ("sign(z1)+sign(z2)+sign(z3)", [-3, -1, 1, 3], [1 / 8, 3 / 8, 3 / 8, 1 / 8]),
        ("(abs(z1)<1)*sign(z2)", [-1, 0, 1], [0.3413447461, 0.3173105079, 0.3413447461]),
        ("sign(z1+z2**2-1)", [-1, 1], [0.5748614972, 0.4251385028]),
    ],
)
def test_atoms_of_discrete_targets(text, atoms, chances):
    surface = surface_of(text)
    assert surface.discrete
    rule = label_rule(surface, Resolution.of(surface.projections, 1.0))
    np.testing.assert_allclose(rule.y, atoms, atol=1e-12)
    np.testing.assert_allclose(density(rule), chances, atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "text, outside, error",
    [("sign(z1**2+z2**2-1)", np.exp(-0.5), 1e-4), ("sign(z1**2+z2**2+z3**2-2)", 0.5724067045, 1e-3)],
)
def test_sets_with_a_closed_wall(text, outside, error):
    """No axis sees the wall of a ball without folds; the mass is right all the same."""
    assert len(surface_of(text).curved_breaks) == 1
    np.testing.assert_allclose(density(rule_of(text)), [1 - outside, outside], atol=error)


def test_small_is_not_flat():
    """z1^3 z2^2 is tiny near the axes, and takes no value with positive probability."""
    assert len(surface_of("z1**3*z2**2").atoms) == 0
    assert len(surface_of("1 + z1**3").atoms) == 0


def test_flat_parts_are_told_from_smooth_ones():
    assert surface_of("relu(z1)*z2").flat_values[1] == pytest.approx(0.5, abs=0.02)
    assert len(surface_of("z1*z2").atoms) == 0 and not surface_of("relu(z1)+relu(z2)").discrete


@pytest.mark.parametrize(
    "text, expected",
    [("z1*z2", [0]), ("he3(z1)+z2**2", [-2, 2]), ("sin(z1)+cos(z2)", [-2, 0, 2]), ("z1**2+z2**2*(1+z2**2)", [0])],
)
def test_critical_values(text, expected):
    found = surface_of(text).critical_values
    for value in expected:
        assert np.min(np.abs(found - value)) < 1e-3
    assert len(found) <= len(expected)


def test_coordinate_rules_integrate_kinks_and_bumps():
    rules = {
        "panels": coordinate_rule(np.array([0.3]), np.zeros(0), 0.0, 0.12, 6.2),
        "trapezoid": coordinate_rule(np.zeros(0), np.zeros(0), 0.0, 0.12, 6.2),
        "centred": coordinate_rule(np.zeros(0), np.array([0.5]), 10.0, 0.12, 6.2),
    }
    for name, (x, w) in rules.items():
        gauss = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        assert w @ gauss == pytest.approx(1, abs=1e-8), name
        assert w @ (gauss * x**4) == pytest.approx(3, abs=1e-5), name
    x, w = rules["panels"]
    exact = quad(lambda x: abs(x - 0.3) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), -6.2, 6.2, points=[0.3])[0]
    assert w @ (np.abs(x - 0.3) * np.exp(-(x**2) / 2)) / np.sqrt(2 * np.pi) == pytest.approx(exact, abs=1e-9)
    # A narrow bump at its centre.
    x, w = rules["centred"]
    assert w @ (1 / (1 + ((x - 0.5) / 0.05) ** 2)) == pytest.approx(
        0.05 * (np.arctan(5.7 / 0.05) + np.arctan(6.7 / 0.05)), rel=2e-3
    )
