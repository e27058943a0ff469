"""`runs/index.html`: all runs of a folder in one page, with their results and checks.

A run writes `summary.json` into its folder; the page is built only from these files, so that it
costs milliseconds per run. It is rewritten whenever a run is published, and never replaces a file
of that name that spikein did not write. It is self-contained, and every text is escaped.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from analysis.page.content import RunPage
from analysis.page.parts import page_template
from inject.errors import InputError
from inject.files import write_text
from spikein.runs.folder import finish_time, run_folders, run_name
from spikein.runs.record import read_record

SUMMARY = "summary.json"
INDEX = "index.html"
_GENERATOR = '<meta name="generator" content="spikein">'


class IndexRow(NamedTuple):
    """One run in the page."""

    name: str
    page: str | None
    """Its address, relative to the page; None if there is no page."""
    finished: str
    """UTC, to the minute."""
    version: str
    """Of spikein."""
    summary: Mapping[str, Any] | None
    """The content of `summary.json`."""
    problem: str | None
    """The reason why there is no summary."""


def write_summary(folder: Path, page: RunPage, *, arms: int) -> None:
    """Write `summary.json` into a run folder that is being filled."""
    content = {
        "checks": [{"name": check.name, "verdict": check.verdict} for check in page.checks],
        # The headline first.
        "sentences": page.sentences,
        # All seeds included: the trained models in the report.
        "arms": arms,
    }
    write_text(folder / SUMMARY, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_sentences(folder: Path) -> list[str]:
    """Return the sentences in the `summary.json` of a run folder; none without that file."""
    try:
        document = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [str(sentence) for sentence in document.get("sentences", ())]


def write_index(runs_root: Path) -> Path | None:
    """Write `index.html` into a folder of runs.

    Returns:
        Its path; None if a file of that name is not ours and stays unchanged, or without any run.
    """
    from markupsafe import Markup

    path = runs_root / INDEX
    rows = index_rows(runs_root)
    if not rows or not _is_ours(path):
        return None
    template = page_template("spikein.runs", "index.html.j2")
    title = runs_root.resolve().name
    write_text(path, template.render(generator=Markup(_GENERATOR), rows=rows, title=title))
    return path


def index_rows(runs_root: Path) -> list[IndexRow]:
    """Return one row for each run folder, the latest first."""
    return sorted(
        (_row(folder) for folder in run_folders(runs_root)),
        key=lambda row: (row.finished, row.name),
        reverse=True,
    )


def _row(folder: Path) -> IndexRow:
    summary, problem = None, None
    version, finished = "", ""
    try:
        document = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        summary = {name: document[name] for name in ("checks", "sentences", "arms")}
    except (OSError, ValueError, LookupError, TypeError):
        problem = f"{SUMMARY} cannot be read. `spikein report` writes it again."
    try:
        record = read_record(folder)
        version, finished = record.version, f"{finish_time(folder):%Y-%m-%d %H:%M}"
    except InputError as error:
        problem = str(error)
    name = run_name(folder)
    page = f"{quote(name)}/report.html" if (folder / "report.html").is_file() else None
    return IndexRow(name, page, finished, version, summary, problem)


def _is_ours(path: Path) -> bool:
    try:
        return _GENERATOR in path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False
