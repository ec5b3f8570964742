"""The largest likelihood of a Boltzmann machine: known values, equations written again, limits, and where it fails."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference.machine_equations import averages, maximum, step

import solvable as sv
from solvable.core.precision import float64
from solvable.engine.outputs.proximal import ProximalOutput
from solvable.engine.outputs.unlabelled import SpikedInputs
from solvable.engine.sides import Evolution, Overlap
from solvable.engine.signals.separable import PenalisedSignal
from solvable.models.lowrank.rbm.units import GaussianLoss
from solvable.priors import Ridge, as_prior

VALUES = {
    row["id"]: row for row in json.loads((Path(__file__).parents[3] / "reference/machine_values.json").read_text())
}
CASES = [
    (2.0, 1.5, "rademacher"), (1.5, 3.0, "rademacher"), (30.0, 0.3, "rademacher"), (3.0, 20.0, "rademacher"),
    (3.0, 1.5, "gaussian"), (5.0, 1.5, "gauss-bernoulli:0.4"),
]  # fmt: skip


def solved(alpha, snr, latent="rademacher", prior="gaussian", **more):
    return sv.predict(sv.SpikedCovariance(snr, prior, latent), sv.RBM(), alpha=alpha, **more)


@pytest.mark.parametrize("id", ["rbm_1.5", "rbm_2.5"])
def test_known_values(id):
    row = VALUES[id]
    found = solved(row["params"]["alpha"], row["params"]["snr"])
    order = found.order_parameters
    ours = [order["m"], order["q"], order["V"], found["squared_overlap"], found["replicon"]]
    np.testing.assert_allclose(ours, row["value"], atol=row["tol"])
    assert found["squared_norm"] == order["q"] and found["squared_overlap"] == pytest.approx(found["cosine"] ** 2)


@pytest.mark.parametrize(("alpha", "snr", "latent"), CASES)
def test_the_point_solves_the_equations_and_its_uncertainty_covers_its_error(alpha, snr, latent):
    found = solved(alpha, snr, latent)
    mixture = as_prior(latent).mixture()
    m, q, V = (found.order_parameters[name] for name in ("m", "q", "V"))
    np.testing.assert_allclose(step(alpha, snr, m, q, V, mixture), (m, q, V), rtol=1e-9)
    exact = maximum(alpha, snr, (m, q, V), mixture)
    names = ("squared_norm", "squared_overlap", "replicon", "log_likelihood")
    for name, value in zip(names, exact[[1, 3, 4, 5]], strict=True):
        assert abs(found[name] - value) <= found.uncertainty[name] + 3e-11 * (1 + abs(value)), name


@pytest.mark.parametrize(
    ("alpha", "snr"),
    [(2.0, 0.0), (2.0, 0.6), (2.0, 0.8), (2.0, 1.0), (2.0, 1.2), (1.0, 9.0), (0.5, 3.0), (0.0, 3.0), (30.0, 0.1)],
)
def test_where_many_maxima_compete_it_says_so(alpha, snr):
    found = solved(alpha, snr, throw=False)
    assert found.status == sv.Status.UNSTABLE and not found["replicon"] < 1
    with pytest.raises(sv.ConvergenceError, match="many maxima of the likelihood compete; take more samples"):
        solved(alpha, snr)


def test_without_overlap_the_replicon_is_at_least_one():
    for alpha in (2.5, 4.0, 20.0):
        found = solved(alpha, 0.01, throw=False)
        assert abs(found.order_parameters["m"]) < 1e-6 and found["replicon"] > 1


@pytest.mark.parametrize("latent", ["rademacher", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_it_is_never_above_bayes_and_learns_more_from_more_samples(latent):
    alpha = np.geomspace(1.2, 60.0, 24)
    for snr in (0.4, 1.0, 2.0, 6.0):
        model = sv.SpikedCovariance(snr, latent=latent)
        machine = sv.predict(model, sv.RBM(), alpha=alpha)
        best = sv.predict(model, sv.BayesOptimal(), alpha=alpha)["squared_overlap"]
        stable = machine.converged
        assert stable.any() and np.all(np.diff(stable.astype(int)) >= 0)  # from some alpha on
        assert np.all(machine["squared_overlap"][stable] <= best[stable] + 1e-9)
        assert np.all(np.diff(machine["squared_overlap"][stable]) > 0)
        components = sv.predict(model, sv.RBM("gaussian"), alpha=alpha)["squared_overlap"]
        assert np.all(components <= best + 1e-9)


def test_a_strong_spike_of_two_clusters_is_found_better_than_by_principal_components():
    model = sv.SpikedCovariance(4.0)
    machine, components, best = (
        sv.predict(model, learner, alpha=2.0)["squared_overlap"]
        for learner in (sv.RBM(), sv.RBM("gaussian"), sv.BayesOptimal())
    )
    assert components + 0.01 < machine < best


def test_the_likelihood_is_stationary():
    """Its derivative in alpha is explicit: E[max_z log cosh z - (z - omega)^2/2V] - q/2."""
    low, middle, high = (solved(alpha, 1.5) for alpha in (2.999, 3.0, 3.001))
    slope = (high["log_likelihood"] - low["log_likelihood"]) / 0.002
    order = middle.order_parameters
    assert slope == pytest.approx((middle["log_likelihood"] - order["V"] * order["q_hat"] / 2) / 3.0, rel=1e-6)
    log_cosh = averages(1.5, order["m"], order["q"], order["V"])[4]
    assert middle["log_likelihood"] == pytest.approx(3.0 * (log_cosh - order["q"] / 2), rel=1e-9)


def test_the_variance_of_a_gaussian_latent_is_explicit():
    """m = m_hat V with m_hat = alpha theta m E[h] and V = 1/(alpha (1 - E h)) leave V = (1 + 1/theta)/alpha."""
    assert solved(3.0, 1.5, "gaussian").order_parameters["V"] == pytest.approx((1 + 1 / 1.5) / 3.0, rel=1e-9)


def test_a_ridge_does_not_know_the_law_of_the_spike():
    one, other = (solved(2.0, 1.5, prior=prior) for prior in ("gaussian", "gauss-bernoulli:0.1"))
    assert one.metrics == other.metrics


def test_a_gaussian_unit_is_principal_components():
    alpha, snr = 2.0, 1.5
    found = sv.predict(sv.SpikedCovariance(snr), sv.RBM("gaussian"), alpha=alpha)
    gamma = 1 / alpha
    eigenvalue = (1 + snr) * (1 + gamma / snr)
    assert found["squared_overlap"] == pytest.approx((1 - gamma / snr**2) / (1 + gamma / snr), rel=1e-12)
    assert found["squared_norm"] == pytest.approx(1 - 1 / eigenvalue, rel=1e-12)
    gained = alpha * (eigenvalue * found["squared_norm"] + np.log(1 - found["squared_norm"])) / 2
    assert found["log_likelihood"] == pytest.approx(gained, rel=1e-12)


@float64
def test_a_gaussian_unit_is_a_fixed_point_of_its_two_sides():
    alpha, snr = 2.0, 1.5
    model = sv.SpikedCovariance(snr, latent="gauss-bernoulli:0.3")
    found = sv.predict(model, sv.RBM("gaussian"), alpha=alpha)
    q, V = found["squared_norm"], 1 / (1 + alpha * snr)
    m = np.sqrt(q * found["squared_overlap"])
    inputs = SpikedInputs.of(snr, model.latent)
    sides = Evolution(ProximalOutput(GaussianLoss(), inputs), PenalisedSignal.of(Ridge(alpha / (1 - q)), model.prior))
    state = Overlap(*(np.full((1, 1), part) for part in (m, q, V)))
    after = sides.step(state, alpha)
    np.testing.assert_allclose(np.ravel(after), (m, q, V), rtol=1e-9)
    assert alpha * V**2 / (1 - V) ** 2 == pytest.approx(found["replicon"], rel=1e-12)


def test_principal_components_at_their_edges():
    none = sv.predict(sv.SpikedCovariance(0.0), sv.RBM("gaussian"), alpha=[0.0, 1e-9, 1.0, 4.0])
    assert none.converged.all() and np.all(none["squared_overlap"] == 0) and np.all(none["replicon"] == 1)
    np.testing.assert_allclose(none["squared_norm"], [1.0, 1.0, 0.75, 1 - 1 / 1.5**2], atol=1e-4)
    assert none["log_likelihood"][0] == pytest.approx(0.5)
    at = sv.predict(sv.SpikedCovariance(0.5), sv.RBM("gaussian"), alpha=[4.0, 4.0 + 1e-9])
    np.testing.assert_allclose(at["squared_norm"][0], at["squared_norm"][1], atol=1e-8)
    several = sv.predict(sv.SpikedCovariance(1.5), sv.RBM("gaussian", units=3), alpha=2.0)
    one = sv.predict(sv.SpikedCovariance(1.5), sv.RBM("gaussian"), alpha=2.0)
    assert several["squared_overlap"] == one["squared_overlap"] and several["replicon"] == 1
    edge = 1 - 2 / (1 + np.sqrt(2)) ** 2
    assert several["squared_norm"] == pytest.approx((one["squared_norm"] + 2 * edge) / 3)


def test_what_is_not_solved_or_not_allowed_is_said():
    with pytest.raises(sv.NotSolvable, match="solved for one binary unit, not for 2.*RBMAscent"):
        sv.predict(sv.SpikedCovariance(1.5), sv.RBM(units=2), alpha=2.0)
    for field, value in {"units": 0, "hidden": "ternary", "solver": "gibbs"}.items():
        with pytest.raises(ValueError, match=f"{field} = .* is not allowed"):
            sv.RBM(**{field: value})
    with pytest.raises(ValueError, match="units = 2 is not allowed: units must be 1 for message passing"):
        sv.RBM(units=2, solver="amp")


def test_curves_sweeps_and_diagrams_know_it(tmp_path):
    model = sv.SpikedCovariance(2.0)
    curve = sv.learning_curve(model, [sv.RBM(), sv.BayesOptimal()], alpha=[1.0, 2.0, 4.0], progress=False)
    values = curve.theory("squared_overlap").sel(learner="rbm").where(curve.dataset["status"].sel(learner="rbm") == 0)
    assert np.isnan(values.values[0]) and np.all(np.isfinite(values.values[1:]))
    plane = sv.phase_diagram(
        model, sv.RBM(), x=("alpha", [2.0, 3.0]), y=("snr", [1.0, 3.0]), metric="replicon", progress=False
    )
    assert plane.theory("replicon").squeeze().sel(alpha=2.0, snr=3.0).item() < 1
    swept = sv.sweep(model, sv.RBM(), store=tmp_path / "s", alpha=[2.0], d=30, seeds=2, workers=1, progress=False)
    assert np.isfinite(swept.simulation("squared_overlap").values).all()
