"""A limit of time is looked at between compiled parts, also by the threads of a computation."""

from __future__ import annotations

import math

import pytest

import solvable as sv
from solvable.core import deadline
from solvable.core.deadline import check_time, time_limit
from solvable.numerics.threads import each


class Clock:
    """A clock that goes on by one second each time it is read."""

    def __init__(self):
        self.now = 0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(deadline, "time", made)
    return made


def test_without_a_limit_nothing_is_checked(clock):
    with time_limit(None):
        check_time()
    check_time()
    assert clock.now == 0


def test_the_sooner_of_two_limits_holds_and_the_outer_one_afterwards(clock):
    with time_limit(10.0):
        with time_limit(1000.0), pytest.raises(sv.TimeLimitError, match="longer than the 10 s"):
            for _ in range(50):
                check_time()
        with pytest.raises(sv.TimeLimitError):
            check_time()
    check_time()


def test_threads_know_the_limit_of_their_caller(clock):
    done = []
    with time_limit(5.0), pytest.raises(sv.TimeLimitError):
        each(done.append, range(100))
    assert 0 < len(done) < 10


@pytest.mark.parametrize("target", ["tanh(z) + z**3", "sign(z1*z2) + 0.5*z1"])
def test_a_diagnosis_is_given_up_soon_after_its_limit(clock, target):
    with pytest.raises(sv.TimeLimitError, match="longer than the 3 s"):
        sv.diagnose(target, seconds=3.0)
    assert clock.now < 30


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf, True, "1", 10**400])
def test_a_bad_limit_is_refused_by_name(seconds):
    with pytest.raises(ValueError, match="seconds"):
        sv.diagnose("abs(z)", seconds=seconds)
