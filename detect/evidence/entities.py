"""Named entities: found by a tagger once for each pool of examples, whatever models are scored."""

from collections.abc import Sequence

from detect.evidence.needs import Entities
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.named_entities.entities import ENTITIES_FILE, read_entities
from detect.named_entities.tagger import LIBRARIES, tagger_identity
from inject.examples.parts import TEXTS
from inject.step import Step


def entities_step(tagger: str, examples: Step) -> Step:
    """Find the named entities of every example.

    Raises:
        InputError: spaCy or the tagger is not there.
    """
    named = tagger_identity(tagger)
    return Step(
        kind="entities",
        label=named["name"],
        function="detect.evidence_steps.entities:build",
        settings={"tagger": named},
        inputs={"examples": examples},
        libraries=LIBRARIES,
        reads={"examples": TEXTS},
        execution={"tagger": tagger},
    )


class _EntityProvider(Provider[Entities]):
    hint = "Name a spaCy pipeline that finds named entities (detect.tagger)."
    leaves = ((ENTITIES_FILE, ("start", "stop", "label")),)

    def available(self, sources: EvidenceSources) -> bool:
        return sources.detect.tagger is not None

    def inputs(self, need: Entities, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        tagger = sources.detect.tagger
        if tagger is None:
            raise TypeError("named entities without a tagger")
        return {"entities": entities_step(tagger, sources.examples)}

    def read(self, needs: Sequence[Entities], work: Work) -> None:
        table = read_entities(work.inputs["entities"])
        work.fields["entities"] = [table.get(row.example_id) for row in work.rows]


ENTITIES: Provider[Entities] = _EntityProvider()
"""The need of named entities is met by the tagger that the experiment names."""
