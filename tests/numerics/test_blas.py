"""The limit on BLAS threads: kept while anybody needs it, and lifted afterwards, whatever the order."""

from __future__ import annotations

import threading

from threadpoolctl import threadpool_info

from solvable.numerics.blas import single_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_the_limit_is_kept_until_the_last_holder_leaves():
    with single_thread():
        pass  # finds the libraries, so that what follows compares the same ones
    before = threads()
    inside, first_left = threading.Event(), threading.Event()

    def second() -> None:
        with single_thread():
            inside.set()
            first_left.wait(10)
            seen.append(threads())

    seen: list[set[int]] = []
    other = threading.Thread(target=second)
    with single_thread():
        other.start()
        assert inside.wait(10) and threads() == {1}
    first_left.set()
    other.join()
    assert seen == [{1}] and threads() == before


def test_the_limit_is_lifted_after_an_error():
    before = threads()
    try:
        with single_thread():
            raise RuntimeError
    except RuntimeError:
        pass
    assert threads() == before
