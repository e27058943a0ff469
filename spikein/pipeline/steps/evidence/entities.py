"""Named entities: found by a tagger once for each pool of examples, whatever models are scored."""

from collections.abc import Sequence

from detect.named_entities.entities import read_entities, write_entities
from detect.named_entities.tagger import LIBRARIES, find_entities, tagger_identity
from detect.needs import Entities
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work


class _EntityProvider(Provider[Entities]):
    hint = "Name a spaCy pipeline that finds named entities (detect.tagger)."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.detect.tagger is not None

    def inputs(self, need: Entities, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        tagger = sources.detect.tagger
        if tagger is None:
            raise TypeError("named entities without a tagger")
        return {"entities": entities_step(tagger, sources.examples)}


ENTITIES: Provider[Entities] = _EntityProvider()
"""The need of named entities is met by the tagger that the experiment names."""


def entities_step(tagger: str, examples: Step) -> Step:
    """Find the named entities of every example.

    Raises:
        InputError: spaCy or the tagger is not there.
    """
    named = tagger_identity(tagger)

    def build(context: StepContext) -> None:
        rows = read_examples(context.inputs["examples"].path)
        with unchanged("detect.tagger", lambda: tagger_identity(tagger), named):
            found = find_entities(
                tagger,
                [row.text for row in rows],
                progress=lambda done, total: context.report(done, total, unit="texts"),
            )
        write_entities(context.out, [row.example_id for row in rows], found)

    return Step(
        kind="entities",
        label=named["name"],
        settings={"tagger": named},
        inputs={"examples": examples},
        libraries=LIBRARIES,
        code=(root(build),),
        reads={"examples": TEXTS},
        build=build,
    )


def read_named_entities(needs: Sequence[Entities], work: Work) -> None:
    """Read the named entities."""
    table = read_entities(work.inputs["entities"].path)
    work.fields["entities"] = [table[row.example_id] for row in work.rows]
