"""`findings.parquet`: everything that an experiment found, one number a row.

Each row answers a question; `as_table` returns the rows of one. `QUESTIONS` names those whose
tables have columns of their own, any other has the columns of the findings: a new kind of finding
is a function that makes its rows, and a line where it is called. What a row does not say is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.arm import axis_column
from inject.files import replacing
from inject.tables import read_parquet

FINDINGS_FILE = "findings.parquet"
_ASKED = b"questions"
"""Metadata of the file: the questions that were asked, those without an answer included."""

_TEXTS = """
    question model method dataset copies detector setting selection variant versus versus_setting
    reference metric kind factor level verdict rows since side moment shown caution
"""
_NUMBERS = """
    value low high seed_low seed_high alone_low alone_high p_value p_holm x passage_copies
    base_value base_weight chance_error tokens_since false_discovery_rate smallest_p members_found
    unlearned retrained original
"""
_COUNTS = """
    n_members n_nonmembers n_groups n_seeds seed step tokens since_low since_high pairs
    calibration_rows calibration_groups unscored flagged flagged_nonmembers
"""
COLUMNS: Mapping[str, pa.DataType] = {
    name: kind
    for names, kind in ((_TEXTS, pa.string()), (_NUMBERS, pa.float64()), (_COUNTS, pa.int64()))
    for name in names.split()
}
"""Every column but those of the swept axes."""

_SEEDS = "n_members n_nonmembers n_seeds"
_QUESTIONS = {
    "metrics": f"""model dataset detector setting selection copies variant metric value low high
        {_SEEDS} passage_copies seed_low seed_high interval=caution base_value base_weight
        chance_error""",
    "differences": f"""model dataset detector setting selection copies versus versus_setting
        reference metric value low high {_SEEDS} seed_low seed_high interval=caution""",
    "dataset_detectors": """model seed dataset detector rows statistic=metric value low high
        p_value p_holm n=n_groups note=caution""",
    "flagged": """model dataset detector setting level=false_discovery_rate calibration_rows
        calibration_groups smallest_p n_members n_nonmembers unscored flagged flagged_nonmembers
        false_share=value low high members_found n_seeds""",
    "factors": """kind factor dataset detector setting level versus term=metric x value low high
        alone_low alone_high p_value n_members n_seeds shown reason=caution""",
    "accuracy": f"""dataset scoring=setting quantity=metric side moment value low high {_SEEDS}""",
    "background_loss": """metric value low high documents=n_groups n_seeds interval=caution""",
    "trajectory": f"""step tokens dataset detector setting selection copies value low high {_SEEDS}
        interval=caution""",
    "fading": f"""detector setting selection copies since since_low since_high tokens_since metric
        value low high pairs {_SEEDS} interval=caution""",
    "checks": """check=kind verdict model dataset detector setting selection copies value low high
        needed_low=alone_low needed_high=alone_high n_members n_nonmembers n_seeds total=pairs
        off=flagged note=caution""",
    "unlearning": """model method dataset copies measure=metric detector setting value low high
        forget=n_members holdout=n_nonmembers groups=n_groups seeds=n_seeds note=caution""",
    "verdict": """method measure=metric detector versus kind verdict value low high unlearned
        retrained original groups=n_groups seeds=n_seeds note=caution""",
    "unlearning_audits": """seed method copies quantity=metric value low high chunks=n_members
        seeds=n_seeds note=caution""",
}
QUESTIONS: Mapping[str, Mapping[str, str]] = {
    question: {
        shown: kept or shown for shown, _, kept in (name.partition("=") for name in names.split())
    }
    for question, names in _QUESTIONS.items()
}
"""Of each question the columns of its table, in order, each with the column that keeps it."""


def columns_of(question: str) -> Mapping[str, str]:
    """Return the columns of a question's table, each with the column that keeps it."""
    return QUESTIONS.get(question) or {name: name for name in COLUMNS if name != "question"}


def table_schema(question: str, axes: Sequence[str]) -> pa.Schema:
    """Return the columns of a question's table.

    Args:
        question: its name.
        axes: the swept axes, by their dotted keys.
    """
    swept = [(axis_column(axis), pa.string()) for axis in axes]
    return pa.schema(
        [*swept, *((shown, COLUMNS[kept]) for shown, kept in columns_of(question).items())]
    )


def question_table(
    question: str, axes: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> pa.Table:
    """Return rows as the table of a question; what a row does not say is null."""
    return pa.Table.from_pylist(list(rows), schema=table_schema(question, axes))


def write_findings(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write the tables of questions into a folder, as one file, whole or not at all."""
    parts = [as_findings(question, table) for question, table in tables.items()]
    _write(folder, pa.concat_tables(parts), tables)


def join_findings(folder: Path, parts: Sequence[pa.Table]) -> None:
    """Write the findings of several steps into a folder, as one file."""
    asked = [question for part in parts for question in questions(part)]
    _write(folder, pa.concat_tables(parts, promote_options="default"), asked)


def read_findings(folder: Path) -> pa.Table:
    """Read what `write_findings` wrote.

    Raises:
        InputError: the file is missing or damaged.
    """
    return read_parquet(folder / FINDINGS_FILE)


def questions(findings: pa.Table) -> list[str]:
    """Return the questions that were asked."""
    return (findings.schema.metadata or {}).get(_ASKED, b"").decode().split()


def as_table(findings: pa.Table, question: str) -> pa.Table:
    """Return the rows of one question with its own columns, under their own names."""
    mine = findings.filter(pc.equal(findings["question"], question))
    axes = [name for name in findings.column_names if name not in COLUMNS]
    names = {**{axis: axis for axis in axes}, **columns_of(question)}
    table = mine.select(list(names.values())).rename_columns(list(names))
    return table.replace_schema_metadata(None)


def read_table(folder: Path, question: str) -> pa.Table:
    """Read the rows of one question from a folder."""
    return as_table(read_findings(folder), question)


def as_findings(question: str, table: pa.Table) -> pa.Table:
    """Return a question's table with all columns of the findings."""
    own = columns_of(question)
    axes = [name for name in table.column_names if name not in own]
    values = {own.get(name, name): table[name] for name in table.column_names}
    values["question"] = pa.array([question] * len(table), pa.string())
    schema = pa.schema(
        [*((axis, pa.string()) for axis in axes), *COLUMNS.items()], {_ASKED: question}
    )
    nothing = {name: pa.nulls(len(table), kind) for name, kind in COLUMNS.items()}
    return pa.table({**nothing, **values}, schema=schema)


def _write(folder: Path, findings: pa.Table, asked: Iterable[str]) -> None:
    kept = findings.replace_schema_metadata({_ASKED: " ".join(asked)})
    with replacing(folder / FINDINGS_FILE) as temporary:
        pq.write_table(kept, temporary)
