"""The spectra of learned matrices and weights."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.models.matrix.nuclear.spectrum import spectrum


def test_spectrum():
    model, learner = sv.QuadraticNetwork(0.1, 2.5), sv.NuclearNorm(0.05)
    one, two = spectrum(model, learner, 0.3), spectrum(model, learner, 1.0)
    assert (len(one.bulks), len(two.bulks)) == (1, 2)
    assert two.masses[1] == pytest.approx(0.1, abs=1e-6)  # the eigenvalues of the target stand apart
    for alpha, found in ((0.3, one), (1.0, two)):
        prediction = sv.predict(model, learner, alpha=alpha)
        assert found.zero == pytest.approx(1 - prediction["rank"], abs=1e-12)
        assert np.all(np.diff(found.x) > 0)
        assert np.trapezoid(found.density, found.x) == pytest.approx(prediction["rank"], rel=1e-3)
        assert np.trapezoid(found.singular_density, found.singular) == pytest.approx(prediction["rank"], rel=1e-3)
        trace = (prediction["training_loss"] - alpha * prediction["training_error"]) / 0.05
        assert np.trapezoid(found.density * found.x, found.x) == pytest.approx(trace, rel=1e-3)
    assert spectrum(model, sv.NuclearNorm(100.0), 0.3).zero == 1
    for penalty, alpha, width, name in ((0.0, 0.4, None, "alpha"), (0.1, 0.0, None, "alpha"), (0.1, 0.4, 0.2, "width")):
        with pytest.raises(ValueError, match=name):
            spectrum(sv.QuadraticNetwork(0.1), sv.NuclearNorm(penalty, width=width), alpha)
