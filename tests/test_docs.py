"""The documentation as written: its links lead somewhere, its code runs or compiles, its commands and files parse."""

from __future__ import annotations

import ast
import operator
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RUNNABLE = re.compile(r"<!-- runnable -->\n```python\n(.*?)```", re.DOTALL)
OUTPUT = re.compile(r"<!-- output -->\n```text\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
# A page about the past may name commands that no longer exist.
HISTORY = ("CHANGELOG.md",)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """The text of a page without code and equations, whose brackets are not links."""
    return re.sub(r"```.*?```|\\\(.*?\\\)|\\\[.*?\\\]", "", page.read_text(), flags=re.DOTALL)


def blocks_of(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in one of these languages ("" is a block that names none)."""
    return [text for _, language, text in FENCE.findall(page.read_text()) if language in languages]


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def commands_of(page: Path) -> list[str]:
    """Every `solvable ...` of a page: lines of command blocks, and code in the text."""
    lines = "".join(blocks_of(page, "", "sh", "console", "bash")).replace("\\\n", " ").splitlines()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    return [re.sub(r"^\$ ", "", text).strip() for text in [*lines, *inline] if re.match(r"(\$ )?solvable ", text)]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_internal_links_resolve(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page_name(page)} links to {link}, which does not exist"
        assert not anchor or anchor in headings(file), f"{page_name(page)} links to a missing heading: {link}"


def run(tmp_path: Path, program: str) -> str:
    """What a program prints in a process of its own."""
    sheet = f"import matplotlib\nmatplotlib.use('Agg')\n{program}"
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", sheet]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def assert_shown(page: Path, printed: str) -> None:
    for shown in OUTPUT.findall(page.read_text()):
        assert shown in printed, f"{page_name(page)} shows\n{shown}\nwhich is not in\n{printed}"


def test_the_first_block_about_sweeps_runs(tmp_path, monkeypatch):
    """In this process; those of the other pages, which compile for seconds, are for the slow tests."""
    monkeypatch.chdir(tmp_path)
    exec(RUNNABLE.findall((ROOT / "docs" / "sweeps.md").read_text())[0], {"__name__": "__main__"})


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if RUNNABLE.search(page.read_text())], ids=page_name)
def test_runnable_blocks_run(page, tmp_path):
    """The blocks of a page run in order in one fresh process, as a reader would paste them, and print what it shows."""
    assert_shown(page, run(tmp_path, "\n".join(RUNNABLE.findall(page.read_text()))))


def public_name(node: ast.AST) -> str:
    """The dotted name that follows `sv`, as in `losses.Huber` of `sv.losses.Huber`; "" if it is something else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join(parts) if isinstance(node, ast.Name) and node.id == "sv" else ""


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in HISTORY and blocks_of(p, "python")], ids=page_name)
def test_public_names_in_python_blocks_exist(page):
    """Also in the blocks that no quick test runs."""
    import solvable as sv

    for text in blocks_of(page, "python"):
        for name in filter(None, map(public_name, ast.walk(ast.parse(text)))):
            assert operator.attrgetter(name)(sv) is not None, f"{page_name(page)}: sv.{name}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_python_blocks_compile(page):
    for text in blocks_of(page, "python"):
        compile(text, page_name(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_no_page_runs_a_module_of_the_figures(page):
    """A published figure is made by `solvable reproduce`, not by a module that could move."""
    assert page.name in HISTORY or "solvable.lab.figures" not in page.read_text()


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in HISTORY and commands_of(p)], ids=page_name)
def test_commands_exist_and_take_their_options(page):
    """Commands are parsed, not run: a word in capitals stands for what the reader puts there."""
    import typer

    from solvable.cli.app import app

    group = typer.main.get_command(app)
    options = {"--help", *(option for parameter in group.params for option in parameter.opts)}
    for line in commands_of(page):
        words = shlex.split(line, comments=True)[1:]
        while words and words[0].startswith("-"):
            assert words.pop(0) in options, f"{page_name(page)}: {line}"
        if not words:
            continue
        name, *words = words
        command = group.commands.get(name)  # type: ignore[attr-defined]
        assert command is not None, f"{page_name(page)}: {line}: there is no command {name}"
        parser = command.make_parser(command.context_class(command, info_name=name))
        try:
            given, rest, _ = parser.parse_args([word for word in words if word != "--help"])
        except Exception as error:
            raise AssertionError(f"{page_name(page)}: {line}: {error}") from error
        assert not rest, f"{page_name(page)}: {line}: {rest} is too much"
        if name == "reproduce" and (id := given.get("id")) and not id.isupper():
            from solvable.lab.figures.registry import find_entries

            assert find_entries(id), line


@pytest.mark.parametrize("page", [p for p in PAGES if blocks_of(p, "toml")], ids=page_name)
def test_toml_blocks_are_sweeps(page):
    from solvable.lab.sweep.configuration import read_plan

    for text in blocks_of(page, "toml"):
        assert read_plan(tomllib.loads(text)).layout().points


def test_the_matrix_of_the_readme_is_the_registry():
    import solvable as sv
    from solvable.core.registry import matrix

    assert sv.MultiIndex  # loading the model registers its pairs
    ours = {
        (model.__name__, learner.__name__): filled
        for (model, learner), filled in matrix().items()
        if model.__module__.startswith("solvable.") and learner.__module__.startswith("solvable.")
    }
    rows = re.findall(r"^\| `(\w+)`.*?\| `(\w+)` \| (\w+).*?\| (\w+).*?\|$", (ROOT / "README.md").read_text(), re.M)
    assert {(row[0], row[1]): (row[2] == "yes", row[3] == "yes") for row in rows} == ours


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_displayed_equations_stand_alone(page):
    """Inside a list or a paragraph the Markdown reader would eat the backslashes of an equation."""
    blocks = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).split("\n\n")
    for block in blocks:
        assert "\\[" not in block or (block.strip().startswith("\\[") and block.strip().endswith("\\]")), block


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_lists_start_where_they_should(page):
    """After an indented paragraph an item needs an empty line before it, or it becomes part of the paragraph."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    assert not re.search(r"\n\n {4,}[^\n-][^\n]*(\n {4,}[^\n]+)*\n- ", text)


def test_the_navigation_lists_every_page_and_no_other():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_front_page_links_every_chapter(page):
    chapters = re.findall(r"models/[\w-]+\.md", (ROOT / "mkdocs.yml").read_text())
    linked = re.findall(r"\(([^)\s]+\.md)\)", (ROOT / page).read_text())
    assert {chapter.removeprefix("docs/") for chapter in linked} >= set(chapters)
