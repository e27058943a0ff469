"""`spikein audit-unlearning` on tiny saved models: what it writes, and that it is true."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from typer.testing import CliRunner

from spikein.cli.main import app
from tests.spikein.unlearning_audit.models import Models


def invoke(*arguments: object):
    return CliRunner().invoke(app, ["audit-unlearning", *map(str, arguments)])


def test_two_plain_models_and_a_text_file_are_enough(models: Models, tmp_path: Path):
    book = tmp_path / "book.txt"
    book.write_text("\n\n".join([*models.remembered, *models.forgotten]), encoding="utf-8")
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", book, "--out", out]
    result = invoke(*command, "--chunk-words", 60, "--prompt-words", 30, "--samples", 2)
    assert result.exit_code == 0, result.output
    assert "there is neither a retrained model nor a held-out text" in result.output
    chunks = pq.read_table(out / "chunks.parquet").to_pylist()
    text = book.read_text()
    assert len(chunks) == 16
    for row in chunks:
        assert text[row["start"] : row["stop"]] in [*models.remembered, *models.forgotten]
        assert row["retrained"] is None
    written = pq.read_table(out / "continuations.parquet").to_pylist()
    assert len([row for row in chunks if row["suspicious"]]) < 16
    assert {row["chunk"] for row in written} == {*range(16)}
    assert len(written) == 2 * 2 * 16
    assert (out / "audit.html").is_file()


def test_ratios_are_those_of_the_papers_rule(models: Models, rows: Path, tmp_path: Path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "audit"
    command = [models.original, models.unlearned, models.retrained, "--texts", rows, "--out", out]
    result = invoke(*command, "--prompt-words", 30, "--samples", 0)
    assert result.exit_code == 0, result.output

    def min_k(folder: Path, text: str) -> float:
        model = AutoModelForCausalLM.from_pretrained(folder)
        ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            logs = model(ids).logits[0, :-1].double().log_softmax(-1)
        own = sorted(logs[at, token].item() for at, token in enumerate(ids[0, 1:]))
        return float(np.mean(own[: int(len(own) * 0.2)]))

    found = json.loads((out / "unlearning_audit.json").read_text())
    assert "nothing was continued" in found["findings"]["remembered"]["control"]
    assert "neither a retrained model" not in json.dumps(found)
    texts = [json.loads(line)["text"] for line in rows.read_text().splitlines()]
    chunks = pq.read_table(out / "chunks.parquet").to_pylist()
    assert not any(row["continued"] for row in chunks)
    for row in (chunks[0], chunks[-1]):
        text = texts[row["chunk"]]
        first, second = min_k(models.original, text), min_k(models.unlearned, text)
        assert np.isclose(row["ratio"], second / first, rtol=1e-4)
        assert row["suspicious"] == (1 / 1.15 < second / first < 1.15)


def test_what_is_remembered_is_found_by_what_the_models_write(
    models: Models, rows: Path, tmp_path: Path
):
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, models.retrained, "--texts", rows, "--out", out]
    options = ["--prompt-words", 30, "--samples", 3, "--all-chunks", "--false-alarms", 0.2]
    result = invoke(*command, *options)
    assert result.exit_code == 0, result.output
    found = json.loads((out / "unlearning_audit.json").read_text())["findings"]
    written = pq.read_table(out / "continuations.parquet").to_pylist()
    best: dict[tuple[str, int], float] = {}
    for row in written:
        key = row["model"], row["chunk"]
        best[key] = max(best.get(key, 0), row["longest_common_substring"])
    level = max(value for (model, _), value in best.items() if model == "retrained")
    assert found["remembered"]["level"] == level
    for model in ("original", "unlearned"):
        own = [best[model, chunk] > level for chunk in range(16)]
        assert np.isclose(found["remembered"][model]["value"], np.mean(own))
    # The unlearned model never saw the first half.
    known = [best["unlearned", chunk] > level for chunk in range(16)]
    assert np.mean(known[8:]) > np.mean(known[:8])
    chunks = pq.read_table(out / "chunks.parquet").to_pylist()
    missed = [not row["suspicious"] for row, own in zip(chunks, known, strict=True) if own]
    assert np.isclose(found["missed"]["value"], np.mean(missed))
    alarms = [1 / 1.15 < row["retrained_ratio"] < 1.15 for row in chunks]
    assert np.isclose(found["false_alarms"]["value"], np.mean(alarms))
    low, high = found["calibrated"]["band"]
    assert np.mean([low < row["retrained_ratio"] < high for row in chunks]) <= 0.2


def test_the_same_audit_again_is_the_same(models: Models, rows: Path, tmp_path: Path):
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", rows]
    options = ["--prompt-words", 30, "--samples", 2, "--band", "0.1,10"]
    assert invoke(*command, *options, "--out", out).exit_code == 0
    first = {name: (out / name).read_bytes() for name in ("unlearning_audit.json", "audit.html")}
    table = pq.read_table(out / "continuations.parquet")
    refused = invoke(*command, *options, "--out", out)
    assert refused.exit_code == 2
    assert "nothing is replaced" in refused.output
    again = tmp_path / "again"
    assert invoke(*command, *options, "--out", again).exit_code == 0
    assert {name: (again / name).read_bytes() for name in first} == first
    assert pq.read_table(again / "continuations.parquet").equals(table)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_questions_kept_by_the_ratio_stand_against_the_rest(
    models: Models, rows: Path, tmp_path: Path
):
    asked = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"question": " ".join(text.split()[:20]), "answer": " ".join(text.split()[20:])})
        for text in [*models.forgotten, *models.remembered]
    ]
    asked.write_text("\n".join(lines))
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", rows, "--questions", asked]
    result = invoke(*command, "--prompt-words", 30, "--samples", 2, "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads((out / "unlearning_audit.json").read_text())["questions"]
    table = pq.read_table(out / "questions.parquet").to_pylist()
    kept = [row["recall"] for row in table if row["kept"]]
    rest = [row["recall"] for row in table if not row["kept"]]
    assert (found["questions"], found["kept"]) == (16, len(kept))
    if kept and rest:
        assert np.isclose(found["difference"]["value"], np.mean(kept) - np.mean(rest))


def test_a_holdout_calibrates_where_nothing_was_retrained(
    models: Models, rows: Path, tmp_path: Path
):
    others = tmp_path / "unseen.jsonl"
    others.write_text("\n".join(json.dumps({"text": text}) for text in models.unseen))
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", rows, "--holdout", others]
    result = invoke(*command, "--prompt-words", 30, "--samples", 2, "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads((out / "unlearning_audit.json").read_text())["findings"]
    chunks = pq.read_table(out / "chunks.parquet").to_pylist()
    held = [row for row in chunks if row["part"] == "holdout"]
    assert len(held) == len(models.unseen)
    assert np.isclose(found["false_alarms"]["value"], np.mean([row["suspicious"] for row in held]))
    assert "weaker" in found["false_alarms"]["measured_on"]
    assert found["remembered"]["control_chunks"] == len(held)


def test_rows_that_are_left_out_are_counted_and_said(models: Models, tmp_path: Path):
    first, *others = [{"id": at, "text": text} for at, text in enumerate(models.remembered)]
    path = tmp_path / "texts.jsonl"
    given = [first, {"text": None}, {"text": " "}, *others, first, others[0], {"text": ""}]
    path.write_text("\n".join(map(json.dumps, given)))
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", path, "--out", out, "--samples", 0]
    result = invoke(*command, "--prompt-words", 30)
    assert result.exit_code == 0, result.output
    ids = pq.read_table(out / "chunks.parquet")["text_id"].to_pylist()
    assert ids == [str(at) for at in range(len(models.remembered))]
    notes = json.loads((out / "unlearning_audit.json").read_text())["notes"]
    page = (out / "audit.html").read_text()
    for said in (
        f"empty or null: 3 rows, the first at {path}:2",
        f"there a second time: 2 rows, the first at {path}:{len(given) - 2}",
    ):
        assert any(said in note for note in notes)
        assert said in page
        assert said in " ".join(result.output.split())


def test_all_models_may_write_as_much_on_all_chunks(
    models: Models, rows: Path, tmp_path: Path, monkeypatch
):
    from transformers import AutoTokenizer

    from detect.generation import sampled_continuations

    asked: list[tuple[str, int, int]] = []
    sample = sampled_continuations.sample_continuations

    def counted(target, prompts, **how):
        asked.append((Path(target.name).name, len(prompts), how["max_tokens"]))
        return sample(target, prompts, **how)

    monkeypatch.setattr(sampled_continuations, "sample_continuations", counted)
    others = tmp_path / "unseen.jsonl"
    pairs = zip(models.unseen[::2], models.unseen[1::2], strict=True)
    texts = [f"{one} {other}" for one, other in pairs]
    others.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    command = [models.original, models.unlearned, "--texts", rows, "--holdout", others]
    options = ["--prompt-words", 30, "--samples", 1, "--all-chunks"]
    result = invoke(*command, *options, "--out", tmp_path / "audit")
    assert result.exit_code == 0, result.output
    tokenizer = AutoTokenizer.from_pretrained(models.original)

    def tokens(words: list[str], before: str = "") -> int:
        return len(tokenizer(before + " ".join(words))["input_ids"])

    longest = max(tokens(text.split()[30:], " ") for text in texts)
    assert asked == [("original", 16, longest), ("unlearned", 16 + len(texts), longest)]
    # One model with a smaller context shortens what all of them write.
    asked.clear()
    narrow = tmp_path / "narrow"
    shutil.copytree(models.retrained, narrow)
    config = json.loads((narrow / "config.json").read_text())
    given = [json.loads(line)["text"] for line in rows.read_text().splitlines()]
    context = max(len(tokenizer(text)["input_ids"]) for text in given)
    room = context - max(tokens(text.split()[:30]) for text in given)
    config["max_position_embeddings"] = context
    (narrow / "config.json").write_text(json.dumps(config))
    command = [models.original, models.unlearned, narrow, "--texts", rows, *options]
    result = invoke(*command, "--max-tokens", room + 5, "--out", tmp_path / "second")
    assert result.exit_code == 0, result.output
    assert len(asked) == 3
    assert {length for _, _, length in asked} == {room}


def test_the_page_shows_texts_where_it_may(models: Models, tmp_path: Path):
    path = tmp_path / "texts.jsonl"
    lines = [
        {"text": f"{text} <b>&", "protected": at == 0} for at, text in enumerate(models.remembered)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    out = tmp_path / "audit"
    command = [models.original, models.unlearned, "--texts", path, "--samples", 1]
    command += ["--prompt-words", 30, "--all-chunks"]
    assert invoke(*command, "--out", out).exit_code == 0
    page = (out / "audit.html").read_text()
    written = pq.read_table(out / "continuations.parquet").to_pylist()
    assert {row["chunk"] for row in written if row["text"] is None} == {0}
    assert all(row["rouge_l"] is not None for row in written)
    ends = [" ".join(text.split()[-8:]) for text in models.remembered]
    assert ends[0] not in page
    assert sum(" ".join(text.split()[:20]) in page for text in models.remembered) == 7
    assert "<b>&" not in page
    without = tmp_path / "without"
    assert invoke(*command, "--out", without, "--hide-texts").exit_code == 0
    hidden = (without / "audit.html").read_text()
    assert not any(" ".join(text.split()[:20]) in hidden for text in models.remembered)
