"""Write the reference part of docs/detectors.md from the detectors' declarations.

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
    """Return a section for each built-in detector, by access, as Markdown."""
    facts = [describe_named(name) for name in detector_names()]
    order = sorted(facts, key=_access_level)
    lines: list[str] = []
    first: dict[str, str] = {}
    for _, group in groupby(order, key=_access_level):
        detectors = list(group)
        lines += [f"## Access: {detectors[0].access}", ""]
        for detector in detectors:
            lines += _section(detector, first)
    return "\n".join(lines).rstrip("\n") + "\n"


def document(existing: str) -> str:
    """Return the whole document: the text before the mark, then the reference."""
    return existing.split(MARK)[0] + MARK + "\n" + reference()


def _section(detector: DetectorFacts, first: dict[str, str]) -> list[str]:
    """Return one line per parameter with named values; the others share one line.

    Args:
        detector: the detector.
        first: each line so far, with its detector; grows.
    """
    needs = [need for need in detector.needs if need != "view text"]
    source = detector.source.replace(f" ({detector.title})", "")
    named = detector.title.casefold() == detector.name
    lines = [
        f"### {detector.name}",
        "",
        (f"{source}." if named else f"*{detector.title}* ({source}).")
        + (f" Needs: {', '.join(needs)}." if needs else "")
        + (f" Cost: {detector.cost}." if detector.cost != "target 1×" else ""),
        "",
        f"{_sentence(detector.summary)} {_sentence('Assumes: ' + detector.assumption)}"
        + (f" Depends on {detector.depends_on}." if detector.depends_on else "")
        + (f" Grid: {detector.grid_text.split(': ', 1)[-1]}." if detector.grid else ""),
        "",
    ]
    alike = dict[str, list[str]]()
    plain = []
    for parameter in detector.parameters:
        head = f"`{parameter.name}` (`{parameter.default}`)"
        if not parameter.choices:
            plain.append(head)
            continue
        line = f"- {head}: {parameter.text}"
        if first.setdefault(line, detector.name) == detector.name:
            lines.append(line)
        else:
            alike.setdefault(first[line], []).append(f"`{parameter.name}`")
    lines += [
        f"- {', '.join(names)}: as [`{anchor}`](#{anchor})." for anchor, names in alike.items()
    ]
    lines += [f"- Others: {', '.join(plain)}"] if plain else []
    return [*lines, ""] if detector.parameters else lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _access_level(detector: DetectorFacts) -> int:
    return detector.access_level


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"written: {DOCUMENT}")
