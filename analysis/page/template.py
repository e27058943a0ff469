"""The templates of our pages: one look, and every text escaped."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Template


def page_template(
    package: str, name: str, *, filters: Mapping[str, Callable[..., Any]] | None = None
) -> "Template":
    """Return a template that knows our stylesheet as `style`.

    What it is given is escaped, control characters visibly so (`\\x1b`, `\\u202e`), and a name that
    it is not given is an error.

    Args:
        package: which holds the file.
        name: of the file.
        filters: further ones of its own.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        # A page of another package may import `parts.html.j2`.
        loader=ChoiceLoader([PackageLoader(one, ".") for one in (package, "analysis.page")]),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    # Our own stylesheet, not data: what enters unescaped besides figures.
    style = _own_file("style.css") + _own_file("drawing/drawing.css")
    environment.globals["style"] = Markup(style)
    return environment.get_template(name)


_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    # C0 but tab and newline, DEL and C1, what turns the direction of the text behind it, and the
    # two that no XML may hold.
    for span in ((0, 9), (11, 32), (127, 160), (0x202A, 0x202F), (0x2066, 0x206A), (0xFFFE, 65536))
    for code in range(*span)
}


def visible(value: Any) -> Any:
    """Return a text with its control characters written out; markup and all else as it is."""
    return value.translate(_CONTROLS) if type(value) is str else value


class PageScript(NamedTuple):
    """The script of a page, and what its content security policy calls it."""

    text: str
    """Markup: our own file, in which no data are."""
    digest: str
    """`sha256-…`: a browser runs this script and no other."""


def page_script() -> PageScript:
    """Return the script of our pages."""
    from markupsafe import Markup

    text = _own_file("report.js")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return PageScript(Markup(text), f"sha256-{digest}")


def _own_file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
