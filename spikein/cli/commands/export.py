"""`spikein export`: the stream of a run as files that other trainers read."""

from pathlib import Path
from typing import Annotated, Literal

from inject.files import human_bytes
from spikein.cli.options import RUNS, RunName, RunsFolder, RunStore, option
from spikein.cli.output import say, warn
from spikein.progress import task_progress


def export(
    run: RunName,
    format: Annotated[
        Literal["megatron", "olmo", "datasets", "jsonl"],
        option(
            "--format",
            "Megatron-LM's .bin and .idx, OLMo's .npy, a data set of the Hugging Face "
            "library, or text as JSON Lines.",
        ),
    ],
    out: Annotated[
        Path,
        option("--out DIR", "A new folder."),
    ],
    arm: Annotated[
        str | None,
        option(
            "--arm LABEL", "Which arm's stream; needed where they differ, and then all are listed."
        ),
    ] = None,
    rows: Annotated[
        Literal["documents", "windows"],
        option(
            "--rows",
            "Whether a row ([cyan]datasets[/]) or sequence ([cyan]megatron[/]) is a document "
            "or a window as trained on here.",
            show_default=True,
        ),
    ] = "documents",
    clean: Annotated[bool, option("--clean", "The clean twin: as long, without any copy.")] = False,
    show_protected: Annotated[
        bool,
        option(
            "--show-protected",
            "Export copies of protected datasets, too; do not share the files then.",
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

      spikein export sizes --format olmo --arm 'copies poisson=4' --out exported

      spikein export quickstart --format datasets --rows windows --out exported
    """
    from inject.formats.export import ExportSettings
    from spikein.runs.folder import find_run
    from spikein.runs.streams import export_run

    folder = find_run(runs, run)
    settings = ExportSettings(format=format, rows=rows, show_protected=show_protected)
    with task_progress(f"export {format}") as on_tokens:
        facts = export_run(
            folder,
            out,
            settings,
            arm=arm,
            clean=clean,
            store=store,
            progress=on_tokens,
        )
    if facts.texts is not None and (changed := facts.texts["changed"]):
        warn(
            f"The text of {changed:,} of {facts.texts['documents']:,} documents "
            f"({facts.texts['changed_tokens']:,} of {facts.tokens:,} tokens) does not give the "
            "same tokens again; their lines say so. Export tokens where that matters."
        )
    if facts.copies_left_out:
        warn(f"{facts.copies_left_out:,} copies lie in the last partial window, which is left out.")
    if facts.protected:
        warn("The files hold texts of protected datasets: keep them to yourself.")
    size = sum(file["bytes"] for file in facts.files.values())
    say(
        f"{facts.tokens:,} tokens in {facts.documents:,} documents, {facts.copies:,} copies, "
        f"{human_bytes(size)}."
    )
    say(f"Export: {out}", style="bold")
