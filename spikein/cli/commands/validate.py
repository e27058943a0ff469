"""`spikein bundle` packs ground truth; `spikein validate` evaluates new detectors on it."""

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
    former_option,
    option,
    replace_former,
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
    *,
    detectors: Annotated[
        list[str] | None,
        argument(
            "FILE.py:NAME...",
            "One or more detectors, each with [cyan]:KEY=VALUE[/] for its parameters.",
        ),
    ] = None,
    truth: Annotated[
        str,
        argument(
            "RUN|BUNDLE",
            "A run's name or folder, a folder written by [cyan]spikein bundle[/], or a bundle on "
            "the hub ([cyan]hf://datasets/OWNER/NAME@REVISION[/]).",
        ),
    ],
    arm: Annotated[
        str | None,
        option(
            "--arm LABEL",
            "Rank detectors in this arm; by default the arm in which stored detectors do best on "
            "the tuning split.",
        ),
    ] = None,
    out: PageFile = None,
    bench: Annotated[
        bool,
        option(
            "--bench",
            "Take BUNDLE as a benchmark ([cyan]bench.bundle[/] if none is given) and write a "
            "submission to its leaderboard.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        option("--strict", "Exit 1 if any check finds a detector [cyan]wrong[/]; for CI."),
    ] = False,
    time_limit: Annotated[
        float,
        option(
            "--time-limit SECONDS",
            "Maximum time of a detector for 1,000 rows; estimated from its first rows.",
            show_default=True,
            min=0.1,
        ),
    ] = 60.0,
    as_json: AsJson = False,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Evaluate new detectors on ground truth: rank them among stored ones, and report defects.

    NAME is a function that returns a number (higher: more likely a member), or a
    [cyan]spikein.Detector[/]. A function takes one [cyan]TokenStatistics[/] or one
    [cyan]ExampleEvidence[/]. Its parameter's annotation determines which, else the parameter's name
    ([cyan]statistics[/], [cyan]stats[/]; [cyan]example[/], [cyan]evidence[/]), else both are tried.

    No model is loaded. Settings are chosen on the tuning split; results are on the test split. A
    detector that fails is reported, and the others are still evaluated; the command then exits
    with 2.

    [bold]Examples[/]

      spikein init --detector my_detector.py

      spikein validate my_detector.py:score quickstart

      spikein validate my_detector.py:score other.py:DETECTOR quickstart.bundle --out page.html

      spikein validate my_detector.py:score hf://datasets/me/quickstart-truth

      spikein validate my_detector.py:score quickstart.bundle --strict --json > verdict.json

      spikein validate my_detector.py:score --bench
    """
    from detect.ground_truth.hub_bundle import is_address
    from spikein.api.ground_truth import validate as judge
    from spikein.api.leaderboard import BENCHMARK, submit

    references = detectors or []
    submissions: list[Path] = []
    if bench:
        if not (Path(truth).exists() or is_address(truth)):
            references, truth = [*references, truth], str(BENCHMARK)
        validation, submissions = submit(references, truth, arm=arm, time_limit=time_limit)
    else:
        validation = judge(
            references, truth, arm=arm, time_limit=time_limit, runs=runs, store=store
        )
    page = None
    if out is not None:
        from analysis.validate.page import write_page

        page = write_page(out, validation)
    if as_json:
        print_json({**_head(validation), "findings": validation.findings.to_pylist()})
    else:
        _print_validation(validation)
        if page is not None:
            say(f"Page: {page}", style="bold")
        for submission in submissions:
            say(f"Submission: {submission}; add your name in submission.json", style="bold")
    warn(*(f"Not judged ({refused.kind}): {refused.problem}" for refused in validation.refused))
    wrong = [
        f"{judged.name} ({finding.check})"
        for judged in validation.judged
        for finding in judged.findings
        if finding.severity == "wrong"
    ]
    if strict and wrong:
        print_error(f"found wrong: {', '.join(wrong)}")
    if validation.refused or (strict and wrong):
        raise typer.Exit(2 if validation.refused else 1)


def _head(validation: "Validation") -> dict[str, object]:
    """Return the `--json` entries other than the findings."""
    return {
        "experiment": validation.name,
        "source": validation.source,
        "content": validation.content or None,
        "provenance": validation.provenance.model_dump(mode="json"),
        "arm": validation.arm,
        "arms": validation.arms,
        "confidence": validation.settings.confidence,
        "detectors": [
            {
                "detector": entry.name,
                "given": entry.candidate.given,
                "takes": entry.candidate.takes,
                "seconds_per_thousand_rows": entry.seconds,
                "notes": entry.notes,
            }
            for entry in validation.judged
        ],
        "refused": [vars(entry) for entry in validation.refused],
        "metrics": validation.ranking.table.rows,
    }


def _print_validation(validation: "Validation") -> None:
    """Print the page's content except its picture and its provenance."""
    from analysis.validate.page import PROVENANCE, sections, sentences

    say(*sentences(validation), style="bold")
    for section in sections(validation):
        if section.anchor != PROVENANCE:
            show_parts(section.parts)


def bundle(
    run: RunName,
    out: Annotated[
        Path | None,
        option("--out FOLDER", "Write this folder."),
    ] = None,
    parts: Annotated[
        list[str] | None,
        option(
            "--include PART",
            "Add a part, such as [cyan]lowercase[/] or [cyan]shadows[/]; [cyan]all[/] for "
            "everything. For several, repeat the option or use commas.",
        ),
    ] = None,
    listed: Annotated[
        bool, option("--list", "List the sizes of a bundle and its parts; pack nothing.")
    ] = False,
    arm: Annotated[
        str | None,
        option("--arm LABEL", "Pack only this arm; all by default."),
    ] = None,
    hold_out: Annotated[
        int | None,
        option(
            "--hold-out SEED",
            "Make a benchmark: pack this seed's models without their labels. The seed must be "
            "random and stay secret.",
        ),
    ] = None,
    labels_out: Annotated[
        Path | None,
        option(
            "--labels-out FOLDER", "Write the held-out models with their labels to this folder."
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
    former_with: Annotated[list[str] | None, former_option("--with PART", "--include")] = None,
) -> None:
    """Pack the ground truth of a run into a folder for others.

    A bundle contains the members and how often each was seen, the token tables of the plain text
    (of the arms, their reference, the base model and the twins), and the scores of all detectors;
    no model. [cyan]--include[/] adds other views, held-out rows, shadow models, shots, gradients
    and generated texts. Texts of protected datasets are not included. [cyan]spikein validate[/]
    takes the folder like a run; [cyan]spikein push[/] publishes it.

    [bold]Examples[/]

      spikein bundle quickstart --list

      spikein bundle quickstart --out quickstart.bundle

      spikein bundle quickstart --arm 'lr 0.0015' --include lowercase --out one-arm.bundle

      spikein bundle bench --out bench.bundle --hold-out SEED --labels-out bench.labels
    """
    from inject.errors import InputError
    from spikein.api.ground_truth import bundle as pack
    from spikein.api.ground_truth import bundle_sizes

    parts = replace_former(parts, former_with, ("--with", "--include"))
    if listed:
        if out is not None or parts:
            raise InputError(
                "--list packs nothing", where="spikein bundle", hint="Remove --out and --include."
            )
        sizes = bundle_sizes(run, arm=arm, runs=runs, store=store)
        names = {"": "every bundle"}
        print_table(
            ("part", "about"),
            ((names.get(part, part), human_bytes(n)) for part, n in sizes.items()),
        )
        return
    if out is None:
        raise InputError(
            "no folder is given to pack into",
            where="spikein bundle",
            hint=f"spikein bundle {run} --out {Path(run).name}.bundle; --list shows its size.",
        )
    part_names = [part.strip() for listed_parts in parts or () for part in listed_parts.split(",")]
    facts = pack(
        run,
        out,
        arm=arm,
        parts=part_names,
        hold_out=hold_out,
        labels_out=labels_out,
        runs=runs,
        store=store,
    )
    if facts.withheld:
        warn(
            f"{facts.withheld:,} of {facts.rows:,} rows are protected: their texts are not inside."
        )
    say(f"{facts.models} models, {facts.rows:,} rows, {human_bytes(facts.size)}.")
    if facts.left_out:
        left_out = ", ".join(facts.left_out)
        say(f"Not packed: {left_out}. --include NAME adds one, --include all adds all.")
    say(f"Content: {facts.content}")
    if labels_out is not None:
        say(f"Labels: {labels_out}; keep this folder and the seed secret")
    say(f"Bundle: {out}", style="bold")
