"""The figures of one-pass descent: what is read off paths, and every picture from made-up or small material."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import solvable as sv
from solvable.lab.figures.entries import parity_repetition, repetita_iuvant, sgd_exit, sgd_staircases
from solvable.lab.figures.entry import Effort, Material
from solvable.lab.figures.paths import first_above, flow_above, median, paths, slope
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.verdict import judge

WANTED = {"parity-repetition", "repetita-iuvant", "sgd-exit", "sgd-staircases"}


def texts(figure):
    """All labels of a figure's legends and axes."""
    found = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        legend = ax.get_legend()
        found += [ax.get_xlabel(), ax.get_ylabel(), ax.get_title()]
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return found


def test_the_entries_of_dynamics_are_found():
    assert set(all_entries()) >= WANTED


def test_where_paths_first_exceed_a_level():
    alpha = np.array([1.0, 2.0, 4.0, 8.0])
    runs = np.array([[0.0, 0.6, 0.0], [0.0, 0.9, 0.4], [1.0, 0.1, 0.4], [0.2, 0.9, 0.4]])
    assert first_above(alpha, runs, 0.5) == pytest.approx([2**1.5, 1.0, np.inf])


def test_medians_and_slopes_count_runs_that_take_forever():
    rng = np.random.default_rng(0)
    times = [d**2 * rng.lognormal(0, 0.3, 41) for d in (50, 100, 200)]
    found = slope((50, 100, 200), times)
    assert abs(found.value - 2) < 3 * found.error and 0.01 < found.error < 0.2 and found.freedom == 40
    some = median([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, *[np.inf] * 2], scale=2.0)
    assert some.value == 12.0 and 0 < some.error < 8
    assert np.isnan(median([1.0, np.inf, np.inf]).value) and np.isnan(slope((1, 2), [[1.0, 1.0], [np.inf] * 2]).value)


def test_the_error_of_a_median_is_that_of_repeated_samples():
    rng = np.random.default_rng(1)
    spread = np.std([np.median(rng.standard_normal(40)) for _ in range(2000)])
    errors = [median(rng.standard_normal(40)).error for _ in range(30)]
    assert np.mean(errors) == pytest.approx(spread, rel=0.15)


def test_paths_are_the_runs_of_simulate_without_a_theory():
    model, learner = sv.MultiIndex("z"), sv.OnlineSGD(0.5, activation="z", loss="correlation", start=0.1)
    alpha = (0.5, 1.0, 2.0)
    found = paths(model, learner, alpha, 40, 9, ["cosine", "norm"], Effort(progress=False))
    assert found["cosine"].shape == found["norm"].shape == (3, 9)
    last = sv.simulate(model, learner, alpha=np.array(alpha), d=40, seed=8)
    assert found["cosine"][:, 8] == pytest.approx(last["cosine"], abs=1e-12)


def test_where_a_flow_exceeds_a_level():
    """A linear neuron and target: dm/dt = g (1 - m^2) - g^2 m/2, solved by separating the variables."""
    rate = 0.2
    exact = np.trapezoid(1 / (rate * (1 - (m := np.linspace(0.1, 0.5, 2001)) ** 2) - rate**2 * m / 2), m)
    model, learner = sv.MultiIndex("z"), sv.OnlineSGD(rate, activation="z", loss="correlation", start=0.1)
    assert flow_above(model, learner, "cosine", 0.5, 0.5, 10.0) == pytest.approx(exact, rel=2e-4)
    assert flow_above(model, learner, "cosine", 0.999, 0.5, 1.0) == np.inf


def repetition_curve(panel, d=500, seeds=4):
    """Overlaps that grow with a look ahead, of theory and runs."""
    alpha = np.linspace(0, panel.last, 25)
    values = np.stack([-0.8 * (x != 0) * (1 - np.exp(-alpha / 20)) for x in panel.extrapolations])
    runs = values[..., None] + 0.02 * np.random.default_rng(0).standard_normal((*values.shape, seeds))
    names = [f"l{k}" for k in range(len(values))]
    variables = {
        "cosine_theory": (("learner", "alpha"), values),
        "cosine_simulation": (("learner", "alpha", "seed"), runs),
    }
    coordinates = {"learner": names, "title": ("learner", names), "alpha": alpha}
    return sv.Curve(xr.Dataset(variables, coordinates, {"d": d}))


def test_the_figure_of_repetition():
    curves = {name: repetition_curve(panel) for name, panel in repetita_iuvant.PANELS.items()}
    found = Material({}, curves, {name: {"d": [500], "seeds": [4]} for name in curves})
    verdicts = {claim.name: judge(claim, found) for claim in repetita_iuvant.ENTRY.claims}
    one = verdicts["relu, He3, look ahead, cosine at alpha = 40"]
    assert one.computed == pytest.approx(0.8 * (1 - np.exp(-2)))
    assert one.simulated.value == pytest.approx(one.computed, abs=0.05)
    assert verdicts["erf, He4, one pass, cosine at alpha = 240"].word == "simulated only"
    labels = texts(repetita_iuvant.draw(found, list(verdicts.values())))
    assert {"one pass", r"look ahead, $\rho_0 = 0.5$", "runs at $d = 500$", "absolute cosine"} <= set(labels)


def test_learners_of_repetition_are_those_of_the_panels():
    even = repetita_iuvant.PANELS["even"]
    ahead, plain = even.learner(-1.0), even.learner(0.0)
    assert isinstance(ahead, sv.Extragradient) and ahead.extrapolation == -1 and ahead.start == "random"
    assert type(plain) is sv.OnlineSGD and plain.loss == "correlation" and plain.learning_rate == 0.3


def staircase_material(runs=4):
    alpha = np.geomspace(10, 1000, 7)
    steps = [np.clip(np.log10(alpha) - k / 2 - 0.5, 0, 1)[:, None] * np.ones(runs) for k in range(3)]
    noise = 0.01 * np.random.default_rng(0).standard_normal((7, runs))
    path = {"alpha": alpha, "last": 1000.0} | {f"share_{k + 1}": steps[k] + noise for k in range(3)}
    names = sgd_staircases.STAIRCASES
    return Material(dict.fromkeys(names, path), sizes=dict.fromkeys(names, {"d": [200], "seeds": [runs]}))


def test_the_figure_of_staircases():
    found = staircase_material()
    verdicts = [judge(claim, found) for claim in sgd_staircases.ENTRY.claims]
    assert {verdict.word for verdict in verdicts} == {"simulated only"}
    first = verdicts[0].simulated
    assert first.value == 1.0 and 0 < first.error < 0.3  # four of four
    assert sgd_staircases.in_order(found, "chain", 2, 0).value == 0.0
    assert verdicts[-1].simulated.value == pytest.approx(1.0, abs=0.05)
    labels = texts(sgd_staircases.draw(found, verdicts))
    assert (
        "$z_1$, runs" in labels
        and any(label.endswith("one pass, $d = 200$") for label in labels)
        and "share of the direction learned" in labels
    )


def test_networks_of_the_staircases():
    _, plain = sgd_staircases.STAIRCASES["chain"].pair()
    model, ahead = sgd_staircases.STAIRCASES["ahead"].pair()
    assert type(plain) is sv.OnlineSGD and isinstance(ahead, sv.Extragradient) and model.projections == 3
    assert not ahead.spherical and ahead.loss == "square" and ahead.width == 8


def exit_material():
    rng, values = np.random.default_rng(0), {}
    for exponent in sgd_exit.EXPONENTS:
        d = (100, 400, 1600)
        flow = 1.2 * exponent.scale(np.array(d))
        runs = [one * rng.lognormal(0, 0.2, 20) for one in flow]
        runs[0][0] = np.inf
        values[exponent.order] = {"d": d, "flow": flow, "runs": runs, "constant": 1.2}
    size = {"d": [100, 400, 1600], "seeds": [20] * 3}
    return Material(values, sizes={f"exponent_{k}": size for k in (1, 2, 3)})


def test_the_figure_of_exits():
    found = exit_material()
    verdicts = {claim.name: judge(claim, found) for claim in sgd_exit.ENTRY.claims}
    for name, power in (
        ("l = 1, exponent of d", 1),
        ("l = 2, exponent of d beside log d", 1),
        ("l = 3, exponent of d", 2),
    ):
        assert verdicts[name].computed == pytest.approx(power, abs=1e-9)
        assert verdicts[name].computation == "agrees" and verdicts[name].simulation.word != "differs"
    assert verdicts["l = 3, part of the runs left behind"].simulated.value == pytest.approx(1 / 60)
    assert verdicts["l = 2, samples/(d log d), median of the runs, largest d"].simulated.value == pytest.approx(
        1.2, rel=0.2
    )
    labels = texts(sgd_exit.draw(found, list(verdicts.values())))
    assert {r"$\ell = 2$, $d\,\log d$", "large $d$", "median of samples to leave"} <= set(labels)


def test_rates_of_exits_fall_with_the_dimension_at_exponent_three():
    third = sgd_exit.EXPONENTS[2]
    assert third.pair(100)[1].learning_rate == pytest.approx(0.05) and third.pair(100)[1].start == pytest.approx(0.1)
    assert third.pair()[1].learning_rate == 0.5 and third.scale(10.0) == 100


def test_the_figure_of_parities():
    rng = np.random.default_rng(0)
    runs = {ahead: [rng.lognormal(1.2, 0.3, 16) for _ in range(3)] for ahead in parity_repetition.AHEAD}
    flow = {ahead: np.full(3, 3.3) for ahead in parity_repetition.AHEAD}
    size = {"d": [25, 50, 100], "seeds": [16] * 3}
    found = Material(
        {"d": np.array([25, 50, 100]), "flow": flow, "runs": runs}, sizes={"one pass": size, "look ahead": size}
    )
    verdicts = {claim.name: judge(claim, found) for claim in parity_repetition.ENTRY.claims}
    power = verdicts["one pass, exponent of d"]
    assert power.computed == pytest.approx(2) and abs(power.simulated.value - 2) < 4 * power.simulated.error
    labels = texts(parity_repetition.draw(found, list(verdicts.values())))
    assert {"one pass, flow", r"look ahead, $\rho_0 = 0.1$, median of 16 runs"} <= set(labels)
