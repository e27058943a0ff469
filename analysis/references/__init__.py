"""The sources of the methods that a report uses: `references.bib`, and which a run cites.

The file is ours and keeps one form: an entry opens with `@kind{key,`, has one field a line and ends
with `}`. Its `keywords` name what cites it (`detector:loss`, `statistics:auc`); a reader gets the
entry without them.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).parent / "references.bib"
_OPENS = re.compile(r"@(\w+)\{([\w-]+),$")
_FIELD = re.compile(r"  (\w+) = \{(.*)\},$")
_KEYWORDS = "keywords"

STATISTICS = {
    "auc": "AUC intervals",
    "pooled": "AUC over several datasets",
    "adjusted": "AUCs adjusted by the base model",
    "tpr": "true-positive rates",
    "factors": "what each factor does",
    "checks": "checks of AUCs against chance",
    "accuracy": "accuracies before and after training",
    "trend": "the trend over copies",
    "flagged": "decisions with a bound on their errors",
    "datasets": "p-values of whole datasets",
    "unlearning": "measures of unlearning",
}
"""What of the analysis has sources, in words."""


class BibliographyEntry(NamedTuple):
    """One entry."""

    key: str
    kind: str
    """`article`, `inproceedings`, `misc`."""
    fields: dict[str, str]
    """As in the file, without keywords."""
    cited_for: tuple[str, ...]

    @property
    def bibtex(self) -> str:
        """The entry as BibTeX."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


@cache
def bibliography() -> tuple[BibliographyEntry, ...]:
    """Return all entries, in the order of the file."""
    return tuple(_parse_entries(_FILE.read_text(encoding="utf-8")))


def cited(
    detectors: Sequence[str],
    dataset_detectors: Sequence[str] = (),
    statistics: Sequence[str] = tuple(STATISTICS),
    unlearning: Sequence[str] = (),
) -> tuple[BibliographyEntry, ...]:
    """Return the sources of what a run used, in the order of the file, each once.

    Args:
        detectors: by name; one of a user's own has no entry.
        dataset_detectors: by name.
        statistics: keys of `STATISTICS`.
        unlearning: methods, by name; one of a user's own has no entry.
    """
    keys = {f"detector:{name}" for name in detectors}
    keys |= {f"dataset_detector:{name}" for name in dataset_detectors}
    keys |= {f"statistics:{name}" for name in statistics}
    keys |= {f"unlearning:{name}" for name in unlearning}
    return tuple(reference for reference in bibliography() if keys & set(reference.cited_for))


def references_text(references: Sequence[BibliographyEntry]) -> str:
    """Return entries as the content of a BibTeX file."""
    return "\n\n".join(reference.bibtex for reference in references) + "\n"


def _parse_entries(text: str) -> list[BibliographyEntry]:
    references: list[BibliographyEntry] = []
    key = kind = ""
    fields: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if opened := _OPENS.fullmatch(line):
            kind, key, fields = opened[1], opened[2], {}
        elif field := _FIELD.fullmatch(line):
            fields[field[1]] = field[2]
        elif line == "}":
            cited_for = tuple(fields.pop(_KEYWORDS, "").split(", "))
            references.append(BibliographyEntry(key, kind, fields, cited_for))
        elif line and not line.startswith("%"):
            raise ValueError(f"{_FILE.name}, line {number} is not understood: {line}")
    return references
