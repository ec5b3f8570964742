"""Spectra: histograms against densities, isolated eigenvalues, atoms."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from solvable.lab import plots

RATIO, SPIKE, N = 0.5, 2.5, 200


def marchenko_pastur(ratio, points=400):
    """The bulk of X^T X / n with n x (ratio n) standard Gaussian entries; for a ratio above 1 its mass is 1/ratio."""
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    x = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, points))) / 2
    return x, np.sqrt(np.maximum((high - x) * (x - low), 0)) / (2 * np.pi * ratio * x)


def spectrum(rng, ratio, spike=0.0):
    X = rng.standard_normal((round(N / ratio), N))
    X[:, 0] *= np.sqrt(1 + spike)
    return np.linalg.eigvalsh(X.T @ X / len(X))


@pytest.fixture(scope="module")
def spiked():
    rng = np.random.default_rng(0)
    return np.array([spectrum(rng, RATIO, SPIKE) for _ in range(4)])


def test_histogram_density_and_outliers(spiked):
    predicted = (1 + SPIKE) * (1 + RATIO / SPIKE)
    ax = plots.draw_spectrum(spiked, marchenko_pastur(RATIO), outliers=[predicted])
    assert ax.get_legend_handles_labels()[1] == ["simulation", "theory", "isolated, theory", "isolated, simulation"]
    heights, edges, _ = ax.patches[0].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1 - 1 / N)
    x, rho = marchenko_pastur(RATIO)
    assert edges[0] == pytest.approx(x[1], abs=1e-3) or edges[0] < x[0]
    middle = (edges[1:] + edges[:-1]) / 2
    assert np.max(np.abs(heights - np.interp(middle, x, rho))[2:-2]) < 0.1
    alone = ax.lines[-1].get_xdata()
    np.testing.assert_array_equal(np.sort(alone), np.sort(spiked[:, -1]))
    assert np.abs(alone - predicted).max() < 1.0 and ax.get_ylim()[0] == 0


def test_without_a_spike_nothing_stands_alone():
    rng = np.random.default_rng(1)
    ax = plots.draw_spectrum(np.array([spectrum(rng, RATIO) for _ in range(10)]), marchenko_pastur(RATIO))
    assert ax.get_legend_handles_labels()[1] == ["simulation", "theory"]


def test_an_eigenvalue_in_a_gap_stands_alone():
    x = np.linspace(-3, 3, 601)
    rho = np.where(np.abs(np.abs(x) - 2) < 0.9, 0.3, 0.0)
    values = np.concatenate([np.linspace(-2.8, -1.2, 500), np.linspace(1.2, 2.8, 500), [0.0]])
    ax = plots.draw_spectrum(values, (x, rho))
    assert ax.lines[-1].get_xdata().tolist() == [0.0]


def test_atoms_are_left_out_of_the_bulk():
    rng = np.random.default_rng(2)
    values = spectrum(rng, 2.0)
    ax = plots.draw_spectrum(values, marchenko_pastur(2.0), atoms={0.0: 0.5}, label="runs")
    assert ax.get_legend_handles_labels()[1] == ["runs", "theory", "mass at 0: theory 0.5, simulation 0.5"]
    heights, edges, _ = ax.patches[0].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(0.5)


def test_a_histogram_alone_on_given_axes(tmp_path, spiked):
    ax = Figure().add_subplot()
    assert plots.draw_spectrum(spiked, ax=ax, outliers={"signal": 4.2}) is ax
    assert [text.get_text() for text in ax.texts] == ["signal"]
    heights, edges, _ = ax.patches[0].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1.0)
    assert plots.write_figure(ax.figure, tmp_path / "spectrum.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="path must be a file name that ends in .png, .pdf, .svg"):
        plots.write_figure(ax.figure, tmp_path / "spectrum.gif")


@pytest.mark.parametrize(
    ("eigenvalues", "density", "message"),
    [
        ([], None, "eigenvalues must be a non-empty array of finite numbers"),
        ([1.0, np.nan], None, "eigenvalues must be a non-empty array of finite numbers"),
        ([1.0], 3.0, r"density must be a pair \(x, rho\)"),
        ([1.0], ([1.0, 0.0], [1.0, 1.0]), "x increasing"),
        ([1.0], ([0.0, 1.0], [1.0, -1.0]), "rho finite and not negative"),
        ([1.0], ([0.0, 1.0], [0.0, 0.0]), "density must be"),
    ],
)
def test_bad_requests(eigenvalues, density, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_spectrum(eigenvalues, density)
