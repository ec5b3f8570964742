"""The figures of the literature: what an entry is, verdicts, estimators, and a toy entry from end to end."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from toys import ridge as toy

import solvable as sv
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, onset, runs_of
from solvable.lab.figures.drawing import learning_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material, Source
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.gallery import page, write_gallery
from solvable.lab.figures.registry import all_entries, find_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import Verdict, computed_text, judge

SOURCE = Source("Nobody", "Nothing", 1900, "nowhere")
WANTED = {
    "aim-hardmax",
    "aim-softmax",
    "aim-two-layers",
    "attention-untied-threshold",
    "binary-perceptron",
    "committee",
    "compressed-sensing",
    "deep-attention-descent",
    "deep-attention-layers",
    "grand-staircase",
    "hierarchy",
    "parity-threshold",
    "phase-retrieval",
    "spectral-phase-retrieval",
    "ssi-escape",
}


def test_the_entries_are_found():
    assert set(all_entries()) >= WANTED and list(all_entries()) == sorted(all_entries())
    assert [entry.id for entry in find_entries("committee")] == ["committee"]
    assert len(find_entries("all")) == len(all_entries())
    with pytest.raises(ValueError, match="id = 'nothing' is not allowed: id must be all, or one of: aim-hardmax"):
        find_entries("nothing")


@pytest.mark.parametrize("entry", all_entries().values(), ids=lambda entry: entry.id)
def test_entries_say_what_they_are(entry):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.id) and entry.title and entry.shows.endswith(".")
    assert len({claim.name for claim in entry.claims}) == len(entry.claims) > 0
    for claim in entry.claims:
        assert (claim.source is None) == (claim.published is None)
        assert claim.source is None or claim.source in entry.sources
        assert claim.published is None or claim.exact is not None or math.isfinite(float(claim.published))
    # A figure may be of a paper that prints no number of it.
    quoted = {claim.source for claim in entry.claims if claim.source}
    assert entry.sources and (not quoted or quoted == set(entry.sources))


def test_sources_are_cited_in_full():
    known = [value for value in vars(sources).values() if isinstance(value, Source)]
    assert len(known) >= 8 and sources.TROIANI.short == "Troiani et al. 2024"
    assert sources.WU_VERDU.short == "Wu and Verdú 2010" and SOURCE.short == "Nobody 1900"
    for source in known:
        assert re.fullmatch(r".+, .+ \((19|20)\d\d\), .+", str(source))
        assert "arXiv:" not in source.where or re.search(r"arXiv:\d{4}\.\d{4,5}", source.where)


def claim(published: str | None = "2.467", **given):
    return Claim("threshold", published, SOURCE if published else None, lambda found: 0.0, **given)


def test_tolerances_are_half_a_unit_of_the_last_digit_unless_told():
    assert claim("0.575").allowed == pytest.approx(5e-4) and claim("2.04").allowed == pytest.approx(5e-3)
    assert claim("3").allowed == 0.5 and claim("3", tolerance=0.1).allowed == 0.1
    assert claim("pi^2/4", exact=math.pi**2 / 4).allowed == pytest.approx(1e-5 * math.pi**2 / 4)
    assert claim("infinite", exact=math.inf).allowed == 0 and claim("infinite", exact=math.inf).value == math.inf


@pytest.mark.parametrize(
    ("made", "computed", "simulated", "line", "expected"),
    [
        (claim(), 2.4674, Estimate(2.49, 0.03), "published 2.467, computed 2.46740, simulated 2.49(3): agrees", True),
        (claim(), 2.4674, None, "published 2.467, computed 2.46740: agrees", True),
        (claim(), 2.4676, None, "published 2.467, computed 2.46760: differs", False),
        (claim(), math.nan, None, "published 2.467, computed nan: differs", False),
        (
            claim(),
            2.4674,
            Estimate(2.6, 0.03),
            "published 2.467, computed 2.46740, simulated 2.60(3): agrees; simulation differs",
            True,
        ),
        (
            claim(),
            2.4674,
            Estimate(math.nan, math.nan),
            "published 2.467, computed 2.46740, simulated undetermined: agrees; too few runs to say",
            True,
        ),
        (
            claim("0.575"),
            0.57517,
            Estimate(0.51, 0.1),  # would agree with 0.3 as well
            "published 0.575, computed 0.57517, simulated 0.51(10): agrees; too few runs to say",
            True,
        ),
        (
            claim(None),
            0.355411,
            Estimate(0.36, 0.01, freedom=2),  # three runs: 9.9 standard errors
            "not published, computed 0.355411, simulated 0.360(10): too few runs to say",
            True,
        ),
        (
            claim(None),
            1.1,
            Estimate(1.0, 0.01, 15),
            "not published, computed 1.10000, simulated 1.000(10): simulation differs",
            True,
        ),
        (
            claim(None),
            1.02,
            Estimate(1.0, 0.005, 15, shift=0.02),
            "not published, computed 1.02000, simulated 1.000(5): agrees",
            True,
        ),
        (
            claim("2.04", known_wrong="Two codes say so."),
            2.05238,
            None,
            "published 2.04, computed 2.0524: differs, as documented",
            True,
        ),
        (
            claim("2.04", known_wrong="Two codes say so."),
            2.05238,
            Estimate(2.5, 0.1),
            "published 2.04, computed 2.0524, simulated 2.50(10): differs, as documented; simulation differs",
            True,
        ),
        (claim("2.05", known_wrong="Two codes say so."), 2.0524, None, "published 2.05, computed 2.0524: agrees", True),
        (claim("1/2", exact=0.5), 0.5 + 1e-7, None, "published 1/2 = 0.5, computed 0.500000: agrees", True),
        (claim("1/2", exact=0.5), 0.50002, None, "published 1/2 = 0.5, computed 0.500020: differs", False),
        (claim("4", exact=4.0), 4.0, None, "published 4, computed 4: agrees", True),
        (claim("4", exact=4.0), 3.0, None, "published 4, computed 3: differs", False),
        (claim("infinite", exact=math.inf), math.inf, None, "published infinite, computed inf: agrees", True),
        (claim("infinite", exact=math.inf), 12.0, None, "published infinite, computed 12: differs", False),
        (
            claim(None),
            0.355411,
            Estimate(0.36, 0.01),
            "not published, computed 0.355411, simulated 0.360(10): agrees",
            True,
        ),
    ],
)
def test_verdicts(made, computed, simulated, line, expected):
    verdict = Verdict(made, computed, simulated)
    assert verdict.line("figure", alone=True) == f"figure: {line}"
    assert verdict.line("figure") == f"figure, threshold: {line}"
    assert verdict.expected == expected and verdict.to_dict()["expected"] == expected


def test_what_only_runs_tell_is_not_judged():
    made = Claim("share", None, None, None, lambda found: Estimate(0.5, 0.1))
    verdict = judge(made, Material({}))
    assert verdict.line("figure", alone=True) == "figure: not published, simulated 0.50(10): simulated only"
    assert verdict.expected and verdict.simulation is None and verdict.to_dict()["computed"] is None
    assert computed_text(verdict) == ""


def toy_entry(published="0.85"):
    def gather(effort):
        runs = Simulation("ridge", [toy.Ridge()], [0.5, 1.5], effort.pick((20,), (20, 30)), effort.pick((3,), (3, 2)))
        ridge, alpha = [toy.Ridge()], np.linspace(0.2, 2.0, 7)
        found = gather_curves(toy.Regression(), ridge, alpha, [runs], effort)
        return dataclasses.replace(
            found, values={"overlap": sv.predict(toy.Regression(), toy.Ridge(), alpha=2.0)["overlap"]}
        )

    def simulate(found):
        last = runs_of(found, "ridge", "overlap")[-1].values[-1]
        return Estimate(float(np.mean(last)), 0.1)

    return Entry(
        id="toy-entry",
        title="Ridge regression",
        sources=(SOURCE,),
        shows="An overlap.",
        claims=(Claim("overlap at 2", published, SOURCE, lambda found: found.values["overlap"], simulate),),
        gather=gather,
        draw=lambda found, verdicts: learning_figure(
            found.curves["theory"], [largest(found, "ridge")], "overlap", verdicts
        ),
    )


@pytest.fixture(autouse=True, scope="module")
def _no_thresholds():
    """The toy model has none."""
    import solvable.verbs.thresholds

    original = solvable.verbs.thresholds.thresholds

    def thresholds(model, *learner):
        return {} if isinstance(model, toy.Regression) else original(model, *learner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvable.verbs.thresholds, "thresholds", thresholds)
        yield


@pytest.fixture(scope="module")
def overlap():
    return sv.predict(toy.Regression(), toy.Ridge(), alpha=2.0)["overlap"]


@pytest.fixture(scope="module")
def right(overlap, tmp_path_factory):
    """An entry whose number is right, in all formats."""
    return reproduce(toy_entry(f"{overlap:.3f}"), tmp_path_factory.mktemp("toy") / "new", quick=True, progress=False)


def test_an_entry_from_end_to_end(right, overlap):
    found, folder = right, right.files[0].parent
    (line,) = found.lines
    assert (
        line.startswith(f"toy-entry: published {overlap:.3f}, computed {overlap:.5f}, simulated 0.") and found.expected
    )
    names = {"toy-entry.png", "toy-entry.pdf", "toy-entry.svg", "toy-entry.json"}
    curves = {"toy-entry_theory.nc", "toy-entry_ridge_d20.nc"}
    assert {path.name for path in folder.iterdir()} == names | curves == {path.name for path in found.files}
    assert (folder / "toy-entry.png").read_bytes().startswith(b"\x89PNG")
    assert sv.Curve.load(folder / "toy-entry_ridge_d20.nc").dataset.sizes["seed"] == 3

    written = json.loads((folder / "toy-entry.json").read_text())
    assert written["simulations"] == {"ridge": {"d": [20], "seeds": [3]}} and written["version"] == sv.__version__
    (verdict,) = written["claims"]
    assert verdict["computed"] == overlap and verdict["verdict"].startswith("agrees")
    assert verdict["simulation"] == "too few runs to say" and verdict["source"] == str(SOURCE)
    assert written["quick"] and written["expected"] and written["seconds"] >= 0 and "toy-entry.png" in written["files"]


@pytest.fixture
def one_format(monkeypatch):
    """Only PNG, which is quicker."""
    monkeypatch.setattr("solvable.lab.figures.run.FORMATS", ("png",))


@pytest.fixture
def no_format(monkeypatch):
    """No picture, where the other files are meant."""
    monkeypatch.setattr("solvable.lab.figures.run.FORMATS", ())


def test_the_same_entry_gives_the_same_files(right, tmp_path):
    again = reproduce(right.entry, tmp_path, quick=True, progress=False)
    for one, other in zip(right.files, again.files, strict=True):
        if one.suffix in (".png", ".pdf", ".svg"):
            assert one.read_bytes() == other.read_bytes()


def test_a_wrong_number_is_not_expected(tmp_path, no_format):
    found = reproduce(toy_entry("0.1"), tmp_path, quick=True, progress=False)
    assert not found.expected and ": differs; " in found.lines[0]


def test_a_run_at_other_sizes_replaces_the_files_of_the_last(tmp_path, no_format):
    reproduce(toy_entry(), tmp_path, quick=False, progress=False)
    assert (tmp_path / "toy-entry_ridge_d30.nc").exists()
    (tmp_path / "other_theory.nc").write_text("not ours")
    reproduce(toy_entry(), tmp_path, quick=True, progress=False)
    assert not (tmp_path / "toy-entry_ridge_d30.nc").exists() and (tmp_path / "other_theory.nc").exists()


def test_a_run_that_fails_leaves_the_earlier_files_whole(tmp_path, monkeypatch, no_format):
    reproduce(toy_entry(), tmp_path, quick=True, progress=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(self, path):
        path.write_text("half")
        raise OSError("no space left")

    monkeypatch.setattr("solvable.lab.figures.run.save_dataset", full)
    with pytest.raises(OSError, match="no space left"):
        reproduce(toy_entry("0.1"), tmp_path, quick=True, progress=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="out must be a folder"):
        reproduce(toy_entry(), tmp_path / "taken")


def test_pictures_have_labels_and_the_threshold_of_the_runs():
    entry = toy_entry()
    material = entry.gather(Effort(True, progress=False))
    verdict = Verdict(entry.claims[0], 1.0, Estimate(1.0, 50.0))
    (ax,) = entry.draw(material, [verdict]).axes
    labels = ax.get_legend_handles_labels()[1]
    assert any("theory" in label for label in labels) and any("d = 20" in label for label in labels)
    assert "threshold of the runs, 3 s.e." in labels and ax.get_xlim()[1] < 3  # a wide error does not stretch the axis
    (bare,) = entry.draw(material, [Verdict(entry.claims[0], 1.0, Estimate(math.nan, math.nan))]).axes
    assert "threshold of the runs, 3 s.e." not in bare.get_legend_handles_labels()[1]


def test_the_gallery_shows_figures_verdicts_and_commands(right, tmp_path, one_format):
    wrong = toy_entry("0.1")
    known = dataclasses.replace(wrong, claims=[dataclasses.replace(wrong.claims[0], known_wrong="The paper erred.")])
    found = [right, reproduce(known, tmp_path, quick=True, progress=False)]
    path = write_gallery(found, tmp_path)
    text = path.read_text()
    assert path.name == "index.md" and text == page(found) and text.count("![Ridge regression](toy-entry.png)") == 2
    assert "solvable reproduce toy-entry --out out --quick" in text and "Runs: ridge at d = 20 (3 a point)." in text
    assert (
        "| overlap at 2 | 0.1 | Nobody 1900 |" in text
        and "differs, as documented" in text
        and "The paper erred." in text
    )
    assert f"- {SOURCE}." in text


def test_the_onset_of_a_theory_by_bisection():
    found = onset(sv.MultiIndex("abs(z)"), sv.Spectral(), "squared_overlap", 0.1, 2.0)
    assert found == pytest.approx(0.5, abs=5e-6)


@pytest.mark.slow
@pytest.mark.parametrize("entry", all_entries().values(), ids=lambda entry: entry.id)
def test_each_entry_agrees_or_differs_as_documented(entry, tmp_path):
    """Made quickly; so few runs may leave a value undetermined, and are then too few to say."""
    for verdict in reproduce(entry, tmp_path, quick=True, progress=False).verdicts:
        assert verdict.computation != "differs", verdict.line(entry.id)
        word = None if verdict.simulation is None else verdict.simulation.word
        assert word != "differs", verdict.line(entry.id)
        determined = verdict.simulated is None or math.isfinite(verdict.simulated.error)
        assert determined or word in (None, "too few runs to say"), verdict.line(entry.id)
