"""Losses: slopes, curvatures, kinks and proximal operators against SciPy; losses of one's own; refusals."""

from __future__ import annotations

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import solvable as sv
from solvable.channels.losses import (
    Absolute,
    Cosine,
    Custom,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Square,
    Tukey,
    as_loss,
)

RESIDUAL = [Square(), Huber(0.8), Absolute(), Tukey(2.3), Cosine(1.2)]
MARGIN = [Logistic(), Hinge()]
LOSSES = RESIDUAL + MARGIN
LABELS = {True: (-1.7, 0.0, 2.4), False: (-1.0, 1.0)}
U = np.array([-31.0, -5.3, -2.1, -0.93, -0.41, -1e-3, 0.13, 0.77, 1.21, 3.4, 12.0, 31.0])


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def labels(loss) -> tuple[float, ...]:
    return LABELS[bool(loss.residual)]


def pinball(y, z):
    return jnp.maximum(0.3 * (y - z), -0.7 * (y - z))


def hinge(y, z):
    return jnp.maximum(0.0, 1 - y * z)


def huber(y, z):
    r = jnp.abs(y - z)
    return jnp.where(r < 0.8, r**2 / 2, 0.8 * r - 0.32)


def log_cosh(y, z):
    return jnp.logaddexp(y - z, z - y) - jnp.log(2.0)


def poisson(y, z):
    return jnp.exp(z) - y * z


@cache
def make(function) -> Custom:
    return Custom(function)


@eqx.filter_jit
def compiled_prox(loss, x, V, y):
    return loss.prox(x, V, y)


def prox(loss, x, V, y) -> np.ndarray:
    """The operator at up to 70 fields, padded so that it is compiled once."""
    x, V, y = (np.resize(part, 70) for part in np.broadcast_arrays(np.atleast_1d(x), V, y))
    return np.asarray(compiled_prox(loss, x, V, y))


SLOPES = {
    Square(): lambda u, y: u,
    Huber(0.8): lambda u, y: np.clip(u, -0.8, 0.8),
    Absolute(): lambda u, y: np.sign(u),
    Tukey(2.3): lambda u, y: u * max(1 - (u / 2.3) ** 2, 0) ** 2,
    Cosine(1.2): lambda u, y: 1.2 * np.sin(u / 1.2) if abs(u) < 1.2 * np.pi else 0.0,
    Logistic(): lambda u, y: -y * expit(-y * u),
    Hinge(): lambda u, y: -y if y * u < 1 else 0.0,
    log_cosh: lambda u, y: np.tanh(u),
    pinball: lambda u, y: np.where(u > 0, 0.3, -0.7),
}
"""f'(u) of the built-in losses and the functions above, by hand."""
OWN = [pytest.param(log_cosh, id="log_cosh", marks=pytest.mark.slow), pytest.param(pinball, id="pinball")]
# Of the two losses that are not convex one is quick.
BUILT_IN = [pytest.param(loss, id=str(loss), marks=[pytest.mark.slow] * isinstance(loss, Cosine)) for loss in LOSSES]
FEW = [pytest.param(loss, id=str(loss), marks=[pytest.mark.slow] * (loss != Logistic())) for loss in LOSSES]


@pytest.mark.parametrize("loss", FEW)
def test_slope_and_curvature_are_derivatives(loss):
    for y in labels(loss):
        step = 1e-5 * (1 + np.abs(U))
        slopes = (loss.profile(U + step, y) - loss.profile(U - step, y)) / (2 * step)
        assert loss.slope(U, y) == pytest.approx(np.asarray(slopes), abs=1e-8)
        curvatures = (loss.slope(U + step, y) - loss.slope(U - step, y)) / (2 * step)
        assert loss.curvature(U, y) == pytest.approx(np.asarray(curvatures), abs=1e-8)
        by_autodiff = jax.vmap(jax.grad(lambda u, y=y: loss.profile(u, y)))(U)
        assert loss.slope(U, y) == pytest.approx(np.asarray(by_autodiff), abs=1e-12)
        twice = jax.vmap(jax.grad(lambda u, y=y: loss.slope(u, y)))(U)
        assert loss.curvature(U, y) == pytest.approx(np.asarray(twice), abs=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_lowest_curvature_is_the_lowest(loss):
    grid = np.linspace(-30, 30, 60_001)
    lowest = min(float(np.min(loss.curvature(grid, y))) for y in labels(loss))
    assert float(loss.lowest_curvature) == pytest.approx(min(lowest, 0.0), abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_value_in_label_and_output(loss):
    """l(y, z) is the profile at y - z or at z; l(-y, -z) = l(y, z) for all of these."""
    assert loss.mirrored
    for y in labels(loss):
        u = y - U if loss.residual else U
        assert np.asarray(loss(y, U)) == pytest.approx(np.asarray(loss.profile(u, y)))
        assert np.asarray(loss(-y, -U)) == pytest.approx(np.asarray(loss(y, U)), abs=1e-14)
        assert np.asarray(loss.coordinate(y, loss.coordinate(y, U))) == pytest.approx(U)


def test_values_written_out():
    assert float(Huber(0.8)(1.0, 0.5)) == pytest.approx(0.125)
    assert float(Huber(0.8)(3.0, 0.5)) == pytest.approx(0.8 * 2.5 - 0.32)
    assert float(Tukey(2.0)(5.0, 0.5)) == pytest.approx(4 / 6)
    assert float(Tukey(2.0)(1.0, 0.0)) == pytest.approx(4 / 6 * (1 - 0.75**3))
    assert float(Cosine(1.2)(1.0, 0.0)) == pytest.approx(1.44 * (1 - np.cos(1 / 1.2)))
    assert float(Cosine(1.2)(9.0, 0.0)) == pytest.approx(2.88)
    assert float(Logistic()(-1.0, 2.0)) == pytest.approx(np.log1p(np.exp(2.0)))
    assert float(Logistic()(1.0, -800.0)) == 800.0 and float(Logistic()(1.0, 800.0)) == 0.0
    assert float(Hinge()(-1.0, 2.0)) == 3.0 and float(Hinge()(1.0, 2.0)) == 0.0


def as_custom(given):
    return given if isinstance(given, Loss) else make(given)


def scipy_prox(slope, x: float, V: float, y: float) -> float:
    """The root of u + V f'(u) - x by brentq; at a kink, whose jump holds the root, brentq ends on it."""
    reach = 2.0 + V * 4 * (1 + abs(x))
    return brentq(lambda u: u + V * float(slope(u, y)) - x, x - reach, x + reach, xtol=1e-14, rtol=1e-14, maxiter=500)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("V", [1e-6, 0.3, 0.97, 6.0, 1e4])
@pytest.mark.parametrize("given", [*BUILT_IN, *OWN])
def test_prox_solves_its_equation(given, V):
    loss, slope = as_custom(given), SLOPES[given]
    if V * float(loss.lowest_curvature) <= -1:
        pytest.skip("the operator has several values there")
    for y in labels(loss):
        kinks = loss.kinks(jnp.asarray(y))
        ends = [np.asarray(kinks.place + V * side) for side in (kinks.left, kinks.right)]
        fixed = np.array([-40.0, -3.3, -1.01, -0.2, 0.0, 0.6, 1.01, 2.9, 40.0])
        inside = np.linspace(*ends, 7)[1:-1] if kinks.place.size else np.zeros((5, 1))
        beyond = [ends[0] - 0.01 * (1 + V), ends[1] + 0.01 * (1 + V)] if kinks.place.size else [np.zeros(1)] * 2
        x = np.concatenate([fixed, *beyond, *inside])
        u = prox(loss, x, V, y)[: len(x)]
        expected = np.array([scipy_prox(slope, float(x_k), V, y) for x_k in x])
        assert np.all(np.abs(u - expected) < 1e-10 * (1 + np.abs(x)))
        if kinks.place.size:
            assert np.all(u[-5:] == np.asarray(kinks.place)) and np.all(u[-7:-5] != np.asarray(kinks.place))


def test_prox_of_steep_logistic_losses():
    """Newton's method alone goes round in circles here: large V, a field on the wrong side."""
    x = np.linspace(-30, 30, 61)
    for y in (-1.0, 1.0):
        for V in (1e2, 1e4, 1e6, 1e8):
            u = prox(Logistic(), x, V, y)[: len(x)]
            expected = [scipy_prox(SLOPES[Logistic()], float(x_k), V, y) for x_k in x[::6]]
            assert u[::6] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert np.all(np.diff(u) > 0)


@pytest.mark.parametrize("V", [0.3, 2.0])
@pytest.mark.parametrize("given", [*FEW, pinball, pytest.param(poisson, marks=pytest.mark.slow)])
def test_prox_is_the_minimum(given, V):
    """(u - x)^2 / 2V + f(u) on a grid is nowhere lower; V = 2 is too much for Tukey and Andrews."""
    loss = as_custom(given)
    if V * float(loss.lowest_curvature) <= -1:
        pytest.skip("the operator has several values there")
    grid, x = np.linspace(-12, 12, 24_001), np.array([-4.0, -0.7, 0.0, 0.9, 3.2])
    for y in labels(loss):
        costs = (grid - x[:, None]) ** 2 / (2 * V) + np.asarray(loss.profile(grid, y))
        u = prox(loss, x, V, y)[: len(x)]
        assert np.all((u - x) ** 2 / (2 * V) + np.asarray(loss.profile(u, y)) <= costs.min(axis=1) + 1e-12)
        assert np.all(np.abs(u - grid[np.argmin(costs, axis=1)]) <= 2e-3)


@pytest.mark.parametrize(
    "given",
    [Logistic(), Hinge(), Huber(0.8), pinball],
    ids=["logistic", "hinge", "huber", "own pinball"],
)
def test_prox_takes_arrays_of_labels_and_of_strengths(given):
    loss = as_custom(given)
    rng = np.random.default_rng(1)
    x, y, V = rng.normal(size=30), np.sign(rng.normal(size=30)), rng.uniform(0.1, 3, 30)
    together = prox(loss, x, V, y)[:30]
    alone = [prox(loss, *row)[0] for row in zip(x, V, y, strict=True)]
    assert together == pytest.approx(alone, abs=1e-12)


def test_kinks_of_the_built_in_losses():
    assert [float(part[0]) for part in Absolute().kinks(0.0)] == [0.0, -1.0, 1.0]
    assert [float(part[0]) for part in Hinge().kinks(1.0)] == [1.0, -1.0, 0.0]
    assert [float(part[0]) for part in Hinge().kinks(-1.0)] == [-1.0, 0.0, 1.0]
    for loss in (Square(), Huber(), Tukey(), Cosine(), Logistic()):
        assert loss.kinks(1.0).place.size == 0


@pytest.mark.parametrize(
    "function, kinks, splits",
    [
        (pinball, [(0.0, -0.7, 0.3)], []),
        (hinge, [(1.0, -1.0, 0.0)], []),
        pytest.param(huber, [], [-0.8, 0.8], marks=pytest.mark.slow),
        pytest.param(log_cosh, [], [], marks=pytest.mark.slow),
        pytest.param(lambda y, z: jnp.abs(y - z), [(0.0, -1.0, 1.0)], [], marks=pytest.mark.slow),
        pytest.param(
            lambda y, z: jnp.maximum(jnp.abs(y - z) - 0.37, 0.0),
            [(-0.37, -1.0, 0.0), (0.37, 0.0, 1.0)],
            [],
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda y, z: jnp.abs(y - z) + (y - z) ** 2, [(0.0, -1.0, 1.0)], [], marks=pytest.mark.slow),
        (lambda y, z: jnp.maximum(0.0, 1 - y * z) ** 2, [], [1.0]),
    ],
)
def test_kinks_and_jumps_of_the_curvature_are_found(function, kinks, splits):
    loss = make(function)
    found = sorted(loss._kinks)
    assert len(found) == len(kinks)
    for here, there in zip(found, kinks, strict=True):
        assert here == pytest.approx(there, abs=1e-6)
    assert sorted(loss._splits) == pytest.approx(splits, abs=1e-6)


def test_kinks_of_a_classification_loss_follow_the_label():
    for y in (-1.0, 1.0):
        here, there = make(hinge).kinks(y), Hinge().kinks(y)
        assert [float(part[0]) for part in here] == pytest.approx([float(part[0]) for part in there], abs=1e-6)


@pytest.mark.parametrize(
    "function, kind",
    [
        (pinball, "residual"),
        pytest.param(huber, "residual", marks=pytest.mark.slow),
        pytest.param(log_cosh, "residual", marks=pytest.mark.slow),
        (hinge, "margin"),
        pytest.param(lambda y, z: jnp.logaddexp(0.0, -y * z), "margin", marks=pytest.mark.slow),
        pytest.param(lambda y, z: jnp.exp(-y * z), "margin", marks=pytest.mark.slow),
        (poisson, "neither"),
        # Nothing but rounding at y = 1 and z = 30.
        pytest.param(lambda y, z: jnp.logaddexp(0.0, z) - y * z, "neither", marks=pytest.mark.slow),
    ],
)
def test_kinds_are_told_from_values(function, kind):
    loss = make(function)
    assert (loss.residual, loss.margin) == (kind == "residual", kind == "margin")


@pytest.mark.parametrize(
    "function, mirrored",
    [(hinge, True), pytest.param(huber, True, marks=pytest.mark.slow), (pinball, False), (poisson, False)],
)
def test_mirror_symmetry_is_told_from_values(function, mirrored):
    assert make(function).mirrored == mirrored


@pytest.mark.parametrize(
    "pair",
    [pytest.param((huber, Huber(0.8)), id="huber", marks=pytest.mark.slow), pytest.param((hinge, Hinge()), id="hinge")],
)
def test_custom_losses_agree_with_built_in_ones(pair):
    function, built_in = pair
    custom = make(function)
    for y in labels(built_in):
        assert np.asarray(custom.slope(U, y)) == pytest.approx(np.asarray(built_in.slope(U, y)))
        assert np.asarray(custom.curvature(U, y)) == pytest.approx(np.asarray(built_in.curvature(U, y)))
        assert np.asarray(custom(y, U)) == pytest.approx(np.asarray(built_in(y, U)))
    assert custom.lowest_curvature == 0


def test_lowest_curvature_of_a_custom_loss():
    assert make(log_cosh).lowest_curvature == 0
    lowest = make(
        lambda y, z: jnp.log1p((y - z) ** 2)
    ).lowest_curvature  # f'' = 2 (1 - r^2)/(1 + r^2)^2, least at sqrt 3
    assert lowest == pytest.approx(-0.25, abs=1e-4)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("square", Square()),
        ("huber:0.8", Huber(0.8)),
        (" Huber:2 ", Huber(2.0)),
        ("huber", Huber(1.0)),
        ("tukey:4", Tukey(4.0)),
        ("cosine:1.2", Cosine(1.2)),
        ("absolute", Absolute()),
        ("logistic", Logistic()),
        ("hinge", Hinge()),
    ],
)
def test_text_makes_losses(text, expected):
    assert as_loss(text) == expected
    assert sv.ERM(text).loss == expected


def test_functions_make_losses_and_losses_stay():
    assert isinstance(as_loss(pinball), Custom) and as_loss(pinball).name == "pinball"
    assert as_loss(Huber(0.3)) == Huber(0.3)
    assert sv.ERM().loss == Square()


TAKES = (
    "loss must be a loss, a function of (y, z), or one of absolute, cosine, hinge, huber, logistic, square, tukey, "
    "with a scale as in 'huber:0.8'."
)


@pytest.mark.parametrize(
    "given", ["hubber", "square:1", "logistic:2", "huber:x", "huber:0", "huber:-1", "huber:nan", "", 3]
)
def test_unknown_losses_are_refused_in_plain_words(given):
    with pytest.raises(ValueError) as caught:
        as_loss(given)
    assert str(caught.value) == f"loss = {given!r} is not allowed: {TAKES}"


def test_a_loss_without_brackets_is_refused_in_plain_words():
    with pytest.raises(ValueError) as caught:
        as_loss(Huber)
    assert str(caught.value) == "loss = 'Huber' is not allowed: loss must be an instance: write Huber(...)."


@pytest.mark.parametrize("kind", [Huber, Tukey, Cosine])
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_bad_scales_are_refused_in_plain_words(kind, scale):
    with pytest.raises(ValueError) as caught:
        kind(scale)
    takes = "scale must be a positive number, in the units of the label"
    assert str(caught.value) == f"scale = {scale!r} is not allowed: {takes}."


ELEMENTWISE = "a function of (y, z), elementwise on arrays and written with jax.numpy, with finite real values"


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda y, z: 3.0, ELEMENTWISE),
        (lambda y, z: jnp.sum((y - z) ** 2), ELEMENTWISE),
        (lambda y, z: jnp.log(y - z), ELEMENTWISE),
        (lambda y, z: (y - z) ** 2 + 0j, ELEMENTWISE),
        (lambda y, z: (y > z).astype(int), ELEMENTWISE),
        (lambda y, z: "text", ELEMENTWISE),
        (lambda y: y**2, "calling it gave TypeError"),
        (lambda y, z: np.abs(y - z) if float(y[0, 0]) > 0 else undefined, "calling it gave NameError"),  # noqa: F821
    ],
)
def test_functions_that_are_no_losses_are_refused_in_plain_words(function, words):
    with pytest.raises(ValueError, match="^loss = ") as caught:
        Custom(function)
    assert words in str(caught.value)


def test_upward_kinks_are_refused_in_plain_words():
    def peak(y, z):
        return -jnp.abs(y - z)

    with pytest.raises(ValueError) as caught:
        Custom(peak)
    assert str(caught.value) == "loss = 'peak' is not allowed: loss must be without kinks that point upwards."


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "function",
    [
        lambda y, z: jnp.abs(y**2 - z),
        pytest.param(lambda y, z: jnp.abs(z) + (y - z) ** 2, marks=pytest.mark.slow),
        lambda y, z: jnp.maximum(z, 2.0) - y * z,
    ],
)
def test_kinks_that_cannot_be_placed_are_refused_in_plain_words(function):
    with pytest.raises(ValueError, match="a function of y - z, or of y z, or one w"):
        Custom(function)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "function",
    [
        lambda y, z: jnp.where(y * z > 0, 0.0, 1.0),
        lambda y, z: jnp.where(jnp.abs(y - z) < 1, (y - z) ** 2 / 2, 0.7),
        pytest.param(lambda y, z: jnp.sign(z - 0.3) + 0 * y, marks=pytest.mark.slow),
    ],
)
def test_a_jump_of_the_loss_itself_is_refused_in_plain_words(function):
    """A 0-1 loss has no slope to follow."""
    with pytest.raises(ValueError) as caught:
        Custom(function)
    assert str(caught.value) == "loss = '<lambda>' is not allowed: loss must be continuous in z."


def test_the_class_of_a_loss_without_scale_is_that_loss():
    assert as_loss(Logistic) == Logistic() and as_loss(Hinge) == Hinge()
