"""The goldens find a number that moved, by its file and column, and nothing where none did."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from scripts.goldens.__main__ import REDUCED, REPOSITORY, build_all, differences, main
from scripts.goldens.contents import contents, digests

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


@pytest.fixture(scope="module")
def edited(tmp_path_factory) -> Path:
    """A copy of this tree in which zlib's score is another by one part in a million."""
    tree = tmp_path_factory.mktemp("edited")
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package, tree / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copytree(REPOSITORY / "configs", tree / "configs")
    path = tree / "detect" / "detectors" / "zlib.py"
    source = path.read_text()
    last = source.rindex("return ")
    path.write_text(f"{source[:last]}return 1.000001 * {source[last:].removeprefix('return ')}")
    return tree


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_edited_formula_is_found_in_its_file_and_the_same_tree_twice_is_equal(
    edited, tmp_path, capsys
):
    assert main([str(REPOSITORY), str(edited), "--reduced", "--keep", str(tmp_path / "one")]) == 1
    *lines, total = capsys.readouterr().out.splitlines()
    files = {line.split(": ")[0]: line.split(": ")[1].split(", ") for line in lines}
    arm = next(name for name in files if name.startswith("scores/") and "base" not in name)
    assert files[arm] == ["score"]
    assert "score" in files["detect/detect.parquet"]
    assert any(name.startswith("bundle/") for name in files)
    # What comes before the detector in the graph did not move.
    assert not [name for name in files if name.startswith(("model/", "statistics/", "plan/"))]
    assert f"{len(lines)} differ" in total

    again = tmp_path / "again"
    build_all([(REPOSITORY, again)], REDUCED)
    assert differences(contents(tmp_path / "one" / "before"), contents(again)) == []
