"""What was run: texts, streams, models and settings."""

from analysis.arm import axis_column
from analysis.arm_words import arm_words
from analysis.copy_bins import passage_sentences
from analysis.page.inputs import PageInputs
from analysis.page.parts import Columns, Note, Part, Stacked, fold_items, present
from analysis.page.setup import datasets_table, description, pool_notes, setup
from analysis.page.streams import stream_listing, stream_sentences
from analysis.page.table import Column, Table, numbers
from analysis.page.view import capital
from analysis.task_accuracy.background_loss import METRICS
from analysis.unit import DIFFERENCE, NATS, NOTHING, Entry


def background_losses(inputs: PageInputs) -> Table | None:
    """Return the losses on held-out background, a row per arm; None unless measured."""
    if inputs.background_loss is None:
        return None
    by_arm: dict[str, dict[str, Entry]] = {}
    documents = 0
    for row in inputs.background_loss.to_pylist():
        axes = [(axis, row[axis_column(axis)]) for axis in inputs.swept]
        unit = DIFFERENCE if row["metric"] == "change" else NATS
        entry = unit.place(row["value"], row["low"], row["high"])
        by_arm.setdefault(capital(arm_words(axes)) or "All arms", {})[row["metric"]] = entry
        documents = row["documents"]
    return Table(
        title="Loss on held-out background",
        columns=(Column("Arm"), *numbers(*map(capital, METRICS))),
        rows=tuple(
            (arm, *(entries.get(metric, NOTHING) for metric in METRICS))
            for arm, entries in by_arm.items()
        ),
        caption=f"Nats per token, means over {documents} documents that no model is trained on, "
        "with 95 % intervals over documents; a positive change means that training raised it.",
    )


def experiment_parts(inputs: PageInputs) -> list[Part]:
    """Return what was run, without the notes that are listed elsewhere."""
    elsewhere = {one.note for one in inputs.left_out}
    notes = [note for note in inputs.notes if note not in elsewhere] + pool_notes(inputs.pools)
    notes = [*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)]
    datasets = datasets_table(inputs.arms[0].examples) if inputs.arms else None
    listed = stream_listing(inputs.streams)
    streams = present(
        datasets,
        # Streams that differ in nothing but their arm need no table.
        Note(f"Training streams. {listed.caption}", "how")
        if listed and len(listed.columns) == 1
        else listed,
        [Note(sentence, "how") for sentence in stream_sentences(inputs.streams)],
        background_losses(inputs),
    )
    said = description(inputs.settings, inputs.datasets) if inputs.settings else ""
    settings = (
        setup(inputs.settings, swept=inputs.swept, seeds=inputs.seeds) if inputs.settings else None
    )
    return present(
        Note(said, "say") if said else None,
        Columns(present(settings, Stacked(streams) if streams else None)),
        fold_items("Notes on the texts", notes),
    )
