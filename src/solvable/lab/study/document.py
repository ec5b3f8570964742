"""A short document of headings, paragraphs, tables and one kind of picture, as Markdown and as a single HTML file.

Both come from the same blocks, so they say the same. Text is escaped where it is written: what a user typed as a target
appears as it was typed and is never read as markup. The HTML refers to nothing outside itself.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import re
from collections.abc import Sequence


class Code(str):
    """A piece of a line set as code."""


Line = Sequence[str]
"""Plain text and `Code`, one after the other."""


@dataclasses.dataclass(frozen=True)
class Heading:
    """A title (level 1) or the name of a section (level 2)."""

    text: Line
    level: int = 2


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: Line


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells under their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Listing:
    """Lines to be copied, such as a command."""

    text: str


@dataclasses.dataclass(frozen=True)
class Picture:
    """A PNG image: Markdown refers to the file beside it, HTML carries the bytes."""

    file: str
    caption: str
    png: bytes


Block = Heading | Paragraph | Table | Listing | Picture


def to_markdown(blocks: Sequence[Block]) -> str:
    """The document as Markdown with pipe tables."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def to_html(blocks: Sequence[Block], title: str) -> str:
    """The document as one HTML page that needs no other file and no network."""
    body = "\n".join(_html(block) for block in blocks)
    return _PAGE.format(title=html.escape(title), style=_STYLE, body=body)


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_markdown_line(text)}"
        case Paragraph(text):
            return _markdown_line(text)
        case Table(columns, rows):
            lines = [columns, ["---"] * len(columns)]
            cells = [[_markdown_line([cell]).replace("|", r"\|") for cell in row] for row in rows]
            return "\n".join(f"| {' | '.join(row)} |" for row in [*lines, *cells])
        case Listing(text):
            return f"```\n{text}\n```"
        case Picture(file, caption, _):
            return f"![{_markdown_line([caption])}]({file})"


def _markdown_line(parts: Line) -> str:
    return "".join(_markdown_code(part) if isinstance(part, Code) else _plain_markdown(part) for part in parts)


def _markdown_code(text: str) -> str:
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}{text}{fence}"


def _plain_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<#])", r"\\\1", text)


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_html_line(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_html_line(text)}</p>"
        case Table(columns, rows):
            head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
            lines = ("".join(f"<td>{_html_line([cell])}</td>" for cell in row) for row in rows)
            body = "\n".join(f"<tr>{line}</tr>" for line in lines)
            return f'<div class="table"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'
        case Listing(text):
            return f"<pre>{html.escape(text)}</pre>"
        case Picture(_, caption, png):
            data = base64.b64encode(png).decode("ascii")
            words = html.escape(caption)
            image = f'<img src="data:image/png;base64,{data}" alt="{words}">'
            return f"<figure>{image}<figcaption>{words}</figcaption></figure>"


def _html_line(parts: Line) -> str:
    return "".join(
        f"<code>{html.escape(part)}</code>" if isinstance(part, Code) else html.escape(part) for part in parts
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

_STYLE = """
:root { color-scheme: light dark;
  --ink: #1b1f24; --paper: #fdfdfc; --faint: #646b74; --rule: #d9dce0; --code: #f1f2f3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe2e6; --paper: #16181b; --faint: #9aa1aa; --rule: #363a40; --code: #23262a; }
}
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 48rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 0.75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 0.4rem; }
p { margin: 0.5rem 0; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.92em; }
code { overflow-wrap: anywhere; }
h1 code { font-size: inherit; }
pre { background: var(--code); padding: 0.6rem 0.8rem; border-radius: 4px; overflow-x: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.95rem; }
th, td { text-align: left; padding: 0.25rem 1.1rem 0.25rem 0; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; color: var(--faint); }
figure { margin: 1.25rem 0; }
img { display: block; max-width: 100%; background: #fff; border-radius: 4px; }
figcaption { color: var(--faint); font-size: 0.9rem; margin-top: 0.4rem; }
"""
