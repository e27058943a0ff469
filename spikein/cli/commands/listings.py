"""`spikein detectors`, `datasets` and `executors`: list the available choices."""

import json
from typing import TYPE_CHECKING, Annotated

from spikein.cli import completion
from spikein.cli.options import argument, option
from spikein.cli.output import print_table, say, warn

if TYPE_CHECKING:
    from detect.detector_table import DetectorFacts


def detectors(
    names: Annotated[
        list[str] | None,
        argument(
            "[NAME]...",
            "Show these detectors in full: names, or [cyan]FILE.py:NAME[/] for your own.",
            autocompletion=completion.detectors,
        ),
    ] = None,
    as_json: Annotated[bool, option("--json", "Print only a JSON list.")] = False,
) -> None:
    """List the detectors with the access to a model that each requires, its cost and its paper.

    The list includes detectors of installed packages (entry points of the group
    [cyan]spikein.detectors[/]). A named detector is checked and shown in full, with its
    definition, assumptions and parameters.

    [bold]Examples[/]

      spikein detectors

      spikein detectors surp dc_pdd

      spikein detectors my_detector.py:score

      spikein detectors --json > detectors.json
    """
    from detect.detector_table import describe_named, detector_table

    warnings: tuple[str, ...] = ()
    if names:
        described = [describe_named(name) for name in names]
    else:
        described, warnings = detector_table()
    if as_json:
        print(
            json.dumps([detector.plain() for detector in described], indent=1, ensure_ascii=False)
        )
    elif names:
        for detector in described:
            _print_in_full(detector)
    else:
        _print_list(described)
    warn(*warnings)


def _print_list(detectors: "list[DetectorFacts]") -> None:
    from detect.access import Access

    several = len({detector.origin for detector in detectors}) > 1
    print_table(
        ("name", "in print", "access", "needs", "cost of a text", "depends on", "paper", "from"),
        (
            (
                detector.name,
                detector.title,
                detector.access,
                ", ".join(detector.needs) or "nothing",
                detector.cost,
                detector.depends_on,
                detector.source,
                detector.origin if several else None,
            )
            for detector in detectors
        ),
    )
    say("Access to the target that a detector requires; each level includes those before it:")
    say(f"{', '.join(level.label for level in Access)}.")
    say("2× is two passes of that model over each text. Passes are shared between detectors.")
    say("spikein detectors NAME shows a detector in full.", style="dim")


def _print_in_full(detector: "DetectorFacts") -> None:
    say(detector.name, style="bold")
    facts = {
        "in print": detector.title,
        "measures": detector.summary,
        "assumes": detector.assumption or "not declared",
        "paper": detector.source or "none",
        "access": detector.access,
        "needs": ", ".join(detector.needs) or "nothing",
        "cost of a text": detector.cost,
        "depends on": detector.depends_on or "only the row and the models",
        "also called": ", ".join(detector.aliases),
        "libraries": ", ".join(detector.libraries),
        "from": detector.origin,
        "default": detector.setting,
        "tuned over": detector.grid_text,
    }
    print_table(("", ""), ((key, text) for key, text in facts.items() if text))
    if detector.parameters:
        print_table(
            ("parameter", "default", "meaning"),
            ((each.name, each.default, each.text) for each in detector.parameters),
        )
    if detector.notes:
        say(detector.notes)
        say("")


def datasets() -> None:
    """List the datasets that an experiment can spike in, and the sources of its background.

    Datasets and sources of installed packages are listed with their package. For one in a file of
    your own, write `dataset: FILE.py:NAME` or `kind: FILE.py:NAME`.

    [bold]Example[/]

      spikein datasets
    """
    from inject.corpus.background.registry import source_table
    from inject.examples.datasets.registry import dataset_table

    plugins, warnings = dataset_table()
    print_table(
        ("name", "usual hub id", "protected", "comes from", "what it is"),
        (
            (
                name,
                plugin.value.hub or "",
                "yes" if plugin.value.protected else "",
                plugin.origin,
                plugin.value.summary,
            )
            for name, plugin in plugins.items()
        ),
    )
    say("The text of a protected dataset appears in no report, log or table.", style="dim")
    sources, source_warnings = source_table()
    print_table(
        ("source of background", "comes from", "what it is"),
        ((kind, origin, summary) for kind, summary, origin in sources),
    )
    warn(*warnings, *source_warnings)


def executors() -> None:
    """List the executors for [cyan]spikein run --executor[/], and their packages.

    Installed packages offer executors under the entry point group [cyan]spikein.executors[/]. For
    an executor in a file of your own, write [cyan]--executor FILE.py:NAME[/].

    [bold]Example[/]

      spikein executors
    """
    from spikein.executors import list_executors

    rows, warnings = list_executors()
    print_table(("name", "where steps run", "from"), rows)
    warn(*warnings)
