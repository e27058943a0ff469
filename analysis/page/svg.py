"""Figures inside the page: our SVG files, made safe to inline and to follow the colour scheme.

The file is parsed and written anew: comments, metadata and prolog go, ids get the figure's
name as a prefix (two figures share a page), and the house's colours become CSS variables
with the drawn colour as fallback. Anything that could run or load is refused.
"""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from markupsafe import Markup

from analysis.figures.panel import FAINT, GRID, INK, MUTED, PALETTE, PAPER
from inject.errors import SpikeinError

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_ALLOWED = frozenset(
    [
        "svg",
        "g",
        "path",
        "defs",
        "use",
        "clipPath",
        "rect",
        "image",
        "style",
        "text",
        "tspan",
        "title",
        "desc",
        "line",
        "polygon",
    ]
)
_NO_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
"""What no XML may hold, in UTF-8."""
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    FAINT: "faint",
    **{colour: f"c{at}" for at, colour in enumerate(PALETTE)},
}


def inline_svg(path: Path, name: str, label: str) -> Markup:
    """Return the SVG file as markup for a page.

    Args:
        path: a file written by `analysis.figures`.
        name: prefix of ids, unique in the page.
        label: what the figure shows, for readers who do not see it.

    Raises:
        SpikeinError: when the file holds an element or a link we never draw.
    """
    # Matplotlib writes each text into a comment, too, control characters of names included.
    root = ET.fromstring(_NO_XML.sub(b"", path.read_bytes()))
    for parent in root.iter():
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata":
                parent.remove(child)
    for element in root.iter():
        _check(element, path)
        _rewrite(element, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", label)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return Markup(ET.tostring(root, encoding="unicode"))


def _check(element: ET.Element, path: Path) -> None:
    tag = str(element.tag).removeprefix(f"{{{_SVG}}}")
    link = element.get(_HREF, "") or element.get("href", "")
    bad_link = link and not link.startswith(("#", "data:image/png;base64,"))
    handler = next((key for key in element.attrib if key.lower().startswith("on")), None)
    if tag not in _ALLOWED or bad_link or handler:
        raise SpikeinError(f"{path}: refused to inline <{tag}> {handler or link[:40]}")


def _rewrite(element: ET.Element, name: str) -> None:
    for key, value in list(element.attrib.items()):
        changed = value
        if key == "id":
            changed = f"{name}-{value}"
        elif key in (_HREF, "href") and value.startswith("#"):
            changed = f"#{name}-{value[1:]}"
        elif "url(#" in value:
            changed = value.replace("url(#", f"url(#{name}-")
        if key in ("style", "fill", "stroke"):
            changed = re.sub(r"#[0-9a-fA-F]{6}", _variable, changed)
        element.set(key, changed)
    if element.tag == f"{{{_SVG}}}style" and element.text:
        # Matplotlib's global rule would reach into the page; its figures do not need it scoped.
        element.text = element.text.replace("*{", f"[id^='{name}-']{{")


def _variable(match: re.Match[str]) -> str:
    colour = match.group().lower()
    variable = _VARIABLES.get(colour)
    return f"var(--fig-{variable},{colour})" if variable else colour
