"""The id of a point: the same for the same computation, another for any other."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import learners as sweep_toys
from toys import ridge as toy

import solvable as sv
from solvable.lab.grid.points import SCHEMA, digest, dumped, identity
from solvable.lab.grid.request import make_plan

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
finite = st.floats(allow_nan=False, allow_infinity=False)
# Few characters, of every kind that JSON writes in its own way: a table of all of Unicode takes seconds to make.
texts = st.text('aZ09 ,:"\\/[]{}\n\0\x7f\u00e9\u2028\ufffd\U0001f600', max_size=5)


def point_ids(model=MODEL, learner=RIDGE, d=None, seeds=1, **axes):
    return {point.id for point in make_plan(model, learner, d, seeds, False, {"alpha": 1.0} | axes).layout().points}


def same(a, b):
    return dumped(identity(a, "field")) == dumped(identity(b, "field"))


BASE = {"model": MODEL, "learner": RIDGE, "alpha": 1.0, "d": 20, "seed": 3}


def run_id(**changes):
    values = BASE | changes
    plan = make_plan(
        values["model"], values["learner"], values["d"], [values["seed"]], False, {"alpha": values["alpha"]}
    )
    (id,) = plan.layout().runs
    return id


@pytest.mark.parametrize(
    "change",
    [
        {"model": toy.Regression(noise=0.26)},
        {"model": toy.Regression(noise=np.nextafter(0.25, 1))},
        {"learner": toy.Ridge(penalty=0.6)},
        {"learner": toy.Ridge(penalty=0.5, variant="other")},
        {"learner": toy.Mean()},
        {"learner": toy.RidgeByHand(penalty=0.5)},
        {"alpha": np.nextafter(1.0, 2)},
        {"d": 21},
        {"seed": 4},
    ],
)
def test_every_part_of_a_run_is_in_its_id(change):
    assert run_id() == run_id()
    assert run_id(**change) != run_id()


def test_the_schema_is_in_the_id():
    own = dumped([SCHEMA, {"alpha": 1.0}, 20, 3])
    texts = [dumped(identity(MODEL, "model")), dumped(identity(RIDGE, "learner")), own]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32] == run_id()
    assert hashlib.sha256("\n".join([*texts[:2], own.replace(f"[{SCHEMA},", "[99,")]).encode()).hexdigest() != run_id()


def test_predictions_runs_and_thresholds_do_not_share_ids():
    plan = make_plan(MODEL, RIDGE, 20, 1, True, {"alpha": 1.0})
    layout = plan.layout()
    assert len({*layout.theory, *layout.runs, *layout.marks}) == len(layout.points) == 3


@settings(max_examples=30)
@given(st.dictionaries(texts, finite, min_size=1, max_size=5), st.randoms())
def test_the_order_of_axes_does_not_matter(axes, random):
    names = list(axes)
    random.shuffle(names)
    assert digest("m", "l", axes, 5, 0) == digest("m", "l", {name: axes[name] for name in names}, 5, 0)


@given(finite, finite)
def test_two_numbers_share_an_id_only_if_they_are_equal(a, b):
    assert (digest("m", "l", {"x": a}, None, None) == digest("m", "l", {"x": b}, None, None)) == (a == b)
    assert same(a, b) == (a == b)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(values, values)
def test_different_values_are_described_differently(a, b):
    assert same(a, a)
    if json.dumps(_marked(a)) != json.dumps(_marked(b)):
        assert not same(a, b)


def _marked(value):
    """The value with its types, as a test of equality that knows True from 1, and 1 from 1.0."""
    if isinstance(value, (list, tuple)):
        return ["list", *map(_marked, value)]
    if isinstance(value, dict):
        return ["dict", *([key, _marked(value[key])] for key in sorted(value))]
    return [type(value).__name__, repr(value + 0.0) if isinstance(value, float) else repr(value)]


def test_numbers_that_json_does_not_have():
    assert same(float("inf"), np.inf) and same(float("nan"), np.nan)
    assert len({dumped(identity(v, "x")) for v in (np.inf, -np.inf, np.nan, "inf", "-inf", "nan", "Infinity")}) == 7
    assert same(-0.0, 0.0) and not same(1, True) and not same("1", 1)


def test_numpy_and_jax_scalars_are_the_numbers_they_hold():
    for scalar in (np.float64(0.1), jnp.asarray(0.5), np.float32(0.5), np.array(0.5)):
        assert same(scalar, float(scalar))
    assert same(np.int32(3), 3) and same(np.bool_(True), True)


def test_arrays_count_with_content_shape_and_type():
    a = np.arange(6.0)
    assert (
        same(a, a.copy()) and same(a, np.arange(12.0)[:6]) and same(np.asfortranarray(a.reshape(2, 3)), a.reshape(2, 3))
    )
    assert same(jnp.arange(3.0), np.arange(3, dtype=np.float32))
    others = [a + 1e-15, a.reshape(2, 3), a.reshape(3, 2), a.astype(np.float32), a[::-1], a.astype(int), a[:5]]
    assert len({dumped(identity(other, "x")) for other in [a, *others]}) == 8
    with pytest.raises(ValueError, match="array of complex128 is not allowed"):
        identity(a * 1j, "x")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Pair:
    left: float
    right: object = None


def test_enumerations_and_dataclasses():
    assert same(Colour.RED, Colour.RED) and not same(Colour.RED, Colour.BLUE)
    assert same(Pair(1.0), Pair(1.0)) and not same(Pair(1.0), Pair(1.0, 0.0)) and not same(Pair(1.0), {"left": 1.0})


def test_a_class_of_the_same_name_from_elsewhere_is_another():
    impostor = type("Regression", (toy.Regression,), {"__module__": "elsewhere", "__annotations__": {}})
    assert impostor.name() == MODEL.name()
    assert run_id(model=impostor(noise=0.25)) != run_id()


@pytest.mark.parametrize("bad", [lambda z: z, np.sin, len, toy.ridge, object(), {1, 2}])
def test_what_has_no_lasting_description_is_refused(bad):
    with pytest.raises(ValueError, match=r"^shape = .* is not allowed in a sweep: .* no lasting description"):
        identity(bad, "shape")


def test_a_function_deep_inside_is_named():
    with pytest.raises(ValueError, match=r"^right = <function .* is not allowed in a sweep"):
        identity([{"a": Pair(1.0, lambda z: z)}], "field")


def test_a_target_that_is_a_function_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match=r"target is the function magnitude, .* Write the formula as text"):
        sv.sweep(sv.MultiIndex(magnitude), sv.AMP(), store=tmp_path / "store", alpha=[1.0])
    assert not (tmp_path / "store").exists()


def magnitude(z):
    return jnp.abs(z)


def test_targets_by_formula_and_number_of_projections():
    ids = [point_ids(sv.MultiIndex(t), sv.AMP()) for t in ("abs(z)", "abs( z )", "z**2", sv.Target("abs(z)", 2))]
    assert ids[0] != ids[2] and ids[0] != ids[3]
    assert point_ids(sv.MultiIndex(sv.Target("abs(z)")), sv.AMP()) == ids[0]


def test_named_channels_count_with_every_digit_of_their_noise():
    probits = [sv.channels.Probit(noise) for noise in (0.1234567, 0.12345671, 0.0)]
    channels = [*probits, sv.channels.Sign(), sv.channels.Linear(0.5), sv.channels.Absolute(), sv.channels.Square()]
    ids = [frozenset(point_ids(sv.MultiIndex(channel), sv.AMP())) for channel in channels]
    assert len(set(ids)) == len(channels)
    assert point_ids(sv.MultiIndex(sv.channels.Probit(0.1234567)), sv.AMP()) == ids[0]


class Bent(sv.channels.Linear):
    """A channel of somebody else's, with a number that no other channel has."""

    def __init__(self, bend, noise=0.1):
        super().__init__(noise)
        self.bend = bend

    @property
    def definition(self):
        return {"noise": self.noise, "bend": self.bend}


def test_channels_count_with_all_that_defines_them():
    channels = [Bent(0.1), Bent(0.2), Bent(0.1, 0.2), sv.channels.Linear(0.1), sv.channels.Logit(1.0)]
    assert len({dumped(identity(channel, "target")) for channel in channels}) == len(channels)
    assert same(Bent(0.1), Bent(0.1))


def test_priors_count():
    ids = {frozenset(point_ids(sv.MultiIndex("abs(z)", prior=p), sv.AMP())) for p in PRIORS}
    assert len(ids) == len(PRIORS)


PRIORS = ("gaussian", "rademacher", "gauss-bernoulli:0.3", "gauss-bernoulli:0.31")


def test_ids_do_not_depend_on_the_process():
    code = (
        "from toys import ridge as toy\nimport solvable as sv\n"
        "from solvable.lab.grid.request import make_plan\n"
        "plan = make_plan(toy.Regression(noise=0.25), [toy.Ridge(0.5), toy.Mean()], [20, 30], 2, True,"
        " {'alpha': [0.5, 1.0], 'noise': [0.1, 0.2]})\n"
        "layout = plan.layout()\n"
        "print(layout.id, *layout.theory, *layout.runs, *layout.marks)"
    )
    out, errors = sweep_toys.start(code, extra={"PYTHONHASHSEED": "1"}).communicate(timeout=1800)
    plan = make_plan(MODEL, [RIDGE, toy.Mean()], [20, 30], 2, True, {"alpha": [0.5, 1.0], "noise": [0.1, 0.2]})
    layout = plan.layout()
    assert out.split() == [*filter(None, (layout.id, *layout.theory, *layout.runs, *layout.marks))], errors
