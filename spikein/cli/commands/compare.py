"""`spikein compare`: what differs between two runs, and by how much their numbers do."""

from typing import TYPE_CHECKING

from spikein.cli.options import RUNS, AsJson, PageFile, RunName, RunsFolder
from spikein.cli.output import print_json, say, show_table

if TYPE_CHECKING:
    from spikein.api.comparison import RunComparison

_MAX_SETTINGS = 30


def compare(
    first: RunName,
    second: RunName,
    out: PageFile = None,
    as_json: AsJson = False,
    runs: RunsFolder = RUNS,
) -> None:
    """Compare two finished runs: their settings, what they were made from, and their numbers.

    Settings, code, libraries and artifacts that differ come first; then the AUCs of
    both runs, and, where both scored the same rows of the test split, the paired
    difference with its interval: the second run less the first.

    Arms are matched by the axes that both runs sweep. Nothing is trained or scored, and
    no folder is changed.

    [bold]Examples[/]

      spikein compare quickstart quickstart-bf16

      spikein compare runs/monday /shared/runs/monday --out monday.html

      spikein compare a b --json | jq '.metrics[] | select(.dataset == "all")'
    """
    from spikein.api.comparison import compare_runs, write_comparison
    from spikein.store.filesystem import check_file

    if out is not None:
        check_file(out)
    found = compare_runs(first, second, runs=runs)
    page = None if out is None else write_comparison(out, found)
    if as_json:
        print_json({**_head(found), "metrics": found.metrics.numbers.rows})
        return
    _print_comparison(found)
    if page is not None:
        say(f"Page: {page}", style="bold")


def _head(found: "RunComparison") -> dict[str, object]:
    """Return what `--json` says beside the numbers."""
    origins = found.origins
    runs = {"first": found.first, "second": found.second}
    return {
        **{
            which: {"name": name, "folder": str(run.folder)}
            for (which, run), name in zip(runs.items(), found.names, strict=True)
        },
        "settings": origins.settings,
        "artifacts": origins.kinds,
        "artifact_changes": origins.changes,
        "versions": origins.versions,
        "notes": origins.notes,
        "confidence": found.settings.confidence,
        "unmatched": found.metrics.unmatched,
    }


def _print_comparison(found: "RunComparison") -> None:
    from spikein.runs.comparison.page import (
        pooled_table,
        settings_table,
        summary,
        versions_table,
    )

    names, origins = found.names, found.origins
    for sentence in summary(names, origins, found.metrics):
        say(sentence)
    settings = settings_table(names, origins)
    if settings is not None:
        show_table(settings, rows=settings.rows[:_MAX_SETTINGS])
        if len(settings.rows) > _MAX_SETTINGS:
            more = len(settings.rows) - _MAX_SETTINGS
            say(f"{more} more settings differ (--json lists all).")
    versions = versions_table(names, origins)
    show_table(versions, rows=[row for row in versions.rows if row[1] != row[2]])
    same = [one.name for one in origins.changes if one.same_content]
    if same:
        say(f"Made from another recipe with the same content: {', '.join(same)}")
    for note in origins.notes:
        say(note)
    pooled = pooled_table(names, found.metrics)
    if pooled is not None:
        show_table(pooled)
    for arm in found.metrics.unmatched:
        say(f"Not compared: {arm}")
