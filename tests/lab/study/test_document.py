"""One document in two forms: Markdown, and a page of HTML that needs nothing else. User text stays text."""

from __future__ import annotations

import html.parser
import re

import pytest

from solvable.lab.study.document import Code, Heading, Listing, Paragraph, Picture, Table, to_html, to_markdown

NASTY = "z < 1 & <script>alert('x')</script> | `a` * _b_ [c](http://evil) \"q\""
BLOCKS = [
    Heading(["About ", Code(NASTY)], level=1),
    Paragraph(["Plain ", NASTY, " and ", Code("where(z < 1, 1, 0)")]),
    Table(["name", "value"], [["a | b", "1"], ["<b>", "2"]]),
    Listing("solvable study -- 'z < 1'"),
    Picture("figure.png", 'A "picture" <of> it', b"\x89PNG bytes"),
]


class Tags(html.parser.HTMLParser):
    """Collects tags, attributes and text, and checks that what is opened is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page():
    tags = Tags()
    tags.feed(to_html(BLOCKS, NASTY))
    return tags


def test_html_is_well_formed_and_runs_nothing(page):
    assert page.open == [] and "script" not in page.seen and "link" not in page.seen and "a" not in page.seen
    assert not any(name.startswith("on") for name, _ in page.attributes)


def test_html_refers_to_nothing_outside_itself(page):
    sources = [value for name, value in page.attributes if name in ("src", "href", "srcset", "data", "action")]
    assert len(sources) == 1 and sources[0].startswith("data:image/png;base64,")
    style = "".join(page.text)
    assert "url(" not in style and "@import" not in style


def test_html_shows_what_was_typed(page):
    assert page.text.count(NASTY) >= 2  # the title of the page and the heading
    assert "where(z < 1, 1, 0)" in page.text and "solvable study -- 'z < 1'" in page.text
    assert dict(page.attributes)["alt"] == 'A "picture" <of> it'


def test_html_follows_the_readers_light_or_dark():
    text = to_html(BLOCKS, "x")
    assert "color-scheme: light dark" in text and "prefers-color-scheme: dark" in text


def test_markdown():
    text = to_markdown(BLOCKS)
    title, paragraph, table, listing, picture = text.strip().split("\n\n")
    assert title == f"# About ``{NASTY}``"
    assert "\\<script>" in paragraph and "\\_b\\_" in paragraph and "`where(z < 1, 1, 0)`" in paragraph
    assert table == "| name | value |\n| --- | --- |\n| a \\| b | 1 |\n| \\<b> | 2 |"
    assert listing == "```\nsolvable study -- 'z < 1'\n```"
    assert re.fullmatch(r"!\[A \"picture\" \\<of> it\]\(figure\.png\)", picture)
