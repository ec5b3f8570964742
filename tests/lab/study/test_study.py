"""A study on one projection with small runs: what it finds, what it writes, and how it chooses its effort."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import solvable as sv
from solvable.core.plain import to_json
from solvable.lab.study import study
from solvable.lab.study.compute import compute, kernel_errors
from solvable.lab.study.document import to_html, to_markdown
from solvable.lab.study.figure import draw
from solvable.lab.study.places import AWAY, distance, nearby_change, simulated_grid, visible
from solvable.lab.study.plan import (
    BEYOND,
    QUICK,
    Costs,
    Effort,
    affordable_size,
    exact_grid,
    last_alpha,
)
from solvable.lab.study.report import error_in_words, exponent_in_words, ratio_in_words, report

FILES = ["theory.nc", "simulation.nc", "study.png", "study.pdf", "report.md", "report.html"]
SMALL = {"d": 60, "seeds": 3, "quick": True, "progress": False}


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Phase retrieval, far below and far above its thresholds."""
    return study("abs(z)", out=tmp_path_factory.mktemp("easy") / "new", alpha=[0.2, 1.7], **SMALL)


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    return study("z**2*exp(-z**2)", out=tmp_path_factory.mktemp("hard"), alpha=[0.5, 1.5], **SMALL)


def test_the_files(easy):
    folder = easy.files[0].parent
    assert [path.name for path in easy.files] == FILES
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert (folder / "study.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "study.pdf").read_bytes().startswith(b"%PDF")
    assert sv.Curve.load(folder / "theory.nc").dataset.identical(easy.exact.dataset)
    assert sv.Curve.load(folder / "simulation.nc").dataset.identical(easy.simulated.dataset)


def test_the_curves(easy):
    assert easy.exact.learners == ("bayes-optimal", "amp") and easy.simulated.learners == ("amp",)
    alpha = easy.exact.dataset["alpha"].values
    assert alpha[0] == 0 and alpha[-1] >= 1.6 * easy.thresholds["algorithmic"] > 1.7
    assert easy.simulated.dataset["alpha"].values.tolist() == [0.2, 1.7]
    assert easy.simulated.dataset.attrs["d"] == easy.d == 60 and easy.simulated.dataset.sizes["seed"] == 3
    assert easy.exact.thresholds == dict(easy.thresholds) == dict(sv.thresholds(sv.MultiIndex("abs(z)")))


def test_the_report_says_it_in_words(easy):
    text = (easy.files[0].parent / "report.md").read_text()
    assert text.startswith("# What it takes to learn `abs(z)`\n")
    assert "The target is easy: AMP starts to learn at n = 0.5 d samples." in text
    kernel = "a kernel or random-feature method does not do as well at any power of d that was looked at, up to d^7."
    assert f"AMP learns it completely; {kernel}" in text
    assert (
        re.search(r"\| 1 \| z \| 0\.5 \| \de-\d\d \| easy \|", text)
        and "The target does not change under z -> -z" in text
    )
    assert "| one-pass SGD | d log d | it learns z (leap 2) |" in text
    assert "| AMP | d | generative exponent 2 |" in text
    assert re.search(r"\| algorithmic \| 1\.12847 \|.*\| AMP becomes as good as Bayes-optimal learning \|", text)
    assert re.search(r"\| 0\.2 \| 0\.0000 \| [^|]*0\.\d{4}[^|]* \| 0\.3634 \|.*\| \d of 3 \|", text)
    assert "| 1.7 | 1.0000 |" in text and "![" in text and "](study.png)" in text
    assert "solvable study --d 60 --seeds 3 --alpha 0.2,1.7 -- 'abs(z)'" in text


def test_the_page_carries_its_figure_and_nothing_else(easy):
    folder = easy.files[0].parent
    page = (folder / "report.html").read_text()
    (image,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(image) == (folder / "study.png").read_bytes()
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)


def escaped(found):
    """The report of a study of `where(z < 0.3, z, 2)`, whose text must not become a tag."""
    blocks = report(found, b"")
    page, text = to_html(blocks, "Study"), to_markdown(blocks)
    assert "z < 0.3" not in page and "<code>where(z &lt; 0.3, z, 2)</code>" in page
    assert "# What it takes to learn `where(z < 0.3, z, 2)`" in text
    return text


def test_user_text_is_escaped(easy):
    text = "where(z < 0.3, z, 2)"
    diagnosis = dataclasses.replace(easy.diagnosis, target=text)
    escaped(dataclasses.replace(easy, model=sv.MultiIndex(text), diagnosis=diagnosis))


@pytest.mark.slow
def test_a_trivial_target_and_single_runs_are_said_to_be():
    with ThreadPoolExecutor(1) as pool:
        model = sv.MultiIndex("where(z < 0.3, z, 2)")
        found = compute(model, 60, 1, np.array([1.0]), QUICK, pool, 1, False)
    text = escaped(found)
    assert "The target is trivial" in text and "Two runs at a point are needed" in text and found.agreement == []


@pytest.mark.slow
def test_a_hard_target_is_said_to_be_hard(hard):
    text = (hard.files[0].parent / "report.md").read_text()
    assert "The target is hard" in text and "n of order d^2 is needed" in text and "AMP's curve is flat" in text
    assert "learns nothing up to d^4 samples" in text and "| 1 | z | no alpha |  | hard |" in text
    assert (hard.exact["overlap"].sel(learner="amp") == 0).all()
    assert hard.exact.dataset["alpha"].values.max() >= 1.5 and np.isinf(hard.thresholds["algorithmic"])


@pytest.mark.slow
def test_several_projections(tmp_path):
    found = study("sign(z1*z2)", out=tmp_path, alpha=[1.0, 4.5], **SMALL)
    text = (tmp_path / "report.md").read_text()
    assert "a function of 2 hidden directions" in text and "AMP starts to learn at n = 2.4674 d samples" in text
    assert re.search(r"\| 1 \| z1, z2 \| 2\.4674 \|", text) and "z1 <-> z2" in text.replace("\\", "")
    assert "overlap 1, 2, theory" in text and "| one-pass SGD | d log d | it learns z1, z2 (leap 2) |" in text
    assert "for each direction k" in text
    np.testing.assert_allclose(found.kernel_errors[:3], [1, 1, 1 - 4 / np.pi**2], atol=1e-9)
    assert [one.metric.rstrip("_12") for one in found.agreement] == ["overlap", "generalization_error"]


def computed(effort, d=20, seeds=1, ratios=None):
    """What a study of phase retrieval finds, without figure and files."""
    with ThreadPoolExecutor(1) as pool:
        return compute(sv.MultiIndex("abs(z)"), d, seeds, ratios, effort, pool, 1, False)


def test_thresholds_that_cannot_be_computed_come_from_the_staircase(monkeypatch):
    def fail(model, *learner):
        if learner:
            return sv.thresholds(model, *learner)
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("solvable.lab.study.compute.thresholds", fail)
    found = computed(QUICK, ratios=np.array([0.3]))
    assert found.thresholds == {"weak_recovery": pytest.approx(0.5)}


@pytest.mark.parametrize("computed_anew", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_noise_prior_and_functions_are_in_the_report(easy, computed_anew):
    model = sv.MultiIndex("z", noise=0.25, prior="rademacher")
    diagnosis = dataclasses.replace(easy.diagnosis, target="z", noise=0.25)
    found = dataclasses.replace(easy, model=model, diagnosis=diagnosis)
    if computed_anew:
        with ThreadPoolExecutor(1) as pool:
            found = compute(model, 60, 2, np.array([0.5]), QUICK, pool, 1, False)
    text = to_markdown(report(found, b""))
    assert "`y = z + sqrt(0.25) xi`" in text and "sv.study(MultiIndex(" in text


def test_in_words_and_as_json(easy):
    text = str(easy)
    assert text.startswith("y = abs(z): easy") and "  algorithmic             1.12847" in text
    assert "AMP at d = 60, 3 runs at each point" in text and "written: " in text
    plain = json.loads(json.dumps(to_json(easy.to_dict()), allow_nan=False))
    assert plain["diagnosis"]["verdict"] == "easy" and plain["thresholds"]["information_theoretic"] == 1.0
    assert [found["metric"] for found in plain["agreement"]] == ["overlap", "generalization_error"]


def wrong_by(found, factor):
    """The study with the theory of its runs multiplied."""
    dataset = found.simulated.dataset.copy(deep=True)
    for metric in ("overlap", "generalization_error"):
        dataset[f"{metric}_theory"] = dataset[f"{metric}_theory"] * factor
    return dataclasses.replace(found, simulated=sv.Curve(dataset))


@pytest.fixture(scope="module")
def recovered():
    """Phase retrieval where all of it is found, with as many runs as a study makes."""
    with ThreadPoolExecutor(1) as pool:
        return compute(sv.MultiIndex("abs(z)"), 200, 16, np.array([1.7]), QUICK, pool, 1, False)


def test_a_study_of_a_right_theory_agrees_and_of_a_wrong_one_differs(recovered):
    overlap, error = recovered.agreement
    assert overlap.word == error.word == "agrees" and overlap.deviation == 0.0  # one minus rounding against one
    text = to_markdown(report(recovered, b""))
    assert "The overlap agrees with theory at the one point compared: whatever the runs leave possible is" in text
    assert "Points are at least 51 % away from AMP's thresholds" in text and "All 16 runs settled." in text
    assert "only where a theory that is wrong by 10 % would differ" in text
    for factor in (0.9, 1.1):
        wrong = wrong_by(recovered, factor)
        assert wrong.agreement[0].word == "differs"
        assert "The overlap DIFFERS from theory at 1 of 1 points compared, most at" in to_markdown(report(wrong, b""))


def test_runs_that_did_not_settle_are_in_the_report_and_drawn_apart(recovered):
    dataset = recovered.simulated.dataset.copy(deep=True)
    dataset["overlap_simulation"].values[0, 0, :2] = 0.02
    dataset["converged_simulation"].values[0, 0, :2] = False
    stuck = dataclasses.replace(recovered, simulated=sv.Curve(dataset))
    text = to_markdown(report(stuck, b""))
    assert "2 of 16 runs did not settle" in text and "| 14 of 16 |" in text
    assert "(14 of 16 runs; 2 did not settle, 0.877 with them)" in text and "1.0000 ± 0.0000 (0.8775)" in text
    assert stuck.agreement[0].word == "agrees" and "; crosses: the others, one by one" in text
    left, _ = draw(stuck).axes
    (crosses,) = (line for line in left.lines if line.get_marker() == "x")
    assert np.isfinite(crosses.get_ydata()).sum() == 2 and "not settled" in crosses.get_label()


def test_points_near_a_threshold_are_said_to_be(easy):
    assert "Some points are within 50 % of a threshold" not in to_markdown(report(easy, b""))
    with ThreadPoolExecutor(1) as pool:
        near = compute(sv.MultiIndex("abs(z)"), 30, 2, np.array([0.55]), QUICK, pool, 1, False)
    assert "Some points are within 10 % of a threshold" in to_markdown(report(near, b""))


def test_an_earlier_study_is_replaced(easy, tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).write_text("earlier")
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.setattr("solvable.lab.study.run.compute", lambda *arguments: easy)
    monkeypatch.setattr("solvable.lab.study.figure.image", lambda figure, kind: b"drawn")
    study("abs(z)", out=tmp_path)
    assert all(b"earlier" not in (tmp_path / name).read_bytes() for name in FILES)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.0, 6.0, 10.0, 14.0])
def test_a_study_that_is_killed_leaves_the_earlier_one(easy, tmp_path, seconds):
    before = {path.name: path.read_bytes() for path in easy.files}
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "solvable", "study", "sign(z)", "--quick", "--out", str(tmp_path)]
    run = subprocess.Popen(command, env={"PYTHONPATH": ":".join(sys.path)}, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    run.send_signal(signal.SIGKILL)
    run.wait()
    left = {name: (tmp_path / name).read_bytes() for name in before}
    assert left == before or all(left[name] != before[name] for name in before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 1}, "d = 1 is not allowed"),
        ({"seeds": 0}, "seeds = 0 is not allowed"),
        ({"alpha": [0.0, 1.0]}, "alpha must be one or several positive numbers"),
        ({"alpha": []}, "alpha must be a number or an array of numbers"),
    ],
)
def test_bad_requests(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        study("abs(z)", out=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_must_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out must be a folder, or the name of a new one"):
        study("abs(z)", out=tmp_path / "file")


def test_the_grid_reaches_beyond_the_last_threshold(monkeypatch):
    def last(marks, errors):
        """The last ratio where AMP leaves these errors from the ratio of each on."""
        left = lambda model, alpha: [error for start, error in errors.items() if start <= alpha][-1]  # noqa: E731
        monkeypatch.setattr("solvable.lab.study.plan._error_left", left)
        return last_alpha(sv.MultiIndex("abs(z)"), marks, Costs(0.01, 0.01, 0.3))

    assert last([0.5, 1.13, 1.0], {0.0: 1.0, 1.13: 0.0}) == pytest.approx(BEYOND * 1.13)
    assert last([1.76], {0.0: 1.0, 1.76: 0.7, 4.0: 0.4}) == pytest.approx(1.5 * BEYOND * 1.76)  # little before
    assert last([0.0], {0.0: 1.0, 1.5: 0.4}) == 2.0
    assert last([np.inf, 1.0], {0.0: 1.0}) == BEYOND and last([], {0.0: 1.0}) == 4.0
    grid = exact_grid(1.8, [0.0, 0.5, 1.13, 9.0], np.array([0.123]), 50)
    assert grid[0] == 0 and grid[-1] == 1.8 and np.all(np.diff(grid) > 0)
    assert {0.123, 0.5 * 0.998, 0.5 * 1.002} <= set(grid) and grid.max() == 1.8


def test_what_cannot_be_afforded_is_left_out():
    assert exact_grid(1.8, [0.5], np.array([0.3, 1.5]), 2).tolist() == [0.0, 0.3, 1.5]
    assert len(exact_grid(1.8, [], np.array([0.3, 1.5]), 10**6)) == 162
    assert Costs(amp=0.5, bayes=1.0, run=1.0).thresholds == 30.0


def test_the_work_of_a_study_is_counted_and_not_timed(monkeypatch):
    order = ["abs(z)", "z1 + z2", "sign(z1*z2)", "max(z1, z2)", "z1*z2 + 0.3*z1**3", "where(z1 > 0, z2, z3)"]
    costs = [Costs.of(sv.MultiIndex(text)) for text in order]
    assert [cost.run for cost in costs] == sorted(cost.run for cost in costs)
    assert costs[0] == costs[1] and costs[3] == costs[4]
    late = itertools.count(0.0, 1e6)  # on a machine where nothing ends in time
    for clock in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(late))
    found = computed(dataclasses.replace(QUICK, sizes=((20, 2),), points=2), d=None, seeds=None)
    assert (found.d, found.seeds) == (20, 2) and found.remarks == ()
    assert found.simulated.dataset.sizes["alpha"] == 3 and found.exact.learners == ("bayes-optimal", "amp")
    assert (found.simulated.dataset["status_simulation"] == 0).all()


def test_a_slow_target_is_studied_at_fewer_points_and_says_so(monkeypatch):
    monkeypatch.setattr("solvable.lab.study.compute.Costs.of", lambda model: Costs(amp=9.0, bayes=60.0, run=1.0))
    found = computed(Effort())
    assert found.thresholds == {"weak_recovery": pytest.approx(0.5)} == found.exact.thresholds
    assert found.exact.learners == ("amp",) and found.simulated.dataset.sizes["alpha"] in (2, 4)
    text = to_markdown(report(found, b""))
    assert len(found.remarks) == 3 and all(remark in text for remark in found.remarks)


def test_runs_keep_away_from_the_thresholds_of_amp():
    marks = visible({"weak_recovery": 0.5, "information_theoretic": 1.0, "algorithmic": 1.13, "step_2": np.inf})
    assert marks == [0.5, 1.13]
    for points in (3, 5, 7):
        chosen = simulated_grid(1.8, marks, points)
        assert points - 1 <= len(chosen) <= points + 1 and chosen.min() > 0 and chosen.max() <= 1.8
        assert distance(chosen, marks) > 0.99 * AWAY
    assert len(simulated_grid(4.0, [], 5)) == 5 and distance([1.0], []) == np.inf


def test_runs_are_made_where_theory_changes_little():
    steep = simulated_grid(2.0, [], 1, lambda alpha: abs(alpha - 1.6))
    assert steep == pytest.approx([1.6], abs=0.1)
    assert simulated_grid(2.0, [], 3, lambda alpha: 0.1 if alpha > 1 else 0.9).min() > 1
    exact = sv.learning_curve(sv.MultiIndex("abs(z)"), sv.AMP(), alpha=np.linspace(0, 2, 41))
    change = nearby_change(exact)
    assert change(0.3) == 0 and change(1.6) < 1e-3 and change(0.8) > 0.4


def test_the_size_of_the_runs_is_what_there_is_time_for():
    assert affordable_size(Costs(1, 1, run=0.1), 5, Effort(), workers=2) == (500, 32)
    assert affordable_size(Costs(1, 1, run=1.0), 4, Effort(), workers=2) == (300, 16)
    assert affordable_size(Costs(1, 1, run=1.0), 4, Effort(), workers=4) == (500, 16)
    assert affordable_size(Costs(1, 1, run=100.0), 5, Effort(), workers=2) == (200, 8)


def test_the_kernel_baseline():
    np.testing.assert_allclose(kernel_errors(sv.MultiIndex("z"), 3), [1, 0, 0, 0], atol=1e-12)
    parts = 2 / np.pi * np.array([1.0, 0.0, 1 / 6])
    np.testing.assert_allclose(kernel_errors(sv.MultiIndex("sign(z)"), 3), 1 - np.cumsum([0.0, *parts]), atol=1e-9)
    np.testing.assert_allclose(kernel_errors(sv.MultiIndex("sign(z1*z2)"), 2), [1, 1, 1 - 4 / np.pi**2], atol=1e-9)


def test_words():
    assert (ratio_in_words(0.0), ratio_in_words(0.5), ratio_in_words(np.inf)) == ("any alpha > 0", "0.5", "no alpha")
    assert (error_in_words(0.0), error_in_words(7.4e-12)) == ("", "7e-12")
    assert ratio_in_words(3.68429, 0.1) == "3.68"
    assert exponent_in_words(3.0) == "n of order d^1.5 is needed"
    assert exponent_in_words(np.inf) == "no power of d that was looked at is enough"
