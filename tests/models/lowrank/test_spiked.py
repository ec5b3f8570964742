"""Spiked matrices, tensors and covariances: known values, closed forms, thresholds in their units, runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference import lowrank_blind as blind
from reference import lowrank_equations as equations
from scipy.integrate import quad
from scipy.optimize import brentq

import solvable as sv

VALUES = {
    row["id"]: row for row in json.loads((Path(__file__).parents[2] / "reference/lowrank_values.json").read_text())
}
PRIORS = {"gauss-bernoulli:0.25": equations.sparse(0.25), "rademacher": equations.RADEMACHER}


def overlap(model, learner=None, **axes):
    return float(sv.predict(model, learner or sv.BayesOptimal(), **axes)["overlap"])


def rademacher_overlap(gamma):
    """E tanh(gamma + sqrt(gamma) z), by SciPy."""
    density = lambda z: np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * np.tanh(gamma + np.sqrt(gamma) * z)  # noqa: E731
    return quad(density, -12, 12, epsabs=1e-13)[0]


@pytest.mark.parametrize(("snr", "value"), [(1.2, 0.35765912), (1.7, 0.81550405)])
def test_rademacher_spikes_in_a_matrix(snr, value):
    q = brentq(lambda q: q - rademacher_overlap(snr**2 * q), 0.05, 0.999, xtol=1e-13)
    assert overlap(sv.SpikedMatrix(snr, "rademacher")) == pytest.approx(q, abs=1e-9)
    assert q == pytest.approx(value, abs=1e-8)


def test_other_priors_and_orders_have_their_known_values():
    """And the order parameters solve the equations as SciPy integrates them."""
    for id, make, precision in (
        ("matrix", sv.SpikedMatrix, lambda q, snr: snr**2 * q),
        ("tensor", sv.SpikedTensor, lambda q, order, noise: q ** (order - 1) / noise),
        ("covariance", sv.SpikedCovariance, lambda q, latent, snr, alpha: alpha * snr * snr * q / (1 + snr * q)),
    ):
        row, given = VALUES[id], dict(VALUES[id]["params"])
        axes = {"alpha": given["alpha"]} if "alpha" in given else {}
        model = make(**{name: value for name, value in given.items() if name != "alpha"})
        q = overlap(model, **axes)
        assert q == pytest.approx(row["value"], abs=row["tol"])
        prior = PRIORS[given.pop("prior")]
        assert equations.overlap(prior, precision(q, **given)) == pytest.approx(q, abs=1e-11)


@pytest.mark.parametrize("id", ["thresholds_3", "thresholds_4"])
def test_thresholds_of_other_tensors(id):
    row = VALUES[id]
    found = sv.thresholds(sv.SpikedTensor(row["params"]["order"], 0.1, row["params"]["prior"]))
    np.testing.assert_allclose([found["spinodal"], found["information_theoretic"]], row["value"], atol=row["tol"])


@pytest.mark.slow
def test_the_recorded_values_follow_from_the_equations():
    prior = PRIORS["rademacher"]
    assert equations.tensor_overlap(prior, 4, 0.15) == pytest.approx(VALUES["tensor"]["value"], abs=1e-11)
    spinodal, information = VALUES["thresholds_4"]["value"]
    assert equations.spinodal(prior, 4)[0] == pytest.approx(spinodal, abs=1e-9)
    assert equations.information_theoretic(prior, 4) == pytest.approx(information, abs=1e-9)


def test_gaussian_spikes_are_found_by_principal_components():
    for snr in (0.7, 1.3, 4.0):
        known = max(0.0, 1 - 1 / snr**2)
        assert overlap(sv.SpikedMatrix(snr)) == pytest.approx(known, abs=1e-9)
        found = sv.predict(sv.SpikedMatrix(snr), sv.Spectral())["squared_overlap"]
        assert found == pytest.approx(known, abs=1e-9)


def test_a_tensor_of_order_two_is_a_matrix():
    for prior in ("gaussian", "rademacher", "gauss-bernoulli:0.2"):
        assert overlap(sv.SpikedTensor(2, 1 / 1.3**2, prior)) == pytest.approx(
            overlap(sv.SpikedMatrix(1.3, prior)), abs=1e-9
        )


@pytest.mark.parametrize(
    ("prior", "spinodal", "information"),
    [("gaussian", 0.25, 0.2289728391), ("rademacher", 0.3097172593, 0.2828684759)],
)
def test_thresholds_of_tensors_of_order_three(prior, spinodal, information):
    found = sv.thresholds(sv.SpikedTensor(3, 0.1, prior))
    assert found["spinodal"] == pytest.approx(spinodal, abs=1e-7)
    assert found["information_theoretic"] == pytest.approx(information, abs=1e-7)
    assert overlap(sv.SpikedTensor(3, 0.99 * information, prior)) > 0.5
    assert overlap(sv.SpikedTensor(3, 1.01 * information, prior)) == 0
    assert overlap(sv.SpikedTensor(3, 0.5 * information, prior), sv.AMP()) == 0


def test_a_spiked_covariance_has_its_closed_forms():
    alpha, theta = 2.3, 1.3
    model, gamma = sv.SpikedCovariance(theta, latent="gaussian"), 1 / alpha
    known = (1 - gamma / theta**2) / (1 + gamma / theta)
    assert overlap(model, alpha=alpha) == pytest.approx(known, abs=1e-8)
    assert sv.predict(model, sv.Spectral(), alpha=alpha)["squared_overlap"] == pytest.approx(known, abs=1e-8)
    assert sv.thresholds(model)["weak_recovery"] == pytest.approx(1 / theta**2)
    binary = sv.SpikedCovariance(1.5)
    q = brentq(
        lambda q: q - 2 * 1.5 * rademacher_overlap(1.5 * q) / (1 + 2 * 1.5 * rademacher_overlap(1.5 * q)), 0.1, 0.99
    )
    assert overlap(binary, alpha=2.0) == pytest.approx(q, abs=1e-8)


def test_more_signal_never_hurts_and_nothing_beats_bayes():
    q = [overlap(sv.SpikedMatrix(snr, "gauss-bernoulli:0.3")) for snr in np.linspace(0.2, 2.5, 12)]
    assert np.all(np.diff(q) >= 0)
    for snr in (1.1, 1.6):
        model = sv.SpikedMatrix(snr, "rademacher")
        assert overlap(model) >= float(sv.predict(model, sv.Spectral())["squared_overlap"])


def test_runs_agree_with_theory():
    """Mean over runs within four standard errors and a shift of order 1/d; Nishimori: overlap = self-overlap."""
    for model, axes, d in (
        (sv.SpikedMatrix(1.7, "rademacher"), {}, 600),
        (sv.SpikedCovariance(1.5), {"alpha": 2.0}, 400),
    ):
        runs = [sv.simulate(model, sv.AMP(), d=d, seed=seed, **axes) for seed in range(8)]
        found = np.array([run["overlap"] for run in runs])
        error = found.std(ddof=1) / np.sqrt(len(runs))
        assert abs(found.mean() - overlap(model, **axes)) < 4 * error + 8 / d
        assert all(run.converged for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "seeds"), [(200, 24), (500, 10)])
def test_runs_written_from_the_definitions_agree(d, seeds):
    matrix = sv.SpikedMatrix(1.6, "gauss-bernoulli:0.3")
    covariance = sv.SpikedCovariance(2.3, latent="gaussian")
    component = sv.predict(covariance, sv.Spectral(), alpha=0.7)
    known = [
        [overlap(matrix), float(sv.predict(matrix, sv.Spectral())["squared_overlap"])],
        [float(component["squared_overlap"]), float(component["latent_squared_overlap"])],
    ]
    runs = [
        [blind.sparse_matrix_run(d, 1.6, 0.3, seed) for seed in range(seeds)],
        [blind.covariance_run(d, 0.7, 2.3, seed) for seed in range(seeds)],
    ]
    for values, found in zip(known, np.array(runs), strict=True):
        error = found.std(axis=0, ddof=1) / np.sqrt(seeds)
        assert np.all(np.abs(found.mean(axis=0) - values) < 4 * error + 4 / d)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP(), sv.Spectral()])
def test_no_spike_and_a_huge_one(learner):
    """Nothing is known at any number of samples, without a warning; and everything of a spike that covers the noise."""
    nothing = sv.predict(sv.SpikedCovariance(0.0), learner, alpha=np.array([0.0, 1.0, 1e9]))
    assert np.all(nothing["squared_overlap"] == 0) and np.all(nothing["latent_squared_overlap"] == 0)
    assert np.all(np.isinf(list(sv.thresholds(sv.SpikedCovariance(0.0)).values())))
    assert sv.predict(sv.SpikedMatrix(1e50, "gauss-bernoulli:0.1"), learner)["squared_overlap"] == pytest.approx(1.0)
    assert sv.predict(sv.SpikedCovariance(1e50), learner, alpha=2.0)["squared_overlap"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"snr = 1e\+80 is not allowed: snr must be a number from 0 to 1e50"):
        sv.SpikedMatrix(1e80)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "seeds"), [(60, 60), (120, 40)])
def test_tensors_close_to_the_spinodal_as_runs_from_the_overlap_of_theory(d, seeds):
    """At noise 0.2 some runs lose the spike at these sizes, so that an average of ends is one of those that keep it.

    The first step has no such choice: from an estimate of the overlap of theory it leads to the same overlap.
    """
    q = float(sv.predict(sv.SpikedTensor(3, 0.2), sv.BayesOptimal())["overlap"])
    first, ends = np.array([blind.tensor_run(d, 0.2, q, seed) for seed in range(seeds)]).T
    kept = ends[ends > 0.3]
    assert len(kept) > 0.6 * seeds
    for values in (first, kept):
        assert abs(values.mean() - q) < 4 * values.std(ddof=1) / np.sqrt(len(values))
