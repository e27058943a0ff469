"""`spikein audit`: was every copy where it should be, and was the background clean?"""

from typing import TYPE_CHECKING, Annotated

import typer

from spikein.cli.options import RUNS, RunName, RunsFolder, RunStore
from spikein.cli.output import Column, print_table, say, warn
from spikein.progress import task_progress

if TYPE_CHECKING:
    from inject.overlap.settings import OverlapSettings
    from inject.stream.exposures import CopyOutcomes
    from spikein.runs.audit import BackgroundComparison

EXIT_FOUND = 2


def audit(
    run: RunName,
    ngram: Annotated[
        int | None,
        typer.Option(
            "--ngram",
            metavar="N",
            help="Search the run's background again: N words in a row shared with an example.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="S",
            help="With --ngram: this share of an example's n-grams in one document.",
            show_default=False,
        ),
    ] = None,
    near_duplicate: Annotated[
        float | None,
        typer.Option(
            "--near-duplicate",
            metavar="T",
            help="Search again for stretches as similar as this (Jaccard of word 3-grams).",
            show_default=False,
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Show what the audits of a run found, and search its background by other rules.

    Exits with 2 where a stream failed its audit, a model was fed an altered copy, or a rule finds
    something. Nothing is written.

    [bold]Examples[/]

      spikein audit quickstart

      spikein audit quickstart --ngram 8 --share 0.7

      spikein audit runs/quickstart --ngram 7 --near-duplicate 0.4
    """
    from spikein.runs.audit import audit_run
    from spikein.runs.folder import find_run

    folder = find_run(runs, run)
    rules = _rules(ngram, share, near_duplicate)
    with task_progress("audit") as on_tokens:
        found = audit_run(folder, rules=rules, store=store, progress=on_tokens)
    print_table(
        [
            Column("stream"),
            Column("audit", whole=True),
            Column("copies planned", right=True),
            Column("in place", right=True),
            Column("non-members found", right=True),
            Column("in the background", right=True),
        ],
        (
            (
                label,
                "passed" if one.passed else "FAILED",
                f"{one.copies_expected:,}",
                f"{one.copies_found:,}",
                f"{len(one.nonmembers_found):,}",
                f"{len(one.background_hits):,}",
            )
            for label, one in found.streams.items()
        ),
    )
    _print_fed(found.fed)
    for comparison in found.dropped:
        _print_comparison(comparison, "When the corpus was built")
    for comparison in found.repeated:
        _print_comparison(comparison, "Now")
    if not found.clean:
        warn("Something was found.")
        raise typer.Exit(EXIT_FOUND)
    say("All streams passed." + (" The rules asked for find nothing." if rules else ""))
    if unchecked := max((len(one.facts.unchecked) for one in found.dropped), default=0):
        warn(f"{unchecked:,} rows were not searched for in the background; they are named above.")


def _rules(
    ngram: int | None, share: float | None, near_duplicate: float | None
) -> "OverlapSettings | None":
    """Return the rules asked for, or None where none is.

    Raises:
        InputError: for values out of range, or a share without n-grams.
    """
    from pydantic import ValidationError

    from inject.errors import InputError
    from inject.overlap.settings import OverlapSettings

    if ngram is None and share is None and near_duplicate is None:
        return None
    try:
        return OverlapSettings(ngram=ngram, share=share, near_duplicate=near_duplicate)
    except ValidationError as error:
        found = error.errors()[0]
        option = "--" + "-".join(str(part) for part in found["loc"]).replace("_", "-")
        raise InputError(
            f"{found['msg'].removeprefix('Value error, ')}",
            where=option if found["loc"] else "--share",
        ) from None


def _print_fed(fed: "dict[str, CopyOutcomes]") -> None:
    """Print what became of the copies of each model, and which were altered."""
    if not fed:
        return
    say("")
    print_table(
        [
            Column("model"),
            Column("copies planned", right=True),
            Column("fed whole", right=True),
            Column("altered", right=True),
            Column("fed in part", right=True),
            Column("never reached", right=True),
        ],
        (
            (
                label,
                f"{one.planned:,}",
                f"{one.whole:,}",
                f"{one.altered:,}",
                f"{one.partly:,}",
                f"{one.never:,}",
            )
            for label, one in fed.items()
        ),
    )
    for label, one in fed.items():
        if one.altered:
            names = ", ".join(
                f"{name.example_id} ({name.dataset}), copy {name.copy}"
                for name in one.first_altered
            )
            warn(f"{label} was fed {one.altered:,} copies with other tokens than planned: {names}")


def _print_comparison(comparison: "BackgroundComparison", when: str) -> None:
    """Print what one comparison of a background with the examples found."""
    facts = comparison.facts
    say("")
    say(
        f"{when}: {facts.documents:,} documents of {comparison.corpus} against {facts.examples:,} "
        f"rows, by the rule: {facts.rules}. {facts.offending:,} overlap, {facts.dropped:,} "
        "were left out."
    )
    if facts.unchecked:
        say(f"{len(facts.unchecked):,} rows have too few words and were not searched for:")
        print_table(
            [Column("dataset"), Column("row"), Column("example"), Column("words", right=True)],
            (
                (one.dataset, one.source_id, one.example_id, f"{one.words:g}")
                for one in facts.unchecked
            ),
        )
    if comparison.overlaps:
        print_table(
            [
                Column("document"),
                Column("rule", whole=True),
                Column("dataset"),
                Column("example", whole=True),
                Column("part"),
                Column("words", right=True),
                Column("similarity", right=True),
                Column("shared text"),
            ],
            (
                (
                    one.place,
                    one.rule,
                    one.dataset,
                    one.example_id,
                    one.part,
                    f"{one.words:,}",
                    f"{one.similarity:.2f}",
                    "(protected)" if one.text is None else " ".join(one.text.split())[:120],
                )
                for one in comparison.overlaps
            ),
        )
