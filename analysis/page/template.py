"""The templates of our pages: one look, numbers written alike, and every text escaped."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Template


def page_template(
    package: str, name: str, *, filters: Mapping[str, Callable[..., Any]] | None = None
) -> "Template":
    """Return a template that knows our stylesheet as `style`, and how numbers are written.

    What it is given is escaped, control characters visibly so (`\\x1b`, `\\u202e`), and a name that
    it is not given is an error.

    Args:
        package: which holds the file.
        name: of the file.
        filters: further ones of its own.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number_text, "signed": _signed, **(filters or {})}
    # Our own stylesheet, not data: what enters unescaped besides figures.
    environment.globals |= {"share": _share, "style": Markup(page_style())}
    return environment.get_template(name)


_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    # C0 but tab and newline, DEL and C1, and what turns the direction of the text behind it.
    for span in ((0, 9), (11, 32), (127, 160), (0x202A, 0x202F), (0x2066, 0x206A))
    for code in range(*span)
}


def visible(value: Any) -> Any:
    """Return a text with its control characters written out; markup and all else as it is."""
    return value.translate(_CONTROLS) if type(value) is str else value


def page_style() -> str:
    """Return the stylesheet of our pages."""
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


class PageScript(NamedTuple):
    """The script of a page, and what its content security policy calls it."""

    text: str
    """Markup: our own file, in which no data are."""
    digest: str
    """`sha256-…`: a browser runs this script and no other."""


def page_script() -> PageScript:
    """Return the script of our pages."""
    from markupsafe import Markup

    text = (Path(__file__).parent / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return PageScript(Markup(text), f"sha256-{digest}")


def number_text(value: float) -> str:
    """Return a number as our pages write it."""
    return f"{value:.2f}" if isfinite(value) else "–"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−") if isfinite(value) else "–"


def _share(cell: Any, part: str) -> str:
    """Return a position on the bar under a number as a percentage, 0 to 100."""
    return f"{100 * min(1.0, max(0.0, getattr(cell, part))):.1f}%"
