"""`thresholds` on the toy model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from toys import ridge as toy
from toys.probes import Spiked

import solvable as sv

MODEL = toy.Regression(noise=0.25)


def fresh(code: str) -> str:
    """What code prints in a new interpreter."""
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    return done.stdout


def test_thresholds_are_what_the_model_registered():
    assert sv.thresholds(MODEL) == {"interpolation": 1.0, "never": np.inf}
    with pytest.raises(sv.NotSolvable, match="no thresholds are known for Spiked; models that have them: .*Regression"):
        sv.thresholds(Spiked())
    with pytest.raises(TypeError, match="model must be a Model"):
        sv.thresholds("abs(z)")  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_error_names_all_models_whatever_is_loaded():
    """A fresh process that has loaded none of them; "none" would be wrong."""
    code = """
import solvable as sv
class Bare(sv.Model): pass
try:
    sv.thresholds(Bare())
except sv.NotSolvable as error:
    print(error)
"""
    told = fresh(code).partition("models that have them: ")[2].strip(" .\n").split(", ")
    assert told == sorted(told) and {"MultiIndex", "QuadraticNetwork", "SpikedMatrix", "DeepAttention"} < set(told)
