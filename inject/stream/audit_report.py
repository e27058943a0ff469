"""The findings of an audit; nothing is trained on a stream whose audit failed.

Apart from the search (`inject.plan.audit_step`), so that a change of the search trains no model
again unless it finds something else.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inject.digest import digest
from inject.errors import SpikeinError
from inject.step import InputProjection

AUDIT_FILE = "audit.json"
PASSED = InputProjection(facet="passed", files=(AUDIT_FILE,))
"""Whether the audit passed."""
_LISTS = ("displaced", "wrong_counts", "nonmembers_found", "background_hits", "between_sides")


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The findings of the audit; `passed` only when every list of problems is empty.

    Each finding also has `row`, the dataset and the row's own id, and `inside`, the rows whose text
    contains it, once `inject.plan.audit_step.name_rows` has named them.
    """

    passed: bool
    members: int
    nonmembers: int
    zero_copy_members: int
    copies_expected: int
    copies_found: int
    displaced: tuple[dict[str, object], ...]
    """Copies that are not intact at their planned positions: example_id, dataset, copy, variant."""
    wrong_counts: tuple[dict[str, object], ...]
    """Members whose number of occurrences differs: example_id, expected, found."""
    nonmembers_found: tuple[dict[str, object], ...]
    """Withheld or held-out examples that occur in the stream: example_id, position."""
    background_hits: tuple[dict[str, object], ...]
    """Examples that occur in the clean corpus: example_id, position, document."""
    tokens_searched: int
    between_sides: tuple[dict[str, object], ...] = ()
    """Pairs of a member and a non-member that share a run of words: member, nonmember, words. Of a
    run that many members have, the pairs with the first few of them. They do not fail the audit,
    as rows of one dataset share phrases; many of them deserve a look."""
    held_out: int = 0
    """Held-out rows that were looked for besides; found ones are among `nonmembers_found`."""


def write_audit(out: Path, report: AuditReport) -> None:
    """Write `audit.json` into the folder `out`."""
    (out / AUDIT_FILE).write_text(json.dumps(asdict(report), indent=1))


def read_audit(folder: Path) -> AuditReport:
    """Read the report that `write_audit` wrote."""
    values = json.loads((folder / AUDIT_FILE).read_text())
    for name in _LISTS:
        values[name] = tuple(values[name])
    return AuditReport(**values)


class AuditFailed(SpikeinError):
    """The stream differs from the plan; nothing may be trained on it."""

    def __init__(self, report: AuditReport, folder: Path) -> None:
        lines = [f"the audit failed (all findings: {folder / AUDIT_FILE}):"]
        lines += [
            f"  member {_row_label(row)} occurs {row['found']} times, planned {row['expected']}"
            f"{_describe_surroundings(row)}"
            for row in report.wrong_counts[:5]
        ]
        lines += [
            f"  copy {row['copy']} ({row['variant']}) of {_row_label(row)} is not where it "
            "was planned, or not intact"
            for row in report.displaced[:5]
        ]
        lines += [
            f"  withheld example {_row_label(row)} occurs at token {row['position']}"
            f"{_describe_surroundings(row)}"
            for row in report.nonmembers_found[:5]
        ]
        lines += [
            f"  example {_row_label(row)} occurs in background document {row['document']}"
            for row in report.background_hits[:5]
        ]
        lines.append(
            "Remove these rows from the dataset, or the documents from the background sources."
        )
        super().__init__("\n".join(lines))


def passed(folder: Path) -> str:
    """Return the digest of the content that `PASSED` names."""
    return digest(read_audit(folder).passed)


def require_passed(folder: Path) -> None:
    """Stop the graph if the audit failed.

    Raises:
        AuditFailed: with the first findings.
    """
    report = read_audit(folder)
    if not report.passed:
        raise AuditFailed(report, folder)


def _row_label(finding: Mapping[str, object]) -> str:
    """Return a row's own name if the finding has it, and its example_id."""
    name = str(finding["example_id"])
    return f"{finding['row']} (example {name})" if "row" in finding else name


def _describe_surroundings(finding: Mapping[str, Any]) -> str:
    around = finding.get("inside")
    return f"; its text is inside {', '.join(around)}" if around else ""
