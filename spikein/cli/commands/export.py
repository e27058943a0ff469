"""`spikein export`: the stream of a run as files that other trainers read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.options import RUNS, RunsFolder, RunStore
from spikein.cli.output import say, warn


class ExportFormat(StrEnum):
    """What is written."""

    megatron = "megatron"
    olmo = "olmo"
    datasets = "datasets"
    jsonl = "jsonl"


class ExportRows(StrEnum):
    """What a row is."""

    documents = "documents"
    windows = "windows"


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's name or folder.")],
    format: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="Megatron-LM's .bin and .idx, OLMo's .npy, a data set of the Hugging Face "
            "library, or text as JSON Lines.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="A new folder.", show_default=False),
    ],
    arm: Annotated[
        str | None,
        typer.Option(
            "--arm",
            metavar="LABEL",
            help="Which arm's stream; needed where they differ, and then all are listed.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        ExportRows,
        typer.Option(
            "--rows",
            help="Whether a row ([cyan]datasets[/]) or sequence ([cyan]megatron[/]) is a document "
            "or a window as trained on here.",
        ),
    ] = ExportRows.documents,
    clean: Annotated[
        bool, typer.Option("--clean", help="The clean twin: as long, without any copy.")
    ] = False,
    show_protected: Annotated[
        bool,
        typer.Option(
            "--show-protected",
            help="Export copies of protected datasets, too; do not share the files then.",
        ),
    ] = False,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Export the contaminated stream of a run, with the place of every copy beside it.

    [cyan]copies.parquet[/] says where each copy stands in the exported tokens,
    [cyan]export.json[/] holds the facts and the digests.

    [bold]Examples[/]

      spikein export quickstart --format megatron --out exported

      spikein export sizes --format olmo --arm 'copies=poisson=4,seed=0' --out exported

      spikein export quickstart --format datasets --rows windows --out exported
    """
    from spikein.progress import show_progress
    from spikein.runs.export import export_run
    from spikein.runs.folder import find_run
    from spikein.store.filesystem import human_bytes

    folder = find_run(runs, run)
    with show_progress() as progress:
        name = f"export {format.value}"
        progress.step_started(name, number=1, total=1)
        facts = export_run(
            folder,
            out,
            format=format.value,
            arm=arm,
            rows=rows.value,
            clean=clean,
            show_protected=show_protected,
            store=store,
            progress=lambda done, total: progress.step_advanced(name, done, total, "tokens", ""),
        )
    if facts.texts is not None and facts.texts.changed:
        warn(
            f"The text of {facts.texts.changed:,} of {facts.texts.documents:,} documents "
            f"({facts.texts.changed_tokens:,} of {facts.tokens:,} tokens) does not give the same "
            "tokens again; their lines say so. Export tokens where that matters."
        )
    if facts.copies_left_out:
        warn(f"{facts.copies_left_out:,} copies lie in the last partial window, which is left out.")
    if facts.protected:
        warn("The files hold texts of protected datasets: keep them to yourself.")
    size = sum(file.bytes for file in facts.files.values())
    say(
        f"{facts.tokens:,} tokens in {facts.documents:,} documents, {facts.copies:,} copies, "
        f"{human_bytes(size)}."
    )
    say(f"Export: {out}", style="bold")
