"""A curve judges itself, is kept in a file and notices damage."""

from __future__ import annotations

import dataclasses

import numpy as np
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


def test_agreement_finds_the_largest_deviation_and_where(curve):
    found = curve.agreement()
    runs = curve.simulation("overlap").values[0]
    z = np.abs(curve["overlap"].values[0] - runs.mean(1)) / (runs.std(1, ddof=1) / np.sqrt(6))
    assert found.deviation == pytest.approx(z.max()) and found.at == {"alpha": GRID[z.argmax()]}
    assert (found.metric, found.learner, found.points) == ("overlap", "ridge", 3)
    assert abs(found.theory - found.simulation) == pytest.approx(found.deviation * found.standard_error)
    assert found.deviation < 4
    assert str(found).startswith("overlap: largest deviation of 3 points is ") and "at ridge, alpha = " in str(found)


def test_the_chance_of_a_deviation_counts_runs_and_points(curve):
    found = curve.agreement()
    assert found.runs == 6 and 0 < found.chance <= 1
    one = dataclasses.replace(found, deviation=4.0, points=1, runs=1000)
    assert one.chance == pytest.approx(6.8e-5, rel=0.05)  # two tails of four standard deviations
    assert dataclasses.replace(one, points=10).chance == pytest.approx(10 * one.chance)
    assert dataclasses.replace(one, runs=2).chance == pytest.approx(2 * np.arctan(1 / 4.0) / np.pi)  # Cauchy's law
    assert dataclasses.replace(one, deviation=0.0).chance == 1.0


def test_agreement_without_spread(curve):
    exact = np.repeat(curve["overlap"].values[0][:, None], 6, axis=1)
    assert with_runs(curve, exact).agreement().deviation == 0.0
    off = exact.copy()
    off[1] += 0.1
    found = with_runs(curve, off).agreement()
    assert found.deviation == np.inf and found.at == {"alpha": 1.0} and found.standard_error < 1e-15


def test_agreement_skips_missing_runs_and_unsolved_points(curve):
    runs = curve.simulation("overlap").values[0].copy()
    runs[0] = np.nan
    runs[1, 1:] = np.nan
    found = with_runs(curve, runs).agreement()
    assert found.points == 1 and found.at == {"alpha": 2.0}
    dataset = curve.dataset.copy(deep=True)
    dataset["status"].values[:] = sv.Status.MAX_STEPS
    with pytest.raises(ValueError, match="nothing to compare for overlap: no point has both"):
        sv.Curve(dataset).agreement()


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
