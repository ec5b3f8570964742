"""`thresholds` on the toy model."""

from __future__ import annotations

import numpy as np
import pytest
from toys import ridge as toy
from toys.probes import Spiked

import solvable as sv

MODEL = toy.Regression(noise=0.25)


def test_thresholds_are_what_the_model_registered():
    assert sv.thresholds(MODEL) == {"interpolation": 1.0, "never": np.inf}
    with pytest.raises(sv.NotSolvable, match="no thresholds are known for Spiked; models that have them: .*Regression"):
        sv.thresholds(Spiked())
    with pytest.raises(TypeError, match="model must be a Model"):
        sv.thresholds("abs(z)")  # type: ignore[arg-type]
