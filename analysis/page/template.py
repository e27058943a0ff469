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

    What it is given is escaped, and a name that it is not given is an error.

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
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number_text, "signed": _signed, **(filters or {})}
    # Our own stylesheet, not data: what enters unescaped besides figures.
    environment.globals |= {"share": _share, "style": Markup(page_style())}
    return environment.get_template(name)


def page_style() -> str:
    """Return the stylesheet of our pages."""
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


class PageScript(NamedTuple):
    """The script of a page, and what its content security policy calls it."""

    text: str
    """Markup: our own file, in which no data are."""
    digest: str
    """`sha256-…`: a browser runs this script and no other."""


def page_script(package: str = "analysis.page", name: str = "report.js") -> PageScript:
    """Return the script of a page: by default, that of a report."""
    from importlib.resources import files

    from markupsafe import Markup

    text = (files(package) / name).read_text(encoding="utf-8")
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
