"""Contrast of text with its background in both colour schemes: WCAG 2.1, level AA."""

import itertools
import re
from pathlib import Path

import pytest

from analysis import page
from analysis.page.drawing.matrix import _STRONGEST

STYLE = (Path(page.__file__).parent / "style.css").read_text(encoding="utf-8")
TEXT, GRAPHIC = 4.5, 3.0
ON_PAGE = [
    *itertools.product(("ink", "mut", "acc"), ("bg", "card", "accs")),
    *itertools.product(("ink", "mut"), ("soft",)),
]
"""Text colours of the page and their backgrounds."""


def schemes() -> list[dict[str, str]]:
    light, dark, _paper = re.findall(r":root \{(.*?)\}", STYLE, re.S)
    first, second = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", text.replace("#fff;", "#ffffff;")))
        for text in (light, dark)
    )
    return [first, first | second]


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours such as `#1f2933`."""

    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_page_texts_have_sufficient_contrast(dark):
    colours = schemes()[dark]
    weak = {
        (text, ground): round(contrast(colours[text], colours[ground]), 2)
        for text, ground in ON_PAGE
        if contrast(colours[text], colours[ground]) < TEXT
    }
    assert weak == {}


@pytest.mark.parametrize("dark", [False, True])
def test_marks_and_letters_of_pictures_have_sufficient_contrast(dark):
    colours = schemes()[dark]
    for name in ("dot", "acc", "low"):
        assert contrast(colours[name], colours["bg"]) >= GRAPHIC, name
    for name in ("dot", "low"):
        assert contrast(colours["ink"], blended(colours[name], colours["bg"])) >= TEXT, name


def blended(colour: str, ground: str) -> str:
    """Return the strongest cell of a grid."""
    channels = (
        (int(hex_code[at : at + 2], 16) for at in (1, 3, 5)) for hex_code in (colour, ground)
    )
    mixed = (_STRONGEST * a + (1 - _STRONGEST) * b for a, b in zip(*channels, strict=True))
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed)
