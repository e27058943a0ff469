"""The quickstart's metrics are those of before: what was rebuilt moved no number.

`reference/` holds the metrics of a run of the quickstart, and how the machine computes that made
them. `python -m tests.spikein.fingerprint` runs the quickstart and makes them anew, for a change
that is meant to move a number. Stored numbers are compared within `TOLERANCE`: equality to the last
bit is asked of two runs on one machine alone (`scripts.goldens`). Another processor trains another
model; there the rows, their counts and their columns are compared, and the test says so.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from tests.spikein.fingerprint import METRICS, RECORD, fingerprint

TOLERANCE = 1e-5
CHOSEN = frozenset({"setting"})
"""What hangs on scores: the setting chosen on tune."""


def differences(before: pa.Table, now: pa.Table, *, values: bool) -> list[str]:
    """Return what differs, a line for each column, with the first row of it.

    Args:
        before: the stored metrics.
        now: those of the present code.
        values: whether the numbers and what is chosen by them are compared, too.
    """
    if now.schema.names != before.schema.names or now.schema.types != before.schema.types:
        return [f"columns: {before.schema.names} before, {now.schema.names} now"]
    if now.num_rows != before.num_rows:
        return [f"rows: {before.num_rows} before, {now.num_rows} now"]
    found = []
    for field in before.schema:
        number = pa.types.is_floating(field.type)
        if (number or field.name in CHOSEN) and not values:
            continue
        old, new = before[field.name].to_pylist(), now[field.name].to_pylist()
        apart = [at for at in range(len(old)) if not _same(old[at], new[at], number)]
        if apart:
            row = {name: before[name][apart[0]].as_py() for name in before.schema.names[:10]}
            found.append(
                f"{field.name}: {len(apart)} of {len(old)} rows; first row {apart[0]}, "
                f"{old[apart[0]]!r} before, {new[apart[0]]!r} now: {row}"
            )
    return found


def _same(old: object, new: object, number: bool) -> bool:
    if not number or old is None or new is None:
        return old == new
    return new == pytest.approx(old, rel=0, abs=TOLERANCE, nan_ok=True)


def changed(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    values = table[name].to_pylist()
    values[row] = value
    at = table.schema.get_field_index(name)
    return table.set_column(
        at, table.schema.field(at), pa.array(values, table.schema.field(at).type)
    )


@pytest.fixture(scope="module")
def stored() -> pa.Table:
    return pq.read_table(METRICS)


def first_number(table: pa.Table, name: str) -> int:
    values = enumerate(table[name].to_pylist())
    return next(at for at, value in values if value is not None and value == value)


@pytest.mark.parametrize("name", ["value", "low", "high"])
def test_a_number_that_moved_is_told_with_its_row(stored, name):
    at = first_number(stored, name)
    value = stored[name][at].as_py()
    assert differences(stored, changed(stored, name, at, value + 9e-6), values=True) == []
    for other in (value + 2e-5, float("nan"), None):
        (line,) = differences(stored, changed(stored, name, at, other), values=True)
        assert line.startswith(f"{name}: 1 of {stored.num_rows:,} rows".replace(",", ""))
        assert f"first row {at}" in line


def test_what_is_no_number_is_compared_as_it_is(stored):
    (line,) = differences(stored, changed(stored, "n_members", 7, 1), values=False)
    assert line.startswith("n_members: 1 of")
    other = changed(stored, "setting", 7, "k=0.33")
    assert differences(stored, other, values=False) == []
    assert differences(stored, other, values=True)[0].startswith("setting: 1 of")


def test_rows_and_columns_that_are_missing_are_told(stored):
    (line,) = differences(stored, stored.slice(1), values=False)
    assert line.startswith("rows:")
    (line,) = differences(stored, stored.drop_columns(["low"]), values=False)
    assert line.startswith("columns:")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_metrics_of_the_quickstart_are_those_of_before(quickstart_run: Path):
    before, now = pq.read_table(METRICS), read_table(quickstart_run, "metrics")
    recorded, here = json.loads(RECORD.read_text(encoding="utf-8")), fingerprint()
    assert now.schema.names == before.schema.names
    assert now.num_rows == before.num_rows
    if here["texts"] != recorded["texts"]:
        pytest.skip(f"the background is other text: {here['texts']}, not {recorded['texts']}")
    alike = here["arithmetic"] == recorded["arithmetic"]
    assert differences(before, now, values=alike) == []
    if not alike:
        pytest.skip(
            "the rows are equal; their values cannot be compared, because this machine computes "
            f"otherwise: {here['arithmetic']}, not {recorded['arithmetic']}"
        )
