"""The gallery: one page with every figure, what was published, the verdicts, and the command that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.core.version import installed_version
from solvable.lab.figures.run import Finding
from solvable.lab.figures.verdict import KNOWN, computed_text, simulated_text
from solvable.lab.files import write_together

PAGE = "index.md"


def write_gallery(findings: Sequence[Finding], folder: Path) -> Path:
    """Write the page `index.md` beside the figures."""
    (path,) = write_together(folder, {PAGE: lambda path: path.write_text(page(findings), encoding="utf-8")})
    return path


def page(findings: Sequence[Finding]) -> str:
    """The page in Markdown, a section for each entry."""
    head = [
        "# Gallery",
        "",
        "Figures and headline numbers of the field, computed and simulated here. Lines are theory, markers are runs at "
        "finite dimension with standard errors, dotted lines are thresholds, and black crosses are thresholds read off "
        "the runs alone, with bars of three standard errors:",
        "",
        "- of a jump, the ratio at which half of the runs succeed, with its shift in the dimension fitted;",
        "- of a continuous onset, where the squared overlap of an eigenvector, extrapolated from above, is zero; or "
        "where one step of the linearised message passing keeps a small overlap as large as it is. Finite dimension "
        "moves an extrapolated onset down, which its error does not include;",
        "- of a training error that becomes positive, the same read from above; ratios of matrix models are those of "
        "n to d(d+1), twice the number of unknowns, which d^2 is in the limit.",
        "",
        "A verdict is on the computed value against the published one, then on the runs: they agree with what was "
        "computed only if they would differ from a value that is wrong by 10 %; otherwise there are too few runs to "
        "say.",
        "",
        f"Made with solvable {installed_version()}, each figure by the command below it. With `--quick` runs are small "
        "and few; `solvable reproduce all --out gallery` makes this page.",
    ]
    return "\n".join([*head, *(line for finding in findings for line in section(finding))]) + "\n"


def section(finding: Finding) -> list[str]:
    """The section of one entry."""
    entry = finding.entry
    lines = ["", f"## {entry.title}", "", f"![{entry.title}]({entry.id}.png)", "", entry.shows, ""]
    lines += ["| quantity | published | by | computed | simulated | verdict |", "|---|---|---|---|---|---|"]
    for verdict in finding.verdicts:
        claim = verdict.claim
        name = f"`{claim.name}`" if "*" in claim.name else claim.name
        simulated = "" if verdict.simulated is None else simulated_text(verdict.simulated)
        mark = " (1)" if claim.second_hand else ""
        published = (claim.published or "", f"{claim.source.short}{mark}" if claim.source else "")
        lines.append(f"| {' | '.join((name, *published, computed_text(verdict), simulated, verdict.word))} |")
    if any(verdict.claim.second_hand for verdict in finding.verdicts):
        lines += ["", "(1) Quoted second hand: we have not checked the number in the source itself."]
    for verdict in finding.verdicts:
        if verdict.computation == KNOWN:
            lines += ["", f"On {verdict.claim.name}: {verdict.claim.known_wrong}"]
    lines += ["", *(f"- {source}." for source in entry.sources), ""]
    lines += [f"`solvable reproduce {entry.id} --out out{' --quick' if finding.quick else ''}`"]
    if finding.sizes:
        lines += ["", f"Runs: {'; '.join(_sizes(name, size) for name, size in finding.sizes.items())}."]
    return lines


def _sizes(name: str, size: Any) -> str:
    pairs = zip(size["d"], size["seeds"], strict=True)
    return f"{name} at {' and '.join(f'd = {d} ({seeds} a point)' for d, seeds in pairs)}"
