"""The limit of one BLAS thread: held while anybody needs it, in any thread, and gone afterwards."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from solvable.numerics.blas import single_thread


def limits():
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two():
    """Two threads, whatever the tests were started with."""
    with single_thread():
        pass  # loads what will be limited
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.num_threads for library in libraries]
    set_threads(libraries, [2] * len(libraries))
    yield limits()
    set_threads(libraries, before)


def set_threads(libraries, numbers):
    for library, number in zip(libraries, numbers, strict=True):
        library.set_num_threads(number)
        getattr(type(library), "clear_controlling_thread", lambda: None)()


def test_nested_contexts_restore_what_was_there_before(two):
    with single_thread():
        with single_thread():
            assert set(limits().values()) == {1}
        assert set(limits().values()) == {1}
    assert limits() == two


@pytest.mark.parametrize("first_leaves", ["first", "last"])
def test_a_thread_neither_lifts_the_limit_of_another_nor_leaves_it_behind(first_leaves):
    before = limits()
    entered, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with single_thread():
            entered.set()
            leave.wait()
            seen.append(limits())

    thread = threading.Thread(target=other, daemon=True)
    if first_leaves == "first":
        with single_thread():
            thread.start()
            entered.wait()
        assert set(limits().values()) == {1}, "the other thread still needs it"
        leave.set()
        thread.join()
    else:
        thread.start()
        entered.wait()
        with single_thread():
            leave.set()
            thread.join()
            assert set(limits().values()) == {1}, "this thread still needs it"
    assert set(seen[0].values()) == {1} and limits() == before


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_many_threads_that_come_and_go_leave_nothing_behind(times):
    before, wrong = limits(), []

    def often():
        for _ in range(times):
            with single_thread():
                if set(limits().values()) != {1}:
                    wrong.append(limits())

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and limits() == before
