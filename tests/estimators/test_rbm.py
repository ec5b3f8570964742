"""A Boltzmann machine for one's own inputs: scikit-learn's checks, what theory says of spiked data, and pure noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import check_estimator

import solvable as sv
from solvable.estimators import RBM

ALPHA, SNR, SCALE = 3.0, 1.5, 2.5


@pytest.mark.parametrize("hidden", ["binary", "gaussian"])
def test_scikit_learn_takes_it(hidden):
    check_estimator(RBM(units=2, hidden=hidden, starts=1, random_state=0))


@pytest.fixture(scope="module")
def spiked():
    """Eight data sets with two clusters, far from the origin and in units of their own, and what lies behind them."""
    model = sv.SpikedCovariance(SNR)
    data = [model.sample(np.random.default_rng(seed), 150, alpha=ALPHA) for seed in range(8)]
    return [(SCALE * np.sqrt(150) * one.X - 4.0, one.truth[:, 0], one.latent) for one in data]


@pytest.mark.parametrize("hidden", ["binary", "gaussian"])
def test_the_weights_have_the_overlap_of_theory(spiked, hidden):
    theory = sv.predict(sv.SpikedCovariance(SNR), sv.RBM(hidden), alpha=ALPHA)["squared_overlap"]
    found = []
    for X, truth, _ in spiked:
        w = RBM(hidden=hidden, random_state=0).fit(X).components_[0]
        found.append((w @ truth) ** 2 / (w @ w) / (truth @ truth))
    assert abs(np.mean(found) - theory) < 4 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_strength_and_noise_are_read_off_the_data(spiked):
    """Means over the data sets within four standard errors, and theory of the eigenvector from the strength seen."""
    machines = [RBM(hidden="gaussian").fit(X) for X, _, _ in spiked]
    assert [machine.outliers_ for machine in machines] == [1] * len(machines)
    exact = {
        "snr": (np.array([machine.snr_[0] for machine in machines]), SNR),
        "noise": (np.array([machine.noise_scale_ for machine in machines]), SCALE),
        "squared": (
            np.array([machine.squared_overlap_[0] for machine in machines]),
            float(sv.predict(sv.SpikedCovariance(SNR), sv.Spectral(), alpha=ALPHA)["squared_overlap"]),
        ),
    }
    for name, (values, expected) in exact.items():
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - expected) < 4 * error + 3 / 150 * expected, name  # bias of the order of 1/d


def test_the_hidden_unit_tells_the_clusters(spiked):
    """Its mean is a posterior mean of the cluster: as close to it as to the truth, and mostly of the right sign."""
    for X, _, latent in spiked:
        h = RBM(random_state=0).fit_transform(X)[:, 0]
        right = abs(np.mean(np.sign(h) * latent))
        assert right > 0.55 and np.all(np.abs(h) <= 1)


def test_pure_noise_rarely_stands_out():
    """At a level of one in a hundred, in 60 data sets of three shapes, more than four happen once in 2000 times."""
    rng = np.random.default_rng(0)
    shapes = [(300, 100), (100, 300), (2000, 20)] * 20
    found = [RBM(hidden="gaussian").fit(rng.standard_normal(shape)).outliers_ for shape in shapes]
    assert sum(count > 0 for count in found) <= 4


def test_a_gaussian_unit_is_a_principal_component():
    X = load_iris(return_X_y=True)[0]
    machine = RBM(2, "gaussian", standardize=True).fit(X)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    components = np.asarray(PCA(2).fit(standard).components_)
    found = machine.components_ * X.std(axis=0)
    for ours, theirs in zip(found, components, strict=True):
        assert abs(ours @ theirs) == pytest.approx(np.linalg.norm(ours))
    np.testing.assert_allclose(machine.transform(X), (X - X.mean(axis=0)) @ machine.components_.T)


def test_a_constant_feature_says_nothing():
    X = np.random.default_rng(2).standard_normal((50, 4))
    X[:, 2] = 7.0
    machine = RBM(standardize=True, random_state=0).fit(X)
    assert machine.components_[0, 2] == pytest.approx(0.0, abs=1e-6)
    moved = X + np.array([0.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(machine.transform(moved), machine.transform(X), atol=1e-5)


def test_the_likelihood_is_that_of_a_mixture_of_gaussians():
    """One binary unit: half of the inputs around w, half around -w, in units of the noise, against noise alone."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3)) + np.outer(rng.choice([-1.0, 1.0], 400), [1.0, 2.0, 0.0])
    machine = RBM(random_state=0).fit(X)
    w = machine.components_[0] * machine.noise_scale_
    x = (X - machine.mean_) / machine.noise_scale_
    square = lambda z: -np.sum(z**2, axis=1) / 2  # noqa: E731
    mixture = np.logaddexp(square(x - w), square(x + w)) - np.log(2)
    assert machine.score(X) == pytest.approx(np.mean(mixture - square(x)))
    assert machine.converged_ and machine.score(X) > 0


@pytest.mark.parametrize("options", [{"units": 0}, {"units": 99}, {"hidden": "ternary"}, {"starts": 0}])
def test_what_is_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} = "):
        RBM(**options).fit(np.eye(4))
