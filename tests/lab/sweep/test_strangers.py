"""Folders and files that a sweep did not write: nothing of a user's is moved, removed or waited for."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from contextlib import suppress

import pytest
from toys import ridge as toy
from toys.learners import results

import solvable as sv
from solvable.lab.files import write_together
from solvable.lab.sweep.sealed import write_sealed
from solvable.lab.sweep.status import status
from solvable.lab.sweep.store import PointStore, StoreError

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")


def run(folder, **changes):
    return sv.sweep(MODEL, RIDGE, store=folder, **({"alpha": [0.5, 1.0], "d": 10, "seeds": 2} | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "store"
    run(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "store")


@pytest.fixture
def mine(tmp_path):
    """A folder of the user's with an old file."""
    (tmp_path / "mine").mkdir()
    return old(tmp_path / "mine" / "thesis.tex")


def old(path, text="years of work"):
    path.write_text(text)
    os.utime(path, (time.time() - 10**8,) * 2)
    return path


def seal(path, content):
    write_sealed(path, content, path.parent)


def a_point(folder):
    return sorted(folder.glob("points/*/*.json"))[0]


@pytest.mark.parametrize("name", ["temporary", "points", "plans", "damaged"])
def test_a_folder_with_a_name_of_ours_does_not_make_its_parent_a_store(tmp_path, name):
    (tmp_path / name).mkdir()
    kept = old(tmp_path / name / "thesis.tex")
    with pytest.raises(ValueError, match="a new or empty folder, or the store of an earlier sweep"):
        run(tmp_path)
    assert kept.read_text() == "years of work" and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["temporary", "points", "plans", "damaged"])
def test_a_link_with_a_name_of_ours_is_refused(tmp_path, mine, folder, name):
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / name).symlink_to(mine.parent)
    with pytest.raises(ValueError, match="a new or empty folder"):
        run(fresh)
    shutil.rmtree(folder / name)
    (folder / name).symlink_to(mine.parent)
    with pytest.raises(ValueError, match="link"):
        run(folder)
    with pytest.raises(StoreError, match=r"perhaps a link|not the store"):
        status(folder)
    assert os.listdir(mine.parent) == [mine.name] and mine.read_text() == "years of work"


def test_only_old_files_with_names_of_our_own_form_are_removed(folder, mine):
    temporary = folder / "temporary"
    kept = [old(temporary / name) for name in ("thesis.tex", "12-0123456789abc", "x12-0123456789ab", "12-0123456789AB")]
    (temporary / "34-0123456789ab").mkdir()
    os.utime(temporary / "34-0123456789ab", (0, 0))
    (temporary / "56-0123456789ab").symlink_to(mine)
    gone = old(temporary / "78-0123456789ab")
    run(folder)
    assert not gone.exists() and all(path.exists() for path in kept) and mine.exists()
    assert (temporary / "34-0123456789ab").is_dir() and (temporary / "56-0123456789ab").is_symlink()


def test_a_store_of_a_version_without_the_marker_is_known_by_its_plan(folder):
    before = results(folder)
    (folder / "store.json").unlink()
    assert status(folder).done == 6 and sv.open(folder)["overlap"].shape == (1, 2)
    run(folder)
    assert (folder / "store.json").is_file() and results(folder) == before


def test_a_plan_that_is_not_whole_does_not_make_a_store(folder):
    (folder / "store.json").unlink()
    (plan,) = folder.glob("plans/*.json")
    plan.write_bytes(plan.read_bytes()[:-3])
    for call in (run, sv.open):
        with pytest.raises(ValueError, match="store"):
            call(folder)
    assert plan.exists() and not (folder / "store.json").exists()


@pytest.mark.parametrize("id", ["../../mine/thesis", "/etc/passwd", "", "ABCDEF0123456789", 7, None, ["a"], "0" * 15])
def test_a_crafted_latest_file_moves_nothing(folder, mine, id):
    victim = old(mine.with_suffix(".json"))
    seal(folder / "latest.json", {"plan": id})
    with pytest.warns(RuntimeWarning, match=r"latest.json is damaged \(its plan has another form"):
        assert status(folder).done == 6
    assert victim.read_text() == mine.read_text() == "years of work"


def test_ids_that_are_not_hexadecimal_are_refused(folder):
    store = PointStore(folder)
    for id in ("../" * 4 + "x", "ab", "A" * 32, "g" * 32):
        for call in (store.read, store.has, lambda id: store.write(id, {}), lambda id: store.save_plan(id, {})):
            with pytest.raises(StoreError, match="hexadecimal"):
                call(id)


def test_plans_of_any_shape_are_read_or_set_aside(folder):
    (path,) = folder.glob("plans/*.json")
    good = json.loads(path.read_bytes().partition(b"\n")[2])
    crafted = [{name: value for name, value in good.items() if name != missing} for missing in good]
    for value in (None, 7, "text", [], {}, [{}], [[]], {"a": None}, True, [None], 10**400):
        crafted += [good | {key: value} for key in good]
    crafted += [good | {"runs": ["../../x"] * len(good["runs"])}, {"id": good["id"]}, {}]
    aside = 0
    for content in crafted:
        seal(path, content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in (status, sv.open):
                with suppress(StoreError):
                    call(folder)
        aside += not path.exists()
    assert aside > 150
    seal(path, good)
    assert sv.open(folder)["overlap"].shape == (1, 2)


def test_records_of_the_wrong_shape_are_set_aside_and_computed_again(folder):
    before = results(folder)
    paths = sorted(folder.glob("points/*/*.json"))
    for path in paths:
        good = json.loads(path.read_bytes().partition(b"\n")[2])
        result = good["result"]
        wrong = [{"id": good["id"]}, good | {"result": [1]}, good | {"result": {}}, good | {"provenance": "mine"}]
        for value in ("text", {}, [[1.0], [1.0, 2.0]], 10**400, [{}]):
            wrong.append(good | {"result": result | {"metrics": {"overlap": value}}})
        wrong += [good | {"result": result | {"metrics": 1.0}}, good | {"point": None}]
        for content in wrong:
            seal(path, content)
            with pytest.warns(RuntimeWarning, match=f"{path.name} is damaged"):
                sv.open(folder)
    run(folder)
    assert results(folder) == before and status(folder).set_aside == 11 * len(paths)


def a_pipe(path, mine):
    os.mkfifo(path)


def a_loop(path, mine):
    path.symlink_to(path.name)


def a_link(path, mine):
    path.symlink_to(mine)


def a_folder(path, mine):
    path.mkdir()


def deep_json(path, mine):
    import hashlib

    body = b'{"id":' + b"[" * 10**6 + b"]" * 10**6 + b"}\n"
    path.write_bytes(b"solvable sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


@pytest.mark.parametrize("make", [a_pipe, a_loop, a_link, a_folder, deep_json])
def test_what_is_no_file_of_ours_is_set_aside(folder, mine, make):
    before = results(folder)
    for path in (a_point(folder), folder / "latest.json"):
        path.unlink()
        make(path, mine)
    with pytest.warns(RuntimeWarning) as told:
        found = status(folder)
    assert len(told) == 2 and (found.done, found.left, found.set_aside) == (5, 1, 2)
    run(folder)
    assert results(folder) == before and mine.read_text() == "years of work"


@pytest.mark.parametrize("make", [a_pipe, a_loop, a_link])
@pytest.mark.parametrize("name", ["sweep.log", "lock", "store.json"])
def test_nothing_is_written_through_a_link_or_into_a_pipe(folder, mine, make, name):
    (folder / name).unlink()
    make(folder / name, mine)
    if name == "sweep.log":
        with pytest.raises(StoreError, match=r"sweep\.log is not a file of a store, perhaps a link"):
            run(folder)
    else:
        run(folder)
    assert status(folder).done == 6 and mine.read_text() == "years of work"


def test_points_are_not_written_through_a_folder_that_is_a_link(folder, mine):
    inner = a_point(folder).parent
    shutil.rmtree(inner)
    inner.symlink_to(mine.parent)
    assert status(folder).left >= 1
    with pytest.raises(StoreError, match=rf"{inner.name} is not a folder of a store, perhaps a link"):
        run(folder)
    assert os.listdir(mine.parent) == [mine.name]


def test_files_of_a_study_and_of_a_curve_are_not_written_through_a_link(folder, mine, tmp_path):
    (tmp_path / "report.md.part").symlink_to(mine)
    with pytest.raises(FileExistsError, match=r"nothing is written through it: '.*report\.md\.part'"):
        write_together(tmp_path, {"report.md": lambda path: path.write_text("new")})
    (tmp_path / "curve.nc.part").symlink_to(mine)
    with pytest.raises(FileExistsError, match="nothing is written through it"):
        sv.open(folder).save(tmp_path / "curve.nc")
    assert mine.read_text() == "years of work" and (tmp_path / "report.md.part").is_symlink()
