"""Reproduce entries: compute, simulate, judge, draw, and write what belongs together."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from solvable.core.errors import bad_parameter
from solvable.core.plain import to_json
from solvable.core.version import installed_version
from solvable.lab.curve.files import save_dataset
from solvable.lab.figures.entry import Effort, Entry, Material
from solvable.lab.figures.registry import find_entry
from solvable.lab.figures.verdict import Verdict, judge
from solvable.lab.files import write_together

FORMATS = ("png", "pdf", "svg")


@dataclasses.dataclass(frozen=True)
class Finding:
    """What came of an entry: the verdict on each claim, what they rest on, and the files written."""

    entry: Entry
    verdicts: tuple[Verdict, ...]
    quick: bool
    seconds: float
    sizes: dict[str, Any]
    files: tuple[Path, ...] = ()

    @property
    def lines(self) -> list[str]:
        """One line for each claim."""
        alone = len(self.verdicts) == 1
        return [verdict.line(self.entry.id, alone) for verdict in self.verdicts]

    @property
    def expected(self) -> bool:
        """Whether every computed value is the published one, or differs from it as documented."""
        return all(verdict.expected for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data, with its provenance."""
        return {
            "id": self.entry.id,
            "title": self.entry.title,
            "sources": [str(source) for source in self.entry.sources],
            "claims": [verdict.to_dict() for verdict in self.verdicts],
            "expected": self.expected,
            "version": installed_version(),
            "quick": self.quick,
            "simulations": self.sizes,
            "seconds": round(self.seconds, 1),
            "files": [path.name for path in self.files],
        }


def reproduce(
    entry: str | Entry,
    out: str | Path = "out",
    quick: bool = False,
    executor: Executor | None = None,
    progress: bool = True,
) -> Finding:
    """A published figure made anew, and whether its numbers hold: figure, verdicts (JSON) and curves (netCDF).

    **Arguments:** `entry`, an id that `solvable reproduce` lists, such as `"parity-threshold"`, or an `Entry`; `out`,
    the folder, made if need be; `quick`, for smaller and fewer runs; `executor`, any `concurrent.futures` executor for
    the runs.

    **Returns:** a `Finding`: the `verdicts` on the published numbers, one a line in `lines`, and the `files` written.
    These are replaced together at the end, so an interrupted run leaves those of an earlier one whole.
    """
    entry = find_entry(entry) if isinstance(entry, str) else entry
    folder, effort = checked_folder(out), Effort(quick, executor, progress)
    start = time.perf_counter()
    material = entry.gather(effort)
    verdicts = tuple(judge(claim, material) for claim in entry.claims)
    pictures = images(entry, material, verdicts)
    seconds = time.perf_counter() - start
    found = Finding(entry, verdicts, effort.quick, seconds, dict(material.sizes))
    return _written(found, material, pictures, folder)


def checked_folder(out: str | Path) -> Path:
    """The folder, if it is one or can become one."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise bad_parameter("out", str(out), "a folder, or the name of a new one")
    return folder


def images(entry: Entry, material: Material, verdicts: Sequence[Verdict]) -> dict[str, bytes]:
    """The figure as the content of a file of each format, the same for the same figure."""
    import io

    import matplotlib

    from solvable.lab import plots

    figure = entry.draw(material, verdicts)
    stamps: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    found = {}
    for kind in FORMATS:
        buffer = io.BytesIO()
        with matplotlib.rc_context(plots.STYLE):
            figure.savefig(buffer, format=kind, dpi=200, metadata=stamps.get(kind))
        found[kind] = buffer.getvalue()
    return found


def _written(found: Finding, material: Material, pictures: dict[str, bytes], folder: Path) -> Finding:
    name = found.entry.id
    writers: dict[str, Callable[[Path], object] | None] = {}
    for old in folder.glob(f"{name}_*.nc"):  # of a run at other sizes
        writers[old.name] = None
    for label, curve in material.curves.items():
        writers[f"{name}_{label}.nc"] = partial(save_dataset, curve.dataset)
    for kind, picture in pictures.items():
        writers[f"{name}.{kind}"] = _bytes_writer(picture)
    writers[f"{name}.json"] = lambda path: None
    found = dataclasses.replace(found, files=tuple(folder / file for file, write in writers.items() if write))
    text = json.dumps(to_json(found.to_dict()), indent=2, allow_nan=False) + "\n"
    writers[f"{name}.json"] = lambda path: path.write_text(text, encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    write_together(folder, writers)
    return found


def _bytes_writer(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)
