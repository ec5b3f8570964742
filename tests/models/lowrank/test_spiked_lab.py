"""Models without axes in the lab: their own fields are the axes of curves, phase diagrams, sweeps and commands."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.cli.app import run

MATRIX, TENSOR = sv.SpikedMatrix(1.0, "rademacher"), sv.SpikedTensor(3, 0.1)


def test_a_curve_over_the_strength_of_a_spike_marks_its_thresholds():
    learners = [sv.AMP(), sv.Spectral()]
    curve = sv.learning_curve(MATRIX, learners, snr=[0.5, 1.7], d=60, seeds=2, progress=False)
    theory = curve.theory("squared_overlap").sel(snr=1.7)
    assert float(theory.sel(learner="amp")) == pytest.approx(0.815504, abs=1e-6)
    assert float(theory.sel(learner="spectral")) == pytest.approx(1 - 1 / 1.7**2)
    assert np.isfinite(curve.simulation("squared_overlap").values).all()
    assert curve.thresholds["weak_recovery"] == 1
    ax = curve.plot("squared_overlap")
    upright = {
        line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
    }
    assert 1.0 in upright and "snr" in ax.get_xlabel()


def test_a_phase_diagram_has_the_thresholds_of_every_row():
    plane = sv.phase_diagram(
        TENSOR, sv.BayesOptimal(), x=("noise", [0.1, 0.2, 0.3]), y=("order", [3, 4]), metric="overlap", progress=False
    )
    assert float(plane.theory("overlap").squeeze().sel(noise=0.2, order=3)) == pytest.approx((1 + np.sqrt(0.2)) / 2)
    assert float(plane.theory("overlap").squeeze().sel(noise=0.2, order=4)) == 0
    np.testing.assert_allclose(plane.dataset["spinodal_threshold"], [1 / 4, 4 / 27], atol=1e-7)


def test_a_sweep_over_the_noise_keeps_its_runs(tmp_path):
    store = tmp_path / "sweep"
    found = sv.sweep(
        TENSOR, sv.BayesOptimal(), store=store, noise=[0.02, 0.05], d=20, seeds=2, workers=1, progress=False
    )
    np.testing.assert_allclose(found.theory("overlap").squeeze(), (1 + np.sqrt(1 - 4 * np.array([0.02, 0.05]))) / 2)
    assert found.simulation("overlap").shape == (1, 2, 2) and np.all(found.simulation("overlap").values > 0.7)


def test_commands_take_a_field_as_a_grid(capsys):
    field = ["--param", "snr=0.5,1.7", "--param", "prior=rademacher", "--metric", "squared_overlap"]
    runs = ["--learner", "amp", "--d", "60", "--seeds", "2"]
    assert run(["curve", "--model", "spiked-matrix", *field, *runs]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("amp")]
    assert [row[1:3] for row in rows] == [["0.5", "0"], ["1.7", "0.815504"]]
    assert run(["thresholds", "--model", "spiked-tensor", "--param", "order=3", "--param", "noise=0.1"]) == 0
    assert "0.228973" in capsys.readouterr().out
