"""The figures of the gallery: their recipes, and one of them drawn small."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest

import solvable as sv

NAMES = ("phase_retrieval", "parity", "grand_staircase")


def recipe(name):
    return importlib.import_module(f"solvable.lab.figures.{name}").RECIPE


@pytest.mark.parametrize("name", NAMES)
def test_recipes_are_what_they_say(name):
    module = importlib.import_module(f"solvable.lab.figures.{name}")
    found = module.RECIPE
    assert found.name == name and f"python -m solvable.lab.figures.{name} --out out" in module.__doc__
    assert np.all(np.diff(found.alpha) > 0) and np.all(np.diff(found.simulated_alpha) > 0)
    assert found.alpha[0] <= min(found.simulated_alpha) and max(found.simulated_alpha) <= found.alpha[-1]
    assert set(map(type, found.simulated)) <= set(map(type, found.learners))


def test_a_small_figure():
    small = dataclasses.replace(recipe("phase_retrieval"), alpha=np.linspace(0.1, 1.6, 9), simulated_alpha=(0.3, 1.5))
    exact, simulated = small.compute(d=40, seeds=2)
    assert exact.learners == ("bayes-optimal", "amp", "spectral") and simulated.learners == ("amp", "spectral")
    (ax,) = small.draw(exact, simulated).axes
    assert ax.get_legend_handles_labels()[1] == [
        "Bayes optimal, theory",
        "AMP, theory",
        "Spectral, theory",
        "AMP, $d = 40$",
        "Spectral, $d = 40$",
    ]
    assert {text.get_text() for text in ax.texts} == {"weak recovery", "algorithmic", "information theoretic"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_command_writes_figure_and_data(name, tmp_path, capsys):
    found = recipe(name)
    thin = dataclasses.replace(found, alpha=found.alpha[::8], simulated_alpha=found.simulated_alpha[-2:])
    thin.main("a figure", ["--out", str(tmp_path / "new"), "--d", "100", "--seeds", "2"])
    assert (tmp_path / "new" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert sv.Curve.load(tmp_path / "new" / f"{name}_simulation.nc").dataset.attrs["d"] == 100
    assert "largest deviation" in capsys.readouterr().out
