"""Held-out rows of a real run, looked up on disk: what they are apart from, what they move."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

from inject.errors import InputError
from inject.stream.audit_report import AuditFailed
from tests.conftest import make_texts
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow

HELD_OUT = ("contaminants.0.held_out=7", "contaminants.1.held_out=5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny experiment with rows of its own in passages, beside the invented ones."""
    folder = tmp_path_factory.mktemp("held-out")
    file = write_tiny(folder)
    texts = make_texts(80, seed=11, words=25)
    with (folder / "rows.jsonl").open("w") as rows:
        for number, text in enumerate(texts):
            values = {"id": str(number), "text": text, "group": f"passage {number // 2}"}
            rows.write(json.dumps(values) + "\n")
    own = "\n".join(
        [
            "  - dataset: rows",
            "    name: own",
            f"    path: {folder}/rows.jsonl",
            "    fields: {text: text, group: group, id: id}",
            '    template: "{text}"',
            "    members: 10",
            "    nonmembers: 12",
        ]
    )
    text = file.read_text().replace("copies: {", own + "\ncopies: {")
    first = text.index("detect: {")
    last = text.index("\n", first)
    file.write_text(f"{text[:first]}detect: {{detectors: [loss]}}{text[last:]}")
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """The experiment without and with held-out rows, in one store; in this order."""
    return run(folder, "twins.clean=true"), run(folder, "twins.clean=true", *HELD_OUT)


def artifacts(folder: Path, kind: str) -> list[Path]:
    return sorted((folder / "store" / kind).glob("*/manifest.json"))


def pool_with(folder: Path, *, held_out: bool) -> Path:
    [found] = [
        path.parent
        for path in artifacts(folder, "examples")
        if (path.parent / "examples.json").is_file()
        and (path.parent / "held_out.parquet").is_file() == held_out
    ]
    return found


def rows_of(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def test_asking_for_them_moves_no_member_no_split_no_plan_and_trains_nothing(folder, runs):
    before, after = pool_with(folder, held_out=False), pool_with(folder, held_out=True)
    name = "examples.parquet"
    assert (before / name).read_bytes() == (after / name).read_bytes()
    plans = {(path.parent / "plan.parquet").read_bytes() for path in artifacts(folder, "plan")}
    payloads = {(path.parent / "payload.bin").read_bytes() for path in artifacts(folder, "plan")}
    assert len(plans) == len(payloads) == 2  # The arm's and the clean twin's, whichever the run.
    weights = {
        (path.parent / "model.safetensors").read_bytes() for path in artifacts(folder, "model")
    }
    assert len(weights) == 3  # The base model, the arm and its clean twin, once each.


def test_they_stand_apart_from_both_sides_on_disk(folder, runs):
    pool = pool_with(folder, held_out=True)
    scored, held_out = rows_of(pool / "examples.parquet"), rows_of(pool / "held_out.parquet")
    assert [sum(row["dataset"] == name for row in held_out) for name in ("fictional", "own")] == [
        7,
        5,
    ]
    for key in ("text", "example_id"):
        assert not {row[key] for row in scored} & {row[key] for row in held_out}
    groups = [{(row["dataset"], row["group"]) for row in rows} for rows in (scored, held_out)]
    assert not groups[0] & groups[1]
    assert pq.read_schema(pool / "held_out.parquet") == pq.read_schema(pool / "examples.parquet")
    # Grouped rows: what the pairs of the file say, not what the artifact says of itself.
    number = {
        row["text"]: place // 2
        for place, row in enumerate(map(json.loads, (folder / "rows.jsonl").open()))
    }
    passages = [
        {number[row["text"]] for row in rows if row["dataset"] == "own"}
        for rows in (scored, held_out)
    ]
    assert not passages[0] & passages[1]


def test_no_stream_and_no_score_holds_one(folder, runs):
    pool = pool_with(folder, held_out=True)
    held_out = rows_of(pool / "held_out.parquet")
    [corpus] = [path.parent for path in artifacts(folder, "corpus")][-1:]
    [tokenizer_folder] = (folder / "store" / "tokenizer").glob("*/")
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    stream = " ".join(
        map(str, np.concatenate([np.fromfile(f, np.uint16) for f in sorted(corpus.glob("*.bin"))]))
    )
    payloads = [
        " ".join(map(str, np.fromfile(path.parent / "payload.bin", np.uint16)))
        for path in artifacts(folder, "plan")
    ]
    for row in held_out:
        ids = " ".join(map(str, tokenizer(row["text"])["input_ids"]))
        assert all(f" {ids} " not in f" {where} " for where in (stream, *payloads))
    ids = {row["example_id"] for row in held_out}
    for path in artifacts(folder, "scores"):
        table = pq.read_table(path.parent / "scores.parquet")
        assert not ids & set(table.column("example_id").to_pylist())
    audits = [
        json.loads((path.parent / "audit.json").read_text()) for path in artifacts(folder, "audit")
    ]
    assert sorted(audit["held_out"] for audit in audits) == [0, 0, 12, 12]
    assert all(audit["passed"] for audit in audits)


def test_every_twin_carries_them_so_that_its_audit_looks_for_them(folder, runs):
    copies = [
        (path.parent / "held_out.parquet").read_bytes()
        for path in artifacts(folder, "examples")
        if (path.parent / "held_out.parquet").is_file()
    ]
    assert len(copies) == 2
    assert len(set(copies)) == 1


def test_a_held_out_row_that_a_stream_holds_fails_the_audit(folder, runs, tmp_path):
    """The text of one is planted in the background, with the audit of the text switched off."""
    pool = pool_with(folder, held_out=True)
    planted = next(
        row["text"] for row in rows_of(pool / "held_out.parquet") if row["dataset"] == "own"
    )
    for name in ("tiny.yaml", "texts.jsonl", "rows.jsonl", "shape.yaml"):
        shutil.copy(folder / name, tmp_path / name)
    file = tmp_path / "tiny.yaml"
    file.write_text(file.read_text().replace(str(folder), str(tmp_path)))
    with (tmp_path / "texts.jsonl").open("a") as texts:
        for number in range(60):
            texts.write(json.dumps({"text": f"{number}. {planted}"}) + "\n")
    with pytest.raises(AuditFailed, match="occurs in background document"):
        run(tmp_path, *HELD_OUT, "audit.ngram=null", "audit.near_duplicate=null")


def test_a_background_document_with_one_is_dropped(folder, runs, tmp_path):
    pool = pool_with(folder, held_out=True)
    planted = next(
        row for row in rows_of(pool / "held_out.parquet") if row["dataset"] == "fictional"
    )
    for name in ("tiny.yaml", "texts.jsonl", "rows.jsonl", "shape.yaml"):
        shutil.copy(folder / name, tmp_path / name)
    file = tmp_path / "tiny.yaml"
    file.write_text(file.read_text().replace(str(folder), str(tmp_path)))
    with (tmp_path / "texts.jsonl").open("a") as texts:
        for number in range(60):
            texts.write(json.dumps({"text": f"{number}. {planted['text']}"}) + "\n")
    run(tmp_path, *HELD_OUT)
    [corpus] = (tmp_path / "store" / "corpus").glob("*")
    found = rows_of(corpus / "overlaps.parquet")
    assert planted["example_id"] in {row["example_id"] for row in found}


def test_too_few_rows_are_an_error_before_anything_is_trained(folder, tmp_path):
    with pytest.raises(InputError, match="60 held-out rows need 82 examples"):
        run(folder, "contaminants.1.held_out=60")
    with pytest.raises(InputError, match="58 held-out rows asked for, but only"):
        run(folder, "contaminants.1.held_out=58")
