"""Metrics that have several entries at each point, such as the overlaps of several directions: those that are shown.

Of a matrix they are the diagonal, of a vector all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from solvable.core.status import Status
from solvable.lab.curve.assemble import ENTRY, MATRIX

if TYPE_CHECKING:
    from solvable.lab.curve import Curve

SAME = 2e-3
"""Entries closer than this at every point, relative to the largest, cannot be told apart in a figure."""


def has_entries(array: xr.DataArray) -> bool:
    """Whether the array has a matrix or a vector at each point."""
    return set(MATRIX) <= set(array.dims) or ENTRY in array.dims


def diagonal(array: xr.DataArray) -> xr.DataArray:
    """The diagonal of the matrix at each point, along a last dimension `entry` that counts from 1; others as they are.

    Only square matrices have one.
    """
    if not set(MATRIX) <= set(array.dims):
        return array
    size = array.sizes[MATRIX[0]]
    if array.sizes[MATRIX[1]] != size:
        raise ValueError(f"{array.name} is not a square matrix at each point; select its entries by row and column.")
    along = xr.DataArray(np.arange(size), dims=ENTRY, coords={ENTRY: np.arange(1, size + 1)})
    return array.isel(row=along, column=along).drop_vars(MATRIX).transpose(..., ENTRY)


def entries_of(array: xr.DataArray) -> xr.DataArray:
    """The entries along the dimension `entry`, where a number is a matrix of one entry.

    A sweep may hold models of one projection and of several, and at first have results of one kind only.
    """
    return diagonal(array) if has_entries(array) else array.expand_dims({ENTRY: [1]}, axis=-1)


def entry_symbol(curve: Curve, metric: str) -> str:
    """How a figure names entry k of a metric: `(k, k)` of a matrix, `k` of a vector, nothing of a number."""
    names = [metric + ending for ending in ("_theory", "_simulation") if metric + ending in curve.dataset]
    if any(set(MATRIX) <= set(curve.dataset[name].dims) for name in names):
        return "$(k, k)$"
    return "$k$" if any(ENTRY in curve.dataset[name].dims for name in names) else ""


def entry_groups(curve: Curve, metric: str) -> list[tuple[int, ...]]:
    """The entries of a metric that has several, from 1, those together that theory does not tell apart.

    Permutation symmetry makes such entries equal, and one line then stands for them all. Without a theory each entry
    is on its own. Entries that the curve has at no point, since its matrices are smaller there, are left out.
    """
    entries = _present(curve, metric)
    if f"{metric}_theory" not in curve.dataset:
        return [(entry,) for entry in entries]
    values = entries_of(curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED))
    flat = values.reindex({ENTRY: entries}).values.reshape(-1, len(entries))
    flat = flat[np.isfinite(flat).all(axis=1)]
    near = SAME * np.max(np.abs(flat), initial=0.0)
    groups: list[list[int]] = []
    for k in range(len(entries)):
        alike = (group for group in groups if np.max(np.abs(flat[:, k] - flat[:, group[0]]), initial=0.0) <= near)
        group = next(alike, None) if len(flat) else None
        if group is None:
            groups.append([k])
        else:
            group.append(k)
    return [tuple(entries[k] for k in group) for group in groups]


def _present(curve: Curve, metric: str) -> list[int]:
    """The entries that have a value somewhere; all of them if none has."""
    names = [metric + ending for ending in ("_theory", "_simulation") if metric + ending in curve.dataset]
    arrays = [diagonal(curve.dataset[name]) for name in names if has_entries(curve.dataset[name])]
    everywhere = [int(entry) for entry in arrays[0][ENTRY].values]
    found = [entry for entry in everywhere if any(bool(a.sel({ENTRY: entry}).notnull().any()) for a in arrays)]
    return found or everywhere


def group_mean(array: xr.DataArray, group: tuple[int, ...]) -> xr.DataArray:
    """The mean of some entries, seed by seed."""
    return entries_of(array).reindex({ENTRY: list(group)}).mean(ENTRY)
