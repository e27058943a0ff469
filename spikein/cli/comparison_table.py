"""What `spikein compare` prints for people: what differs, and the pooled AUCs side by side."""

from math import isfinite
from typing import TYPE_CHECKING

from spikein.cli.output import Column, print_table, say

if TYPE_CHECKING:
    from analysis.comparison.metrics import ComparedMetric
    from analysis.metrics_table import Cell
    from spikein.api.comparison import RunComparison

_MOST_SETTINGS = 30


def print_comparison(found: "RunComparison") -> None:
    """Print a comparison."""
    from analysis.comparison.metrics import pooled_aucs
    from spikein.runs.comparison.page import summary

    for sentence in summary(found.names, found.origins, found.metrics):
        say(sentence)
    _print_origins(found)
    rows = pooled_aucs(found.metrics.rows)
    if rows:
        say("")
        _print_rows(found, rows)
    for one in found.metrics.unmatched:
        say(f"Not compared: {one}")


def _print_origins(found: "RunComparison") -> None:
    first, second = found.names
    origins = found.origins
    shown = origins.settings[:_MOST_SETTINGS]
    if shown:
        say("")
        print_table(
            [Column("setting"), Column(first), Column(second)],
            ((one.key, one.old, one.new) for one in shown),
        )
        if len(origins.settings) > len(shown):
            say(f"{len(origins.settings) - len(shown)} more settings differ (--json lists all).")
    code = ["; ".join(one.code) or "not known" for one in origins.versions]
    if code[0] != code[1]:
        say(f"Code: {first} {code[0]}; {second} {code[1]}")
    old, new = (one.libraries for one in origins.versions)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            both = ("; ".join(one.get(name, ("none",))) for one in (old, new))
            say(f"Library {name}: {' → '.join(both)}")
    same = [one.name for one in origins.changes if one.same_content]
    if same:
        say(f"Made from another recipe with the same content: {', '.join(same)}")
    for note in origins.notes:
        say(note)


def _print_rows(found: "RunComparison", rows: "list[ComparedMetric]") -> None:
    first, second = found.names
    arms = len({row.arm for row in rows}) > 1
    print_table(
        [
            *([Column("arm")] if arms else []),
            Column("detector", whole=True),
            Column(f"AUC {first}", right=True),
            Column(f"AUC {second}", right=True),
            Column("difference, same rows", right=True),
            Column(f"{found.settings.confidence:.0%} interval", right=True),
            Column("rows", right=True),
        ],
        (
            (
                *([row.arm] if arms else []),
                row.detector,
                _auc(row.first),
                _auc(row.second),
                *_paired(row),
            )
            for row in rows
        ),
    )
    say(
        f"Differences are {second} less {first}, on the rows of `test` that both scored; AUCs are "
        "those of each run, on its own rows."
    )


def _auc(cell: "Cell | None") -> str:
    if cell is None or not isfinite(cell.value):
        return "–"
    return f"{cell.value:.3f}" + (f" [{cell.low:.2f}, {cell.high:.2f}]" if cell.available else "")


def _paired(row: "ComparedMetric") -> tuple[str, str, str]:
    one = row.paired
    if one is None:
        return "no shared rows", "", ""
    ends = f"[{one.low:+.3f}, {one.high:+.3f}]" if isfinite(one.low) else one.about
    return f"{one.value:+.3f}", ends, f"{one.n_members} + {one.n_nonmembers}"
