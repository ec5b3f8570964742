"""The commands about sweeps: run one, say how far it is, and gather its results."""

from __future__ import annotations

from typing import Annotated

import typer

from solvable.cli.options import Json

Store = Annotated[str, typer.Argument(metavar="DIR", help="The folder of a sweep.")]


def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="Model, learners, axes and sizes.")],
    store: Annotated[str, typer.Option(metavar="DIR", help="The folder that keeps the points.")],
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try points that failed before again.")] = False,
    json: Json = False,
) -> None:
    """Compute the points of a grid; each is kept as soon as it is done, and a rerun goes on where this one stops.

    Example: solvable sweep sweep.toml --store results --workers 4
    """
    import dataclasses
    import shlex

    from solvable.cli.show import show_json, show_text
    from solvable.lab.sweep.configuration import read_plan
    from solvable.lab.sweep.verb import run_sweep

    found = run_sweep(read_plan(file), store, workers, scheduler, retry_failed=retry_failed)
    if json:
        show_json(dataclasses.asdict(found))
        return
    show_text(str(found))
    folder = shlex.quote(store)
    if found.failed:
        show_text(f"the errors: solvable status {folder}")
    show_text(f"the results: solvable gather {folder} --out results.nc, or sv.open({store!r}) in Python")


def status(
    store: Store,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and check its digest.")] = False,
    json: Json = False,
) -> None:
    """Say how many points of a sweep are done, failed and left.

    Example: solvable status results
    """
    from solvable.cli.show import show_json, show_text
    from solvable.lab.sweep.status import status as verb

    found = verb(store, True if verify else None)
    show_json(found.to_dict()) if json else show_text(str(found))


def gather(
    store: Store,
    out: Annotated[
        list[str], typer.Option(help="Where to: .nc or .csv for data, .png, .pdf or .svg for a figure. Repeatable.")
    ],
    metric: Annotated[str | None, typer.Option(help="The metric to draw.")] = None,
) -> None:
    """Write the results of a sweep, as far as it has got, as one file of data or as a figure.

    Example: solvable gather results --out results.nc --out results.png
    """
    from solvable.cli.show import show_text
    from solvable.cli.tables import check_outputs, write_outputs
    from solvable.lab.sweep.gather import open as open_store

    outputs = check_outputs(out)
    found = open_store(store)
    write_outputs(found, found.metric_or_default(metric), outputs)
    for path in outputs:
        show_text(f"written: {path}")
