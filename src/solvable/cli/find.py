"""The command that finds the directions that a column of a file depends on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from solvable.cli.options import Json

_NAMED = 4
"""How many columns are named for a direction."""


def find(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A table with a header: CSV, or Parquet (with pandas).")],
    target: Annotated[str, typer.Option(help="The column that depends on the others.")],
    directions: Annotated[int | None, typer.Option(help="How many to list; those that stand out unless told.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn at random.")] = 0,
    json: Json = False,
) -> None:
    """Find the directions of a table of your own that a column depends on, and how many samples a network would need.

    Example: solvable find data.csv --target price
    """
    import warnings

    import numpy as np

    from solvable.cli.show import show_json, show_text
    from solvable.core.checks import check_count
    from solvable.estimators import SpectralIndex
    from solvable.lab.forecast.data import checked, read_table

    if directions is not None:
        check_count("--directions", directions, least=1)
    table = checked(*read_table(data, target, drop or []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it
        found = SpectralIndex(directions, random_state=seed).fit(table.X, table.y)
    # Of collinear columns the weights mean little: what tells is how each goes with the projection.
    z = found.transform(table.X)
    cosines = (z - z.mean(axis=0)).T @ table.X / (len(z) * np.maximum(z.std(axis=0), 1e-300))[:, None]
    if json:
        show_json(_plain(found, cosines, table.columns))
        return
    show_text(found.report())
    for j, row in enumerate(cosines):
        named = np.argsort(-np.abs(row), kind="stable")[:_NAMED]
        show_text(f"direction {j + 1} goes with {', '.join(f'{table.columns[k]} ({row[k]:+.2f})' for k in named)}")


def _plain(found: Any, cosines: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    names = ("orders", "eigenvalues", "bulk_edges", "overlaps")
    listed = zip(*(getattr(found, f"{name}_").tolist() for name in names), cosines.tolist(), strict=True)
    return {
        "directions": found.n_directions_,
        "samples_for_each_input": float(found.alpha_),
        "warnings": found.doubts_,
        "found": [
            dict(zip(names, rest, strict=True)) | {"correlations": dict(zip(columns, row, strict=True))}
            for *rest, row in listed
        ],
    }
