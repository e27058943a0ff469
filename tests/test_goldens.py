"""The goldens name the file and column of each changed number, and report no false changes.

`reference/` contains the metrics of the reduced run, and how its machine computes.
`python -m tests.reference_machine` renews them, for a change that is meant to move a number.
Stored numbers are compared within `TOLERANCE`: equality to the last bit is only required of two
builds on one machine. Another processor trains another model; there the rows, their counts and
their columns are compared, and the test reports it.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.goldens.__main__ import REPOSITORY, differences, main
from scripts.goldens.contents import contents, digests
from tests.reference_machine import METRICS, RECORD, fingerprint, metrics_of

TOLERANCE = 1e-5
CHOSEN = "setting"
"""Values that depend on scores: the setting chosen on the tuning split."""
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
def test_last_bit_of_a_column_is_compared(tmp_path, before, after):
    old = digests("t.parquet", parquet(tmp_path, a=[before], b=["x"]))
    new = digests("t.parquet", parquet(tmp_path, a=[after], b=["x"]))
    assert changed_columns(old, new) == {"a"}
    assert digests("t.parquet", parquet(tmp_path, a=[before], b=["x"])) == old


def test_changed_weight_is_named_by_its_tensor(tmp_path):
    import torch
    from safetensors.torch import save_file

    file_digests = []
    for step, number in (("1", 1.0), ("2", 1.0), ("2", 1.0 + 2**-23)):
        weights = {"head": torch.ones(3), "body": torch.tensor([number])}
        save_file(weights, tmp_path / "model.safetensors", metadata={"step": step})
        file_digests.append(
            digests("model.safetensors", (tmp_path / "model.safetensors").read_bytes())
        )
    assert changed_columns(file_digests[0], file_digests[1]) == set()
    assert changed_columns(file_digests[1], file_digests[2]) == {"body"}


def test_artifacts_are_matched_by_label_and_missing_ones_are_reported(tmp_path):
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


def test_empty_side_is_not_equal(tmp_path):
    with pytest.raises(ValueError, match="no files to compare"):
        contents(tmp_path)


def require_same_metrics(now: pa.Table, before: pa.Table, *, values: bool) -> None:
    """Compare tables within `TOLERANCE`; without `values`, ignore numbers and choices by them."""
    left_out = [
        field.name
        for field in before.schema
        if not values and (pa.types.is_floating(field.type) or field.name == CHOSEN)
    ]
    actual, expected = (table.drop_columns(left_out).to_pandas() for table in (now, before))
    pd.testing.assert_frame_equal(actual, expected, rtol=0, atol=TOLERANCE)


@pytest.fixture(scope="module")
def edited(tmp_path_factory) -> Path:
    """A copy of this tree in which zlib's score differs by one part in a million."""
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
    folder = tmp_path_factory.mktemp("goldens")
    return folder, main([str(REPOSITORY), str(edited), "--reduced", "--keep", str(folder)])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_edited_formula_changes_only_its_file(compared):
    folder, code = compared
    assert code == 1
    lines = differences(contents(folder / "before"), contents(folder / "after"))
    files = {line.split(": ")[0]: line.split(": ")[1].split(", ") for line in lines}
    arm = next(name for name in files if name.startswith("scores/") and "base" not in name)
    assert files[arm] == ["score"]
    assert "score" in files["detect/detect.parquet"]
    assert any(name.startswith("bundle/") for name in files)
    # Artifacts before the detector in the graph did not change.
    assert not [name for name in files if name.startswith(("model/", "statistics/", "plan/"))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_metrics_match_the_recorded_ones(compared):
    before, now = pq.read_table(METRICS), metrics_of(compared[0] / "before")
    recorded, measured = json.loads(RECORD.read_text(encoding="utf-8")), fingerprint()
    if measured["texts"] != recorded["texts"]:
        pytest.skip(f"the background is other text: {measured['texts']}, not {recorded['texts']}")
    alike = measured["arithmetic"] == recorded["arithmetic"]
    require_same_metrics(now, before, values=alike)
    if not alike:
        pytest.skip(
            "the rows are equal; their values cannot be compared, because this machine computes "
            f"otherwise: {measured['arithmetic']}, not {recorded['arithmetic']}"
        )
