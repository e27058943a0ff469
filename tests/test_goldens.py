"""The goldens find a number that moved, by its file and column, and nothing where none did.

`reference/` holds the metrics of the reduced run, and how the machine computes that made them.
`python -m tests.reference_machine` makes them anew, for a change that is meant to move a number.
Stored numbers are compared within `TOLERANCE`: equality to the last bit is asked of two builds on
one machine alone. Another processor trains another model; there the rows, their counts and their
columns are compared, and the test says so.
"""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.goldens.__main__ import REPOSITORY, differences, main
from scripts.goldens.contents import contents, digests
from tests.reference_machine import METRICS, RECORD, fingerprint, metrics_of

TOLERANCE = 1e-5
CHOSEN = frozenset({"setting"})
"""What hangs on scores: the setting chosen on tune."""
PACKAGES = ("inject", "train", "detect", "analysis", "spikein")


def parquet(tmp_path: Path, **columns: list) -> bytes:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path.read_bytes()


def changed_columns(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0.1, 0.1 + 2**-56),
        (0.0, -0.0),
        (float("nan"), None),
        (1.0, 1),
    ],
)
def test_the_last_bit_of_a_column_counts(tmp_path, before, after):
    old = digests("t.parquet", parquet(tmp_path, a=[before], b=["x"]))
    new = digests("t.parquet", parquet(tmp_path, a=[after], b=["x"]))
    assert changed_columns(old, new) == {"a"}
    assert digests("t.parquet", parquet(tmp_path, a=[before], b=["x"])) == old


def test_rows_and_their_order_count_and_times_do_not(tmp_path):
    old = digests("log.parquet", parquet(tmp_path, loss=[1.0, 2.0], mfu=[0.1, 0.2]))
    slower = digests("log.parquet", parquet(tmp_path, loss=[1.0, 2.0], mfu=[0.3, 0.4]))
    turned = digests("log.parquet", parquet(tmp_path, loss=[2.0, 1.0], mfu=[0.1, 0.2]))
    longer = digests("log.parquet", parquet(tmp_path, loss=[1.0, 2.0, 2.0], mfu=[0.1, 0.2, 0.2]))
    assert changed_columns(old, slower) == set()
    assert changed_columns(old, turned) == {"loss"}
    assert changed_columns(old, longer) == {"", "loss"}


def test_a_weight_is_told_by_its_tensor(tmp_path):
    import torch
    from safetensors.torch import save_file

    found = []
    for step, number in (("1", 1.0), ("2", 1.0), ("2", 1.0 + 2**-23)):
        weights = {"head": torch.ones(3), "body": torch.tensor([number])}
        save_file(weights, tmp_path / "model.safetensors", metadata={"step": step})
        found.append(digests("model.safetensors", (tmp_path / "model.safetensors").read_bytes()))
    assert changed_columns(found[0], found[1]) == set()
    assert changed_columns(found[1], found[2]) == {"body"}


def test_artifacts_are_found_by_their_label_and_what_one_side_lacks_is_told(tmp_path):
    for side, digest in (("a", "0123456789ab"), ("b", "ba9876543210")):
        for label, values in (("x", [1]), ("y", [2])):
            folder = tmp_path / side / "store" / "scores" / f"arm-{label}-{digest}"
            folder.mkdir(parents=True)
            (folder / "scores.parquet").write_bytes(parquet(tmp_path, score=values))
            (folder / "manifest.json").write_text(digest)
    before, after = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert set(before) == {"scores/arm-x/scores.parquet", "scores/arm-y/scores.parquet"}
    assert differences(before, after) == []
    del after["scores/arm-y/scores.parquet"]
    assert differences(before, after) == ["scores/arm-y/scores.parquet: 1 before, 0 after"]


def test_an_empty_side_is_no_equal_side(tmp_path):
    with pytest.raises(ValueError, match="nothing to compare"):
        contents(tmp_path)


def moved_numbers(before: pa.Table, now: pa.Table, *, values: bool) -> list[str]:
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


def test_a_number_that_moved_is_told_with_its_row(stored):
    name = "low"
    at = first_number(stored, name)
    value = stored[name][at].as_py()
    assert moved_numbers(stored, changed(stored, name, at, value + 9e-6), values=True) == []
    for other in (value + 2e-5, float("nan"), None):
        (line,) = moved_numbers(stored, changed(stored, name, at, other), values=True)
        assert line.startswith(f"{name}: 1 of {stored.num_rows:,} rows".replace(",", ""))
        assert f"first row {at}" in line


def test_what_is_no_number_is_compared_as_it_is(stored):
    (line,) = moved_numbers(stored, changed(stored, "n_members", 7, 1), values=False)
    assert line.startswith("n_members: 1 of")
    for other, said in ((stored.slice(1), "rows:"), (stored.drop_columns(["low"]), "columns:")):
        (line,) = moved_numbers(stored, other, values=False)
        assert line.startswith(said)
    other = changed(stored, "setting", 7, "k=0.33")
    assert moved_numbers(stored, other, values=False) == []
    assert moved_numbers(stored, other, values=True)[0].startswith("setting: 1 of")


@pytest.fixture(scope="module")
def edited(tmp_path_factory) -> Path:
    """A copy of this tree in which zlib's score is another by one part in a million."""
    tree = tmp_path_factory.mktemp("edited")
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, tree / package)
    shutil.copytree(REPOSITORY / "configs", tree / "configs")
    path = tree / "detect" / "detectors" / "zlib.py"
    source = path.read_text()
    last = source.rindex("return ")
    path.write_text(f"{source[:last]}return 1.000001 * {source[last:].removeprefix('return ')}")
    return tree


@pytest.fixture(scope="module")
def compared(edited, tmp_path_factory) -> tuple[Path, int]:
    """Return the folder of both sides, this tree and the edited one, and the exit code."""
    kept = tmp_path_factory.mktemp("goldens")
    return kept, main([str(REPOSITORY), str(edited), "--reduced", "--keep", str(kept)])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_edited_formula_is_found_in_its_file_and_all_else_is_equal(compared):
    kept, code = compared
    assert code == 1
    lines = differences(contents(kept / "before"), contents(kept / "after"))
    files = {line.split(": ")[0]: line.split(": ")[1].split(", ") for line in lines}
    arm = next(name for name in files if name.startswith("scores/") and "base" not in name)
    assert files[arm] == ["score"]
    assert "score" in files["detect/detect.parquet"]
    assert any(name.startswith("bundle/") for name in files)
    # What comes before the detector in the graph did not move.
    assert not [name for name in files if name.startswith(("model/", "statistics/", "plan/"))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_metrics_are_those_of_before(compared):
    before, now = pq.read_table(METRICS), metrics_of(compared[0] / "before")
    recorded, here = json.loads(RECORD.read_text(encoding="utf-8")), fingerprint()
    assert now.schema.names == before.schema.names
    assert now.num_rows == before.num_rows
    if here["texts"] != recorded["texts"]:
        pytest.skip(f"the background is other text: {here['texts']}, not {recorded['texts']}")
    alike = here["arithmetic"] == recorded["arithmetic"]
    assert moved_numbers(before, now, values=alike) == []
    if not alike:
        pytest.skip(
            "the rows are equal; their values cannot be compared, because this machine computes "
            f"otherwise: {here['arithmetic']}, not {recorded['arithmetic']}"
        )
