"""Compiled programs do not pile up: a process that goes through many targets keeps those of a few."""

from __future__ import annotations

import os

import jax
import pytest
from toys.learners import start

import solvable as sv
from solvable.core import programs


def test_programs_are_dropped_once_many_targets_have_come(monkeypatch):
    dropped = []
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append(programs._new))
    monkeypatch.setattr(programs, "MOST", 3)
    monkeypatch.setattr(programs, "_new", 0)
    for k in range(9):
        sv.diagnose(f"z + 0.{k + 11}*z**2")
        sv.diagnose("abs(z)")  # known: it brings nothing
    assert len(dropped) == 2


def test_channels_are_not_kept_for_ever():
    from solvable.channels import GenericChannel, NoisyChannel, ScalarChannel
    from solvable.channels.generic import KnownChannel

    for method in (
        ScalarChannel.rows,
        NoisyChannel._dense,
        GenericChannel.rule,
        GenericChannel.parts,
        KnownChannel.parts,
    ):
        assert method.cache_parameters()["maxsize"] is not None


GROWTH = """
import sys
import solvable as sv

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096e-6

for k in range(147):
    sv.simulate(sv.MultiIndex(f"tanh(z) + {0.1 + 0.01 * k:.2f}*z**2", noise=0.1), sv.AMP(max_steps=3), alpha=1.2, d=30)
    if k in (80, 146):
        print(resident(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs to see how much memory is used")
def test_five_hundred_targets_stay_below_a_gigabyte_and_a_half():
    """From 147 targets: what the last 66 add, continued to five hundred.

    By the first of the two the caches, of 64 channels each, are full, and both lie as far behind the last time that
    programs were dropped, which happens every 33 targets.
    """
    out, errors = start(GROWTH).communicate(timeout=3600)
    half, whole = map(float, out.split())
    assert whole + (whole - half) / 66 * 353 < 1500, (half, whole, errors)
