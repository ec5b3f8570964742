"""A curve judges itself, is kept in a file and notices damage."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from toys import ridge as toy

import solvable as sv
from solvable.lab.curve.files import CurveFileError

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
GRID = np.array([0.5, 1.0, 2.0])


@pytest.fixture(scope="module")
def curve():
    return sv.learning_curve(MODEL, [RIDGE, toy.Mean()], alpha=GRID, d=60, seeds=6)


def with_runs(curve, runs):
    """The curve with the ridge's simulated overlaps replaced."""
    dataset = curve.dataset.copy(deep=True)
    dataset["overlap_simulation"].values[0] = runs
    return sv.Curve(dataset)


def made(curve, mean, spread=0.0, count=6, metric="overlap"):
    """The curve with runs of the ridge around a mean at each point."""
    noise = spread * np.random.default_rng(0).standard_normal((len(GRID), count))
    dataset = curve.dataset.isel(seed=np.zeros(count, int)).assign_coords(seed=np.arange(count)).copy(deep=True)
    dataset[f"{metric}_simulation"].values[0] = np.asarray(mean)[:, None] + noise
    return sv.Curve(dataset)


def with_theory(curve, factor):
    """The curve with its theory multiplied."""
    dataset = curve.dataset.copy(deep=True)
    dataset["overlap_theory"] = dataset["overlap_theory"] * factor
    return sv.Curve(dataset)


def test_agreement_gives_its_word_and_the_point_that_decides(curve):
    theory = curve["overlap"].values[0]
    found = made(curve, theory, 0.01, 16).agreement("overlap")
    assert found.word == "agrees" and found.words == {"agrees": 3, "differs": 0, "too few runs to say": 0}
    assert (found.metric, found.learner, found.points, found.runs, found.aside) == ("overlap", "ridge", 3, 16, 0)
    assert 0 < found.within < 0.1 and found.standard_error == pytest.approx(0.01 / 4, rel=0.5)
    said = str(found)
    assert said.startswith("overlap: agrees with theory at 3 points, within ") and "at ridge, alpha = " in said


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_theory_that_is_wrong_by_ten_percent_differs(curve, factor):
    right = made(curve, curve["overlap"].values[0], 0.02, 16)
    found = with_theory(right, factor).agreement("overlap")
    assert found.word == "differs" and found.deviation > 4
    assert str(found).startswith("overlap: differs from theory at 3 of 3 points, most at ridge, alpha = ")


def test_few_scattered_runs_are_too_few_to_say(curve):
    few = made(curve, curve["overlap"].values[0], 0.1, 3)
    for factor in (0.9, 1.0, 1.1):
        found = with_theory(few, factor).agreement("overlap")
        assert found.word == "too few runs to say" and found.words["agrees"] == found.words["differs"] == 0
    assert "overlap: too few runs to say at 3 of 3 points, such as ridge, alpha = " in str(found)
    assert re.fullmatch(r"3 runs cannot tell a theory that is wrong by 0\.\d+: about \d\d\d? would", found.reason)


def test_points_that_agree_are_said_before_those_with_too_few_runs(curve):
    exact = curve["overlap"].values[0]
    runs = exact[:, None] + np.array([[0.01], [0.01], [0.5]]) * np.random.default_rng(0).standard_normal((3, 16))
    mixed = made(curve, exact, 0.01, 16)
    mixed.dataset["overlap_simulation"].values[0] = runs
    said = "overlap: agrees with theory at 2 of 3 points and differs at none; too few runs to say at 1, such as ridge, "
    assert str(mixed.agreement("overlap")).startswith(said)


def test_agreement_without_spread_knows_what_can_be_resolved(curve):
    """A run of message passing ends within its tolerance: 1 - 1e-6 against 1 was 29675 standard errors."""
    exact = curve["overlap"].values[0]
    found = made(curve, exact * (1 - 1e-6), 1e-12).agreement("overlap", resolution=0.0)
    assert found.word == "agrees" and found.deviation == 0.0
    off = made(curve, exact + np.array([0, 0.06, 0])).agreement("overlap", resolution=0.0)
    assert off.word == "differs" and off.deviation == np.inf and off.at == {"alpha": 1.0} and off.words["agrees"] == 2
    dataset = made(curve, exact + 0.06).dataset
    dataset["overlap_uncertainty"] = xr.full_like(dataset["overlap_theory"], 0.07)
    unsure = sv.Curve(dataset).agreement("overlap")
    assert unsure.word == "too few runs to say" and "theory or algorithm is not exact enough" in unsure.reason


def test_the_tolerance_of_a_learner_is_part_of_the_resolution(curve):
    exact = curve["overlap"].values[0]
    close = made(curve, exact - 5e-4)
    assert close.agreement("overlap", resolution=0.0).word == "differs"
    learners = [described | {"tolerance": 1e-3} for described in json.loads(close.dataset.attrs["learners"])]
    loose = sv.Curve(close.dataset.assign_attrs(learners=json.dumps(learners)))
    assert loose.agreement("overlap", resolution=0.0).word == "agrees"


def test_where_theory_is_zero_a_part_of_the_scale_is_what_counts(curve):
    """An unlearned direction has a cosine of about 1/sqrt(d) with the truth, which is no difference."""
    nothing = with_theory(curve, 0.0)
    nothing.dataset.attrs["d"] = 900
    assert made(nothing, np.full(3, 0.03), 0.01, 16).agreement("overlap").word == "agrees"
    assert made(nothing, np.full(3, 0.13), 0.01, 16).agreement("overlap").word == "differs"
    small = curve.dataset.copy(deep=True)
    small["estimation_error_theory"] *= 0.0
    for error, word in ((5e-4, "agrees"), (0.05, "differs")):
        assert (
            made(sv.Curve(small), np.full(3, error), 1e-5, 6, "estimation_error").agreement("estimation_error").word
            == word
        )


def test_runs_that_did_not_settle_are_counted_and_both_means_are_there(curve):
    theory = curve["overlap"].values[0]
    all_runs = made(curve, theory, 0.01, 16)
    dataset = all_runs.dataset.copy(deep=True)
    dataset["overlap_simulation"].values[0, 1, :2] = 0.0
    dataset["converged_simulation"].values[0, 1, 0] = False
    dataset["consistent_simulation"] = dataset["converged_simulation"].astype(float) * np.nan
    dataset["consistent_simulation"].values[0, 1, 1] = 0.0
    stuck = sv.Curve(dataset)
    assert int((~stuck.settled).sum()) == 2 and not stuck.settled.values[0, 1, :2].any()
    mean, error, count = (part.values[0, 1] for part in stuck.summary("overlap"))
    every, wider, number = (part.values[0, 1] for part in stuck.summary("overlap", settled=False))
    assert (count, number) == (14, 16) and every == pytest.approx(14 / 16 * mean) and wider > 5 * error
    found = stuck.agreement("overlap")
    assert found.word == "agrees" and (found.total, found.total_aside) == (48, 2)
    assert "2 of 48 runs did not settle and are set aside" in str(found)
    there = stuck.select(alpha=1.0).agreement("overlap")
    assert (there.runs, there.aside) == (14, 2) and there.every == pytest.approx(every)
    assert f"(14 of 16 runs; 2 did not settle, {every:.3g} with them)" in str(there)


def test_agreement_skips_missing_runs_and_unsolved_points(curve):
    runs = curve.simulation("overlap").values[0].copy()
    runs[0] = np.nan
    runs[1, 1:] = np.nan
    found = with_runs(curve, runs).agreement("overlap")
    assert found.points == 1 and found.at == {"alpha": 2.0}
    dataset = curve.dataset.copy(deep=True)
    dataset["status"].values[:] = sv.Status.MAX_STEPS
    with pytest.raises(ValueError, match="nothing to compare for overlap: no point has both"):
        sv.Curve(dataset).agreement("overlap")


def test_agreement_needs_runs_and_a_known_metric(curve):
    with pytest.raises(ValueError, match="nothing to compare for overlap"):
        sv.learning_curve(MODEL, RIDGE, alpha=GRID).agreement()
    with pytest.raises(ValueError, match="nothing to compare for overlap"):
        sv.learning_curve(MODEL, RIDGE, alpha=GRID, d=10, seeds=1).agreement()
    with pytest.raises(ValueError, match="metric = 'beauty' is not allowed: metric must be one of: overlap"):
        curve.agreement("beauty")


def test_reading_one_metric(curve):
    assert isinstance(curve["overlap"], xr.DataArray)
    with pytest.raises(KeyError, match="no theory of 'beauty'; there is theory of: overlap, estimation_error"):
        curve["beauty"]
    with pytest.raises(KeyError, match="no simulation of 'overlap'; there is simulation of: nothing"):
        sv.learning_curve(MODEL, RIDGE, alpha=GRID).simulation("overlap")


def test_as_a_table(curve):
    frame = curve.to_dataframe()
    assert len(frame) == 2 * 3 * 6
    assert {"learner", "alpha", "seed", "overlap_theory", "overlap_simulation", "status"} <= set(frame.columns)


def test_in_words(curve):
    assert repr(curve) == (
        "Curve(regression; ridge, mean; alpha from 0.5 to 2 (3); d = 60, 6 seeds; overlap, estimation_error)"
    )
    assert curve.definitions["estimation_error"] == "|w_hat - w*|^2 / d"


def test_saved_and_loaded(curve, tmp_path):
    path = curve.save(tmp_path / "curve.nc")
    again = sv.Curve.load(path)
    assert again.dataset.identical(curve.dataset) and again.thresholds == curve.thresholds
    assert [p.name for p in tmp_path.iterdir()] == ["curve.nc"]
    assert again.save(path) == path and sv.Curve.load(path).dataset.identical(curve.dataset)


def test_a_file_is_what_its_name_says(curve, tmp_path):
    table = pd.read_csv(curve.save(tmp_path / "c.csv"))
    assert list(table) == list(curve.to_dataframe()) and len(table) == len(curve.to_dataframe())
    np.testing.assert_allclose(table["overlap_theory"], curve.to_dataframe()["overlap_theory"], rtol=1e-12)
    for name in ("c.h5", "c.xlsx", "c.png", "c"):
        with pytest.raises(ValueError, match=r"path must be a file name that ends in \.nc or \.csv"):
            curve.save(tmp_path / name)
    with pytest.raises(ValueError, match="path must be in a folder that exists"):
        curve.save(tmp_path / "missing" / "c.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["c.csv"]


def test_the_default_metric_is_one_that_all_learners_share(curve):
    """A second learner without an overlap: the two are compared by their errors."""
    data = curve.dataset.copy(deep=True)
    assert curve.default_metric == "overlap"
    for name in ("overlap_theory", "overlap_simulation"):
        data[name].loc[{"learner": "mean"}] = np.nan
    assert sv.Curve(data).default_metric == "estimation_error"
    assert sv.Curve(data).select(learner="ridge").default_metric == "overlap"
    assert sv.Curve(data.assign(cosine_theory=data["overlap_theory"])).default_metric == "estimation_error"
    both = data.assign(cosine_theory=curve.dataset["overlap_theory"], squared_overlap_simulation=data["overlap_theory"])
    both["cosine_theory"].loc[{"learner": "mean"}] = 0.5
    assert sv.Curve(both).default_metric == "cosine"


def test_every_array_has_a_checksum(curve, tmp_path):
    h5py = pytest.importorskip("h5py")
    curve.dataset["failed"] = (("learner", "alpha", "seed"), np.full((2, 3, 6), "Error: märk"))
    with h5py.File(curve.save(tmp_path / "curve.nc")) as file:
        arrays = [file[name] for name in file if not file[name].attrs.get("NAME", b"").startswith(b"This is a netCDF")]
        assert len(arrays) > 8 and all(array.fletcher32 for array in arrays)
        assert not any(array.dtype.kind == "O" for array in arrays)
    assert sv.Curve.load(tmp_path / "curve.nc").dataset.identical(curve.dataset)
    del curve.dataset["failed"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # h5netcdf half-opens a broken file
def test_any_flipped_byte_is_noticed_or_harmless(curve, tmp_path):
    content = curve.save(tmp_path / "curve.nc").read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.choice(len(content), 10, replace=False):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        (tmp_path / "damaged.nc").write_bytes(damaged)
        try:
            assert sv.Curve.load(tmp_path / "damaged.nc").dataset.equals(curve.dataset)
        except CurveFileError:
            noticed += 1
    assert noticed > 0


def test_a_flipped_number_and_a_changed_attribute_are_noticed(curve, tmp_path):
    path = curve.save(tmp_path / "curve.nc")
    content = path.read_bytes()
    value = curve.simulation("overlap").values[0, 0].tobytes()
    assert content.count(value) == 1
    path.write_bytes(content.replace(value, value[:-1] + bytes([value[-1] ^ 1])))
    with pytest.raises(CurveFileError, match="curve.nc is damaged"):
        sv.Curve.load(path)
    path.write_bytes(content.replace(b'"noise": 0.25', b'"noise": 0.26'))
    with pytest.raises(CurveFileError, match="curve.nc is damaged: its content does not match the digest"):
        sv.Curve.load(path)


def test_files_that_are_no_curves(curve, tmp_path):
    with pytest.raises(FileNotFoundError, match="no curve file at .*nowhere.nc"):
        sv.Curve.load(tmp_path / "nowhere.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(CurveFileError, match="text.nc is damaged or not a curve file"):
        sv.Curve.load(tmp_path / "text.nc")
    xr.Dataset({"a": 1.0}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(CurveFileError, match="other.nc is not a curve file: it was not written by Curve.save"):
        sv.Curve.load(tmp_path / "other.nc")
    newer = sv.Curve(curve.dataset.assign_attrs(schema=99))
    with pytest.raises(CurveFileError, match=r"newer.nc was written by a newer solvable \(schema 99\)"):
        sv.Curve.load(newer.save(tmp_path / "newer.nc"))
    with pytest.raises(ValueError, match="path = .* is not allowed: path must be in a folder that exists"):
        curve.save(tmp_path / "missing" / "curve.nc")
