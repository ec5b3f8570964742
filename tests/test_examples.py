"""Examples outside the package do what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.engine.sides import Overlap

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def absolute():
    """y = |Tr[G A*]| with eigenvalues +-1: the output of one family with the signal of another."""
    spec = importlib.util.spec_from_file_location("absolute_matrix", EXAMPLES / "absolute_matrix.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.AbsoluteMatrix(sv.spectra.Discrete([-1.0, 1.0]))


def test_a_new_model_from_two_sides_has_theory_and_thresholds(absolute):
    found = sv.predict(absolute, sv.AMP(), alpha=[0.2, 0.3, 0.475])
    assert found.converged.all()
    assert np.allclose(found["overlap"], [0, 0.0528238, 1], atol=1e-6)
    thresholds = sv.thresholds(absolute)
    assert thresholds["weak_recovery"] == pytest.approx(0.25)  # half a sample for each entry, as for vectors
    assert 0.4 < thresholds["algorithmic"] < 0.43


@pytest.mark.slow
def test_the_best_fixed_point_of_a_new_model_and_its_iteration(absolute):
    found = sv.predict(absolute, sv.AMP(), alpha=0.3)
    # Above the count of unknowns, a quarter of d^2, the truth is the best fixed point, and hard to find.
    assert sv.predict(absolute, sv.BayesOptimal(), alpha=0.3)["overlap"] == 1
    # The iteration itself ends where the solver says.
    path = absolute.evolution().path(Overlap.bayes(np.full((1, 1, 1), 0.9)), absolute.gain(alpha=0.3), 150)
    assert float(path[-1].m[0, 0, 0]) == pytest.approx(found["overlap"], abs=1e-3)


def test_message_passing_recovers_the_matrix(absolute):
    run = sv.simulate(absolute, sv.AMP(), alpha=0.55, d=32, seed=0)
    assert run.converged and run["overlap"] > 0.999
    few = sv.simulate(absolute, sv.AMP(max_steps=150), alpha=0.1, d=32, seed=0)
    assert few["overlap"] < 0.3


@pytest.mark.slow
def test_message_passing_agrees_with_theory(absolute):
    """Runs end at q = 1 well above the algorithmic threshold; between the thresholds small ones scatter widely."""
    runs = [sv.simulate(absolute, sv.AMP(), alpha=0.475, d=48, seed=seed) for seed in range(4)]
    assert sum(run["overlap"] > 0.999 for run in runs) >= 3
    low = [sv.simulate(absolute, sv.AMP(), alpha=0.3, d=60, seed=seed)["overlap"] for seed in range(8)]
    theory = sv.predict(absolute, sv.AMP(), alpha=0.3)["overlap"]
    assert np.mean(low) == pytest.approx(theory, abs=4 * np.std(low, ddof=1) / np.sqrt(8))


def test_layers_trained_on_tokens_are_compared_with_their_end():
    spec = importlib.util.spec_from_file_location("layer_similarity", EXAMPLES / "layer_similarity.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.main(epochs=2)
    assert len(found) == 2 and all(len(S) == 3 and S[-1] == pytest.approx(1) and (S <= 1 + 1e-9).all() for S in found)
