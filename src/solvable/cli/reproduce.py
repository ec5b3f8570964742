"""The command that reproduces published figures and numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from solvable.cli.options import Json


def reproduce(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID|all]", help="What to make; without it, what there is.")
    ] = None,
    out: Annotated[str, typer.Option(help="The folder to write to.")] = "out",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer runs: under a minute each.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes for the simulations.")] = 2,
    json: Json = False,
) -> None:
    """Make published figures anew and say whether their numbers hold.

    Writes figure, data and verdicts to a folder, for `all` with a gallery page. The exit code is 1 if a computed value
    is not the published one, unless that is known and documented.

    Example: solvable reproduce parity-threshold --out out --quick
    """
    from solvable.cli.show import show_json, show_table, show_text
    from solvable.lab.figures.registry import ALL, all_entries, find_entries

    if id is None:
        known = all_entries().values()
        if json:
            keys = ("id", "title", "sources", "claims")
            rows = [(e.id, e.title, [str(s) for s in e.sources], [c.name for c in e.claims]) for e in known]
            show_json([dict(zip(keys, row, strict=True)) for row in rows])
            return
        show_table(("id", "title", "source"), [(entry.id, entry.title, entry.credit) for entry in known])
        return

    from solvable.lab.figures.gallery import write_gallery
    from solvable.lab.figures.run import checked_folder
    from solvable.lab.figures.run import reproduce as verb
    from solvable.lab.grid.crews import pool_of

    entries, folder = find_entries(id), checked_folder(out)
    findings = []
    with pool_of(workers) as pool:
        for entry in entries:
            findings.append(verb(entry, folder, quick, pool))
            if not json:
                show_text("\n".join(findings[-1].lines))
    if id == ALL:
        write_gallery(findings, folder)
    if json:
        show_json([finding.to_dict() for finding in findings])
    else:
        show_text(f"written to {folder}/")
    if not all(finding.expected for finding in findings):
        raise typer.Exit(1)
