"""Writes the tables of docs/detectors.md from what the detectors declare.

    python -m scripts.detector_reference

The same declarations fill `spikein detectors` and a run's page, so that the documentation cannot
drift (a test compares).
"""

from pathlib import Path

from detect.detector_table import DetectorFacts, describe_named
from detect.registry import detector_names

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "detectors.md"
MARK = "<!-- from here on written by python -m scripts.detector_reference -->\n"


def reference() -> str:
    """Return the table of all built-in detectors, and a section for each, as Markdown."""
    found = [describe_named(name) for name in detector_names()]
    lines = [
        "## All detectors",
        "",
        "| name | in print | access | needs beside the text | cost of a text | paper |",
        "|---|---|---|---|---|---|",
        *(
            _row(
                f"[`{one.name}`](#{one.name})",
                one.title,
                one.access,
                ", ".join(need for need in one.needs if need != "view text"),
                one.cost,
                one.source.replace(f" ({one.title})", ""),
            )
            for one in found
        ),
        "",
        "## Each in full",
        "",
    ]
    first: dict[str, str] = {}
    for one in found:
        lines += _section(one, first)
    return "\n".join(lines).rstrip("\n") + "\n"


def document(existing: str) -> str:
    """Return the whole document: what stands before the mark, then the reference."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


def _section(one: DetectorFacts, first: dict[str, str]) -> list[str]:
    """Return a line a parameter; those that an earlier detector has alike are named in one line.

    Args:
        one: the detector.
        first: each line so far, with the detector that it stands under; grows.
    """
    lines = [
        f"### {one.name}",
        "",
        f"{_sentence(one.summary)} {_sentence('Assumes: ' + one.assumption)}"
        + (f" Depends on {one.depends_on}." if one.depends_on else "")
        + (f" Tuned over {one.grid_text}." if one.grid else ""),
        "",
    ]
    alike = dict[str, list[str]]()
    for each in one.parameters:
        line = f"- `{each.name}` (`{each.default}`): {each.text}"
        if first.setdefault(line, one.name) == one.name:
            lines.append(line)
        else:
            alike.setdefault(first[line], []).append(f"`{each.name}`")
    lines += [f"- {', '.join(names)}: as [`{where}`](#{where})." for where, names in alike.items()]
    return [*lines, ""] if one.parameters else lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _row(*values: str) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
