"""Take a picture of each section of a report, for the tutorial.

`python -m scripts.pictures.report_sections REPORT FOLDER NAME` writes `FOLDER/NAME-SECTION.png`;
the first screen is the section `answer`. Takes about 3 s.
"""

import sys
from io import BytesIO
from pathlib import Path

from scripts.pictures.chromium import Chromium
from scripts.pictures.page_measures import SCREEN, WIDE, small_picture

_MARGIN = 24
"""Pixels of the page on either side of a section."""
_BOXES = """
({sections: [...document.querySelectorAll("section[id]")].map((section) => {
  const box = section.getBoundingClientRect();
  return [section.id, box.left, box.top + scrollY, box.right, box.bottom + scrollY];
}), height: document.documentElement.scrollHeight})
"""


def take_sections(browser: Chromium, report: Path, folder: Path, name: str) -> list[Path]:
    """Write one PNG per section of a report and return their paths."""
    from PIL import Image

    browser.open(report, width=WIDE, height=SCREEN)
    height = browser.evaluate(_BOXES)["height"]
    # A window as high as the page shows all of it at once.
    browser.open(report, width=WIDE, height=height)
    page = Image.open(BytesIO(browser.screenshot()))
    boxes = browser.evaluate(_BOXES)["sections"]
    first = min(top for _, _, top, _, _ in boxes)
    written = []
    for section, left, top, right, bottom in [
        ["answer", _MARGIN, 0, WIDE - _MARGIN, first],
        *boxes,
    ]:
        out = BytesIO()
        box = (left - _MARGIN, top, right + _MARGIN, bottom)
        page.crop(tuple(map(int, box))).save(out, "PNG")
        path = folder / f"{name}-{section}.png"
        path.write_bytes(small_picture(out.getvalue()))
        written.append(path)
    return written


if __name__ == "__main__":
    report, folder, name = sys.argv[1:]
    with Chromium() as chromium:
        for path in take_sections(chromium, Path(report), Path(folder), name):
            print(path)
