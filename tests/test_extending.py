"""A model and a learner written outside the package, in one file, work with every verb."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from toys.ridge import ridge

import solvable as sv
from solvable.core import registry

EXAMPLE = Path(__file__).parents[1] / "examples" / "ridge_regression.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module; its pairs are registered for this file's tests only.

    Only they are taken back: what loads meanwhile registers its own pairs once, and for good.
    """
    with pytest.MonkeyPatch.context() as patch:
        spec = importlib.util.spec_from_file_location("ridge_regression", EXAMPLE)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up there
        spec.loader.exec_module(module)
        yield module
    for table in (registry._theories, registry._simulations):
        del table[module.LinearRegression, module.Ridge]


def test_theory_is_the_closed_form(example):
    alpha = np.array([0.0, 0.3, 1.0, 2.0, 10.0])
    prediction = sv.predict(example.LinearRegression(noise=0.5), example.Ridge(penalty=0.1), alpha=alpha)
    assert np.all(prediction.converged)
    with np.errstate(invalid="ignore"):  # without data there is no direction
        closed, _ = ridge(alpha, noise=0.5, penalty=0.1, numpy=np)
    np.testing.assert_allclose(prediction["estimation_error"], closed["estimation_error"], rtol=1e-8)


@pytest.mark.slow
def test_theory_agrees_with_simulation(example):
    curve = sv.learning_curve(
        example.LinearRegression(noise=0.25), example.Ridge(penalty=0.6), alpha=[0.5, 1.0, 3.0], d=200, seeds=12
    )
    for metric in ("cosine", "generalization_error"):
        agreement = curve.agreement(metric)
        assert agreement.points == 3
        assert agreement.deviation < 4, str(agreement)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "noise"), [(2.0, 0.25), (0.7, 0.5)])
def test_the_best_penalty_is_the_noise(example, alpha, noise):
    best = sv.optimize(example.LinearRegression(noise=noise), example.Ridge(), over="penalty", alpha=alpha)
    assert best.converged and not best.at_bound
    assert best.method == "gradient"
    assert best.value == pytest.approx(noise, rel=1e-6)


def test_other_learners_are_refused_by_name(example):
    with pytest.raises(sv.NotSolvable, match="learners that have one on this model: Ridge"):
        sv.predict(example.LinearRegression(), sv.BayesOptimal(), alpha=1.0)


def test_the_page_quotes_the_example_verbatim():
    page = (EXAMPLE.parents[1] / "docs" / "extending.md").read_text()
    assert EXAMPLE.read_text() in page
