"""Where the numbers of a page come from: when, with what code, and on what machine."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analysis.page.report import Fact

_UNKNOWN = "not recorded"


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step of the run."""

    name: str
    tokens: int | None
    """Tokens trained on or scored; None where the step has none."""
    seconds: float
    """Wall-clock seconds when it was computed."""
    created: str
    """When it was computed: UTC, ISO 8601."""
    code: str | None
    """The version of the code that computed it; None where it was not recorded."""
    machine: str | None
    """The kind of machine; None where it was not recorded."""


class NamedArtifact(NamedTuple):
    """An artifact that the page names by its digests."""

    name: str
    digest: str
    content: str
    """The digest of its content."""


def provenance(
    steps: Sequence[StepRecord],
    artifacts: Sequence[NamedArtifact],
    *,
    code: str,
    libraries: Mapping[str, str],
) -> list[Fact]:
    """Return times, versions, machines and digests.

    Args:
        steps: all steps of the run.
        artifacts: those that the page names.
        code: the version of the code that makes the page.
        libraries: name → version of the libraries that matter.
    """
    created = sorted(one.created.replace("T", " ").replace("+00:00", " UTC") for one in steps)
    return [
        Fact("Steps computed", " to ".join(dict.fromkeys((created[0], created[-1])))),
        Fact("Page made by spikein", code),
        _counted("Computed by spikein", [one.code for one in steps]),
        _counted("Computed on", [one.machine for one in steps]),
        Fact("Python of the page", platform.python_version()),
        *(Fact(name, version) for name, version in libraries.items()),
        *(Fact(one.name, f"{one.digest[:12]} · content {one.content[:12]}") for one in artifacts),
    ]


def _counted(name: str, values: Sequence[str | None]) -> Fact:
    """Return a value of the steps; where it varies, each with the number of its steps."""
    counts = Counter(value or _UNKNOWN for value in values)
    if len(counts) == 1:
        return Fact(name, next(iter(counts)))
    parts = (f"{text} ({count} of {len(values)} steps)" for text, count in counts.items())
    return Fact(name, "; ".join(parts))
