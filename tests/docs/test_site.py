"""The built site: it links to what it contains, asks no other host for anything, and a browser draws its equations."""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --virtual-time-budget=60000 --dump-dom"
).split()
# Opens each page in a frame and reports what became of its equations, its images and its requests.
INSPECTOR = """<!doctype html><body><pre id="report"></pre><script>
async function inspect(page) {
  const frame = document.createElement("iframe");
  frame.width = 1200;
  frame.src = page;
  await new Promise((loaded) => { frame.onload = loaded; document.body.append(frame); });
  const inner = frame.contentWindow, all = (selector) => [...inner.document.querySelectorAll(selector)];
  await inner.MathJax.startup.promise;
  return {
    page,
    equations: all(".arithmatex").length,
    typeset: all(".arithmatex > mjx-container").length,
    failed: all("mjx-container [data-mml-node=merror]").map((node) => node.closest(".arithmatex").textContent),
    images: all("img").filter((image) => !image.naturalWidth).map((image) => image.src),
    hosts: [...new Set(inner.performance.getEntriesByType("resource").map((entry) => new URL(entry.name).origin))],
  };
}
(async () => {
  const found = [];
  for (const page of PAGES) found.push(await inspect(page));
  document.getElementById("report").textContent = JSON.stringify(found);
})();
</script></body>"""


class Links(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src", "srcset", "data", "poster"):
            if name in given and (tag, name) != ("meta", "data"):
                (self.links if tag == "a" else self.loads).append(given[name])


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and keeps silent."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    builder = shutil.which("zensical", path=str(Path(sys.executable).parent)) or shutil.which("zensical")
    if builder is None:
        pytest.skip("zensical is not installed (extra `docs`)")
    folder = tmp_path_factory.mktemp("documentation")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = subprocess.run([builder, "build", "--strict"], cwd=folder, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def pages_of(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def is_remote(address: str) -> bool:
    return bool(re.match(r"(\w+:)?//", address.strip()))


def test_every_page_is_built(site):
    built = {page.relative_to(site).with_suffix(".md").as_posix() for page in pages_of(site)}
    assert built - {"404.md"} == {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}


def test_equations_reach_the_pages(site):
    for page in pages_of(site):
        source = (ROOT / "docs" / page.relative_to(site)).with_suffix(".md")
        if source.exists():
            written = re.sub(r"```.*?```", "", source.read_text(), flags=re.DOTALL).count("\\[")
            assert page.read_text().count('<div class="arithmatex">') == written, source


def test_links_lead_to_files_and_anchors_of_the_site(site):
    parsed = {page: Links(page.read_text()) for page in pages_of(site)}
    for page, found in parsed.items():
        if page.name == "404.html":
            continue  # it is served for any address, so that its links are absolute
        for link in [*found.links, *found.loads]:
            if is_remote(link) or re.match(r"(data|mailto):", link):
                continue
            address = urlsplit(link)
            file = (page.parent / unquote(address.path)).resolve() if address.path else page
            file = file / "index.html" if file.is_dir() else file
            where = f"{page.relative_to(site)} links to {link}"
            assert file.is_file(), where
            assert not address.fragment or unquote(address.fragment) in parsed[file].anchors, where


def test_nothing_is_loaded_from_another_host(site):
    for page in pages_of(site):
        remote = [address for address in Links(page.read_text()).loads if is_remote(address)]
        assert not remote, f"{page.relative_to(site)} loads {remote}"
    for file in [*pages_of(site), *site.rglob("*.css")]:
        remote = re.findall(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^)'\"\s]+)", file.read_text())
        assert not remote, f"{file.relative_to(site)} loads {remote}"


@pytest.mark.slow
def test_a_browser_typesets_every_equation_and_asks_no_other_host(site, tmp_path):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(BROWSERS)})")
    pages = [page.relative_to(site).as_posix() for page in pages_of(site) if page.name != "404.html"]
    (site / "inspector.html").write_text(INSPECTOR.replace("PAGES", json.dumps(pages)))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    command = [browser, *FLAGS, offline, f"--user-data-dir={tmp_path}", f"{origin}/inspector.html"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    finally:
        server.shutdown()
        server.server_close()
        (site / "inspector.html").unlink()
    report = re.search(r'<pre id="report">(.+?)</pre>', done.stdout, re.DOTALL)
    assert report, f"the browser gave no report: {done.stdout[-500:]} {done.stderr[-1000:]}"
    found = json.loads(html.unescape(report[1]))
    assert [entry["page"] for entry in found] == pages
    for entry in found:
        assert entry["typeset"] == entry["equations"], entry
        assert not entry["failed"] and not entry["images"], entry
        assert entry["hosts"] == [origin], entry
    assert sum(entry["equations"] for entry in found) > 100
