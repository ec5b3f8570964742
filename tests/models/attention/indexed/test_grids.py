"""Attention-indexed models on grids: phase diagrams over their fields, and the command line."""

from __future__ import annotations

import numpy as np
from typer.testing import CliRunner

import solvable as sv
from solvable.cli.app import app


def test_a_phase_diagram_over_the_rank():
    model, alpha, rho = sv.AttentionIndexed(0.5, 2), np.array([0.05, 0.1]), np.array([0.3, 0.5, 1.0])
    found = sv.phase_diagram(model, sv.BayesOptimal(), x=("alpha", alpha), y=("rho", rho), metric="estimation_error")
    values = found.theory("estimation_error").squeeze()
    assert abs(float(values.sel(rho=0.5, alpha=0.1)) - 0.392196) < 1e-6
    assert np.all(np.diff(values.transpose("rho", "alpha"), axis=0) > 0)


def test_the_command_line_reads_tokens_and_output():
    arguments = ["--model", "attention-indexed", "--param", "rho=0.5", "--param", "tokens=3"]
    found = CliRunner().invoke(app, ["thresholds", *arguments, "--param", "output=hardmax"])
    assert found.exit_code == 0 and "narrow_weak_recovery" in found.output
