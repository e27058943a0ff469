"""What a check of a detector found, and what its author does about it."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["wrong", "look", "note", "passed"]
"""`wrong`: its numbers do not mean what they say. `look`: they may not. `note`: worth knowing.
`passed`: looked for and not found."""

SEVERITIES: tuple[Severity, ...] = ("wrong", "look", "note", "passed")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the checks."""

    check: str
    """What was looked at, such as `orientation`."""
    severity: Severity
    found: str
    """What was found, with its numbers."""
    meaning: str = ""
    """What it means."""
    action: str = ""
    """What to do."""

    @property
    def text(self) -> str:
        """The finding in one line."""
        return " ".join(part for part in (self.found, self.meaning, self.action) if part)


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings, the worst first, else as they came."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))
