"""A user's rows as a pool of examples, so that the steps of an experiment also score them.

All rows belong to one dataset without a name. An example's id is its row's number, as ids of a
user's file may occur twice; the file's own id is its `source_id`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from detect.evidence.prefixed import KNOWN_MEMBERS_FILE
from detect.user_rows.labelled_rows import KnownTexts, LabelledRows, row_example
from inject.digest import digest
from inject.examples.example import (
    EXAMPLES_FILE,
    HELD_OUT_FILE,
    OF_EXAMPLES,
    SCHEMA,
    Example,
    examples_table,
)
from inject.step import Step, StepContext


def rows_step(rows: LabelledRows, held_out: KnownTexts | None = None) -> Step:
    """Return the step that writes rows as examples; arguments as for `given_examples_step`."""
    return given_examples_step(_scored_examples(rows), held_out, protected=bool(rows.protected))


def given_examples_step(
    examples: Sequence[Example], held_out: KnownTexts | None = None, *, protected: bool
) -> Step:
    """Return the step that writes examples; their content is its identity.

    Args:
        examples: the scored examples.
        held_out: further texts with known membership.
        protected: whether an example must not be shared.
    """
    tables = {
        EXAMPLES_FILE: _table_rows(examples),
        HELD_OUT_FILE: _table_rows(held_out.nonmembers if held_out else []),
        KNOWN_MEMBERS_FILE: _table_rows(held_out.members if held_out else []),
    }
    return Step(
        kind="examples",
        label="rows",
        function=f"{__name__}:build",
        settings={"rows": digest(tables)},
        facets=OF_EXAMPLES,
        protected=protected or bool(held_out and held_out.protected),
        execution={"tables": tables},
    )


def build(context: StepContext) -> None:
    """Write the examples, and held-out rows and known members if there are any."""
    tables: Mapping[str, list[dict[str, Any]]] = context.execution["tables"]
    for name, rows in tables.items():
        if rows or name == EXAMPLES_FILE:
            pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), context.out / name)


def _scored_examples(rows: LabelledRows) -> list[Example]:
    return [
        row_example(
            rows,
            at,
            example_id=str(at),
            source_id=source_id,
            fields={"title": rows.titles[at]} if rows.titles else {},
        )
        for at, source_id in enumerate(rows.ids)
    ]


def _table_rows(examples: Sequence[Example]) -> list[dict[str, Any]]:
    return examples_table(examples).to_pylist()
