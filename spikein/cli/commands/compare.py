"""`spikein compare`: how two runs and their numbers differ."""

from typing import TYPE_CHECKING

from spikein.cli.options import RUNS, AsJson, PageFile, RunName, RunsFolder
from spikein.cli.output import print_json, say, show_parts

if TYPE_CHECKING:
    from spikein.api.comparison import RunComparison


def compare(
    first: RunName,
    second: RunName,
    out: PageFile = None,
    as_json: AsJson = False,
    runs: RunsFolder = RUNS,
) -> None:
    """Compare two finished runs: their settings, inputs and numbers.

    Settings, code, libraries and artifacts that differ come first; then the AUCs of
    both runs. If both scored the same rows of the test split, the paired difference
    follows with its interval: the second run minus the first.

    Arms are matched by the axes that both runs sweep. Nothing is trained or scored, and
    no folder is changed.

    [bold]Examples[/]

      spikein compare quickstart quickstart-bf16

      spikein compare runs/monday /shared/runs/monday --out monday.html

      spikein compare a b --json | jq '.metrics[] | select(.dataset == "all")'
    """
    from spikein.api.comparison import compare_runs, write_comparison

    comparison = compare_runs(first, second, runs=runs)
    page = None if out is None else write_comparison(out, comparison)
    if as_json:
        print_json({**_head(comparison), "metrics": comparison.metrics.numbers.rows})
        return
    _print_comparison(comparison)
    if page is not None:
        say(f"Page: {page}", style="bold")


def _head(comparison: "RunComparison") -> dict[str, object]:
    """Return the `--json` entries other than the numbers."""
    origins = comparison.origins
    runs = {"first": comparison.first, "second": comparison.second}
    return {
        **{
            which: {"name": name, "folder": str(run.folder)}
            for (which, run), name in zip(runs.items(), comparison.names, strict=True)
        },
        "settings": origins.settings,
        "artifacts": origins.kinds,
        "artifact_changes": origins.changes,
        "versions": origins.versions,
        "notes": origins.notes,
        "confidence": comparison.settings.confidence,
        "unmatched": comparison.metrics.unmatched,
    }


def _print_comparison(comparison: "RunComparison") -> None:
    from spikein.runs.comparison.page import sections, summary

    compared = comparison.names, comparison.origins, comparison.metrics
    say(*summary(*compared))
    for section in sections(*compared):
        show_parts(section.parts)
