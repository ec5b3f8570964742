"""One name, one meaning: what the metrics of every learner of every model are called, and who is best by them."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.verbs.simulate import generators

SHARED = {"cosine", "squared_overlap"}
MATRIX_LEARNERS = [sv.BayesOptimal(), sv.AMP(), sv.NuclearNorm(0.1), sv.Lazy(0.1), sv.GradientDescent(max_steps=300)]
CASES = {
    "abs": (sv.MultiIndex("abs(z)"), [sv.BayesOptimal(), sv.AMP(), sv.Spectral(), sv.Spectral("asymmetric")], 1.3),
    "linear": (sv.MultiIndex("z", noise=0.5), [sv.BayesOptimal(), sv.AMP(), sv.Spectral(), sv.ERM(penalty=0.3)], 1.3),
    "parity": (sv.MultiIndex("sign(z1*z2)"), [sv.BayesOptimal(), sv.AMP(), sv.Spectral()], 4.0),
    "network": (sv.QuadraticNetwork(0.5), MATRIX_LEARNERS, 0.2),
    "sensing": (sv.MatrixSensing("discrete:-1,1", noise=0.1), [sv.BayesOptimal(), sv.AMP(), sv.Lazy(0.1)], 0.3),
}
every_case = pytest.mark.parametrize(
    ("model", "learners", "alpha"),
    [
        pytest.param(*case, id=id, marks=pytest.mark.slow if id not in ("abs", "network") else ())
        for id, case in CASES.items()
    ],
)


@every_case
def test_every_learner_has_cosine_and_squared_overlap_in_theory_and_in_runs(model, learners, alpha):
    for learner in learners:
        found = sv.predict(model, learner, alpha=alpha)
        assert set(found.metrics) >= SHARED and set(found.metrics) <= set(model.definitions), learner
        assert found["squared_overlap"] == pytest.approx(found["cosine"] ** 2, rel=1e-12)
        assert found.uncertainty.keys() >= SHARED
        if isinstance(learner, sv.BayesOptimal) and not isinstance(model, sv.MultiIndex):
            continue  # message passing is its algorithm
        run = sv.simulate(model, learner, alpha=alpha, d=20)
        assert set(run.metrics) >= SHARED and run["squared_overlap"] == pytest.approx(run["cosine"] ** 2, rel=1e-12)
        if np.shape(run.estimate)[1] == 2:
            continue  # up to the symmetries of the target
        estimate, truth = np.ravel(run.estimate), np.ravel(_truth(model, alpha))
        size = np.linalg.norm(estimate) * np.linalg.norm(truth)
        cosine = abs(estimate @ truth) / size if size > 0 else 0.0
        assert abs(run["cosine"]) == pytest.approx(cosine, rel=1e-9, abs=1e-12)


def _truth(model, alpha):
    """That of the run above, of seed 0."""
    return model.sample(generators(0, 20, {"alpha": alpha})[0], 20, alpha=alpha).truth


@every_case
def test_overlap_is_that_of_a_posterior_mean(model, learners, alpha):
    for learner in learners:
        found = sv.predict(model, learner, alpha=alpha)
        if not isinstance(learner, (sv.BayesOptimal, sv.AMP, sv.Spectral)):
            assert "overlap" not in found
        elif isinstance(model, sv.MultiIndex) and "overlap" in found:
            r = model.projections
            assert np.trace(np.reshape(found["overlap"], (r, r))) == pytest.approx(r * found["squared_overlap"])
            assert found["estimation_error"] == pytest.approx(r * (1 - found["squared_overlap"]), abs=1e-12)
    if isinstance(model, sv.MultiIndex) and model.projections == 1:
        assert "overlap" in sv.predict(model, sv.AMP(), alpha=alpha)
        assert "overlap" not in sv.predict(model, sv.Spectral(), alpha=alpha)


@pytest.mark.parametrize(
    ("model", "learners", "alpha"),
    [pytest.param(*case, id=id, marks=[pytest.mark.slow] * (id != "abs")) for id, case in CASES.items()],
)
def test_a_default_figure_never_shows_a_learner_above_bayes_optimal(model, learners, alpha):
    grid = alpha * np.array([0.0, 0.3, 0.6, 0.9, 1.2, 2.0])
    curve = sv.learning_curve(model, learners, alpha=grid, marks=False, progress=False)
    metric = curve.default_metric
    assert metric == "squared_overlap"
    values = curve.theory(metric).where(curve.dataset["status"] == 0).values
    assert learners[0].name() == curve.learners[0] == "bayes-optimal" and np.isfinite(values[0]).all()
    assert np.all(np.nan_to_num(values, nan=-1.0) <= values[0] + 1e-9)
    lines = {line.get_label(): line.get_ydata() for line in curve.plot().lines}
    best = next(y for label, y in lines.items() if label.startswith("Bayes"))
    assert len(lines) >= len(learners) and all(
        np.all(np.nan_to_num(y, nan=-1.0) <= best + 1e-9) for label, y in lines.items() if "theory" in label
    )
