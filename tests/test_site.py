"""The site builds without warnings and without torch, and loads no external resources."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import spikein
from scripts.site_pages import linked, notebook_page
from tests.how_to import copy_repository

REPOSITORY = Path(__file__).resolve().parent.parent
# A module that is None in `sys.modules` cannot be imported.
BUILD = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from mkdocs.__main__ import cli
cli(["build", "--strict", "--site-dir", sys.argv[1]])
"""


def build(repository: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUILD, str(site)],
        cwd=repository,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY, folder)
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout, done.stdout
    return folder


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def external_urls(html: str) -> list[str]:
    """External resources that a browser loads with a page: scripts, styles, images, frames."""
    urls = []
    for tag, attributes in Tags(html).tags:
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            urls.append(attributes.get("src"))
        if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev"):
            urls.append(attributes.get("href"))
    return [url for url in urls if url and re.match(r"(https?:)?//", url)]


@pytest.mark.slow
def test_site_builds_strictly_without_external_resources(site: Path):
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "glossary.html", "api.html", "contributing.html"} <= {
        page.name for page in pages
    }
    for page in pages:
        assert external_urls(page.read_text(encoding="utf-8")) == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text("utf-8")), (
            sheet
        )


def test_check_detects_external_resources():
    html = '<script src="https://a/b.js"></script><a href="https://c">d</a><img src="e.png">'
    assert external_urls(html + '<link rel="stylesheet" href="//f/g.css">') == [
        "https://a/b.js",
        "//f/g.css",
    ]


@pytest.mark.slow
def test_api_page_lists_public_names_with_docstrings(site: Path):
    page = (site / "api.html").read_text(encoding="utf-8")
    for name in set(spikein.__all__) - {"__version__"}:
        assert f'id="spikein.{name}"' in page, name
    # A docstring that is not understood is shown verbatim.
    assert "Args:" not in page
    assert "```" not in page


@pytest.mark.slow
def test_all_documents_are_on_the_site(site: Path):
    for page in (REPOSITORY / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file(), page.name
    for notebook in (REPOSITORY / "docs").rglob("*.ipynb"):
        place = notebook.relative_to(REPOSITORY / "docs").with_suffix(".html")
        assert (site / place).is_file(), notebook.name


@pytest.mark.slow
def test_dead_links_stop_the_build(tmp_path: Path):
    copy_repository(tmp_path / "copy")
    # The first page: a name that does not exist ends the build there.
    page = min((tmp_path / "copy" / "docs").glob("*.md"))
    text = page.read_text(encoding="utf-8")
    dead = "[a page](no-such-page.md) and [a term](glossary.md#no-such-term)"
    for line, words in ((dead, ("no-such-page.md", "no-such-term")),
                        ("::: spikein.no_such_name", ("spikein.no_such_name",))):  # fmt: skip
        page.write_text(f"{text}\n\n{line}\n", encoding="utf-8")
        done = build(tmp_path / "copy", tmp_path / "site")
        assert done.returncode != 0
        assert all(word in done.stdout for word in words)


def test_links_point_to_the_same_page_on_the_site():
    text = "[a](docs/training.md#twins), ![b](docs/images/c.png), [d](LICENSE) and `[e](docs/f.md)`"
    assert linked(text, "README.md") == (
        "[a](training.md#twins), ![b](images/c.png), d and `[e](docs/f.md)`"
    )
    assert linked("[a](../README.md) [b](glossary.md)", "docs/training.md") == (
        "[a](index.md) [b](glossary.md)"
    )
    assert linked("[a](../glossary.md)", "docs/notebooks/one.md") == "[a](../glossary.md)"
    assert linked("[a](https://b.c/d.md) [e](#f)", "README.md") == "[a](https://b.c/d.md) [e](#f)"


def test_notebook_becomes_a_static_page():
    page = notebook_page(
        {
            "cells": [
                {"cell_type": "markdown", "source": ["# Title\n", "Words, [two](two.ipynb)"]},
                {
                    "cell_type": "code",
                    "source": "1 + 1",
                    "outputs": [
                        {"output_type": "execute_result", "data": {"text/plain": ["<b>2</b>"]}},
                        {"output_type": "stream", "name": "stdout", "text": "a & b\n"},
                        {
                            "output_type": "display_data",
                            "data": {"image/png": "AAAA\n", "text/plain": '"x"'},
                        },
                        {
                            "output_type": "display_data",
                            "data": {"text/html": "<script>alert(1)</script>"},
                        },
                    ],
                },
                {"cell_type": "code", "source": "", "outputs": []},
            ]
        },
        "one.ipynb",
    )
    assert page.startswith(
        "# Title\nWords, [two](two.md)\n\n*This page is a notebook: [download it](one.ipynb).*"
    )
    assert "```python\n1 + 1\n```" in page
    assert "&lt;b&gt;2&lt;/b&gt;" in page
    assert "a &amp; b" in page
    assert '<img alt="&quot;x&quot;" src="data:image/png;base64,AAAA">' in page
    assert "<script>" not in page
