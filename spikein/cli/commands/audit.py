"""`spikein audit`: was every copy in its place, and was the background clean?"""

from typing import TYPE_CHECKING, Annotated

import typer

from spikein.cli.options import RUNS, RunName, RunsFolder, RunStore, argument
from spikein.cli.output import print_rows, say, warn
from spikein.progress import task_progress

if TYPE_CHECKING:
    from inject.stream.exposures import CopyOutcomes
    from spikein.runs.audit import Comparison

EXIT_FOUND = 2


def audit(
    run: RunName,
    rules: Annotated[
        list[str] | None,
        argument(
            "KEY=VALUE",
            "Search the run's background again. [cyan]ngram=N[/]: N consecutive words shared with "
            "an example, or with [cyan]share=S[/] this share of an example's n-grams in one "
            "document. [cyan]near_duplicate=T[/]: spans with at least this Jaccard similarity of "
            "word 3-grams.",
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Show the audits of a run, and search its background by other rules.

    The exit status is 2 if a stream failed its audit, a model was trained on an altered copy, or a
    rule finds something. Nothing is written.

    [bold]Examples[/]

      spikein audit quickstart

      spikein audit quickstart ngram=8 share=0.7

      spikein audit runs/quickstart ngram=7 near_duplicate=0.4
    """
    from inject.overlap.settings import OverlapSettings
    from spikein.config.overrides import read_settings
    from spikein.runs.audit import audit_run
    from spikein.runs.folder import find_run

    folder = find_run(runs, run)
    # A rule that is not given does not apply.
    named = ["ngram=null", "near_duplicate=null", *(rules or ())]
    again = read_settings(OverlapSettings, None, named, {}) if rules else None
    with task_progress("audit") as on_tokens:
        audits = audit_run(folder, rules=again, store=store, progress=on_tokens)
    print_rows(
        {
            "stream": label,
            "audit": "passed" if audited.passed else "FAILED",
            "copies planned": audited.copies_expected,
            "in place": audited.copies_found,
            "non-members found": len(audited.nonmembers_found),
            "in the background": len(audited.background_hits),
        }
        for label, audited in audits.streams.items()
    )
    _print_fed(audits.fed)
    for corpus, comparison in audits.dropped.items():
        _print_comparison(corpus, comparison, "When the corpus was built")
    for corpus, comparison in audits.repeated.items():
        _print_comparison(corpus, comparison, "Now")
    if not audits.clean:
        warn("Something was found.")
        raise typer.Exit(EXIT_FOUND)
    say("All streams passed." + (" The given rules find nothing." if rules else ""))
    if unchecked := max((len(facts.unchecked) for _, facts in audits.dropped.values()), default=0):
        warn(f"{unchecked:,} rows were not searched for in the background; they are named above.")


def _print_fed(fed: "dict[str, CopyOutcomes]") -> None:
    """Print how many copies each model was trained on, and which were altered."""
    if not fed:
        return
    say("")
    print_rows(
        {
            "model": label,
            "copies planned": copies.planned,
            "fed whole": copies.whole,
            "altered": copies.altered,
            "fed in part": copies.partly,
            "never reached": copies.never,
        }
        for label, copies in fed.items()
    )
    for label, outcomes in fed.items():
        if outcomes.altered:
            names = ", ".join(
                f"{name.example_id} ({name.dataset}), copy {name.copy}"
                for name in outcomes.first_altered
            )
            warn(
                f"{label} was trained on {outcomes.altered:,} copies with other tokens than "
                f"planned: {names}"
            )


def _print_comparison(corpus: str, comparison: "Comparison", when: str) -> None:
    """Print the overlaps between one background and the examples."""
    overlaps, facts = comparison
    say("")
    say(
        f"{when}: {facts.documents:,} documents of {corpus} against {facts.examples:,} "
        f"rows, by the rule: {facts.rules}. {facts.offending:,} overlap, {facts.dropped:,} "
        "were left out."
    )
    if facts.unchecked:
        say(f"{len(facts.unchecked):,} rows have too few words and were not searched for:")
        print_rows(
            {
                "dataset": row.dataset,
                "row": row.source_id,
                "example": row.example_id,
                "words": f"{row.words:g}",
            }
            for row in facts.unchecked
        )
    print_rows(
        {
            "document": overlap.place,
            "rule": overlap.rule,
            "dataset": overlap.dataset,
            "example": overlap.example_id,
            "part": overlap.part,
            "words": overlap.words,
            "similarity": f"{overlap.similarity:.2f}",
            "shared text": "(protected)"
            if overlap.text is None
            else " ".join(overlap.text.split())[:120],
        }
        for overlap in overlaps
    )
