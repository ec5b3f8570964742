"""The progress bar appears on a terminal when work lasts, and nowhere else."""

from __future__ import annotations

import io

import pytest

from solvable.lab import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def work(stream, clock, seconds, **options):
    with progress.progress_bar(10, "counting", stream=stream, **options) as advance:
        for _ in range(10):
            clock.now += seconds
            advance()
    return stream.getvalue()


def test_long_work_on_a_terminal_shows_a_bar(monkeypatch):
    assert "counting" in work(Terminal(), Clock(monkeypatch), 0.5)


@pytest.mark.parametrize(("seconds", "shown"), [(0.3, "3.33/s"), (4.0, "4 s each")])
def test_the_bar_says_how_fast(monkeypatch, seconds, shown):
    assert shown in work(Terminal(), Clock(monkeypatch), seconds)


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [(0, 1.0, ""), (1, 0.0, ""), (500, 2.0, "250/s"), (3, 3.0, "1/s"), (1, 90.0, "90 s each"), (2, 2.5, "1.25 s each")],
)
def test_rates(done, seconds, words):
    assert progress.rate(done, seconds) == words


@pytest.mark.parametrize(
    ("stream", "seconds", "options"),
    [(Terminal, 0.01, {}), (io.StringIO, 0.5, {}), (Terminal, 0.5, {"enabled": False})],
)
def test_otherwise_nothing_is_written(monkeypatch, stream, seconds, options):
    assert work(stream(), Clock(monkeypatch), seconds, **options) == ""


@pytest.mark.parametrize(
    ("stream", "enabled", "shown"), [(Terminal, True, True), (Terminal, False, False), (io.StringIO, True, False)]
)
def test_a_stage_is_named_on_a_terminal_only(stream, enabled, shown):
    out = stream()
    with progress.stage("measuring", enabled, stream=out):
        pass
    assert ("measuring" in out.getvalue()) == shown


def test_an_error_passes_through_and_stops_the_bar(monkeypatch):
    clock = Clock(monkeypatch)
    with pytest.raises(RuntimeError), progress.progress_bar(10, "counting", stream=Terminal()) as advance:
        clock.now += 2
        advance()
        raise RuntimeError
