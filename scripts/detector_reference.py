"""Write the reference part of docs/detectors.md from what the detectors declare.

    python -m scripts.detector_reference

The same declarations fill `spikein detectors` and a run's page, so that the documentation cannot
drift (a test compares).
"""

from itertools import groupby
from pathlib import Path

from detect.detector_table import DetectorFacts, describe_named
from detect.registry import detector_names

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "detectors.md"
MARK = "<!-- from here on written by python -m scripts.detector_reference -->\n"


def reference() -> str:
    """Return the built-in detectors by access, and a section for each, as Markdown."""
    facts = [describe_named(name) for name in detector_names()]
    lines = ["## All detectors", ""]
    for access, alike in groupby(sorted(facts, key=_access), key=_access):
        links = ", ".join(f"[`{one.name}`](#{one.name})" for one in alike)
        lines.append(f"- **{access}**: {links}")
    lines.append("")
    first: dict[str, str] = {}
    for detector in facts:
        lines += _section(detector, first)
    return "\n".join(lines).rstrip("\n") + "\n"


def document(existing: str) -> str:
    """Return the whole document: the text before the mark, then the reference."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


def _section(one: DetectorFacts, first: dict[str, str]) -> list[str]:
    """Return one line per parameter; those that an earlier detector explains share one line.

    Args:
        one: the detector.
        first: each line so far, with its detector; grows.
    """
    needs = [need for need in one.needs if need != "view text"]
    lines = [
        f"### {one.name}",
        "",
        f"*{one.title}* ({one.source.replace(f' ({one.title})', '')})."
        + (f" Needs: {', '.join(needs)}." if needs else "")
        + (f" Cost: {one.cost}." if one.cost != "target 1×" else ""),
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


def _access(one: DetectorFacts) -> str:
    return one.access


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
