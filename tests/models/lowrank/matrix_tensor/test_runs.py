"""Runs on a matrix and a tensor: the loop's fields and Onsager term, state evolution step by step, edges, the lab."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import solvable as sv
from solvable.engine.amp import amp
from solvable.engine.sides import Overlap
from solvable.models.lowrank.matrix_tensor import interaction
from solvable.models.lowrank.matrix_tensor.equations import FACTORS
from solvable.models.lowrank.matrix_tensor.interaction import Blocks

UNEQUAL = (1, 2, 0.5, 1.5)
START = 0.4


def overlaps(found, name="overlap"):
    return np.array([found[f"{name}_{k}"] for k in FACTORS])


def instance(model, d, seed=0) -> tuple[Any, Any]:
    data = model.sample(np.random.default_rng(seed), d)
    return data, model.instance(data)


def test_a_sample_is_what_the_model_says():
    model = sv.MatrixTensor(0.0, 0.0, UNEQUAL)
    data = model.sample(np.random.default_rng(0), 20)
    u, v, x, y = data.truth
    assert [len(w) for w in data.truth] == [20, 40, 10, 30] and all(w @ w == pytest.approx(len(w)) for w in data.truth)
    assert np.allclose(data.matrix, np.outer(u, v) / np.sqrt(20))
    assert np.allclose(data.tensor, np.einsum("i,j,k->ijk", u, x, y) / 20)
    noisy = sv.MatrixTensor(0.3, 0.7, UNEQUAL).sample(np.random.default_rng(0), 20)
    assert np.var(noisy.matrix - data.matrix) == pytest.approx(0.3, rel=0.2)
    assert np.var(noisy.tensor - data.tensor) == pytest.approx(0.7, rel=0.1)
    unseen = sv.MatrixTensor(math.inf, math.inf).sample(np.random.default_rng(0), 5)
    assert not unseen.matrix.any() and not unseen.tensor.any()


@pytest.mark.parametrize("block", [interaction._BLOCK_BYTES, 8 * 18 * 5])
def test_fields_and_blocks(monkeypatch, block):
    monkeypatch.setattr(interaction, "_BLOCK_BYTES", block)  # the second does not divide the tensor
    model = sv.MatrixTensor(0.3, 0.7, UNEQUAL)
    data, one = instance(model, 12)
    rng, blocks = np.random.default_rng(1), one.operator.blocks
    factors = tuple(rng.standard_normal(n) for n in blocks.sizes)
    u, v, x, y = factors
    W = blocks.estimate(factors)
    assert np.allclose(W.T @ W / len(W), np.diag([w @ w / len(w) for w in factors]))
    assert all(np.allclose(a, b) for a, b in zip(blocks.factors(W), factors, strict=True))
    T, Y, N = data.tensor, data.matrix, 12
    expected = (
        Y @ v / np.sqrt(N) / 0.3 + np.einsum("ijk,j,k->i", T, x, y) / N / 0.7,
        u @ Y / np.sqrt(N) / 0.3,
        np.einsum("ijk,i,k->j", T, u, y) / N / 0.7,
        np.einsum("ijk,i,j->k", T, u, x) / N / 0.7,
    )
    found = blocks.unpack(one.operator.forward(W))
    assert all(np.allclose(a, b) for a, b in zip(found, expected, strict=True))
    each = [one.operator.field(name, blocks.factors(W)) for name in FACTORS]
    assert all(np.allclose(a, b) for a, b in zip(each, expected, strict=True))


def test_the_onsager_term_is_the_average_effect_of_an_earlier_estimate():
    """Of pure noise: the mean over it of the derivative of the field in the fields of the step before."""
    sizes, response, rng = (30, 20, 25, 15), np.array([0.3, 0.5, 0.7, 0.9]), np.random.default_rng(0)
    model = sv.MatrixTensor(0.8, 0.6, [n / 10 for n in sizes])
    blocks = Blocks(sizes)
    past = tuple(rng.standard_normal(n) for n in sizes)
    total, count = np.zeros((sum(sizes), 4)), 400
    for _ in range(count):
        data = model.sample(rng, 10)
        noise = data._replace(
            matrix=np.sqrt(0.8) * rng.standard_normal(data.matrix.shape),
            tensor=np.sqrt(0.6) * rng.standard_normal(data.tensor.shape),
        )
        operator: Any = model.instance(noise).operator
        fields = blocks.unpack(operator.forward(blocks.estimate(past)))
        new = blocks.estimate(tuple(r * field for r, field in zip(response, fields, strict=True)))
        total += operator.forward(new) - operator.feedback(new, blocks.estimate(past), np.diag(response))
    left = [part @ old / len(old) for part, old in zip(blocks.unpack(total / count), past, strict=True)]
    whole = operator.feedback(new, blocks.estimate(past), np.diag(response))
    size = [part @ old / len(old) for part, old in zip(blocks.unpack(whole), past, strict=True)]
    assert np.all(np.abs(left) < 0.12 * np.abs(size))


def step_by_step(model, d, seed, steps):
    """The overlaps of undamped message passing with the truth, from a start with overlap START."""
    rng = np.random.default_rng(seed)
    data = model.sample(rng, d)
    one = model.instance(data)
    blocks, path = one.operator.blocks, []

    def start(truth):
        noise = rng.standard_normal(len(truth))
        noise -= truth * (noise @ truth) / (truth @ truth)
        return START * truth + np.sqrt(START * (1 - START) * len(truth) / (noise @ noise)) * noise

    def seen(t, W):
        path.append([a @ b / len(b) for a, b in zip(blocks.factors(W), data.truth, strict=True)])

    first = blocks.estimate(tuple(map(start, data.truth)))
    amp(one.operator, one.output, one.signal, first, rng, damping=1.0, max_steps=steps, tolerance=1e-14, callback=seen)
    return path


@pytest.mark.parametrize(("d", "runs"), [(30, 16), pytest.param(90, 32, marks=pytest.mark.slow)])
def test_state_evolution_follows_undamped_message_passing_step_by_step(d, runs):
    model, steps = sv.MatrixTensor(0.5, 0.25, UNEQUAL), 6
    path = model.evolution().path(Overlap.bayes((1 - START) * np.eye(4)), 1.0, steps)
    expected = np.array([np.diagonal(state.m) for state in path])
    found = np.array([step_by_step(model, d, seed, steps) for seed in range(runs)])
    error = found.std(axis=0, ddof=1) / np.sqrt(runs)
    assert found[:, 0] == pytest.approx(START) and np.all(np.abs(found.mean(axis=0) - expected)[1:] < 4 * error[1:])


def test_damped_message_passing_ends_where_undamped_does():
    model = sv.MatrixTensor(0.2, 0.15)
    data, one = instance(model, 50, seed=1)
    start = one.operator.blocks.estimate(tuple(0.5 * w for w in data.truth))
    ends = [
        one.run(start, np.random.default_rng(0), sv.AMP(damping=damping, tolerance=1e-8)).estimate
        for damping in (1.0, 0.5, 0.3)
    ]
    assert np.abs(ends[1] - ends[0]).max() < 1e-5 and np.abs(ends[2] - ends[0]).max() < 1e-5


def test_every_start_leads_to_one_end():
    model = sv.MatrixTensor(0.3, 0.3)
    data, one = instance(model, 60, seed=2)
    ends = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        report = one.run(one.start(rng), rng, sv.AMP())
        assert report.converged
        ends.append(overlaps(model.scores(one.estimate(report.estimate), data, rng)))
    assert np.ptp(ends, axis=0).max() < 1e-2


def test_a_run_from_noise_meets_theory_and_the_nishimori_identity():
    model = sv.MatrixTensor(0.5, 0.1)
    expected = overlaps(sv.predict(model, sv.AMP()))
    runs = [sv.simulate(model, sv.AMP(), d=80, seed=seed) for seed in range(4)]
    assert all(run.converged and run.consistent for run in runs)
    found = np.mean([overlaps(run) for run in runs], axis=0)
    norms = np.mean([[w @ w / len(w) for w in run.estimate] for run in runs], axis=0)
    assert found == pytest.approx(expected, abs=0.05) and norms == pytest.approx(found, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("d", [60, 110])
@pytest.mark.parametrize("learner", [sv.AMP(), sv.Curriculum()], ids=str)
def test_unequal_sizes_meet_theory(d, learner):
    model, runs = sv.MatrixTensor(0.35, 0.15, UNEQUAL), 16
    found = np.array([overlaps(sv.simulate(model, learner, d=d, seed=s), "squared_overlap") for s in range(runs)])
    error = found.std(axis=0, ddof=1) / np.sqrt(runs)
    expected = overlaps(sv.predict(model, learner), "squared_overlap")
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4 * error + 1 / d)


@pytest.mark.slow
def test_in_the_hard_phase_the_start_decides():
    """Dm = 1.3, Dt = .15: from noise nothing is found, from the truth the Bayes-optimal overlaps."""
    model, d = sv.MatrixTensor(1.3, 0.15), 140
    best = overlaps(sv.predict(model, sv.BayesOptimal()))
    assert not overlaps(sv.predict(model, sv.AMP())).any() and best[0] > 0.7
    found = []
    for seed in range(4):
        data, one = instance(model, d, seed)
        rng = np.random.default_rng(seed)
        report = one.run(one.operator.blocks.estimate(tuple(0.9 * w for w in data.truth)), rng, sv.AMP())
        found.append(overlaps(model.scores(one.estimate(report.estimate), data, rng)))
    assert np.mean(found, axis=0) == pytest.approx(best, abs=0.06)


@pytest.mark.parametrize("noises", [(0.0, 0.3), (0.1, 0.0), (0.0, 0.0), (math.inf, 0.0), (0.1, math.inf)])
@pytest.mark.parametrize("learner", [sv.AMP(), sv.Curriculum()], ids=str)
def test_runs_without_noise_or_without_a_part(noises, learner):
    model = sv.MatrixTensor(*noises)
    run, expected = sv.simulate(model, learner, d=60), sv.predict(model, learner)
    found, theory = overlaps(run, "squared_overlap"), overlaps(expected, "squared_overlap")
    assert found == pytest.approx(theory, abs=0.15) and np.all(found[theory == 1] > 1 - 1e-6)


def test_nothing_seen_is_nothing_found():
    run = sv.simulate(sv.MatrixTensor(math.inf, math.inf), sv.AMP(max_steps=80), d=20)
    assert overlaps(run).max() < 0.05


def test_signs_that_the_data_leave_open_do_not_count():
    model = sv.MatrixTensor(0.3, 0.3)
    data = model.sample(np.random.default_rng(0), 10)
    u, v, x, y = data.truth
    for estimate in ((u, v, x, y), (-u, -v, x, -y), (u, v, -x, -y), (-u, -v, -x, y)):
        found = model.scores(type(data.truth)(*estimate), data, np.random.default_rng(0))
        assert overlaps(found) == pytest.approx(np.ones(4)) and found["estimation_error"] == pytest.approx(0, abs=1e-12)
    found = model.scores(type(data.truth)(u, -v, x, y), data, np.random.default_rng(0))
    assert overlaps(found).min() == pytest.approx(-1) and found["cosine"] == pytest.approx(0.5)


def test_metrics_are_defined_and_in_theory_as_in_runs():
    model = sv.MatrixTensor(0.3, 0.2, UNEQUAL)
    for learner in (sv.AMP(), sv.MaximumLikelihood(max_steps=5), sv.Curriculum()):
        found, run = sv.predict(model, learner), sv.simulate(model, learner, d=12)
        assert set(found) == set(run) <= set(model.definitions) and set(found.uncertainty) == set(found.metrics)
        for each in (found, run):
            assert each["squared_overlap"] == pytest.approx(each["cosine"] ** 2)
            assert ("overlap_u" in each) == isinstance(learner, sv.AMP)


def test_a_curve_a_phase_diagram_and_a_sweep(tmp_path):
    model, learners = sv.MatrixTensor(0.5, 0.3), [sv.BayesOptimal(), sv.AMP(), sv.Curriculum()]
    curve = sv.learning_curve(model, learners, matrix_noise=[0.2, 0.6, 1.1], d=12, seeds=2, progress=False)
    assert curve.theory("squared_overlap_u").shape == (3, 3) and curve.default_metric == "squared_overlap"
    diagram = sv.phase_diagram(
        model, sv.AMP(), x=("matrix_noise", [0.2, 0.95]), y=("tensor_noise", [0.1, 0.9]), metric="overlap_x"
    )
    found = diagram.theory("overlap_x").values.ravel()
    assert np.sum(found > 0) == 1
    swept = sv.sweep(model, learners[1:], store=tmp_path / "store", matrix_noise=[0.2, 0.4], d=10, seeds=2, workers=1)
    again = sv.open(tmp_path / "store")
    assert np.array_equal(swept.theory("overlap_u").values, again.theory("overlap_u").values, equal_nan=True)


def test_factors_whose_signs_do_not_fit_do_not_turn_each_other_round_for_ever():
    """At weak noise a cycle of period two is stable even with damping: 4 of these 16 runs once ended in it."""
    model, seeds = sv.MatrixTensor(0.1, 0.3), range(16)
    runs = [sv.simulate(model, sv.AMP(max_steps=200), d=70, seed=seed) for seed in seeds]
    found = np.array([overlaps(run, "squared_overlap") for run in runs])
    assert all(run.converged for run in runs)
    assert found[:, :2].min() > 0.75 and np.mean(found[:, 2:]) == pytest.approx(0.671, abs=0.1)
