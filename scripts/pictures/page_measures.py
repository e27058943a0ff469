"""Measures pages as a browser shows and prints them, and takes the pictures of `docs/images`.

`python -m scripts.pictures.page_measures PAGE… [--pictures FOLDER]` prints JSON, one object per
page, and exits with 1 if a page breaks a limit. Texts overlap if the ink of two lines does, in HTML
or SVG, with all folds opened. Takes about 5 s per page.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from scripts.pictures.chromium import Chromium

SCREEN, WIDE, PHONE = 900, 1280, 390
"""Pixels: the height of a screen, and the widths of two windows."""
MAX_BYTES, MAX_SCREENS, MAX_SHEETS, MAX_TABLES = 1_000_000, 8, 10, 12
_PHONE_SCREEN = 844
_SHEET, _MARGIN = (794, 1123), 38
"""A4 and its margin of a centimetre, in pixels."""
_MAX_PICTURE = 150_000
_COLOURS = (128, 64, 32)
"""Palettes, the first that makes a picture small enough is taken."""
_MEASURING = Path(__file__).with_suffix(".js")


class Limit(NamedTuple):
    """Upper limits of the measures."""

    measure: str
    most: float
    words: str


LIMITS = (
    Limit("bytes", MAX_BYTES, "bytes"),
    Limit("first_screen", SCREEN, "pixels down to the end of the first screen"),
    Limit("screens", MAX_SCREENS, f"screens of {SCREEN} pixels at {WIDE}"),
    Limit("sheets", MAX_SHEETS, "sheets of A4"),
    Limit("tables", MAX_TABLES, "tables outside folds"),
    Limit(f"overlaps_{WIDE}", 0, f"pairs of texts over one another at {WIDE}"),
    Limit(f"overlaps_{PHONE}", 0, f"pairs of texts over one another at {PHONE}"),
    Limit(f"cut_{WIDE}", 0, f"texts that reach out of their picture at {WIDE}"),
    Limit(f"cut_{PHONE}", 0, f"texts that reach out of their picture at {PHONE}"),
    Limit("scroll", 0, f"pixels beyond the edge at {PHONE}"),
    Limit("dead_links", 0, "links that do not resolve"),
)


def measure(browser: Chromium, page: Path) -> dict[str, Any]:
    """Return the measures of a page; `broken` names exceeded limits and the elements at fault.

    Args:
        browser: a running one.
        page: an HTML file.
    """
    browser.open(page, width=PHONE, height=_PHONE_SCREEN)
    phone = browser.evaluate(_MEASURING.read_text(encoding="utf-8"))
    browser.open(page, width=WIDE, height=SCREEN)
    sheets = sheets_of(browser.pdf())
    seen = browser.evaluate(_MEASURING.read_text(encoding="utf-8"))
    behind = {
        f"overlaps_{WIDE}": seen["overlaps"],
        f"overlaps_{PHONE}": phone["overlaps"],
        f"cut_{WIDE}": seen["cut"],
        f"cut_{PHONE}": phone["cut"],
        "dead_links": dead_links(page, seen["links"], set(seen["ids"])),
    }
    measures = {
        "page": page.name,
        "bytes": page.stat().st_size,
        "height": seen["height"],
        "screens": round(seen["height"] / SCREEN, 1),
        "first_screen": None if seen["first"] is None else round(seen["first"]),
        "sheets": sheets,
        "tables": seen["tables"],
        "scroll": phone["width"] - phone["window"],
        **{name: len(items) for name, items in behind.items()},
    }
    broken = [
        f"{measures[limit.measure]:,} {limit.words}, at most {limit.most:,}"
        + "".join(f"; {items}" for items in behind.get(limit.measure, [])[:20])
        for limit in LIMITS
        if (measures[limit.measure] or 0) > limit.most
    ]
    return {**measures, "broken": broken}


def sheets_of(pdf: bytes) -> int:
    """Return the number of pages of a PDF by Chromium."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def dead_links(page: Path, links: Sequence[str], ids: set[str]) -> list[str]:
    """Return the addresses that name no file next to the page, or no place in it.

    Network addresses are not requested.
    """
    dead = []
    for link in links:
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        target = page.parent / unquote(address.path) if address.path else page
        place = unquote(address.fragment)
        if not target.exists():
            dead.append(link)
        elif place and target.suffix == ".html":
            known_ids = (
                ids if target == page else set(re.findall(r'\sid="([^"]*)"', target.read_text()))
            )
            dead += [link] if place not in known_ids else []
    return dead


def take_pictures(browser: Chromium, page: Path, folder: Path, name: str) -> list[Path]:
    """Write the first screen, wide and on a phone, in light and dark, and the first sheet."""
    written = []
    for look, dark in (("light", False), ("dark", True)):
        for width, height in ((WIDE, SCREEN), (PHONE, _PHONE_SCREEN)):
            browser.open(page, width=width, height=height, dark=dark)
            path = folder / f"{name}-{width}-{look}.png"
            path.write_bytes(small_picture(browser.screenshot()))
            written.append(path)
    inside = [side - 2 * _MARGIN for side in _SHEET]
    browser.open(page, width=inside[0], height=inside[1], medium="print")
    path = folder / f"{name}-printed.png"
    path.write_bytes(small_picture(browser.screenshot(), margin=_MARGIN))
    return [*written, path]


def small_picture(png: bytes, *, margin: int = 0) -> bytes:
    """Return a PNG with a palette of as many colours as the limit of size allows.

    Args:
        png: the picture.
        margin: pixels of white paper around it.
    """
    from PIL import Image, ImageOps

    picture = ImageOps.expand(Image.open(BytesIO(png)).convert("RGB"), margin, "white")
    for colours in _COLOURS:
        out = BytesIO()
        picture.quantize(colours).save(out, "PNG", optimize=True)
        if out.tell() <= _MAX_PICTURE:
            break
    return out.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Measure pages; return 1 if one breaks a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE", help="an HTML file")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="take pictures, too")
    parser.add_argument("--name", help="what pictures are called; else after the page")
    options = parser.parse_args(arguments)
    if missing := [str(page) for page in options.pages if not page.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    if others := [str(page) for page in options.pages if page.suffix != ".html"]:
        parser.error(f"not an HTML file (.html): {', '.join(others)}")
    if options.name and len(options.pages) > 1:
        parser.error("--name names the pictures of one page, and there are several")
    if options.pictures is not None:
        if options.pictures.exists() and not options.pictures.is_dir():
            parser.error(f"--pictures takes a folder, and {options.pictures} is a file")
        options.pictures.mkdir(parents=True, exist_ok=True)
    with Chromium() as browser:
        pages = [measure(browser, page) for page in options.pages]
        for page in options.pages if options.pictures is not None else ():
            take_pictures(browser, page, options.pictures, options.name or page.stem)
    print(json.dumps(pages, indent=1, ensure_ascii=False))
    return int(any(measures["broken"] for measures in pages))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
