"""Metrics that are a matrix at each point, such as the overlaps of several directions: their diagonal entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from solvable.core.status import Status
from solvable.lab.assemble import MATRIX

if TYPE_CHECKING:
    from solvable.lab.curve import Curve

ENTRY = "entry"
SAME = 2e-3
"""Entries closer than this at every point, relative to the largest, cannot be told apart in a figure."""


def is_matrix(array: xr.DataArray) -> bool:
    """Whether the array has a matrix at each point."""
    return set(MATRIX) <= set(array.dims)


def diagonal(array: xr.DataArray) -> xr.DataArray:
    """The diagonal of the matrix at each point, along a last dimension `entry` that counts from 1; others as they are.

    Only square matrices have one.
    """
    if not is_matrix(array):
        return array
    size = array.sizes[MATRIX[0]]
    if array.sizes[MATRIX[1]] != size:
        raise ValueError(f"{array.name} is not a square matrix at each point; select its entries by row and column.")
    along = xr.DataArray(np.arange(size), dims=ENTRY, coords={ENTRY: np.arange(1, size + 1)})
    return array.isel(row=along, column=along).drop_vars(MATRIX).transpose(..., ENTRY)


def entry_groups(curve: Curve, metric: str) -> list[tuple[int, ...]]:
    """The diagonal entries of a matrix metric, from 1, those together that theory does not tell apart.

    Permutation symmetry makes such entries equal, and one line then stands for them all. Without a theory each entry
    is on its own.
    """
    if f"{metric}_theory" not in curve.dataset:
        return [(entry,) for entry in curve.simulation(metric)["row"].values]
    values = diagonal(curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED))
    flat = values.values.reshape(-1, values.sizes[ENTRY])
    flat = flat[np.isfinite(flat).all(axis=1)]
    near = SAME * np.max(np.abs(flat), initial=0.0)
    groups: list[list[int]] = []
    for entry in range(flat.shape[1]):
        alike = (group for group in groups if np.max(np.abs(flat[:, entry] - flat[:, group[0]]), initial=0.0) <= near)
        group = next(alike, None) if len(flat) else None
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    return [tuple(entry + 1 for entry in group) for group in groups]


def group_mean(array: xr.DataArray, group: tuple[int, ...]) -> xr.DataArray:
    """The mean of some diagonal entries, seed by seed."""
    return diagonal(array).sel({ENTRY: list(group)}).mean(ENTRY)
