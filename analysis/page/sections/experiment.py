"""What was run: texts, streams, models and settings."""

from analysis.copy_bins import passage_sentences
from analysis.page.inputs import PageInputs
from analysis.page.parts import Columns, Note, Part, Stacked, fold_items, present
from analysis.page.setup import datasets_table, description, pool_notes, setup
from analysis.page.streams import stream_listing, stream_sentences


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
