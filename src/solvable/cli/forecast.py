"""The command that forecasts a learning curve from a file of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from solvable.cli.options import Json

LEARNERS = ("linear-ridge", "kernel-ridge", "random-features")


def forecast(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A table with a header: CSV, or Parquet (with pandas).")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    learner: Annotated[
        str, typer.Option(help="linear-ridge, kernel-ridge:kernel=laplace,penalty=0.1, random-features:penalty=0.1.")
    ] = "linear-ridge",
    n: Annotated[
        str | None,
        typer.Option("--n", help="Numbers of samples, a list with commas; up to ten times the rows unless told."),
    ] = None,
    p: Annotated[int | None, typer.Option("--p", help="The number of random features.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
    rows: Annotated[int, typer.Option(help="The most rows that a kernel uses.")] = 1200,
    seed: Annotated[int, typer.Option(help="Of what is drawn at random.")] = 0,
    out: Annotated[list[str] | None, typer.Option(help="To write: a figure, .png, .pdf or .svg. Repeatable.")] = None,
    json: Json = False,
) -> None:
    """Forecast how much more data would buy: ridge regression on a table of your own, checked by holding out.

    Example: solvable forecast data.csv --target price --n 500,1000,10000
    """
    from solvable.cli.parse import number_or_grid
    from solvable.cli.show import show_json, show_table, show_text
    from solvable.core.errors import bad_parameter
    from solvable.lab.forecast.data import read_table
    from solvable.lab.forecast.verb import forecast as verb

    figures = [Path(path) for path in out or []]
    for path in figures:
        if path.suffix.lower() not in (".png", ".pdf", ".svg") or not path.parent.is_dir():
            raise bad_parameter("--out", str(path), "a .png, .pdf or .svg file in a folder that exists")
    sizes = None if n is None else number_or_grid("--n", n)
    chosen = _learner(learner)
    X, y, columns = read_table(data, target, drop or [])
    found = verb(X, y, chosen, sizes, p=p, rows=rows, seed=seed, columns=columns)
    for path in figures:
        found.plot().figure.savefig(path)  # pyright: ignore[reportAttributeAccessIssue]
    if json:
        show_json(found.to_dict())
        return
    table = zip(found.n, found.error, found.low, found.high, found.r_squared, found.penalty, strict=True)
    show_table(("n", "error", "low", "high", "r squared", "penalty"), [[int(k), *map(float, row)] for k, *row in table])
    show_text(f"{found.rows} rows of {found.columns} inputs; labels of variance {found.baseline:.6g}")
    for check in found.checks:
        show_text(f"check {check}")
    for path in figures:
        show_text(f"written: {path}")


def _learner(text: str) -> Any:
    """A learner from its name and fields."""
    from solvable.cli.parse import key_values, split_outside
    from solvable.core.errors import bad_parameter
    from solvable.lab.forecast.learners import KernelRidge, LinearRidge
    from solvable.lab.named import make
    from solvable.models.features.learners import RandomFeatures

    name, _, fields = text.partition(":")
    known = {kind.name(): kind for kind in (LinearRidge, KernelRidge, RandomFeatures)}
    if name not in known:
        raise bad_parameter("--learner", name, f"one of: {', '.join(LEARNERS)}")
    return make(
        known[name], key_values(split_outside(fields), "--learner") if fields else {}, {}, f"{name}:{{name}}=VALUE"
    )
