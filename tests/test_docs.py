"""The documentation: its links lead somewhere, its runnable code runs, its matrix is the registry's, and it builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RUNNABLE = re.compile(r"<!-- runnable -->\n```python\n(.*?)```", re.DOTALL)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """The text of a page without code and equations, whose brackets are not links."""
    return re.sub(r"```.*?```|\\\(.*?\\\)|\\\[.*?\\\]", "", page.read_text(), flags=re.DOTALL)


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_internal_links_resolve(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page_name(page)} links to {link}, which does not exist"
        assert not anchor or anchor in headings(file), f"{page_name(page)} links to a missing heading: {link}"


@pytest.mark.parametrize("page", [p for p in PAGES if RUNNABLE.search(p.read_text())], ids=page_name)
def test_runnable_blocks_run(page, tmp_path):
    """The blocks of a page run in order in one fresh process, as a reader would paste them."""
    program = "import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(RUNNABLE.findall(page.read_text()))
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


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


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in navigation


def test_the_site_builds(tmp_path):
    builder = shutil.which("zensical", path=str(Path(sys.executable).parent)) or shutil.which("zensical")
    if builder is None:
        pytest.skip("zensical is not installed (extra `docs`)")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = subprocess.run([builder, "build"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    equations = (tmp_path / "docs" / "models" / "index.md").read_text().count("\\[")
    page = (tmp_path / "site" / "models" / "index.html").read_text()
    assert page.count('<div class="arithmatex">') == equations > 0
