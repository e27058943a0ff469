"""Reading a report like a user: its tables and sections, and its layout in a browser."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scripts.pictures.chromium import Chromium, find_chromium

VOID = {"meta", "br", "img", "hr"}
_BLOCKS = {"p", "h1", "h2", "h3", "figcaption", "summary", "caption", "li"}


@dataclass
class Place:
    """One cell of a table."""

    tag: str
    classes: list[str]
    text: str = ""
    note: str = ""
    """The small print in it."""
    label: str = ""


@dataclass
class Table:
    """One table."""

    classes: list[str]
    section: str
    caption: str = ""
    rows: list[list[Place]] = field(default_factory=list)

    @property
    def heads(self) -> list[Place]:
        return self.rows[0]

    def column(self, head: str) -> list[str]:
        at = [place.text for place in self.heads].index(head)
        return [row[at].text for row in self.rows[1:]]


class Page(HTMLParser):
    """Tags with their attributes, paragraphs by section, and tables of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[Table] = []
        self.paragraphs: list[tuple[str, str]] = []
        self.hovers: list[str] = []
        """Text that appears when the pointer is over a mark."""
        self._section = ""
        self._open: list[tuple[str, list[str]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        classes = (attributes.get("class") or "").split()
        if tag == "section":
            self._section = attributes.get("id") or ""
        if tag == "table":
            self.tables.append(Table(classes, self._section))
        if tag == "tr":
            self.tables[-1].rows.append([])
        if tag in ("td", "th"):
            place = Place(tag, classes, label=attributes.get("data-label") or "")
            self.tables[-1].rows[-1].append(place)
        if tag in _BLOCKS:
            self.paragraphs.append((self._section, ""))
        if tag not in VOID:
            self._open.append((tag, classes))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        names = [tag for tag, _ in self._open]
        if names and names[-1] == "title":
            self.hovers.append(data)
        if "caption" in names:
            self.tables[-1].caption += data
        elif "td" in names or "th" in names:
            place = self.tables[-1].rows[-1][-1]
            if "small" in names:
                place.note = f"{place.note} {data}".strip()
            else:
                place.text = f"{place.text} {data}".strip()
        if _BLOCKS & set(names):
            section, text = self.paragraphs[-1]
            self.paragraphs[-1] = (section, text + data)

    @property
    def unclosed(self) -> list[str]:
        return [tag for tag, _ in self._open]

    def text(self, section: str) -> str:
        return " ".join(text for name, text in self.paragraphs if name == section)

    def titled(self, title: str) -> list[Table]:
        return [table for table in self.tables if table.caption.strip().startswith(title)]


def numbers_of(place: Place) -> tuple[float, float, float]:
    """Return the value and the two ends that a place shows."""
    value, low, high = re.findall(r"\d\.\d\d", place.text)
    return float(value), float(low), float(high)


def chromium() -> Chromium:
    """Return a browser to start, or skip the test: the layout cannot be measured without one."""
    if find_chromium() is None:
        pytest.skip("NO CHROMIUM ON THIS MACHINE: the layout of the page is not checked")
    return Chromium()


_MEASURE = """
(() => {
  const page = document;
  page.querySelectorAll("details").forEach(one => { one.open = true; });
  const wide = [];
  for (const one of page.querySelectorAll("table, th, td, p, pre, summary, svg, h1, h2, h3")) {
    if (one.closest(".drawing, svg") && one.tagName !== "svg") continue;
    if (one.closest(".scroll") && one.closest("table") && !one.closest(".stack")) continue;
    const box = one.getBoundingClientRect();
    if (box.width < 2 || (one.tagName === "svg" && ALLOW)) continue;
    if (one.closest("pre") || one.closest("thead") && innerWidth < 640) continue;
    if (box.right > page.documentElement.clientWidth + 1)
      wide.push(one.tagName + "." + one.className + ": " + one.textContent.trim().slice(0, 40));
  }
  const cut = [];
  for (const one of page.querySelectorAll(".scroll"))
    if (one.scrollWidth > one.clientWidth + 1) cut.push(one.getAttribute("aria-label"));
  const broken = [];
  for (const one of page.querySelectorAll("td")) {
    const text = one.textContent.trim(), range = page.createRange();
    range.selectNodeContents(one);
    const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
    if (/^[0-9.,]+$/.test(text) && lines.size > 1) broken.push(text);
  }
  return {
    scroll: page.documentElement.scrollWidth, client: page.documentElement.clientWidth, wide: wide,
    cut: cut, broken: broken,
  };
})()
"""


def overflow(page: Path, width: int, *, figures_scroll: bool = False) -> dict:
    """Return a page's width at a width of the window, the elements beyond its edge, the tables
    wider than their frame, and the numbers broken over two lines.

    All folds are opened first. `figures_scroll` lets figures be wider inside their own frame.
    """
    with chromium() as browser:
        browser.open(page, width=width, height=3000)
        return browser.evaluate(_MEASURE.replace("ALLOW", str(figures_scroll).lower()))


def on_paper(page: Path, folder: Path) -> tuple[str, list[str]]:
    """Print a page; return the text of the PDF, and the words outside its sheets."""
    reader = shutil.which("pdftotext")
    if reader is None:
        pytest.skip("NO pdftotext ON THIS MACHINE: the page on paper is not checked")
    pdf = folder / "page.pdf"
    with chromium() as browser:
        browser.open(page, width=1280, height=900)
        pdf.write_bytes(browser.pdf())
    boxes = subprocess.run(
        [reader, "-bbox", str(pdf), "-"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    words, beyond, width = [], [], 0.0
    for line in boxes.splitlines():
        if match := re.search(r'<page width="([\d.]+)"', line):
            width = float(match[1])
        if match := re.search(r'<word xMin="([\d.-]+)" .*xMax="([\d.-]+)".*>(.*)</word>', line):
            words.append(match[3])
            if float(match[2]) > width or float(match[1]) < 0:
                beyond.append(match[3])
    return " ".join(words), beyond
