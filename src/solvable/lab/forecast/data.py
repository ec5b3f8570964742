"""A user's table, checked: what it holds in numbers, or a sentence that says what is wrong with it and where."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.core.digits import says_number
from solvable.core.errors import bad_parameter

LEAST = 50
"""Rows that are needed: a quarter of them must say something."""
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
_NAMED = 5
"""How many columns a message names."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Inputs, each column of mean zero and, if standardised, variance one; labels; and the names of the columns."""

    X: np.ndarray
    y: np.ndarray
    columns: tuple[str, ...]


def table(X: Any, y: Any, standardize: bool = True, columns: Sequence[str] | None = None) -> Table:
    """The inputs and labels of arrays, lists or a data frame, of which y may name a column."""
    if isinstance(y, str):
        names = [str(name) for name in getattr(X, "columns", ())]
        if names.count(y) != 1:
            raise bad_parameter("y", y, f"the name of one column of X: {_list(names) or 'it has no names'}")
        X, y = X.drop(columns=[y]), X[y]
    names = [str(name) for name in getattr(X, "columns", ())]
    values = _numbers("X", X, 2, names)
    labels = _numbers("y", y, 1, [])
    names = list(columns) if columns is not None else names or [str(k) for k in range(values.shape[1])]
    return checked(values, labels, tuple(names), standardize)


def checked(X: np.ndarray, y: np.ndarray, columns: tuple[str, ...], standardize: bool = True) -> Table:
    """Refuse what no forecast can be made from, and standardise the rest."""
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} rows and y has {len(y)}: there must be one label for each row.")
    if X.shape[1] == 0:
        raise ValueError("X has no columns: a forecast needs inputs.")
    for what, array in (("X", X), ("y", y)):
        _check_present(what, array, columns)
    if len(X) < LEAST:
        raise ValueError(f"there are {len(X)} rows, too few for a forecast: at least {LEAST} are needed.")
    if np.ptp(y) == 0:
        raise ValueError(f"y is constant, {y[0]:g} in every row: there is nothing to learn.")
    constant = [name for name, spread in zip(columns, np.ptp(X, axis=0), strict=True) if spread == 0]
    if constant:
        raise ValueError(f"X is constant in {_columns(constant)}: drop {'it' if len(constant) == 1 else 'them'}.")
    # Scaled first, so that the squares of very large or small numbers are numbers.
    centred = X - X.mean(axis=0)
    if standardize:
        centred /= np.abs(centred).max(axis=0)
        centred /= centred.std(axis=0)
    return Table(centred if standardize else X, y, columns)


def read_table(
    path: str | Path, target: str, drop: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Inputs, labels and the names of the inputs from a file: CSV with a header, or Parquet."""
    path = Path(path)
    if not path.is_file():
        raise bad_parameter("DATA", str(path), "a file that exists")
    names, columns = _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_csv(path)
    for option, wanted in (("--target", [target]), ("--drop", drop)):
        for name in wanted:
            if name not in names:
                raise bad_parameter(option, name, f"a column of {path.name}: {_list(names)}")
    kept = [name for name in names if name != target and name not in drop]
    text = [name for name in [target, *kept] if columns[name].dtype.kind not in "biuf"]
    if target in text:
        raise ValueError(f"the target {target!r} holds text, such as {_example(columns[target])}: write it in numbers.")
    if text:
        example = _example(columns[text[0]])
        raise ValueError(
            f"text in {_columns(text)}, such as {example}: write it in numbers, or leave it out with --drop."
        )
    X = np.array([columns[name] for name in kept], dtype=float).T.reshape(-1, len(kept))
    return X, columns[target].astype(float), tuple(kept)


def _read_csv(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        mark = max(",;\t", key=first.count)
        file.seek(0)
        rows = [row for row in csv.reader(file, delimiter=mark) if row]
    if len(rows) < 2:
        raise ValueError(f"{path.name} has no rows below its header.")
    names = [name.strip() for name in rows[0]]
    for place, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise ValueError(f"row {place} of {path.name} has {len(row)} entries, and the header {len(names)}.")
    if len(set(names)) < len(names) or all(says_number(name) for name in names):
        raise ValueError(f"the first row of {path.name} must be a header, with a different name for each column.")
    return names, {name: _column([row[k].strip() for row in rows[1:]]) for k, name in enumerate(names)}


def _column(entries: list[str]) -> np.ndarray:
    """Numbers, NaN where they are missing, or text if one entry is no number."""
    present = [entry for entry in entries if entry.lower() not in MISSING]
    words = {"true": 1.0, "false": 0.0}
    if all(entry.lower() in words for entry in present):
        return np.array([words.get(entry.lower(), np.nan) for entry in entries])
    if not all(map(says_number, present)):
        return np.array(entries, dtype=object)
    return np.array([np.nan if entry.lower() in MISSING else float(entry) for entry in entries])


def _read_parquet(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{path.name} is Parquet, which needs pandas with pyarrow: {reason}") from None
    names = [str(name) for name in frame.columns]
    return names, {name: _plain(frame.iloc[:, k]) for k, name in enumerate(names)}


def _plain(column: Any) -> np.ndarray:
    """A column of a data frame as floats with NaN where it is missing, or as objects."""
    try:
        return np.asarray(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    except (TypeError, ValueError):
        return np.asarray(column, dtype=object)


def _numbers(name: str, value: Any, dimensions: int, columns: list[str]) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray):
        raise bad_parameter(name, "a masked array", "an array without missing values")
    if columns and hasattr(value, "iloc"):
        parts = [_plain(value.iloc[:, k]) for k in range(len(columns))]
        text = [columns[k] for k, part in enumerate(parts) if part.dtype.kind not in "biuf"]
        if text:
            raise ValueError(f"X holds text in {_columns(text)}: write it in numbers, or drop it.")
        return np.array(parts, dtype=float).T.reshape(len(value), len(columns))
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array of numbers; its rows have different lengths.") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must hold numbers; it holds {_example(array.ravel())}.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers; it holds {array.dtype}.")
    if array.ndim == 2 and dimensions == 1 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != dimensions:
        takes = "a row for each sample and a column for each input" if dimensions == 2 else "a number for each sample"
        raise ValueError(f"{name} must have {takes}; it has the shape {array.shape}.")
    return array.astype(float)


def _check_present(what: str, array: np.ndarray, columns: tuple[str, ...]) -> None:
    for kind, bad in (("missing", np.isnan(array)), ("infinite", np.isinf(array))):
        count = int(np.sum(bad))
        if count:
            row, *column = (int(k) for k in np.argwhere(bad)[0])
            where = f"row {row + 1}" + (f", column {columns[column[0]]!r}" if column else "")
            values = "value" if count == 1 else "values"
            raise ValueError(
                f"{what} has {count} {kind} {values}, the first in {where}: fill them in or drop the rows."
            )


def _columns(names: Sequence[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {_list(names)}"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _example(entries: np.ndarray) -> str:
    words = [entry for entry in entries if not says_number(str(entry)) and str(entry).lower() not in MISSING]
    return repr(str(words[0]) if words else "")
