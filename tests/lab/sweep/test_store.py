"""Damage to the files of a store: noticed whatever it is, set aside, told once, and computed again."""

from __future__ import annotations

import errno
import os
import shutil
import time
import warnings

import pytest
from toys import ridge as toy
from toys.learners import results

import solvable as sv
from solvable.lab.sweep import sealed
from solvable.lab.sweep import store as store_module
from solvable.lab.sweep.sealed import Damaged, read_sealed, write_sealed
from solvable.lab.sweep.status import status
from solvable.lab.sweep.store import PointStore, StoreError

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
GRID = [0.5, 1.0, 2.0]


def run(folder, **changes):
    return sv.sweep(MODEL, RIDGE, store=folder, **({"alpha": GRID, "d": 10, "seeds": 2} | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished sweep of 9 points, which tests copy."""
    folder = tmp_path_factory.mktemp("finished") / "store"
    run(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "store")


def point_files(folder):
    return sorted(folder.glob("points/*/*.json"))


def test_every_flipped_bit_is_noticed(folder):
    path = point_files(folder)[0]
    good = path.read_bytes()
    assert read_sealed(path)["id"] == path.stem and len(good) > 300
    with open(path, "r+b", buffering=0) as file:
        for place in range(len(good)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([good[place] ^ 1 << bit]), place)
                with pytest.raises(Damaged):
                    read_sealed(path)
            os.pwrite(file.fileno(), good[place : place + 1], place)
    assert read_sealed(path)["id"] == path.stem


def test_every_truncation_and_every_longer_file_is_noticed(folder):
    path = point_files(folder)[0]
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(Damaged, match="empty" if length == 0 else "digest"):
            read_sealed(path)
    for wrong in (good + b"\n", good + good, b"\n" + good, bytes(len(good)), good.replace(b"\n", b"\r\n")):
        path.write_bytes(wrong)
        with pytest.raises(Damaged):
            read_sealed(path)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-7])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("harm", [truncated, emptied, flipped, zeroed])
def test_a_damaged_point_is_set_aside_told_once_and_computed_again(folder, harm):
    before, victim = results(folder), point_files(folder)[4]
    harm(victim)
    with pytest.warns(RuntimeWarning, match=f"{victim.name} is damaged .* set aside") as told:
        found = status(folder)
    assert len(told) == 1 and (found.done, found.failed, found.left, found.set_aside) == (8, 0, 1, 1)
    assert not victim.exists() and len(os.listdir(folder / "damaged")) == 1
    assert (folder / "sweep.log").read_text().count(f"{victim.name} is damaged") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was told, once
        assert status(folder).left == 1
        assert sv.open(folder).dataset is not None
        run(folder)
    assert results(folder) == before and "8 were done, 1 computed" in (folder / "sweep.log").read_text()


def test_damage_is_found_by_whoever_reads_first(folder):
    before = results(folder)
    for victim in point_files(folder)[::2]:
        flipped(victim)
    with pytest.warns(RuntimeWarning) as told:
        run(folder)
    assert len([w for w in told if "is damaged" in str(w.message)]) == 5
    assert results(folder) == before and status(folder).set_aside == 5


def test_an_emptied_file_is_not_done_even_in_a_store_too_large_to_read(folder):
    emptied(point_files(folder)[0])
    found = status(folder, verify=False)
    assert (found.done, found.left, found.read) == (8, 1, False) and "--verify" in str(found)


def test_files_that_changed_places_are_noticed(folder):
    before = results(folder)
    first, second = point_files(folder)[:2]
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="it holds the result of another point") as told:
        found = status(folder)
    assert len(told) == 2 and found.left == 2
    run(folder)
    assert results(folder) == before


def test_a_store_whose_plan_is_damaged_is_restored_by_a_rerun(folder):
    flipped(folder / "latest.json")
    with pytest.warns(RuntimeWarning, match=r"latest.json is damaged"):
        assert status(folder).done == 9  # by the newest plan
    (plan,) = folder.glob("plans/*.json")
    truncated(plan)
    with pytest.warns(RuntimeWarning, match="plans/.* is damaged"), pytest.raises(StoreError, match="holds no sweep"):
        sv.open(folder)
    with pytest.raises(StoreError, match="run `solvable sweep` again"):
        status(folder)
    run(folder)
    assert status(folder).done == 9 and sv.open(folder).axes == ("alpha",)


def test_a_plan_under_the_name_of_another_is_noticed(folder):
    first = status(folder).id
    run(folder, alpha=[0.5])
    second = status(folder).id
    shutil.copy(folder / "plans" / f"{first}.json", folder / "plans" / f"{second}.json")
    with pytest.warns(RuntimeWarning, match="plans/.* is damaged"):
        assert status(folder).id == first


def test_folders_that_went_missing(folder):
    shutil.rmtree(folder / "damaged")
    flipped(point_files(folder)[0])
    with pytest.warns(RuntimeWarning, match="set aside"):
        assert status(folder).left == 1
    shutil.rmtree(folder / "points")
    assert status(folder).left == 9 and sv.open(folder).metrics == ()
    run(folder)
    assert status(folder).done == 9


def test_what_is_not_ours_in_a_store_is_left_alone(folder):
    for name in ("points/notes.txt", "points/ab.json", "points/00/.hidden.json", "points/00/x.json.bak", "sweep.toml"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert status(folder).done == 9 and status(folder).set_aside == 0
    run(folder)
    assert (folder / "points/00/x.json.bak").read_text() == (folder / "sweep.toml").read_text() == "mine"


def test_leftovers_of_killed_processes_go_after_an_hour(folder):
    old, young = folder / "temporary/12-0123456789ab", folder / "temporary/34-0123456789ab"
    for path in (old, young):
        path.write_text("half a fi")
    os.utime(old, (time.time() - 7200,) * 2)
    run(folder)
    assert os.listdir(folder / "temporary") == [young.name] and status(folder).done == 9


def test_a_write_that_fails_leaves_nothing_and_can_be_repeated(folder, monkeypatch):
    before = results(folder)
    point_files(folder)[0].unlink()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sealed.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        PointStore(folder).write("ab" * 16, {"result": {}})
    with pytest.raises(OSError, match="No space left"):
        run(folder)
    assert os.listdir(folder / "temporary") == []
    monkeypatch.undo()
    run(folder)
    assert results(folder) == before


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    (tmp_path / "temporary").mkdir()
    write_sealed(tmp_path / "a.json", {"x": [1.5, "nan", None]}, tmp_path / "temporary")
    assert read_sealed(tmp_path / "a.json") == {"x": [1.5, "nan", None]}
    with pytest.raises(ValueError):
        write_sealed(tmp_path / "a.json", {"x": float("nan")}, tmp_path / "temporary")
    assert read_sealed(tmp_path / "a.json") == {"x": [1.5, "nan", None]} and not os.listdir(tmp_path / "temporary")


def test_a_store_that_cannot_be_written_is_still_read(folder, monkeypatch):
    flipped(point_files(folder)[0])

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store_module, "open", refuse, raising=False)
    monkeypatch.setattr(store_module.os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="damaged .* could not be set aside: .*Read-only"):
        found = status(folder)
    assert (found.done, found.left, found.set_aside) == (8, 1, 0) and not found.running
    with pytest.warns(RuntimeWarning, match="could not be set aside"):
        curve = sv.open(folder)
    assert int((curve.dataset["status"] == -2).sum() + (curve.dataset["status_simulation"] == -2).sum()) == 1


def test_a_file_written_anew_while_it_was_set_aside_is_put_back(folder, monkeypatch):
    """Another process repairs a damaged file between our reading it and our moving it away."""
    store, path = PointStore(folder), point_files(folder)[0]
    good, id = path.read_bytes(), path.stem
    path.write_bytes(good[:-5])
    replace = os.replace

    def repaired_first(source, target):
        if str(source) == str(path):
            path.write_bytes(good)
        replace(source, target)

    monkeypatch.setattr(store_module.os, "replace", repaired_first)
    assert store.read(id) is None
    assert path.read_bytes() == good and store.set_aside() == 0
    assert store.read(id)["id"] == id


def test_a_result_takes_the_place_of_an_earlier_error(tmp_path):
    store, id = PointStore(tmp_path / "store", create=True), "ab" * 16
    known = {"point": {}, "provenance": {"solvable": "0.1.0"}}
    store.write(id, known | {"error": {"message": "too much"}}, failed=True)
    assert store.read(id, failed=True) is not None and store.states() == {id: "failed"}
    store.write(id, known | {"result": {"thresholds": {}}})
    assert store.read(id, failed=True) is None
    assert not list(store.folder.glob("points/*/*.failed.json"))
    assert store.states() == store.checked_states() == {id: "done"}
