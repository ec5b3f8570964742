"""The figure of the estimators: inverse regression finds a mean's direction, and the picture from made-up material."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.lab.figures.entries import real_data as entry
from solvable.lab.figures.entry import Material
from solvable.lab.figures.verdict import judge


def test_inverse_regression_finds_the_direction_of_a_mean():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 10)) @ np.diag(np.arange(1.0, 11)) + 3
    y = np.exp((X[:, 2] - 3) / 3) + 0.1 * rng.standard_normal(800)
    found = entry.InverseRegression(1).fit(X, y)
    assert abs(np.corrcoef(found.transform(X)[:, 0], X[:, 2])[0, 1]) > 0.98
    assert entry.InverseRegression(2).set_params(n_components=3).fit_transform(X, y).shape == (800, 3)


@pytest.mark.parametrize("name", entry.DATA)
def test_data_have_labels_of_variance_one(name):
    X, y = entry.data_of(name)
    assert np.all(np.ptp(X, axis=0) > 0) and (y.mean(), y.var()) == pytest.approx((0, 1))


def test_every_method_is_made():
    for name in entry.METHODS:
        assert hasattr(entry.method(name), "fit")


def test_the_figure_and_its_numbers():
    rng = np.random.default_rng(0)
    shares = 0.5 + 0.01 * rng.standard_normal((len(entry.ALPHA), 6, 2))
    errors = np.ones((6, len(entry.METHODS)))
    errors[:, list(entry.METHODS).index("index")] = 0.7
    values = {
        "alpha": np.array(entry.ALPHA),
        "shares": shares,
        "theory": (np.linspace(2, 10, 5), np.linspace(0, 0.8, 5)),
        "at": 0.5,
        "scores": {name: errors * (1 + 0.01 * rng.standard_normal(errors.shape)) for name in entry.DATA},
        "digits": {"z": rng.standard_normal((60, 2)), "digit": np.arange(60) % 10, "count": np.array(10)},
    }
    found = Material(values, sizes={"parity": {"d": [400], "seeds": [6]}})
    verdicts = [judge(claim, found) for claim in entry.ENTRY.claims]
    assert [verdict.word for verdict in verdicts[:2]] == ["agrees", "agrees"]
    ratio = verdicts[2].simulated
    assert ratio is not None and ratio.value == pytest.approx(0.7, abs=0.02) and ratio.freedom == 5
    figure = entry.draw(found, verdicts)
    assert len(figure.axes) == 5
    assert [text.get_text() for text in figure.axes[2].get_yticklabels()] == list(entry.METHODS.values())
