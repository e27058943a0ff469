"""Findings of an audit in the words of the data: which row it is, and which rows contain it.

The audit looks for tokens and knows examples by the hash of their text. Who has to take a row out
of a data file needs the row's own id, and that of the row whose text its text is a part of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inject.examples.example import Example
from inject.stream.audit_report import AuditReport

_MOST_NAMED = 5


def name_rows(report: AuditReport, examples: Sequence[Example]) -> AuditReport:
    """Return the report with `row` in each finding, and `inside` where rows contain it.

    Args:
        report: findings by example_id.
        examples: everybody who was looked for.
    """
    known = {one.example_id: one for one in examples}

    def named(
        findings: Sequence[Mapping[str, object]], *, inside: bool
    ) -> tuple[dict[str, object], ...]:
        named_findings: list[dict[str, object]] = []
        for finding in findings:
            one = known[str(finding["example_id"])]
            around = _containing(one, examples) if inside else []
            named_findings.append(
                {**finding, "row": _name(one), **({"inside": around} if around else {})},
            )
        return tuple(named_findings)

    return replace(
        report,
        displaced=named(report.displaced, inside=False),
        wrong_counts=named(report.wrong_counts, inside=True),
        nonmembers_found=named(report.nonmembers_found, inside=True),
        background_hits=named(report.background_hits, inside=False),
    )


def _containing(one: Example, examples: Sequence[Example]) -> list[str]:
    text = one.text.strip()
    found = [_name(other) for other in examples if other is not one and text in other.text]
    return found[:_MOST_NAMED]


def _name(one: Example) -> str:
    return f"{one.dataset} {one.source_id}"
