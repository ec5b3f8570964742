"""Where a store may be: new folders, odd names, other people's folders, and folders that move."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy

import solvable as sv
from solvable.lab.sweep.status import status
from solvable.lab.sweep.store import PointStore, StoreError

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)


def run(folder, **changes):
    return sv.sweep(MODEL, RIDGE, store=folder, **({"alpha": [0.5, 1.0]} | changes))


def test_names_with_spaces_and_letters_of_any_alphabet(tmp_path):
    folder = tmp_path / "my résultats 結果 %d [1]" / "a b"
    curve = run(folder)
    assert sv.open(folder).dataset.identical(curve.dataset) and status(str(folder)).done == 2


class Wandering(sv.Learner):
    """Changes the working directory."""


@sv.theory(toy.Regression, Wandering, vectorized=False)
def _(model, learner, alpha):
    os.chdir("/")
    return sv.Prediction({"overlap": alpha})


def test_a_relative_path_stays_where_it_was_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    curve = sv.sweep(MODEL, Wandering(), store="store", alpha=[0.5, 1.0])
    assert os.getcwd() == "/" and curve["overlap"].values.tolist() == [[0.5, 1.0]]
    assert status(tmp_path / "store").done == 2


def test_a_store_can_be_moved_and_copied_between_runs(tmp_path):
    run(tmp_path / "a")
    shutil.move(tmp_path / "a", tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    for name in ("b", "c"):
        run(tmp_path / name, alpha=[0.5, 1.0, 1.5])
        assert "2 were done, 1 computed" in (tmp_path / name / "sweep.log").read_text()
    assert sweep_toys.results(tmp_path / "b") == sweep_toys.results(tmp_path / "c")


def test_stores_can_be_merged_by_copying_their_points(tmp_path):
    run(tmp_path / "a")
    run(tmp_path / "b", alpha=[1.0, 2.0])
    shutil.copytree(tmp_path / "b/points", tmp_path / "a/points", dirs_exist_ok=True)
    run(tmp_path / "a", alpha=[0.5, 1.0, 2.0])
    assert "3 were done, 0 computed" in (tmp_path / "a/sweep.log").read_text()


@pytest.mark.parametrize("content", [["data.csv"], ["points/", "plans.txt"], ["plans/", "src/"]])
def test_a_folder_of_somebody_else_is_refused(tmp_path, content):
    for name in content:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=r"store = '.*' is not allowed: .* a new or empty folder"):
        run(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(name.strip("/") for name in content)


def test_what_is_not_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="store must be a folder"):
        run(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        run(tmp_path / "file" / "store")


@pytest.mark.parametrize("made", [[], ["points"], ["points", "plans"], ["points", "plans", "damaged", "temporary"]])
def test_a_store_killed_while_it_was_made_goes_on(tmp_path, made):
    for name in made:
        (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match="is not the store of a sweep"):
        sv.open(tmp_path)
    run(tmp_path)
    assert status(tmp_path).done == 2


def test_what_is_not_a_store_is_not_opened(tmp_path):
    for call in (sv.open, status):
        with pytest.raises(StoreError, match=r"is not the store of a sweep; `solvable sweep FILE.toml --store"):
            call(tmp_path)
        with pytest.raises(StoreError, match="nowhere does not exist"):
            call(tmp_path / "nowhere")


def test_a_changed_configuration_never_mixes_with_old_results(tmp_path):
    first = run(tmp_path)
    changed = sv.sweep(MODEL, toy.Ridge(penalty=0.6), store=tmp_path, alpha=[0.5, 1.0])
    expected = sv.predict(MODEL, toy.Ridge(penalty=0.6), alpha=np.array([0.5, 1.0]))["overlap"]
    np.testing.assert_allclose(changed["overlap"][0], expected, rtol=1e-14)
    found = status(tmp_path)
    assert (found.points, found.done, found.other) == (2, 2, 2) and "2 points of other configurations" in str(found)
    again = run(tmp_path)
    assert "2 were done, 0 computed" in (tmp_path / "sweep.log").read_text().splitlines()[-1]
    np.testing.assert_array_equal(again["overlap"], first["overlap"])


def with_schema(folder, schema):
    store = PointStore(folder)
    plan = store.latest_plan()
    store.save_plan(plan["id"], {key: value for key, value in plan.items() if key != "schema"} | schema)


def test_a_store_of_an_earlier_version_is_read_and_its_points_do_not_count(tmp_path):
    first = run(tmp_path)
    with_schema(tmp_path, {})
    np.testing.assert_array_equal(sv.open(tmp_path)["overlap"], first["overlap"])
    with pytest.warns(RuntimeWarning, match="points of an earlier version of solvable, which are filed in another way"):
        run(tmp_path, alpha=[0.5, 1.0, 2.0])
    run(tmp_path)  # and says so once


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    run(tmp_path)
    with_schema(tmp_path, {"schema": 99})
    for call in (run, sv.open):
        with pytest.raises(StoreError, match="was written by a newer solvable .schema 99."):
            call(tmp_path)


def test_one_value_and_a_list_of_one_value_are_the_same_points_in_another_shape(tmp_path):
    assert run(tmp_path, alpha=1.0)["overlap"].dims == ("learner",)
    curve = run(tmp_path, alpha=[1.0])
    assert curve["overlap"].dims == ("learner", "alpha") and status(tmp_path).other == 0


def test_the_log_keeps_its_lines_under_many_writers(tmp_path):
    store = PointStore(tmp_path, create=True)
    texts = [f"{chr(65 + k)}" * 900 for k in range(8)]
    threads = [threading.Thread(target=lambda t=t: [store.log(t) for _ in range(50)]) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "sweep.log").read_text().splitlines()
    assert len(lines) == 400 and {line.rpartition("] ")[2] for line in lines} == set(texts)


def test_the_log_takes_any_message(tmp_path):
    store = PointStore(tmp_path, create=True)
    store.log("two\nlines, a lone \udc80 and " + "x" * 1_000_000)
    (line,) = (tmp_path / "sweep.log").read_bytes().splitlines()
    assert b"two lines, a lone \\udc80 and xxx" in line and len(line) < 1200


def test_the_status_says_who_is_at_work(tmp_path):
    run(tmp_path)
    assert not status(tmp_path).running
    with PointStore(tmp_path).held() as first, PointStore(tmp_path).held() as second:
        assert not first and second and status(tmp_path).running
    with PointStore(tmp_path).held() as first:
        with PointStore(tmp_path).held() as second:
            assert second
        assert status(tmp_path).running, "the one that is left still holds it"
    assert not status(tmp_path).running


def test_the_status_loads_no_numerical_library(tmp_path):
    run(tmp_path)
    code = (
        "import sys; from solvable.lab.sweep.status import status; found = status(sys.argv[1]);"
        "print(found.done, [name for name in ('numpy', 'jax', 'xarray', 'equinox') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=1800)
    assert told.stdout.strip() == "2 []", told.stderr


def synthetic(folder, points: int) -> None:
    """A store of very many points, without computing them."""
    run(folder, alpha=[0.5])
    store = PointStore(folder)
    plan = store.latest_plan()
    (content,) = (path.read_bytes() for path in folder.glob("points/*/*.json"))
    ids = [f"{(k * 2654435761) % 2**32:08x}{k:024x}" for k in range(points)]
    for prefix in {id[:2] for id in ids}:
        (folder / "points" / prefix).mkdir(exist_ok=True)
    for id in ids[: points * 9 // 10]:
        (folder / f"points/{id[:2]}/{id}.json").write_bytes(content)
    store.save_plan(
        plan["id"], plan | {"theory": ids, "grid": [{"name": "alpha", "values": list(range(points)), "home": "axis"}]}
    )


def counted(folder) -> dict:
    code = (
        "import json, sys, time;"
        "from solvable.lab.sweep.status import status; found = status(sys.argv[1]).to_dict();"
        "print(json.dumps(found | {'cpu': time.process_time()}))"
    )
    told = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=1800)
    return json.loads(told.stdout)


@pytest.mark.slow
def test_the_status_of_a_hundred_thousand_points_takes_less_than_two_seconds_of_computing(tmp_path):
    synthetic(tmp_path, 100_000)
    found = min((counted(tmp_path) for _ in range(3)), key=lambda one: one["cpu"])
    assert (found["points"], found["done"], found["left"], found["read"]) == (100_000, 90_000, 10_000, False)
    assert found["cpu"] < 2, f"{found['cpu']:.2f} s of CPU"


@pytest.mark.slow
def test_a_plan_of_a_hundred_thousand_points_takes_seconds():
    from solvable.lab.grid.request import make_plan

    begin = time.process_time()
    plan = make_plan(MODEL, RIDGE, [10, 20], 50, False, {"alpha": np.linspace(0.1, 5, 500), "noise": [0.1, 0.2]})
    assert len(plan.layout().points) == 101_000
    assert time.process_time() - begin < 10
