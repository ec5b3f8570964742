"""The theory of a matrix and a tensor with a common factor: known values, limits, properties, thresholds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from reference.matrix_tensor import iterated
from scipy.optimize import approx_fprime

import solvable as sv
from solvable.core.status import Status
from solvable.models.lowrank.matrix_tensor.equations import FACTORS, Couplings, Posterior

VALUES = json.loads((Path(__file__).parents[3] / "reference" / "matrix_tensor_values.json").read_text())
VALUES = {entry["id"]: entry for entry in VALUES}
UNEQUAL = (1.2, 2.0, 0.5, 1.5)
POINTS = [
    (0.5, 0.1, (1, 1, 1, 1)),
    (0.3, 0.6, (1, 1, 1, 1)),
    (0.7989, 0.2, (1, 1, 1, 1)),
    (0.5, 0.25, UNEQUAL),
    (0.6, 0.9, UNEQUAL),
    (1.3, 0.2, (1, 2, 1, 1)),
    (0.02, 0.01, (1, 0.3, 2, 0.7)),
]


def overlaps(model, learner):
    found = sv.predict(model, learner)
    return np.array([found[f"squared_overlap_{k}"] for k in FACTORS])


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith(("mt_0", "mt_strong"))])
def test_known_overlaps_and_information(name):
    entry = VALUES[name]
    model = sv.MatrixTensor(entry["params"]["Dm"], entry["params"]["Dt"])
    assert overlaps(model, sv.AMP()) == pytest.approx(entry["value"][:4], abs=entry["tol"])
    if len(entry["value"]) == 5:
        found = sv.predict(model, sv.AMP()).order_parameters["mutual_information"]
        assert found == pytest.approx(entry["value"][4], abs=entry["tol"])


def test_the_known_staircase_at_equal_sizes():
    """Steps at 1 and 1 - Dt; a fold below Dt = .3431522, where two meet; the tensor alone from .228973 on."""
    found = sv.thresholds(sv.MatrixTensor(1.0, 0.2))
    assert found["matrix_step"] == 1 and found["tensor_step"] == pytest.approx(0.8, rel=1e-12)
    assert found["algorithmic"] == pytest.approx(VALUES["mt_fold_0.2"]["value"], abs=VALUES["mt_fold_0.2"]["tol"])
    assert found["information_theoretic"] == found["spinodal"] == math.inf
    entry = VALUES["mt_tricritical"]
    below, above = (sv.thresholds(sv.MatrixTensor(1.0, entry["value"] + shift)) for shift in (-1e-6, 1e-6))
    assert below["algorithmic"] < below["information_theoretic"] < below["spinodal"] < below["tensor_step"]
    assert above["algorithmic"] == above["information_theoretic"] == above["spinodal"] == above["tensor_step"]
    alone = 0.2289728391
    assert sv.thresholds(sv.MatrixTensor(1.0, alone - 1e-8))["information_theoretic"] == math.inf
    assert math.isfinite(sv.thresholds(sv.MatrixTensor(1.0, alone + 1e-8))["information_theoretic"])


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_message_passing_ends_where_the_plain_iteration_does(point):
    model = sv.MatrixTensor(*point)
    assert overlaps(model, sv.AMP()) == pytest.approx(iterated(*point), abs=1e-8)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_the_mutual_information_is_stationary_and_smallest_at_the_optimum(point):
    model = sv.MatrixTensor(*point)
    couplings, q = model.output_side(), overlaps(model, sv.BayesOptimal())
    cost = couplings.mutual_information(q)
    assert np.abs(approx_fprime(q + 1e-9, couplings.mutual_information, 1e-7)).max() < 1e-4 * (1 + abs(cost))
    for start in (1e-6, 0.5, 1.0):
        assert cost <= couplings.mutual_information(iterated(*point, start)) + 1e-9


@pytest.mark.parametrize("point", [*POINTS, (0.8016, 0.2, (1, 1, 1, 1)), (0.9, 0.28, (1, 1, 1, 1))], ids=str)
def test_no_learner_is_better_than_those_above_it(point):
    model = sv.MatrixTensor(*point)
    best, passing, staged, joint = (
        overlaps(model, learner) for learner in (sv.BayesOptimal(), sv.AMP(), sv.Curriculum(), sv.MaximumLikelihood())
    )
    assert np.all(best >= passing - 1e-12) and np.all(passing >= staged - 1e-12) and np.all(passing >= joint - 1e-12)


def test_exchanging_x_and_y_exchanges_their_overlaps():
    for learner in (sv.BayesOptimal(), sv.AMP(), sv.Curriculum(), sv.MaximumLikelihood()):
        one, other = (sv.MatrixTensor(0.4, 0.2, (1, 1.3, *sizes)) for sizes in ((0.6, 1.9), (1.9, 0.6)))
        assert overlaps(one, learner) == pytest.approx(overlaps(other, learner)[[0, 1, 3, 2]], abs=1e-12)
    assert sv.thresholds(one) == pytest.approx(sv.thresholds(other))


def test_only_quotients_of_sizes_matter():
    one, other = sv.MatrixTensor(0.4, 0.2, UNEQUAL), sv.MatrixTensor(0.4, 0.2, [3 * r for r in UNEQUAL])
    assert dict(sv.predict(one, sv.AMP())) == pytest.approx(dict(sv.predict(other, sv.AMP())), abs=1e-13)


@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP(), sv.Curriculum()], ids=str)
def test_less_noise_is_never_worse(learner):
    grid = np.linspace(0.05, 1.4, 6)
    found = np.array([[overlaps(sv.MatrixTensor(m, t, UNEQUAL), learner) for t in grid] for m in grid])
    assert np.all(np.diff(found, axis=0) <= 1e-12) and np.all(np.diff(found, axis=1) <= 1e-12)


def test_a_matrix_alone_is_the_rectangular_spiked_matrix():
    a, Dm = 1.5, 0.6
    model = sv.MatrixTensor(Dm, math.inf, (1, a, 1, 1))
    expected = [(a - Dm**2) / (a + Dm), (a - Dm**2) / (a * (1 + Dm)), 0, 0]
    for learner in (sv.BayesOptimal(), sv.AMP(), sv.Curriculum(), sv.MaximumLikelihood()):
        assert overlaps(model, learner) == pytest.approx(expected, abs=1e-13)
    assert sv.thresholds(model, sv.MaximumLikelihood())["matrix_noise"] == pytest.approx(math.sqrt(a))


def test_a_tensor_alone_is_hard_at_every_noise():
    for noise in (0.5, 0.2, 1e-3):
        model = sv.MatrixTensor(math.inf, noise)
        assert not overlaps(model, sv.AMP()).any()
        best = overlaps(model, sv.BayesOptimal())
        # Three factors of one overlap: q = (1 + sqrt(1 - 4 Dt)) / 2, as of a symmetric tensor of order 3.
        expected = (1 + math.sqrt(1 - 4 * noise)) / 2 if noise < 0.228 else 0.0
        assert best == pytest.approx([expected, 0, expected, expected], abs=1e-12)


@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP(), sv.Curriculum(), sv.MaximumLikelihood()], ids=str)
def test_without_noise_the_factors_are_read_off(learner):
    assert overlaps(sv.MatrixTensor(0.0, 0.3), learner) == pytest.approx([1, 1, 0.7, 0.7], abs=1e-12)
    assert overlaps(sv.MatrixTensor(0.0, 0.0), learner) == pytest.approx(np.ones(4))
    assert overlaps(sv.MatrixTensor(math.inf, math.inf), learner) == pytest.approx(np.zeros(4))
    found = overlaps(sv.MatrixTensor(0.25, 0.0), learner)
    assert found[2:] == pytest.approx([1, 1]) and (found[:2] == pytest.approx([1, 0.8]) or learner == sv.Curriculum())
    small = overlaps(sv.MatrixTensor(1e-12, 0.3), learner)
    assert small == pytest.approx([1, 1, 0.7, 0.7], abs=1e-9)


def test_at_the_steps_nothing_is_found_yet_and_uncertainties_stay_small():
    for point in ((1.0, 0.3), (1.0, 1.0), (0.7, 0.3), (0.9, 0.1)):
        found = sv.predict(sv.MatrixTensor(*point), sv.AMP())
        assert found.converged and found["overlap_x"] < 1e-7
        assert max(found.uncertainty[f"overlap_{k}"] for k in FACTORS) < 1e-5


def test_the_stated_uncertainty_covers_what_the_plain_iteration_finds():
    for point in POINTS:
        model = sv.MatrixTensor(*point)
        found = sv.predict(model, sv.AMP())
        residual = np.abs(overlaps(model, sv.AMP()) - _once_more(model, overlaps(model, sv.AMP())))
        assert np.all(residual <= 10 * max(found.uncertainty.values()) + 1e-15) and found.residual < 1e-10


def _once_more(model, q):
    G = model.output_side().fields(q)
    return G / (1 + G)


def test_two_branches_of_one_information_are_ambiguous():
    noise = sv.thresholds(sv.MatrixTensor(1.0, 0.3))["information_theoretic"]
    found = sv.predict(sv.MatrixTensor(noise, 0.3), sv.BayesOptimal(), throw=False)
    assert found.status == Status.AMBIGUOUS_BRANCH
    better, worse = (sv.predict(sv.MatrixTensor(noise + shift, 0.3), sv.BayesOptimal()) for shift in (-1e-6, 1e-6))
    assert better["overlap_x"] > 0.4 and worse["overlap_x"] == 0


@pytest.mark.parametrize(("noise", "ratios"), [(0.3, (1, 1, 1, 1)), (0.12, UNEQUAL)])
def test_thresholds_are_where_predictions_change(noise, ratios):
    found = sv.thresholds(sv.MatrixTensor(1.0, noise, ratios))

    def x_at(name, shift, learner):
        return sv.predict(sv.MatrixTensor(found[name] * (1 + shift), noise, ratios), learner)["squared_overlap_x"]

    assert x_at("tensor_step", -1e-5, sv.AMP()) > 0 == x_at("tensor_step", 1e-5, sv.AMP())
    assert x_at("algorithmic", -1e-6, sv.AMP()) > x_at("algorithmic", 1e-6, sv.AMP()) + 0.1
    if math.isfinite(found["spinodal"]):
        ends = [Couplings.of(found["spinodal"] * shift, noise, ratios) for shift in (1 - 1e-6, 1 + 1e-6)]
        inside, outside = (Posterior(couplings).stable() for couplings in ends)
        assert len(inside) == len(outside) + 1
    model = sv.MatrixTensor(found["matrix_step"] * (1 - 1e-6), noise, ratios)
    assert sv.predict(model, sv.Curriculum())["squared_overlap_u"] > 0
    assert sv.thresholds(model, sv.Curriculum()) == {name: found[name] for name in ("matrix_step", "tensor_step")}


@pytest.mark.parametrize(
    ("field", "value"),
    [("ratios", (1, 1, 1)), ("ratios", (1, 0, 1, 1)), ("ratios", 2.0), ("ratios", "1,2,a,1"), ("ratios", (1, 1, 1, -1)),
     ("ratios", (1, 1, 1, math.inf)), ("matrix_noise", -0.1), ("tensor_noise", -math.inf), ("tensor_noise", math.nan)],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field} = "):
        sv.MatrixTensor(**({"matrix_noise": 0.5, "tensor_noise": 0.5} | {field: value}))


def test_ratios_may_be_a_text():
    assert sv.MatrixTensor(0.5, 0.5, "1,2,0.5,1.5").ratios == (1.0, 2.0, 0.5, 1.5)


@pytest.mark.parametrize("noises", [(1e-300, 1.0), (0.5, 1e-300), (1e-300, 1e-300), (0.5, 1e300)], ids=str)
@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP(), sv.MaximumLikelihood(), sv.Curriculum()])
def test_variances_whose_inverse_overflows_are_the_limit(noises, learner):
    near = [float(np.clip(noise, 1e-60, 1e60)) for noise in noises]
    one, other = (sv.predict(sv.MatrixTensor(*pair), learner, throw=False) for pair in (noises, near))
    assert one.status == other.status
    for name in one:
        assert one[name] == pytest.approx(other[name], abs=1e-12), name
