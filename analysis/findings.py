"""`findings.parquet`: everything that an experiment found, one number a row.

Each row answers a question; `as_table` returns the rows of one. `QUESTIONS` names those whose
tables have columns of their own, any other has the columns of the findings: a new kind of finding
is a function that makes its rows, and a line where it is called. A value that a row lacks
is null. `Findings` looks up rows by their keys, for code that shows or compares numbers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from inject.files import replacing
from inject.tables import read_parquet

FINDINGS_FILE = "findings.parquet"
_ASKED = b"questions"
"""Metadata of the file: all questions, including those without an answer."""

_TEXTS = """
    question model method dataset copies detector setting selection variant versus versus_setting
    reference metric kind factor level verdict rows steps_since_copy side phase shown caution
"""
_NUMBERS = """
    value low high seed_low seed_high pointwise_low pointwise_high p_value p_holm x passage_copies
    base_value base_weight chance_error tokens_since_copy false_discovery_rate smallest_p
    members_found unlearned retrained original
"""
_COUNTS = """
    n_members n_nonmembers n_groups n_seeds seed step tokens steps_since_copy_low
    steps_since_copy_high pairs calibration_rows calibration_groups unscored flagged
    flagged_nonmembers
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
        pointwise_low pointwise_high p_value n_members n_seeds shown reason=caution""",
    "accuracy": f"""dataset scoring=setting quantity=metric side phase value low high {_SEEDS}""",
    "correction": f"""model dataset copies reference outcome=kind estimator=metric detector setting
        calibration_items=calibration_rows contaminated_share=x value low high rmse=chance_error
        removed=base_weight target=base_value draws=pairs unscored {_SEEDS} interval=caution""",
    "claims": """claim=factor kind comparison=level detector copies measure=metric verdict value low
        high upper_80=pointwise_high margin=x members_per_seed=n_members
        nonmembers_per_seed=n_nonmembers n_seeds hypothesis=shown note=caution""",
    "background_loss": """metric value low high documents=n_groups n_seeds interval=caution""",
    "trajectory": f"""step tokens dataset detector setting selection copies value low high {_SEEDS}
        interval=caution""",
    "fading": f"""detector setting selection copies steps_since_copy steps_since_copy_low
        steps_since_copy_high tokens_since_copy metric value low high pairs {_SEEDS}
        interval=caution""",
    "palimpsest": """dataset detector setting versus metric value low high p_value n_members
        n_seeds strata=pairs permutations=calibration_rows interval=caution""",
    "insertion": f"""from_step=steps_since_copy_low to_step=steps_since_copy_high dataset detector
        setting versus metric value low high {_SEEDS}
        interval=caution""",
    "checks": """check=kind verdict model dataset detector setting selection copies value low high
        needed_low=pointwise_low needed_high=pointwise_high n_members n_nonmembers n_seeds
        total=pairs n_failed=flagged note=caution""",
    "comparison": f"""run=kind arm=level label=factor model dataset detector setting selection
        metric value low high {_SEEDS} seed_low seed_high interval=caution first=base_value
        second=x""",
    "validation": f"""kind arm=level detector setting selection role=side rank=step
        own_rows=unscored versus versus_setting dataset copies metric value low high {_SEEDS}
        interval=caution check=factor severity=verdict found=shown meaning=phase
        action=steps_since_copy""",
    "leaderboard": f"""kind detector setting author=side code=method models=model part=factor
        value low high best_rank=step worst_rank=pairs n_models=n_groups {_SEEDS}
        interval=caution seconds=x wrong=phase reason=shown""",
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
        [*swept, *((title, COLUMNS[column]) for title, column in columns_of(question).items())]
    )


def question_table(
    question: str, axes: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> pa.Table:
    """Return rows as the table of a question; values that a row lacks are null."""
    return pa.Table.from_pylist(list(rows), schema=table_schema(question, axes))


Row = Mapping[str, Any]
ArmOf = Callable[[Row], str]
"""The arm of a row, in words."""
Item = TypeVar("Item")
Key = TypeVar("Key")
_WHOLE = {"dataset": "all", "selection": "default", "copies": ALL, "variant": ALL, "metric": "auc"}
"""What a place means that does not name one of these columns."""


class Findings:
    """Rows of one question, looked up by the values of their columns."""

    def __init__(
        self, rows: Iterable[Row], axes: Sequence[str] = (), place: Mapping[str, Any] | None = None
    ) -> None:
        """Keep the rows, in their order.

        Args:
            rows: by the question's own columns.
            axes: the swept axes, by their dotted keys.
            place: the values that all rows have.
        """
        self.rows = tuple(rows)
        self.axes = tuple(axes)
        self._whole = {**_WHOLE, **(place or {})}
        self._known: dict[tuple[str, ...], dict[tuple[object, ...], Row]] = {}

    def get(self, **place: str) -> Estimate | None:
        """Return the number of a place: the AUC of all members, unless `place` specifies others."""
        row = self.row(**place)
        return None if row is None else Estimate.of(row)

    def reported(self, detector: str, **place: str) -> Estimate | None:
        """Return the number that stands for a detector: the tuned setting's, else the default's."""
        row = self.reported_row(detector, **place)
        return None if row is None else Estimate.of(row)

    def reported_row(self, detector: str, **place: str) -> Row | None:
        """Return the row of what `reported` returns."""
        tuned = self.row(detector=detector, selection="tuned", **place)
        return tuned or self.row(detector=detector, **place)

    def row(self, **place: str) -> Row | None:
        """Return the first row of a place, as `get` reads it; None if there is none."""
        columns = self.rows[0] if self.rows else place
        selected = {name: value for name, value in self._whole.items() if name in columns} | place
        names = tuple(selected)
        if names not in self._known:
            last_first = reversed(self.rows)
            self._known[names] = {tuple(row[name] for name in names): row for row in last_first}
        return self._known[names].get(tuple(selected.values()))

    def where(self, **place: str | float) -> "Findings":
        """Return the rows that have these values."""
        matches = (
            row for row in self.rows if all(row[name] == value for name, value in place.items())
        )
        return Findings(matches, self.axes, self._whole | place)

    def values(self, column: str) -> list[str]:
        """Return the different values of a column, in order of the rows."""
        return list(dict.fromkeys(row[column] for row in self.rows))

    @cached_property
    def cohort(self) -> Cohort:
        """The arm and the model that the first row is of."""
        first = self.rows[0]
        return Cohort(tuple((axis, first[axis_column(axis)]) for axis in self.axes), first["model"])


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by their key, in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def split_by_cohort(table: pa.Table, axes: Sequence[str]) -> list[Findings]:
    """Return the rows of each arm and model, in order of first appearance."""
    columns = ["model", *map(axis_column, axes)]
    cohorts = group_by(table.to_pylist(), lambda row: tuple(row[name] for name in columns))
    return [Findings(rows, axes) for rows in cohorts.values()]


def contaminated_cohorts(tables: Iterable[Findings]) -> list[Findings]:
    """Return the cohorts whose model saw the members."""
    return [table for table in tables if table.cohort.model == "contaminated"]


def write_findings(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write the tables of questions into a folder, as one file, whole or not at all."""
    parts = [as_findings(question, table) for question, table in tables.items()]
    _write(folder, pa.concat_tables(parts), tables)


def join_findings(folder: Path, parts: Sequence[pa.Table]) -> None:
    """Write the findings of several steps into a folder, as one file."""
    all_questions = [question for part in parts for question in questions(part)]
    _write(folder, pa.concat_tables(parts, promote_options="default"), all_questions)


def read_findings(folder: Path) -> pa.Table:
    """Read what `write_findings` wrote.

    Raises:
        InputError: a missing or damaged file.
    """
    return read_parquet(folder / FINDINGS_FILE)


def questions(findings: pa.Table) -> list[str]:
    """Return all questions of the analysis."""
    return (findings.schema.metadata or {}).get(_ASKED, b"").decode().split()


def as_table(findings: pa.Table, question: str) -> pa.Table:
    """Return the rows of one question with its own columns, under their own names."""
    rows = findings.filter(pc.equal(findings["question"], question))
    axes = [name for name in findings.column_names if name not in COLUMNS]
    names = {**{axis: axis for axis in axes}, **columns_of(question)}
    table = rows.select(list(names.values())).rename_columns(list(names))
    return table.replace_schema_metadata(None)


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Read the rows of every question of a folder."""
    findings = read_findings(folder)
    return {question: as_table(findings, question) for question in questions(findings)}


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


def _write(folder: Path, findings: pa.Table, question_names: Iterable[str]) -> None:
    stored = findings.replace_schema_metadata({_ASKED: " ".join(question_names)})
    with replacing(folder / FINDINGS_FILE) as temporary:
        pq.write_table(stored, temporary)
