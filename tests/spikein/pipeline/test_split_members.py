"""Reports of the split of members: in the artifacts, in errors, and on the page."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from inject.errors import SpikeinError
from tests.conftest import WORDS
from tests.spikein.tiny import LIGHT, build, graph_of, run, write_tiny

UNAUDITED = ("audit.drop=false", "audit.ngram=null", "audit.near_duplicate=null")


def sentences(count: int, words: int, *, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [
        " ".join(WORDS[place] for place in random.integers(0, len(WORDS), words)).capitalize()
        for _ in range(count)
    ]


def with_rows(folder: Path, datasets: dict[str, list[dict]], *, sides: str) -> None:
    """Write a tiny experiment whose datasets are these rows."""
    path = write_tiny(folder)
    lines = ["contaminants:"]
    for name, rows in datasets.items():
        file = folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        fields = ", ".join(f"{key}: {key}" for key in rows[0])
        lines.append(
            f'  - {{dataset: rows, name: {name}, path: "{file}", fields: {{{fields}}}, '
            f'template: "{{text}}", {sides}}}'
        )
    text = path.read_text()
    start, stop = text.index("contaminants:"), text.index("copies:")
    path.write_text(text[:start] + "\n".join(lines) + "\n" + text[stop:])


@pytest.mark.slow
def test_rows_that_share_passages_and_small_strata_are_reported_on_the_page(tmp_path):
    rows = [
        {"id": f"q{number}", "group": f"p{number // 3}", "label": f"L{number // 30}", "text": text}
        for number, text in enumerate(sentences(90, 20, seed=1))
    ]
    rows += [
        {"id": f"x{number}", "group": f"x{number}", "label": f"M{number}", "text": text}
        for number, text in enumerate(sentences(10, 20, seed=2))
    ]
    with_rows(tmp_path, {"exam": rows}, sides="members: 40, nonmembers: 30")
    done = run(tmp_path, "copies={levels: [1, 4]}", *UNAUDITED, *LIGHT)
    folder = done.folder
    facts = json.loads(next(tmp_path.glob("store/examples/*/examples.json")).read_text())["exam"]
    assert facts["strata"] == 13
    assert facts["strata_pooled"] == {"strata": 10, "rows": 10}
    page = (folder / "report.html").read_text()
    assert "10 of 13 strata (10 rows) are too small" in page
    assert "exam: rows share passages" in page

    examples = pq.read_table(folder / "examples.parquet").to_pylist()
    group = {row["example_id"]: row["group"] for row in examples}
    doses = pq.read_table(next(tmp_path.glob("store/plan/*/copy_counts.parquet"))).to_pylist()
    by_group: dict[str, list[int]] = {}
    for row in doses:
        by_group.setdefault(group[row["example_id"]], []).append(row["realised"])
    assert all(len(set(counts)) == 1 for counts in by_group.values())
    assert all(row["passage_copies"] == sum(by_group[group[row["example_id"]]]) for row in doses)
    assert any(row["passage_copies"] > row["realised"] for row in doses)
    for row in read_table(folder, "metrics").to_pylist():
        if row["model"] == "contaminated" and row["copies"] in ("1", "4"):
            inside = [
                dose["passage_copies"]
                for dose, example in zip(doses, examples, strict=True)
                if example["split"] == "test" and dose["realised"] == int(row["copies"])
            ]
            assert row["passage_copies"] == pytest.approx(np.mean(inside))


def test_rows_inside_other_rows_stop_the_run_with_their_own_names(tmp_path):
    short = sentences(30, 14, seed=3)
    longer = sentences(30, 22, seed=4)
    rows = [{"id": f"short-{n}", "text": text} for n, text in enumerate(short)]
    rows += [
        {"id": f"long-{n}", "text": f"{text}\n{more}"}
        for n, (text, more) in enumerate(zip(short, longer, strict=True))
    ]
    with_rows(tmp_path, {"exam": rows}, sides="members: 30, nonmembers: 30")
    (node,) = graph_of(
        tmp_path, "copies={fixed: 1}", "train.mode=pretrain", "base=null", *UNAUDITED, *LIGHT
    ).nodes
    with pytest.raises(SpikeinError) as failed:
        build(tmp_path, node.trained)
    message = str(failed.value)
    # Each withheld row inside a member's text is named with that member.
    assert "exam short-" in message
    number = message.split("exam short-")[1].split(" ")[0]
    assert f"its text is inside exam long-{number}" in message


def test_one_word_twins_in_two_datasets_are_never_on_opposite_sides(tmp_path):
    texts = sentences(60, 30, seed=5)
    first = [{"id": f"a{n}", "text": text} for n, text in enumerate(texts)]
    second = [{"id": f"b{n}", "text": f"{text} again"} for n, text in enumerate(texts)]
    with_rows(tmp_path, {"one": first, "two": second}, sides="members: 12, nonmembers: 12")
    [pool] = build(tmp_path, graph_of(tmp_path).nodes[0].examples)
    sides: dict[str, set[str]] = {}
    for row in pq.read_table(pool.path / "examples.parquet").to_pylist():
        sides.setdefault(row["source_id"][1:], set()).add(row["side"])
    assert sum(len(row_sides) for row_sides in sides.values()) == 48
    dropped = pq.read_table(pool.path / "dropped_rows.parquet").to_pylist()
    assert len(dropped) == 60
    assert {(loss["dataset"], loss["duplicate_of"].split()[0]) for loss in dropped} == {
        ("one", "two"), ("two", "one")
    }  # fmt: skip
