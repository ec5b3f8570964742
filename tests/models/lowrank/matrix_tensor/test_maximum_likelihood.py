"""Joint maximum likelihood: its worse thresholds, state evolution on spheres, and runs that fail as predicted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from reference.matrix_tensor import iterated

import solvable as sv
from solvable.models.lowrank.matrix_tensor.equations import FACTORS, Couplings, Spheres
from solvable.models.lowrank.matrix_tensor.interaction import Factors, MatrixAndTensor
from solvable.models.lowrank.matrix_tensor.maximum_likelihood import alternating, log_likelihood

VALUES = json.loads((Path(__file__).parents[3] / "reference" / "matrix_tensor_values.json").read_text())
VALUES = {entry["id"]: entry for entry in VALUES}
UNEQUAL = (1.2, 2.0, 0.5, 1.5)
LEARNER, ALTERNATING = sv.MaximumLikelihood(), sv.MaximumLikelihood("alternating")


def squared(found):
    return np.array([found[f"squared_overlap_{k}"] for k in FACTORS])


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith("mt_ml_0")])
def test_known_cosines(name):
    entry = VALUES[name]
    found = sv.predict(sv.MatrixTensor(entry["params"]["Dm"], entry["params"]["Dt"]), LEARNER)
    assert squared(found) == pytest.approx(entry["value"], abs=entry["tol"])


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), UNEQUAL])
@pytest.mark.parametrize("noises", [(0.3, 0.3), (0.2, 0.5), (0.45, 0.25), (0.5, 0.1), (0.25, 0.9)])
def test_state_evolution_ends_where_the_plain_iteration_does(noises, ratios):
    found = sv.predict(sv.MatrixTensor(*noises, ratios), LEARNER)
    assert squared(found) == pytest.approx(iterated(*noises, ratios, on_spheres=True), abs=1e-8)
    assert found.residual < 1e-10


def test_the_known_threshold():
    entry = VALUES["mt_ml_thr"]
    found = sv.thresholds(sv.MatrixTensor(1.0, entry["params"]["Dt"]), LEARNER)
    assert found["matrix_noise"] == pytest.approx(entry["value"], abs=entry["tol"])


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), UNEQUAL])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_thresholds_are_where_predictions_change_and_worse_than_those_of_message_passing(noise, ratios):
    found, best = (
        sv.thresholds(sv.MatrixTensor(1.0, noise, ratios), LEARNER),
        sv.thresholds(sv.MatrixTensor(1.0, noise, ratios)),
    )
    for name, factor, other in (("matrix_noise", "u", "matrix_step"), ("tensor_step", "x", "tensor_step")):
        below, above = (
            sv.predict(sv.MatrixTensor(found[name] * shift, noise, ratios), LEARNER)[f"squared_overlap_{factor}"]
            for shift in (1 - 1e-5, 1 + 1e-5)
        )
        assert below > 0 == above and found[name] < best[other]


def test_a_better_tensor_makes_it_harder_to_find_u():
    found = [sv.thresholds(sv.MatrixTensor(1.0, t), LEARNER)["matrix_noise"] for t in (0.01, 0.1, 1.0, 10.0, math.inf)]
    assert np.all(np.diff(found) > 0) and found[0] < 0.22 and found[-1] == 1.0


def test_edges_of_the_thresholds():
    assert sv.thresholds(sv.MatrixTensor(1.0, 0.0), LEARNER) == {"matrix_noise": math.inf, "tensor_step": math.inf}
    assert sv.thresholds(sv.MatrixTensor(1.0, 1.0), LEARNER)["tensor_step"] == 0.0


def test_the_second_step_can_be_a_jump_where_that_of_message_passing_is_not():
    """What x and y say of u is of first order in their cosines, not of second."""
    noise = sv.thresholds(sv.MatrixTensor(1.0, 0.36), LEARNER)["tensor_step"]
    below = sv.predict(sv.MatrixTensor(noise * (1 - 1e-7), 0.36), LEARNER)["squared_overlap_x"]
    assert below > 0.1
    passing = sv.thresholds(sv.MatrixTensor(1.0, 0.36))
    assert passing["algorithmic"] == passing["tensor_step"]


def test_the_replicon_says_whether_a_run_settles():
    found = sv.predict(sv.MatrixTensor(0.2, 0.2), LEARNER)
    lost = sv.predict(sv.MatrixTensor(0.3, 0.8), LEARNER)
    assert found.order_parameters["replicon"] < 1 < lost.order_parameters["replicon"]
    assert sv.simulate(sv.MatrixTensor(0.2, 0.2), LEARNER, d=60).converged
    assert not sv.simulate(sv.MatrixTensor(0.3, 0.8), sv.MaximumLikelihood(max_steps=60), d=60, seed=1).converged


def test_alternating_maximisation_climbs_and_meets_message_passing():
    model = sv.MatrixTensor(0.2, 0.2)
    data = model.sample(np.random.default_rng(3), 50)
    interaction = MatrixAndTensor(data.matrix, data.tensor, model.output_side())
    start = Factors(*(np.ones(size) for size in interaction.blocks.sizes))
    climbed = [log_likelihood(interaction, alternating(interaction, start, k, 1e-9)[0]) for k in (1, 2, 4, 8, 16)]
    assert np.all(np.diff(climbed) > -1e-12)
    one, other = (sv.simulate(model, learner, d=50, seed=2) for learner in (LEARNER, ALTERNATING))
    assert one.converged and other.converged
    assert one.details["log_likelihood"] == pytest.approx(other.details["log_likelihood"], rel=1e-4)
    assert squared(one) == pytest.approx(squared(other), abs=5e-3)


def test_alternating_maximisation_has_runs_but_no_theory():
    model = sv.MatrixTensor(0.3, 0.3)
    with pytest.raises(sv.ConvergenceError, match="alternating maximisation can be simulated but has no theory"):
        sv.predict(model, ALTERNATING)
    curve = sv.learning_curve(model, [sv.AMP(), ALTERNATING], matrix_noise=[0.2, 0.3], d=12, seeds=2, progress=False)
    theory = curve.theory("squared_overlap").values
    assert np.isfinite(theory[0]).all() and np.isnan(theory[1]).all()
    with pytest.raises(ValueError, match="method = 'newton' is not allowed"):
        sv.MaximumLikelihood("newton")


def test_what_another_part_of_the_likelihood_does_not_see_stays_unknown():
    model = sv.MatrixTensor(0.4, math.inf)
    run = sv.simulate(model, LEARNER, d=80)
    assert squared(run)[:2] == pytest.approx(squared(sv.predict(model, LEARNER))[:2], abs=0.15)
    assert squared(run)[2:].max() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("noises", "d"), [((0.2, 0.2), 60), ((0.2, 0.2), 130), ((0.3, 0.3), 130)])
def test_runs_meet_state_evolution_where_everything_is_found(noises, d):
    model = sv.MatrixTensor(*noises)
    runs = [sv.simulate(model, LEARNER, d=d, seed=seed) for seed in range(12)]
    found = np.array([squared(run) for run in runs if run.converged])
    assert len(found) >= 10
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - squared(sv.predict(model, LEARNER))) < 4 * error)


@pytest.mark.slow
def test_joint_learning_fails_where_message_passing_succeeds():
    """Dm = .65, Dt = .2: state evolution on spheres finds nothing, that of posterior means everything.

    The matrix alone gives an overlap of u of 1 - Dm = .35, and the tensor adds to it where that is above Dt = .2. At
    d = 130 the leading singular vector has .32 with a standard deviation of .16, and message passing often ends before
    the tensor: it needs a larger run.
    """
    model = sv.MatrixTensor(0.65, 0.2)
    assert not squared(sv.predict(model, LEARNER)).any()
    joint = [squared(sv.simulate(model, sv.MaximumLikelihood(max_steps=60), d=130, seed=s)) for s in range(6)]
    assert np.mean(joint, axis=0).max() < 0.15
    passing = np.mean([squared(sv.simulate(model, sv.AMP(), d=250, seed=s)) for s in range(4)], axis=0)
    assert passing == pytest.approx(squared(sv.predict(model, sv.AMP())), abs=0.1)


@pytest.mark.slow
def test_lucky_runs_of_small_tensors_become_rare():
    """Dm = .5, Dt = .1: a run that wanders finds everything by chance, the less likely the larger it is."""
    model, learner = sv.MatrixTensor(0.5, 0.1), sv.MaximumLikelihood(max_steps=30)
    lucky = [
        np.mean([sv.simulate(model, learner, d=d, seed=s)["squared_overlap_u"] > 0.4 for s in range(12)])
        for d in (40, 130)
    ]
    assert lucky[0] > lucky[1] + 0.1 and lucky[1] < 0.3


def test_the_matrix_stage_is_the_smallest_solution():
    couplings = Couplings.of(0.4, 0.8, (1, 1, 1, 1))
    r, n = Spheres(couplings).matrix_stage, 1 / 0.4 + 1 / 0.8
    assert r / (1 - r) == pytest.approx((1 / 0.4) ** 2 * (r / (r + 0.4)) / n, rel=1e-12)
