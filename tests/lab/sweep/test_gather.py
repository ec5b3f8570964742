"""One dataset from the files of a store: what is there, what is not, and where it comes from."""

from __future__ import annotations

import json
import shutil

import h5py
import numpy as np
import pytest
from toys import learners as sweep_toys
from toys import ridge as toy
from toys import two_ridges as toy_pair
from toys.learners import records

import solvable as sv
from solvable.lab.curve.files import CurveFileError
from solvable.lab.sweep.status import status

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
GRID = [0.5, 1.0, 2.0]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "store"
    sv.sweep(
        MODEL, [RIDGE, toy.Mean()], store=folder, alpha=GRID, noise=[0.1, 0.2], d=[10, 20], seeds=3, thresholds=True
    )
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "store")


def remove(folder, wanted):
    """Remove the points for which `wanted(description)` holds."""
    for id, record in records(folder).items():
        if wanted(record["point"]):
            (path,) = folder.glob(f"points/*/{id}.json")
            path.unlink()


def test_shapes_and_values(finished):
    curve = sv.open(finished)
    data = curve.dataset
    assert curve.axes == ("alpha", "noise") and curve.learners == ("ridge", "mean") and curve.sizes == (10, 20)
    assert data["overlap_theory"].dims == ("learner", "alpha", "noise")
    assert data["overlap_simulation"].dims == ("learner", "alpha", "noise", "d", "seed")
    for i, alpha in enumerate(GRID):
        for j, noise in enumerate((0.1, 0.2)):
            model = toy.Regression(noise=noise)
            expected = sv.predict(model, RIDGE, alpha=alpha)
            assert data["overlap_theory"].values[0, i, j] == expected["overlap"]
            assert data["overlap_uncertainty"].values[0, i, j] == expected.uncertainty["overlap"]
            assert data["resolvent_order_parameter"].values[0, i, j] == expected.order_parameters["resolvent"]
            for learner, label in ((RIDGE, "ridge"), (toy.Mean(), "mean")):
                run = sv.simulate(model, learner, d=20, seed=2, alpha=alpha)
                found = data["overlap_simulation"].sel(learner=label, alpha=alpha, noise=noise, d=20, seed=2)
                assert float(found) == pytest.approx(run["overlap"], rel=1e-9)
    assert (data["status"].sel(learner="ridge") == 0).all() and (data["status"].sel(learner="mean") == -1).all()
    assert (data["status_simulation"] == 0).all() and data["converged_simulation"].all()
    assert (data["seconds"] > 0).all() and "failed" not in data and "failed_theory" not in data


def test_definitions_and_provenance(finished):
    data = sv.open(finished).dataset
    assert data["overlap_theory"].attrs["long_name"] == MODEL.definitions["overlap"]
    assert json.loads(data.attrs["definitions"]) == dict(MODEL.definitions)
    provenance = json.loads(data.attrs["provenance"])
    assert provenance["id"] == status(finished).id and provenance["started"].endswith("Z")
    assert set(provenance["versions"]) == {"solvable", "python", "numpy", "scipy", "jax"}
    assert provenance["computed_by"] == {f"solvable {data.attrs['solvable_version']}": 6 + 72 + 2}
    flags = data["status"].attrs
    meanings = dict(zip(flags["flag_values"], json.loads(flags["flag_meanings"]), strict=True))
    assert meanings[-2] == "not computed" and meanings[-3] == "raised an error"
    for record in records(finished).values():
        assert {"solvable", "python", "numpy", "scipy", "jax", "seconds", "finished"} == set(record["provenance"])


def test_thresholds_over_the_fields_of_the_model(finished, tmp_path):
    data = sv.open(finished).dataset
    assert data["interpolation_threshold"].dims == ("noise",) and (data["interpolation_threshold"] == 1).all()
    assert (data["never_threshold"] == np.inf).all()
    curve = sv.sweep(MODEL, RIDGE, store=tmp_path, alpha=GRID, thresholds=True)
    assert curve.thresholds == {"interpolation": 1.0, "never": np.inf} and "never_threshold" not in curve.dataset


def test_what_is_not_computed_is_missing_with_its_status(folder):
    remove(folder, lambda p: p.get("axes") == {"alpha": 1.0} and p.get("seed") in (None, 1) and p.get("d") != 20)
    data = sv.open(folder).dataset
    assert (data["status"].sel(learner="ridge", alpha=1.0) == -2).all()
    assert np.isnan(data["overlap_theory"].sel(alpha=1.0)).all()
    runs = data["status_simulation"]
    assert (runs.sel(alpha=1.0, d=10, seed=1) == -2).all() and int((runs == -2).sum()) == 4
    assert int(data["overlap_simulation"].isnull().sum()) == 4
    assert not data["converged_simulation"].sel(alpha=1.0, d=10, seed=1).any()


def test_a_sweep_of_which_nothing_is_computed(folder):
    remove(folder, lambda p: True)
    curve = sv.open(folder)
    assert curve.metrics == () and (curve.dataset["status"].sel(learner="ridge") == -2).all()
    assert "no metric yet" in repr(curve) and curve.thresholds == {}
    for call in (curve.plot, curve.agreement):
        with pytest.raises(ValueError, match="no point of it has been computed"):
            call()
    assert len(curve.to_dataframe()) == 72


def test_the_uses_of_a_curve(finished, tmp_path):
    curve = sv.open(finished)
    found = curve.agreement("overlap")
    assert found.points == 12 and found.at["d"] in (10, 20)
    frame = curve.to_dataframe()
    assert len(frame) == 72 and {"learner", "alpha", "noise", "d", "seed", "overlap_theory"} <= set(frame.columns)
    assert curve.figure(tmp_path / "figure.png").stat().st_size > 1000
    assert sv.Curve.load(curve.save(tmp_path / "a.nc")).dataset.identical(curve.dataset)


def test_the_netcdf_file_has_checksums_and_notices_a_flipped_byte(finished, tmp_path):
    path = sv.open(finished).save(tmp_path / "results.nc")
    with h5py.File(path) as file:
        stored = {name for name in file if isinstance(file[name], h5py.Dataset) and file[name].ndim}
        assert all(file[name].fletcher32 for name in stored if file[name].size and name in ("overlap_theory", "status"))
        offset = file["overlap_simulation"].id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[offset + 3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(CurveFileError, match="damaged"):
        sv.Curve.load(path)


def test_values_that_json_has_no_numbers_for(tmp_path):
    curve = sv.sweep(MODEL, sweep_toys.Strange(), store=tmp_path, alpha=GRID, d=10, seeds=2)
    data = curve.dataset
    assert (data["status"] == sv.Status.MAX_STEPS).all() or (data["status"] == sv.Status.NONFINITE).all()
    assert np.isnan(data["overlap_theory"]).all() and (data["estimation_error_theory"] == np.inf).all()
    np.testing.assert_array_equal(data["matrix_theory"][0, 1], [[1.0, -np.inf], [np.nan, 0.1]])
    assert (data["estimation_error_simulation"] == -np.inf).all() and not data["converged_simulation"].any()
    assert (data["status_simulation"] == 0).all()
    again = sv.sweep(MODEL, sweep_toys.Strange(), store=tmp_path, alpha=GRID, d=10, seeds=2)
    assert again.dataset.drop_attrs().identical(data.drop_attrs())


def test_matrices(tmp_path):
    model, learner = toy_pair.TwoRegressions(), toy_pair.TwoRidges()
    curve = sv.sweep(model, learner, store=tmp_path, alpha=GRID, d=10, seeds=2)
    expected = sv.predict(model, learner, alpha=np.array(GRID))["overlap"]
    assert curve["overlap"].dims == ("learner", "alpha", "row", "column")
    np.testing.assert_allclose(curve["overlap"][0], expected, rtol=1e-14)
    assert curve.simulation("overlap").dims == ("learner", "alpha", "seed", "row", "column")


class Wide(sv.Model):
    """A model whose overlap is a matrix of a size that its text tells, or a number."""

    target: str = "a"

    def sample(self, rng, d, alpha):
        return sv.Data(rng.standard_normal((4, d)), rng.standard_normal(4), np.ones((d, 1)))


@sv.theory(Wide, toy.Ridge, vectorized=False)
def _(model, learner, alpha):
    size = len(model.target)
    return sv.Prediction({"overlap": alpha * np.eye(size) if size > 1 else alpha})


def test_matrices_of_different_sizes_are_padded(tmp_path):
    curve = sv.sweep(Wide(), toy.Ridge(), store=tmp_path, target=["a", "bb", "ccc"], alpha=GRID)
    data = curve["overlap"].sel(learner="ridge", alpha=2.0)
    assert data.dims == ("target", "row", "column") and list(data["target"].values) == ["a", "bb", "ccc"]
    assert float(data.sel(target="a", row=1, column=1)) == 2.0 and int(data.sel(target="a").notnull().sum()) == 1
    np.testing.assert_array_equal(data.sel(target="bb")[:2, :2], 2 * np.eye(2))
    assert int(data.sel(target="bb").notnull().sum()) == 4
    np.testing.assert_array_equal(data.sel(target="ccc"), 2 * np.eye(3))
    assert sv.Curve.load(curve.save(tmp_path / "a.nc")).dataset.identical(curve.dataset)


def test_a_model_without_axes(tmp_path):
    curve = sv.sweep(sweep_toys.Plain(), toy.Ridge(2.0), store=tmp_path, d=10, seeds=3)
    assert curve.axes == () and curve["overlap"].dims == ("learner",) and float(curve["overlap"][0]) == 0.5
    assert curve.simulation("overlap").dims == ("learner", "seed") and len(curve.to_dataframe()) == 3
    assert sv.Curve.load(curve.save(tmp_path / "a.nc")).dataset.identical(curve.dataset)


def test_a_point_at_several_places(tmp_path):
    """The second learner does not have the field, and is the same all along."""
    learners = [RIDGE, sweep_toys.Raising(limit=1.5)]
    curve = sv.sweep(MODEL, learners, store=tmp_path, alpha=[1.0, 2.0], penalty=[0.1, 0.5, 1.0])
    assert len(records(tmp_path)) == 6 + 2 and status(tmp_path).points == 8
    assert (curve["overlap"].sel(learner="raising", alpha=1.0) == 0.5).all()
    assert (curve.dataset["status"].sel(learner="raising", alpha=2.0) == -3).all()
    texts = curve.dataset["failed_theory"]
    (message,) = set(texts.sel(learner="raising", alpha=2.0).values)
    assert message.startswith("ConvergenceError: no prediction for Regression") and "(ArithmeticError: too" in message
    assert set(texts.sel(alpha=1.0).values.ravel()) == {""}


def test_the_sweep_started_last_is_shown_and_an_earlier_one_can_be_run_again(tmp_path):
    first = sv.sweep(MODEL, RIDGE, store=tmp_path, alpha=GRID)
    second = sv.sweep(MODEL, RIDGE, store=tmp_path, alpha=[*GRID, 3.0], d=10, seeds=1)
    assert sv.open(tmp_path).dataset.identical(second.dataset) and second["overlap"].shape == (1, 4)
    again = sv.sweep(MODEL, RIDGE, store=tmp_path, alpha=GRID)
    assert again.dataset.drop_attrs().identical(first.dataset.drop_attrs())
