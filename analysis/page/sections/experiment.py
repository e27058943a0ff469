"""What was run: texts, streams, models and settings."""

from analysis.copy_bins import passage_sentences
from analysis.page.inputs import PageInputs
from analysis.page.parts import Columns, Fold, Items, Note, Part, Stacked, present
from analysis.page.setup import datasets_table, description, pool_notes, setup
from analysis.page.streams import stream_listing, stream_sentences


def experiment_parts(inputs: PageInputs) -> list[Part]:
    """Return what was run, without the notes that are listed elsewhere."""
    listed = {one.note for one in inputs.left_out}
    notes = [note for note in inputs.notes if note not in listed] + pool_notes(inputs.pools)
    notes = [*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)]
    datasets = datasets_table(inputs.arms[0].examples) if inputs.arms else None
    listed_streams = stream_listing(inputs.streams)
    # Streams that differ in nothing but their arm need no table.
    alike = listed_streams is not None and len(listed_streams.columns) == 1
    streams = present(
        datasets,
        Note(f"Training streams. {listed_streams.caption}", "how")
        if alike and listed_streams
        else listed_streams,
        [Note(sentence, "how") for sentence in stream_sentences(inputs.streams)],
    )
    said = description(inputs.settings, inputs.datasets) if inputs.settings else ""
    settings = (
        setup(inputs.settings, swept=inputs.swept, seeds=inputs.seeds) if inputs.settings else None
    )
    return present(
        Note(said, "say") if said else None,
        Columns(present(settings, Stacked(streams) if streams else None)),
        Fold(f"Notes on the texts: {len(notes)}", [Items(notes)]) if notes else None,
    )
