"""`spikein bundle` packs ground truth; `spikein validate` judges new detectors by it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.files import human_bytes
from spikein.cli.options import (
    RUNS,
    AsJson,
    PageFile,
    RunName,
    RunsFolder,
    RunStore,
    argument,
    option,
)
from spikein.cli.output import (
    print_error,
    print_json,
    print_table,
    say,
    show_parts,
    warn,
)

if TYPE_CHECKING:
    from analysis.validate.validation import Validation


def validate(
    detectors: Annotated[
        list[str],
        argument(
            "FILE.py:NAME...",
            "One or more detectors, each with [cyan]:KEY=VALUE[/] for its parameters.",
        ),
    ],
    truth: Annotated[
        str,
        argument(
            "RUN|BUNDLE",
            "A run's name or folder, a folder of [cyan]spikein bundle[/], or one on the hub "
            "([cyan]hf://datasets/OWNER/NAME@REVISION[/]).",
        ),
    ],
    arm: Annotated[
        str | None,
        option(
            "--arm LABEL",
            "The arm to rank them in; else the one in which stored detectors do best on the "
            "tune split.",
        ),
    ] = None,
    out: PageFile = None,
    strict: Annotated[
        bool,
        option("--strict", "End with 1 where a check finds a detector [cyan]wrong[/], for CI."),
    ] = False,
    time_limit: Annotated[
        float,
        option(
            "--time-limit SECONDS",
            "How long a detector may take for 1,000 rows; told from its first rows.",
            show_default=True,
            min=0.1,
        ),
    ] = 60.0,
    as_json: AsJson = False,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Judge new detectors by ground truth: their rank among all stored ones, and what is wrong.

    NAME is a function that returns a number (higher: more likely a member), or a
    [cyan]spikein.Detector[/]. A function takes one [cyan]TokenStatistics[/] or one
    [cyan]ExampleEvidence[/]: the annotation of its parameter says which, else the parameter's name
    ([cyan]statistics[/], [cyan]stats[/]; [cyan]example[/], [cyan]evidence[/]), else it is tried
    with both.

    No model is loaded. Settings are chosen on the tune split, all is reported on the test split. A
    detector that fails is named, and the rest goes on; the command then ends with 2.

    [bold]Examples[/]

      spikein init --detector my_detector.py

      spikein validate my_detector.py:score quickstart

      spikein validate my_detector.py:score other.py:DETECTOR quickstart.bundle --out page.html

      spikein validate my_detector.py:score hf://datasets/me/quickstart-truth

      spikein validate my_detector.py:score quickstart.bundle --strict --json > verdict.json
    """
    from spikein.api.ground_truth import validate as judge
    from spikein.store.filesystem import check_file

    if out is not None:
        check_file(out)
    found = judge(detectors, truth, arm=arm, time_limit=time_limit, runs=runs, store=store)
    page = None
    if out is not None:
        from analysis.validate.page import write_page

        page = write_page(out, found)
    if as_json:
        print_json({**_head(found), "findings": found.findings.to_pylist()})
    else:
        _print_validation(found)
        if page is not None:
            say(f"Page: {page}", style="bold")
    for one in found.refused:
        warn(f"Not judged ({one.kind}): {one.problem}")
    wrong = [
        f"{judged.name} ({finding.check})"
        for judged in found.judged
        for finding in judged.findings
        if finding.severity == "wrong"
    ]
    if strict and wrong:
        print_error(f"found wrong: {', '.join(wrong)}")
    if found.refused or (strict and wrong):
        raise typer.Exit(2 if found.refused else 1)


def _head(found: "Validation") -> dict[str, object]:
    """Return what `--json` says beside the findings."""
    return {
        "experiment": found.name,
        "source": found.source,
        "content": found.content or None,
        "provenance": found.provenance.model_dump(mode="json"),
        "arm": found.arm,
        "arms": found.arms,
        "confidence": found.settings.confidence,
        "detectors": [
            {
                "detector": one.name,
                "given": one.candidate.given,
                "takes": one.candidate.takes,
                "seconds_per_thousand_rows": one.seconds,
                "notes": one.notes,
            }
            for one in found.judged
        ],
        "refused": [vars(one) for one in found.refused],
        "metrics": found.ranking.table.rows,
    }


def _print_validation(found: "Validation") -> None:
    """Print what the page shows, but for its picture and its provenance."""
    from analysis.validate.page import PROVENANCE, sections, sentences

    for sentence in sentences(found):
        say(sentence, style="bold")
    for section in sections(found):
        if section.anchor != PROVENANCE:
            show_parts(section.parts)


def bundle(
    run: RunName,
    out: Annotated[
        Path | None,
        option("--out FOLDER", "The folder to write."),
    ] = None,
    parts: Annotated[
        list[str] | None,
        option(
            "--with PART",
            "What it holds besides, such as [cyan]lowercase[/] or [cyan]shadows[/]; "
            "[cyan]all[/] for everything. Several: one by one, or with commas.",
        ),
    ] = None,
    listed: Annotated[
        bool, option("--list", "Say what a bundle and each part weigh, and pack nothing.")
    ] = False,
    arm: Annotated[
        str | None,
        option("--arm LABEL", "Pack one arm alone; all otherwise."),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Pack the ground truth of a run into a folder for others.

    Inside: who is a member and how often each was seen, the token tables of the plain text (of the
    arms, their reference, the base model and the twins), and the scores of all detectors; no model.
    Other views, held-out rows, shadow models, shots, gradients and what models wrote come by
    [cyan]--with[/]. Texts of protected datasets stay behind. [cyan]spikein validate[/] takes the
    folder as it takes a run; [cyan]spikein push[/] publishes it.

    [bold]Examples[/]

      spikein bundle quickstart --list

      spikein bundle quickstart --out quickstart.bundle

      spikein bundle quickstart --arm 'lr 0.0015' --with lowercase --out one-arm.bundle
    """
    from inject.errors import InputError
    from spikein.api.ground_truth import bundle as pack
    from spikein.api.ground_truth import bundle_sizes

    if listed:
        if out is not None or parts:
            raise InputError(
                "--list packs nothing", where="spikein bundle", hint="Leave out --out and --with."
            )
        sizes = bundle_sizes(run, arm=arm, runs=runs, store=store)
        names = {"": "every bundle"}
        print_table(
            ("part", "about"), ((names.get(one, one), human_bytes(n)) for one, n in sizes.items())
        )
        return
    if out is None:
        raise InputError(
            "no folder is given to pack into",
            where="spikein bundle",
            hint=f"spikein bundle {run} --out {Path(run).name}.bundle; --list says what it weighs.",
        )
    asked = [part.strip() for given in parts or () for part in given.split(",")]
    facts = pack(run, out, arm=arm, parts=asked, runs=runs, store=store)
    if facts.withheld:
        warn(
            f"{facts.withheld:,} of {facts.rows:,} rows are protected: their texts are not inside."
        )
    say(f"{facts.models} models, {facts.rows:,} rows, {human_bytes(facts.size)}.")
    if facts.left_out:
        say(f"Left out: {', '.join(facts.left_out)}. --with NAME brings one, --with all the lot.")
    say(f"Content: {facts.content}")
    say(f"Bundle: {out}", style="bold")
