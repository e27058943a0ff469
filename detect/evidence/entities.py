"""Named entities: found by a tagger once for each pool of examples, whatever models are scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.parquet as pq

from detect.access import Access
from detect.evidence.needs import EvidenceSources, Need, Scored, Work
from detect.named_entities import LIBRARIES, NamedEntity, find_entities, tagger_identity
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.reading.unchanged import unchanged
from inject.step import Step, StepContext
from inject.tables import read_parquet

ENTITIES_FILE = "entities.parquet"
SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("start", pa.list_(pa.int32())),
        ("stop", pa.list_(pa.int32())),
        ("label", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Entities(Need):
    """The named entities of each text, found by a tagger that the user names."""

    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.NONE
    hint: ClassVar[str] = "Name a spaCy pipeline that finds named entities (detect.tagger)."
    file_hint: ClassVar[str] = "Name a spaCy pipeline that finds named entities (tagger=NAME)."
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {ENTITIES_FILE: ("start", "stop", "label")}
    options: ClassVar[tuple[str, ...]] = ("tagger",)

    def __str__(self) -> str:
        return "named entities"

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether a tagger is named."""
        return sources.detect.tagger is not None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the step that tags the examples.

        Raises:
            InputError: spaCy or the tagger is not there.
        """
        tagger = sources.detect.tagger or ""
        identity = tagger_identity(tagger)
        step = Step(
            kind="entities",
            label=identity["name"],
            function=f"{__name__}:build",
            settings={"tagger": identity},
            inputs={"examples": sources.examples},
            libraries=LIBRARIES,
            reads={"examples": TEXTS},
            execution={"tagger": tagger},
        )
        return {"entities": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the entities."""
        table = read_entities(work.inputs["entities"])
        work.further[cls()] = [table.get(row.example_id) for row in work.rows]


def build(context: StepContext) -> None:
    """Find the entities of every example, and write them."""
    rows = read_examples(context.inputs["examples"])
    tagger, identity = context.execution["tagger"], context.settings["tagger"]
    with unchanged("detect.tagger", lambda: tagger_identity(tagger), identity):
        entities = find_entities(
            tagger,
            [row.text for row in rows],
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
    write_entities(context.out, [row.example_id for row in rows], entities)


def write_entities(
    folder: Path, example_ids: Sequence[str], rows: Sequence[Sequence[NamedEntity]]
) -> None:
    """Write `entities.parquet`: one row an example, in order."""
    table: list[dict[str, Any]] = [
        {
            "example_id": name,
            **{field: [getattr(entity, field) for entity in row] for field in NamedEntity._fields},
        }
        for name, row in zip(example_ids, rows, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), folder / ENTITIES_FILE)


def read_entities(folder: Path) -> dict[str, list[NamedEntity]]:
    """Read what `write_entities` wrote, by example id; without rows that a bundle withholds.

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return {
        row["example_id"]: [
            NamedEntity(*entity)
            for entity in zip(*(row[field] for field in NamedEntity._fields), strict=True)
        ]
        for row in read_parquet(folder / ENTITIES_FILE, schema=SCHEMA).to_pylist()
        if row["start"] is not None
    }
