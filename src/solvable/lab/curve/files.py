"""Curves as files: netCDF with a checksum on every chunk and a digest of the whole, so that damage is noticed.

HDF5's Fletcher-32 filter guards the chunks of the variables. Attributes and metadata lie outside it, so a SHA-256
digest of variables and attributes is stored too and compared on loading.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from solvable.core.errors import SolvableError, bad_parameter
from solvable.lab.files import partial_name

SCHEMA = 2
"""Raised when a reader of before would misread a file. 2: labels of axes, sizes by name, vectors along `entry`."""
DIGEST = "sha256"
ENDINGS = (".nc", ".csv")


class CurveFileError(SolvableError, ValueError):
    """A file that is not a curve, was written by a newer version, or is damaged."""


def check_ending(path: str | Path) -> str:
    """The ending of a curve's file, one of those that say what it holds."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        takes = f"a file name that ends in {' or '.join(ENDINGS)} (a figure is written by `figure`)"
        raise bad_parameter("path", str(path), takes)
    return ending


def write_whole(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Write a file under another name first, so that it is there whole or not at all."""
    path = Path(path)
    if not path.parent.is_dir():
        raise bad_parameter("path", str(path), "in a folder that exists")
    partial = partial_name(path)
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def save_dataset(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a dataset to a netCDF file, whole or not at all."""
    sealed = dataset.assign_attrs({DIGEST: digest(dataset)})
    encoding: dict[Any, dict[str, Any]] = {}
    for name, variable in sealed.variables.items():
        if variable.ndim == 0:
            continue  # HDF5 has no filters for scalars; the digest covers them
        encoding[name] = {"fletcher32": True}
        if variable.dtype.kind in "UOT":
            encoding[name]["dtype"] = "S1"  # fixed-width text lies in the checked chunks, variable-length text does not
    return write_whole(path, lambda partial: sealed.to_netcdf(partial, engine="h5netcdf", encoding=encoding))


def load_dataset(path: str | Path) -> xr.Dataset:
    """Read a dataset written by `save_dataset`; a `CurveFileError` says what is wrong with a bad file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no curve file at {path}.")
    try:
        sealed = xr.load_dataset(path, engine="h5netcdf")
    except ImportError:
        raise
    except Exception as error:  # HDF5 readers answer damage with many kinds of exceptions
        raise CurveFileError(f"{path} is damaged or not a curve file ({type(error).__name__}: {error}).") from error
    expected = sealed.attrs.pop(DIGEST, None)
    schema = sealed.attrs.get("schema")
    if expected is None or schema is None:
        raise CurveFileError(f"{path} is not a curve file: it was not written by Curve.save.")
    if int(schema) > SCHEMA:
        raise CurveFileError(f"{path} was written by a newer solvable (schema {schema}); upgrade to read it.")
    if digest(sealed) != expected:
        raise CurveFileError(f"{path} is damaged: its content does not match the digest stored in it.")
    return sealed


def digest(dataset: xr.Dataset) -> str:
    """A SHA-256 digest of the variables, their dimensions and the attributes, whatever types a file gives them."""
    seal = hashlib.sha256()
    for name in sorted(dataset.variables, key=str):
        variable = dataset.variables[name]
        seal.update(json.dumps([str(name), list(map(str, variable.dims)), list(variable.shape)]).encode())
        seal.update(_canonical_bytes(variable.values))
    attributes = {str(key): str(value) for key, value in dataset.attrs.items() if key != DIGEST}
    seal.update(json.dumps(attributes, sort_keys=True).encode())
    return seal.hexdigest()


def _canonical_bytes(values: np.ndarray) -> bytes:
    if values.dtype.kind in "biu":
        return values.astype("<i8").tobytes()
    if values.dtype.kind == "f":
        return (values.astype("<f8") + 0.0).tobytes()
    return json.dumps([str(value) for value in values.ravel().tolist()]).encode()
