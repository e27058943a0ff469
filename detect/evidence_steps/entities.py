"""Finds the named entities of texts."""

from detect.named_entities.entities import write_entities
from detect.named_entities.tagger import find_entities, tagger_identity
from inject.examples.example import read_examples
from inject.reading.unchanged import unchanged
from inject.step import StepContext


def build(context: StepContext) -> None:
    """Find the entities of every example, and write them."""
    rows = read_examples(context.inputs["examples"])
    tagger, named = context.execution["tagger"], context.settings["tagger"]
    with unchanged("detect.tagger", lambda: tagger_identity(tagger), named):
        found = find_entities(
            tagger,
            [row.text for row in rows],
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
    write_entities(context.out, [row.example_id for row in rows], found)
