"""The page of a comparison: one self-contained HTML file, in the look of a run's report.

There is no script, a content security policy forbids loading anything, and every text is escaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.comparison.metrics import ComparedMetric, ComparedMetrics, pooled_aucs
from analysis.page.template import page_template
from inject.files import write_text
from spikein.runs.comparison.origins import Origins

MAX_ROWS = 2_000
"""Rows of the long table; `--json` has all."""


@dataclass(frozen=True, kw_only=True)
class ComparisonPage:
    """What the page is made of."""

    names: tuple[str, str]
    origins: Origins
    metrics: ComparedMetrics


def write_page(path: Path, content: ComparisonPage) -> Path:
    """Write the page to a file, whole or not at all; return its path."""
    write_text(path, render(content))
    return path


def render(content: ComparisonPage) -> str:
    """Return the page as text."""
    template = page_template("spikein.runs.comparison", "comparison.html.j2")
    rows = content.metrics.rows
    return template.render(
        names=content.names,
        origins=content.origins,
        sentences=summary(content.names, content.origins, content.metrics),
        pooled=pooled_aucs(rows),
        rows=rows[:MAX_ROWS],
        left_out=max(0, len(rows) - MAX_ROWS),
        unmatched=content.metrics.unmatched,
    )


def summary(names: tuple[str, str], origins: Origins, metrics: ComparedMetrics) -> list[str]:
    """Return what a reader must know first, in words."""
    shared = sum(one.shared for one in origins.kinds)
    alone = [sum(one.first_only for one in origins.kinds),
             sum(one.second_only for one in origins.kinds)]  # fmt: skip
    settings = len(origins.settings)
    sentences = [
        f"{settings} {'setting differs' if settings == 1 else 'settings differ'}; {shared} "
        f"artifacts are shared, {alone[0]} are of {names[0]} alone and {alone[1]} of {names[1]}."
    ]
    if not settings and max(alone) > 0:
        sentences.append("Data, code or libraries differ, since no setting does.")
    return [*sentences, _numbers(names, pooled_aucs(metrics.rows))]


def _numbers(names: tuple[str, str], rows: Sequence[ComparedMetric]) -> str:
    paired = [row.paired for row in rows if row.paired is not None]
    if not rows:
        return (
            "No arm of one is the only one that matches an arm of the other, so no number is "
            "compared, whatever detectors they share; each arm and why is listed."
        )
    if not paired:
        return (
            "They share no scored rows, so their AUCs stand side by side without a paired "
            "difference: the luck of the draw is in each."
        )
    sure = [one for one in paired if one.low > 0 or one.high < 0]
    higher = len([one for one in sure if one.value > 0])
    return (
        f"On the same rows {len(sure)} of {len(paired)} pooled AUCs differ by more than their "
        f"intervals: {higher} are higher in {names[1]}, {len(sure) - higher} in {names[0]}. Each "
        "interval holds for itself; with many, some leave out 0 by chance."
    )
