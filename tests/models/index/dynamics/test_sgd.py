"""Descent on samples one after another: known values, runs and theory against each other, and symmetries."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import solvable as sv
from solvable.engine.dynamics import neuron
from solvable.engine.dynamics.chain import chain
from solvable.engine.dynamics.escape import expansion
from solvable.engine.dynamics.flow import follow
from solvable.engine.dynamics.full import full_run
from solvable.lab.named import find_learner, make
from solvable.models.index.dynamics import sgd
from solvable.models.index.dynamics.sgd import move_of

FOLDER = Path(__file__).parents[3] / "reference"
VALUES = json.loads((FOLDER / "dynamics_values.json").read_text())
BLIND = json.loads((FOLDER / "dynamics_blind.json").read_text())

TANH = sv.MultiIndex("tanh(z)")
ONLINE = sv.OnlineSGD(0.5, activation="erf", start=0.05)
CUBIC = sv.MultiIndex("he3(z)/sqrt(6)")
AHEAD = sv.Extragradient(0.3, extrapolation=0.5, loss="correlation", start=0.0)
TIMES = np.array([1.0, 4.0, 12.0])
"""As many everywhere: a flow is compiled for the number of times that it is seen at."""


def overlaps(model: sv.MultiIndex, learner: sv.OnlineSGD, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M (k, p, r) and Q (k, p, p) of theory."""
    found = sv.predict(model, learner, alpha=alpha).order_parameters
    return found["M"], found["Q"]


def runs(model, learner, alpha, d: int, seeds: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """M (s, k, p, r) and Q of runs, by the chain or with the weights, without their metrics."""
    move, rates = move_of(learner)
    counts = np.round(np.atleast_1d(alpha) * d).astype(int)
    rngs = [np.random.default_rng([first, seed]) for seed in range(seeds)]
    starts = [learner.first_overlaps(model.projections, d, rng) for rng in rngs]
    with jax.enable_x64(True):
        if learner.reduced:
            return chain(model.target, float(model.noise), move, rates, d, starts, counts, rngs)
        pairs = zip(starts, rngs, strict=True)
        found = [full_run(model.stream(rng, d), move, rates, start, counts, rng) for start, rng in pairs]
    M, Q = (np.stack(part) for part in zip(*found, strict=True))
    return M, Q


# --- known values


def averages(model: sv.MultiIndex, learner: sv.OnlineSGD, m: float) -> tuple[float, float]:
    """The pull <F (z - m h)> and <F^2> of one neuron on the sphere."""
    move, rates = move_of(learner)
    with jax.enable_x64(True):
        rule = neuron.neuron_rules(model.target, 0.0, move, rates)[0]
        Fz, Fh, FF = (part.item() for part in neuron.average(move, rates, rule, jnp.array([[m]]), jnp.eye(1)))
    return Fz - m * Fh, FF


def measure(entry: dict) -> float:
    model, at, quantity = sv.MultiIndex(entry["target"]), entry["at"], entry["quantity"]
    kind = find_learner(sv.MultiIndex, entry["learner"]["name"])
    learner = make(kind, {k: v for k, v in entry["learner"].items() if k != "name"}, {}, "")
    if quantity in ("M", "Q"):
        alpha = at["alpha"] * np.array([0.25, 0.5, 1.0])
        return float(overlaps(model, learner, alpha)["MQ".index(quantity)][2, 0, 0])
    if quantity in ("pull", "square"):
        return averages(model, learner, at["m"])[("pull", "square").index(quantity)]
    if quantity == "critical_learning_rate":
        return sv.thresholds(model, learner)[quantity]
    if quantity == "growth":
        with jax.enable_x64(True):
            return float(expansion(model.target, 0.0, *move_of(learner)).tensor.item())
    slower = at.get("slower")
    M, Q = runs(model, learner, slower["alpha"] if slower else at["alpha"], at["d"], at["seeds"])
    if slower:
        M, Q = continued(model, learner, slower["learning_rate"], at["alpha"] - slower["alpha"], at["d"], M, Q)
    M, Q = M[:, -1], Q[:, -1]
    if quantity == "mean share":
        return float(np.mean(np.diagonal(np.swapaxes(M, 1, 2) @ np.linalg.pinv(Q) @ M, axis1=1, axis2=2)[:, 1:]))
    return float(np.mean(np.abs(M) if "|" in quantity else M))


def continued(model, learner, rate: float, alpha: float, d: int, M: np.ndarray, Q: np.ndarray) -> tuple:
    """Every run further from where it is, at another rate."""
    found = []
    for seed, (one_M, one_Q) in enumerate(zip(M[:, -1], Q[:, -1], strict=True)):
        further = dataclasses.replace(learner, learning_rate=rate, start=one_M, self_overlap=one_Q)
        found.append(runs(model, further, alpha, d, 1, first=1 + seed))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


LONG = ("c.sim", "c.relu.He4.A", "c.relu.He3.B0", "c.relu.He4.gc.rho0", "c.free", "a.exit", "a.gc.corr")


@pytest.mark.parametrize(
    "entry", [pytest.param(e, id=e["id"], marks=[pytest.mark.slow] * e["id"].startswith(LONG)) for e in VALUES]
)
def test_known_value(entry):
    assert measure(entry) == pytest.approx(entry["value"], abs=entry["tolerance"], rel=0)


def test_every_entry_says_where_it_comes_from():
    assert len({entry["id"] for entry in VALUES}) == len(VALUES)
    for entry in VALUES:
        assert set(entry) == {"id", "what", "quantity", "target", "learner", "at", "value", "tolerance", "source"}
        assert entry["source"].startswith(("closed form", "computed by an independent", "simulated by an independent"))


# --- runs that know nothing of the library


def formula(text: str) -> str:
    """From the notation of people: x^2, 3 z1, max(x, 0) and the variable x."""
    text = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", text.replace("^", "**"))
    return re.sub(r"\bx\b", "z", re.sub(r"^max\((.*), 0\)$", r"relu(\1)", text))


KINDS = {"online": sv.OnlineSGD, "extragradient": sv.Extragradient, "repeated": sv.RepeatedSGD}


def pair(settings: dict) -> tuple[sv.MultiIndex, sv.OnlineSGD]:
    """Model and learner of a blind setting."""
    more = {} if settings["algorithm"] != "extragradient" else {"extrapolation": settings["rho"]}
    if settings.get("similarity") is not None:
        more["similarity"] = settings["similarity"]
    learner = KINDS[settings["algorithm"]](
        settings["gamma"],
        formula(settings["activation"]),
        len(settings["a"]),
        settings["a"],
        settings["loss"],
        settings["M0"],
        settings["Q0"],
        settings["spherical"],
        **more,
    )
    return sv.MultiIndex(formula(settings["target"]), noise=settings["noise"]), learner


QUICK = ("1", "2a", "3a")
"""One neuron: plain, after a look ahead with free norm, and after one with a kink."""
OTHER_LABELS = pytest.mark.skip(reason="copies with noise of their own; similarity=1 is the sample with its label")


def blind() -> list:
    largest = {entry["id"]: entry for entry in sorted(BLIND, key=lambda entry: entry["d"])}
    single = [entry for entry in largest.values() if entry["settings"]["algorithm"] in KINDS]
    marks = {"11b": [OTHER_LABELS]} | {id: [] for id in QUICK}
    return [pytest.param(e, id=e["id"], marks=marks.get(e["id"], [pytest.mark.slow])) for e in single]


@pytest.mark.parametrize("entry", blind())
def test_theory_against_independent_runs(entry):
    """Within 4.5 standard errors at d = 600, beside the uncertainty of the theory and what 20 000 draws leave."""
    model, learner = pair(entry["settings"])
    seen = entry["at"][-3:]
    alpha = np.array([0.0] * (3 - len(seen)) + [at["alpha"] for at in seen], float)
    found = sv.predict(model, learner, alpha=alpha)
    M, Q = found.order_parameters["M"], found.order_parameters["Q"]
    for k, at in enumerate(seen, start=3 - len(seen)):
        assert at["diverged"] == 0
        theory = {"M": M[k], "Q": Q[k], "generalization_error": found["generalization_error"][k]}
        for name, value in theory.items():
            sample = at["metrics"][name]
            mean, error = np.array(sample["mean"]), np.array(sample["standard_error"])
            doubt = found.uncertainty.get(name, np.zeros(len(alpha)))[k] + 1e-3 * (name != "generalization_error")
            assert np.all(np.abs(value - mean) < 4.5 * error + doubt), (name, alpha[k], value, mean, error)


# --- runs against theory, and against the weights themselves


def same_law(first: np.ndarray, second: np.ndarray) -> None:
    """Means and variances of two samples (s, ...) agree within four standard errors."""
    for power in (1, 2):
        centre = (first.mean(0) + second.mean(0)) / 2 if power == 2 else 0.0
        a, b = (first - centre) ** power, (second - centre) ** power
        error = np.sqrt(a.var(0, ddof=1) / len(a) + b.var(0, ddof=1) / len(b))
        assert np.all(np.abs(a.mean(0) - b.mean(0)) < 4 * error + 1e-9), (power, a.mean(0), b.mean(0), error)


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (TANH, ONLINE),
        pytest.param(
            sv.MultiIndex("z1*z2", noise=0.2),
            sv.Extragradient(0.6, "relu(z + 0.5)", 3, extrapolation=0.4, spherical=False),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            sv.MultiIndex("z1*z2", noise=0.2), sv.RepeatedSGD(0.6, "relu(z + 0.5)", 3), marks=pytest.mark.slow
        ),
        pytest.param(CUBIC, sv.Extragradient(0.3, loss="correlation"), marks=pytest.mark.slow),
    ],
    ids=["one neuron", "look ahead", "repeated", "look ahead on the sphere"],
)
def test_the_chain_has_the_law_of_the_weights(model, learner):
    alpha = np.array([0.5, 1.5, 4.0])
    reduced = runs(model, learner, alpha, 60, 400)
    full = runs(model, dataclasses.replace(learner, reduced=False), alpha, 60, 300, first=1)
    for ours, theirs in zip(reduced, full, strict=True):
        same_law(ours, theirs)


def test_runs_come_to_theory_as_they_grow():
    """The mean overlap deviates by a few standard errors and an order 1/d, its scatter shrinks like 1/sqrt(d)."""
    theory = overlaps(TANH, ONLINE, TIMES)[0][:, 0, 0]
    scatter = {}
    for d, seeds in ((60, 400), (480, 100)):
        M = runs(TANH, ONLINE, TIMES, d, seeds)[0][:, :, 0, 0]
        assert np.all(np.abs(M.mean(0) - theory) < 4 * M.std(0, ddof=1) / np.sqrt(seeds) + 1 / d)
        scatter[d] = M.std(0, ddof=1)
    assert np.all(np.abs(np.log(scatter[60] / scatter[480]) - np.log(8) / 2) < 4 * np.sqrt(1 / 800 + 1 / 200) + 0.1)


def test_one_run_is_seen_at_every_alpha_and_does_not_depend_on_its_company():
    several = sv.simulate(TANH, ONLINE, alpha=TIMES, d=30, seed=2)
    alone = sv.simulate(TANH, ONLINE, alpha=4.0, d=30, seed=2)
    assert alone["cosine"] == several["cosine"][1] and several.path == "alpha"
    np.testing.assert_array_equal(runs(TANH, ONLINE, 4.0, 30, 1)[0][0], runs(TANH, ONLINE, TIMES, 30, 3)[0][0, 1:2])


def test_a_curve_makes_one_run_a_seed(monkeypatch):
    calls = []

    def counted(*args):
        calls.append((args[6].tolist(), len(args[7])))
        return chain(*args)

    monkeypatch.setattr(sgd, "chain", counted)
    sv.learning_curve(TANH, ONLINE, alpha=TIMES, d=30, seeds=3)
    assert sum(seeds for _, seeds in calls) == 3 and all(counts == [30, 120, 360] for counts, _ in calls)


# --- theory alone


def test_at_the_start_nothing_has_moved():
    alpha = np.array([0.0, 1.0, 4.0])
    found = sv.predict(TANH, ONLINE, alpha=alpha)
    assert found["cosine"][0] == pytest.approx(0.05, abs=1e-15)
    M, Q = runs(TANH, ONLINE, alpha, 30, 2)
    assert np.all(M[:, 0] == 0.05) and np.all(Q[:, 0] == 1.0)
    full = runs(TANH, dataclasses.replace(ONLINE, reduced=False), alpha, 30, 2)
    np.testing.assert_allclose(full[0][:, 0], 0.05, atol=1e-12)


def test_the_same_point_of_another_grid_is_the_same():
    first = sv.predict(TANH, ONLINE, alpha=TIMES)
    second = sv.predict(TANH, ONLINE, alpha=np.array([12.0, 4.0, 2.0]))
    for metric in first.metrics:
        for here, there in ((1, 1), (2, 0)):
            doubt = first.uncertainty[metric][here] + second.uncertainty[metric][there]
            assert abs(first[metric][here] - second[metric][there]) <= doubt, metric


@pytest.mark.parametrize("change", [{"extrapolation": 0.0}, {"similarity": 0.0}])
def test_without_a_look_ahead_it_is_plain_descent(change):
    learner = sv.Extragradient(0.5, activation="erf", start=0.05, **change)
    np.testing.assert_array_equal(overlaps(TANH, learner, TIMES)[0], overlaps(TANH, ONLINE, TIMES)[0])
    np.testing.assert_array_equal(runs(TANH, learner, TIMES, 30, 2)[0], runs(TANH, ONLINE, TIMES, 30, 2)[0])


def test_labels_of_the_other_sign_turn_odd_neurons_round():
    opposite = overlaps(sv.MultiIndex("-tanh(z)"), dataclasses.replace(ONLINE, start=-0.05), TIMES)[0]
    np.testing.assert_allclose(opposite, -overlaps(TANH, ONLINE, TIMES)[0], rtol=1e-7)  # that of the flow is 1e-8


@pytest.mark.slow
def test_the_directions_may_be_turned():
    """z1 z2 = (u1^2 - u2^2)/2 in u = (z1 + z2, z1 - z2)/sqrt(2)."""
    R = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    found = []
    for target, start in (("z1*z2", [0.3, 0.2]), ("(z1**2 - z2**2)/2", R @ [0.3, 0.2])):
        learner = sv.OnlineSGD(0.3, "relu(z + 0.5)", start=start)
        found.append(sv.predict(sv.MultiIndex(target, noise=0.1), learner, alpha=TIMES))
    M, turned = (one.order_parameters["M"] for one in found)
    np.testing.assert_allclose(turned, M @ R, atol=1e-6)
    for metric in ("cosine", "norm", "generalization_error"):
        doubt = found[0].uncertainty[metric] + found[1].uncertainty[metric]
        assert np.all(np.abs(found[0][metric] - found[1][metric]) < doubt)


COMMITTEE = sv.MultiIndex("erf(z1/sqrt(2)) + 0.7*erf(z2/sqrt(2))", noise=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("model", [COMMITTEE, sv.MultiIndex("z1*z2")], ids=["closed", "sampled"])
def test_neurons_may_change_places(model):
    """In closed averages exactly, at Sobol points within the uncertainty."""
    start, swap = np.array([[0.3, 0.1], [-0.1, 0.2]]), [1, 0]
    found = [
        sv.predict(model, sv.OnlineSGD(0.6, "erf", 2, [0.7, 0.7], start=rows), alpha=TIMES)
        for rows in (start, start[swap])
    ]
    tolerance = 1e-9 if model == COMMITTEE else 2e-3
    np.testing.assert_allclose(
        found[1].order_parameters["M"], found[0].order_parameters["M"][:, swap], rtol=0, atol=tolerance
    )
    for metric in found[0].metrics:
        doubt = found[0].uncertainty[metric] + found[1].uncertainty[metric]
        assert np.all(np.abs(found[0][metric] - found[1][metric]) <= doubt), metric


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (CUBIC, AHEAD),
        pytest.param(TANH, ONLINE, marks=pytest.mark.slow),
        pytest.param(sv.MultiIndex("sign(z)", noise=0.3), sv.OnlineSGD(1.0, start=0.1), marks=pytest.mark.slow),
        pytest.param(
            sv.MultiIndex("sign(z1*z2) + 0.5*z1"), sv.RepeatedSGD(0.3, "erf", start=[0.2, 0.1]), marks=pytest.mark.slow
        ),
        pytest.param(sv.MultiIndex("abs(z)"), sv.RepeatedSGD(0.4, "abs", start=0.3), marks=pytest.mark.slow),
    ],
    ids=["look ahead", "smooth", "jump", "two directions", "repeated kinks"],
)
def test_the_uncertainty_covers_the_error(model, learner):
    """That of the cosine, against rules of 1.6 times as many nodes each way."""
    found = sv.predict(model, learner, alpha=TIMES)
    move, rates = move_of(learner)
    with jax.enable_x64(True):
        rule = neuron._rule(model.target, float(model.noise), move, rates, 1.6)
        path = follow(neuron.average, move, rates, [rule], learner.first_overlaps(model.projections), TIMES)
    M = path.M[:, 0]
    finer = M[:, 0] if model.projections == 1 else np.linalg.norm(M, axis=1) / np.sqrt(model.projections)
    finer = np.abs(finer) if model.projections == 1 and model.hides_sign() else finer
    assert np.all(np.abs(found["cosine"] - finer) <= found.uncertainty["cosine"])


def test_a_look_ahead_finds_what_one_pass_does_not():
    """A rectified neuron is not pulled at all by He_3 in one pass."""
    assert sv.thresholds(CUBIC, sv.OnlineSGD(0.3, loss="correlation"))["escapes"] == 0
    assert abs(overlaps(CUBIC, AHEAD, TIMES)[0][2, 0, 0]) > 0.15


def test_exit_from_zero_is_that_of_the_flow():
    told = sv.thresholds(CUBIC, AHEAD)
    assert (told["exit_power"], told["exit_log"], told["critical_learning_rate"]) == (1, 0, np.inf)
    cosine = sv.predict(CUBIC, AHEAD, alpha=told["exit_constant"])["cosine"]
    assert abs(cosine) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.slow
def test_near_copies_are_between_fresh_samples_and_the_same():
    found = [
        abs(overlaps(CUBIC, dataclasses.replace(AHEAD, similarity=s), TIMES)[0][2, 0, 0]) for s in (0, 0.4, 0.8, 1)
    ]
    # Those between are averages over Sobol points, known to some 0.01, and small: 0.005, where 40 runs have 0.008(3).
    assert found[0] < 1e-9 and np.all(np.diff(found) > 1e-3)


@pytest.mark.parametrize("rate", [1e3, 1e6, 1e200])
def test_a_rate_at_which_all_is_forgotten_too_often_to_follow_is_refused(rate):
    """On the sphere M falls at the rate gamma^2 <F^2>/2, which no explicit step can be longer than."""
    with pytest.raises(ValueError, match=r"learning_rate = .* is not allowed: .* forget"):
        sv.predict(sv.MultiIndex("tanh(z)"), sv.OnlineSGD(rate), alpha=1.0)


def test_a_huge_rate_diverges_off_the_sphere():
    found = sv.predict(sv.MultiIndex("tanh(z)"), sv.OnlineSGD(1e6, spherical=False), alpha=1.0, throw=False)
    assert found.status == sv.Status.DIVERGED
