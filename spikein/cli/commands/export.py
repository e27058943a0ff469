"""`spikein export`: write the stream of a run as files for other trainers."""

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
            "Megatron-LM's .bin and .idx, OLMo's .npy, a dataset of the Hugging Face "
            "library, or text as JSON Lines.",
        ),
    ],
    out: Annotated[
        Path,
        option("--out DIR", "Write to this new folder."),
    ],
    arm: Annotated[
        str | None,
        option(
            "--arm LABEL", "Export this arm's stream; required, with a list, if streams differ."
        ),
    ] = None,
    rows: Annotated[
        Literal["documents", "windows"],
        option(
            "--rows",
            "Make each row ([cyan]datasets[/]) or sequence ([cyan]megatron[/]) a document, "
            "or a training window.",
            show_default=True,
        ),
    ] = "documents",
    clean: Annotated[
        bool, option("--clean", "Export the clean twin: the same length, no copies.")
    ] = False,
    show_protected: Annotated[
        bool,
        option(
            "--show-protected",
            "Also export copies of protected datasets; do not share such files.",
        ),
    ] = False,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Export the contaminated stream of a run, with the position of every copy.

    [cyan]copies.parquet[/] lists the position of each copy in the exported tokens;
    [cyan]export.json[/] contains the facts and the digests.

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
            f"({facts.texts['changed_tokens']:,} of {facts.tokens:,} tokens) does not tokenize to "
            "the same tokens; their lines are marked. Export tokens if that matters."
        )
    if facts.copies_left_out:
        warn(f"{facts.copies_left_out:,} copies are in the last partial window, which is omitted.")
    if facts.protected:
        warn("The files contain texts of protected datasets: do not share them.")
    size = sum(file["bytes"] for file in facts.files.values())
    say(
        f"{facts.tokens:,} tokens in {facts.documents:,} documents, {facts.copies:,} copies, "
        f"{human_bytes(size)}."
    )
    say(f"Export: {out}", style="bold")
