"""Which points make a task: a run along a path is one, and runs that are made together are."""

from __future__ import annotations

from toys.axes import OnlineLeastSquares, OnlineRegression
from toys.chain import Alone, Chain

from solvable.lab.grid.plan import TOGETHER
from solvable.lab.grid.request import make_plan

MODEL = OnlineRegression()


def runs(learner, **values):
    given = {"alpha": [2.0, 0.5]} | values
    layout = make_plan(MODEL, learner, [10, 20], 40, False, given).layout(filed=False)
    return [task for task in layout.tasks if task.first.seed is not None]


def test_runs_that_are_made_together_share_a_task_and_are_cut_into_parts_that_workers_share():
    tasks = runs(Chain())
    assert sorted({len(task.alone) for task in tasks}) == [40 % TOGETHER, TOGETHER] and len(tasks) == 2 * 3
    for task in tasks:
        assert task.path == "alpha" and len({point.d for point in task.points}) == 1
        seeds = [part.first.seed for part in task.alone]
        assert seeds == list(range(seeds[0], seeds[0] + len(seeds)))
        assert [point.axes["alpha"] for point in task.points] == [0.5, 2.0] * len(seeds)
        assert [point for part in task.alone for point in part.points] == list(task.points)


def test_what_varies_besides_the_path_and_the_seed_is_another_task():
    tasks = runs(Chain(), step=[0.2, 0.4, 0.8])
    assert len(tasks) == 2 * 3 * 3
    assert all(len({(point.d, point.learner) for point in task.points}) == 1 for task in tasks)


def test_other_pairs_have_the_tasks_that_they_had():
    assert {len(task.points) for task in runs(OnlineLeastSquares())} == {2} and len(runs(OnlineLeastSquares())) == 80
    assert {len(task.points) for task in runs(Alone())} == {1} and len(runs(Alone())) == 160


def test_runs_come_seed_by_seed():
    first = [task.first.seed for task in runs([Chain(), OnlineLeastSquares()])]
    assert first == sorted(first)
