"""Held-out rows of a real run, on disk: separate from both sides, and without effect on them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.errors import InputError
from inject.stream.audit_report import read_audit
from tests.inject.streams import naive_find
from tests.spikein.shared_run import HELD_OUT, MODELS, OVERRIDES
from tests.spikein.tiny import build, graph_of

pytestmark = pytest.mark.slow


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def test_held_out_rows_change_no_member_split_or_plan_and_train_nothing(copied_run):
    weights = len(copied_run.artifacts("model"))
    none = ("contaminants.0.held_out=0", "contaminants.1.held_out=0")
    (node,) = graph_of(copied_run.root, *OVERRIDES, *none).nodes
    pool, plan, _, twin = build(
        copied_run.root, node.examples, node.plan, node.trained, node.twins.clean.trained
    )
    before = copied_run.stored(copied_run.node.examples)
    name = "examples.parquet"
    assert (before / "held_out.parquet").is_file()
    assert not (pool.path / "held_out.parquet").exists()
    assert (before / name).read_bytes() == (pool.path / name).read_bytes()
    for name in ("plan.parquet", "payload.bin"):
        stored = copied_run.stored(copied_run.node.plan) / name
        assert stored.read_bytes() == (plan.path / name).read_bytes()
    files = {path.stat().st_ino for path in (copied_run.root / "store/model").glob("*/*.safetens*")}
    assert len(files) == weights


def test_held_out_rows_are_disjoint_from_both_sides_on_disk(shared_run):
    pool = shared_run.stored(shared_run.node.examples)
    scored, held_out = rows_of(pool, "examples"), rows_of(pool, "held_out")
    for name, count in HELD_OUT.items():
        assert sum(row["dataset"] == name for row in held_out) == count
    for key in ("text", "example_id"):
        assert not {row[key] for row in scored} & {row[key] for row in held_out}
    assert pq.read_schema(pool / "held_out.parquet") == pq.read_schema(pool / "examples.parquet")
    # Groups by the pairs of the file, not by the artifact's own column.
    number = {
        row["text"]: place // 2
        for place, row in enumerate(map(json.loads, (shared_run.root / "rows.jsonl").open()))
    }
    passages = [
        {number[row["text"]] for row in rows if row["dataset"] == "own"}
        for rows in (scored, held_out)
    ]
    assert not passages[0] & passages[1]
    # All twins have them, so that their audits search for them.
    copies = [path / "held_out.parquet" for path in shared_run.artifacts("examples")]
    assert len({path.read_bytes() for path in copies}) == 1


def test_no_stream_or_score_contains_a_held_out_row(shared_run):
    node = shared_run.node
    held_out = rows_of(shared_run.stored(node.examples), "held_out")
    corpus = Corpus.open(shared_run.stored(node.corpus))
    tokenizer = load_tokenizer(str(corpus.path / "tokenizer"))
    streams = [corpus.read(0, corpus.n_tokens)]
    streams += [np.fromfile(plan / "payload.bin", "<u2") for plan in shared_run.artifacts("plan")]
    for ids in encode_texts(tokenizer, [row["text"] for row in held_out]):
        assert not any(len(stream) and naive_find(stream, ids) for stream in streams)
    ids = {row["example_id"] for row in held_out}
    for path in shared_run.artifacts("scores"):
        assert not ids & {row["example_id"] for row in rows_of(path, "scores")}
    for path in shared_run.artifacts("audit"):
        audit = json.loads((path / "audit.json").read_text())
        assert (audit["held_out"], audit["passed"]) == (12, True)


def test_a_held_out_row_in_the_background_is_dropped_or_fails_the_audit(copied_run):
    root = copied_run.root
    planted = {
        row["dataset"]: row
        for row in rows_of(copied_run.stored(copied_run.node.examples), "held_out")
    }
    with (copied_run.root / "planted.jsonl").open("w") as texts:
        for number in range(40):
            for row in planted.values():
                texts.write(json.dumps({"text": f"{number}. {row['text']}"}) + "\n")
    source = [*MODELS, f"corpus.sources=[{{kind: files, path: {root}/planted.jsonl}}, "
              f"{{kind: files, path: {copied_run.texts}}}]"]  # fmt: skip
    (node,) = graph_of(root, *source).nodes
    (corpus,) = build(root, node.corpus)
    overlapping_ids = {row["example_id"] for row in rows_of(corpus.path, "overlaps")}
    assert overlapping_ids == {row["example_id"] for row in planted.values()}
    (node,) = graph_of(root, *source, "audit.ngram=null", "audit.near_duplicate=null").nodes
    audit = read_audit(build(root, node.audit)[0].path)
    assert not audit.passed
    assert {hit["example_id"] for hit in audit.background_hits} == overlapping_ids


def test_too_few_rows_are_an_error_before_anything_is_trained(copied_run):
    for count, message in ((40, "40 held-out rows need 62 examples"),
                        (38, "38 held-out rows requested, but only")):  # fmt: skip
        (node,) = graph_of(copied_run.root, *MODELS, f"contaminants.1.held_out={count}").nodes
        with pytest.raises(InputError, match=message):
            build(copied_run.root, node.examples)
