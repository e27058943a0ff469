"""`spikein audit-unlearning` on tiny saved models: its output is correct, and computed once."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.spikein.unlearning_audit.conftest import OPTIONS, Audited, invoke


def test_ratios_follow_the_papers_rule(judged, audit):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    unlearned = judged.unlearned["forgot"]
    audited = audit(judged.original, unlearned, judged.retrained)

    def min_k(folder: Path, text: str) -> float:
        model = AutoModelForCausalLM.from_pretrained(folder)
        ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            logs = model(ids).logits[0, :-1].double().log_softmax(-1)
        own = sorted(logs[at, token].item() for at, token in enumerate(ids[0, 1:]))
        return float(np.mean(own[: int(len(own) * 0.2)]))

    for row in (audited.chunks[0], audited.chunks[-1]):
        text = judged.texts[row["chunk"]]
        ratio = min_k(unlearned, text) / min_k(judged.original, text)
        assert np.isclose(row["ratio"], ratio, rtol=1e-4)
        assert row["suspicious"] == (1 / 1.15 < ratio < 1.15)
        assert f"{row['prompt']}{row['truth']}" == text[row["start"] : row["stop"]]


def test_a_repeated_audit_is_identical_and_calls_no_model(judged, rows, store, tmp_path, audit):
    first = audit(judged.original, judged.unlearned["untouched"], holdout=False)
    command = [judged.original, judged.unlearned["untouched"], "--texts", rows, "--store", store]
    command += [*OPTIONS, "all_chunks=true"]
    stored_names = sorted(path.name for path in store.glob("[!.]*/[!.]*"))
    invoke(*command, "--out", tmp_path / "again", code=0)
    for path in first.folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    assert sorted(path.name for path in store.glob("[!.]*/[!.]*")) == stored_names
    refused = invoke(*command, "--out", first.folder, code=2)
    assert "nothing is replaced" in refused.output


def test_a_book_is_cut_and_suspicious_chunks_are_continued(judged, audit, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("\n\n".join(judged.texts), encoding="utf-8")
    models = (judged.original, judged.unlearned["untouched"])
    options = ("chunk_words=60", "others=0", "band=1.2")
    audited = audit(*models, texts=book, holdout=False, options=options)
    assert [row["text_id"] for row in audited.chunks] == ["book"] * 16
    text = book.read_text()
    assert [text[row["start"] : row["stop"]] for row in audited.chunks] == judged.texts
    suspicious = {row["chunk"] for row in audited.chunks if row["suspicious"]}
    assert {row["chunk"] for row in audited.continuations} == suspicious
    assert len(audited.continuations) == 2 * 2 * len(suspicious)
    assert "there is neither a retrained model nor a held-out text" in audited.output


def test_suspicious_questions_are_compared_with_the_rest(judged, audit, tmp_path):
    questions = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"question": " ".join(text.split()[:20]), "answer": " ".join(text.split()[20:])})
        for text in [*judged.texts, *judged.control]
    ]
    questions.write_text("\n".join(lines))
    models = (judged.original, judged.unlearned["untouched"])
    audited = audit(*models, holdout=False, options=(f"questions={questions}",))
    chunks = pq.read_table(audited.folder / "chunks.parquet").to_pylist()
    suspicious = {row["chunk"]: row["suspicious"] for row in chunks if row["part"] == "question"}
    assert len(suspicious) == 32
    recall: dict[int, list[float]] = {chunk: [] for chunk in suspicious}
    for row in audited.continuations:
        if row["chunk"] in recall:
            assert row["model"] == "unlearned"
            recall[row["chunk"]].append(row["rouge_l"])
    for side, name in ((True, "recall_kept"), (False, "recall_rest")):
        own = [np.mean(recall[chunk]) for chunk in suspicious if suspicious[chunk] is side]
        assert (
            np.isclose(audited.value(name), np.mean(own)) if own else np.isnan(audited.value(name))
        )


def test_skipped_rows_are_counted_and_reported(judged, audit, tmp_path):
    first, *others = [{"id": at, "text": text} for at, text in enumerate(judged.texts)]
    path = tmp_path / "texts.jsonl"
    rows = [first, {"text": None}, {"text": " "}, *others, first, others[0], {"text": ""}]
    path.write_text("\n".join(map(json.dumps, rows)))
    models = (judged.original, judged.unlearned["forgot"])
    audited = audit(*models, texts=path, holdout=False, options=("samples=0",))
    assert [row["text_id"] for row in audited.chunks] == [str(at) for at in range(16)]
    assert not any(row["continued"] for row in audited.chunks)
    for message in (
        f"empty or null: 3 rows, the first at {path}:2",
        f"there a second time: 2 rows, the first at {path}:{len(rows) - 2}",
    ):
        assert any(message in note for note in audited.record["notes"])
        assert message in audited.html
        assert message in audited.output


def test_the_smallest_context_limits_the_continuations_of_all_models(
    judged, rows, tmp_path, monkeypatch
):
    from transformers import AutoTokenizer

    from detect.targets import local

    calls: list[tuple[int, int]] = []
    sample = local.sample_continuations

    def counted(target, prompts, **how):
        calls.append((len(prompts), how["max_tokens"]))
        return sample(target, prompts, **how)

    monkeypatch.setattr(local, "sample_continuations", counted)
    tokenizer = AutoTokenizer.from_pretrained(judged.original)

    def most_tokens(texts: list[str]) -> int:
        return max(len(tokenizer(text)["input_ids"]) for text in texts)

    narrow = tmp_path / "narrow"
    shutil.copytree(judged.retrained, narrow)
    config = json.loads((narrow / "config.json").read_text())
    context = most_tokens(judged.texts)
    room = context - most_tokens([" ".join(text.split()[:30]) for text in judged.texts])
    config["max_position_embeddings"] = context
    (narrow / "config.json").write_text(json.dumps(config))
    command = [judged.original, judged.unlearned["forgot"], narrow, "--texts", rows]
    command += ["--store", tmp_path / "store", "prompt_words=30", "samples=1", "all_chunks=true"]
    invoke(*command, f"max_tokens={room + 5}", "--out", tmp_path / "audit", code=0)
    assert calls == [(16, room)] * 3


def test_the_page_shows_only_permitted_texts(judged, store, tmp_path):
    path = tmp_path / "texts.jsonl"
    lines = [{"text": f"{text} <b>&", "protected": at == 0} for at, text in enumerate(judged.texts)]
    path.write_text("\n".join(map(json.dumps, lines)))
    command = [judged.original, judged.unlearned["untouched"], "--texts", path, "--store", store]
    command += [*OPTIONS, "all_chunks=true"]
    result = invoke(*command, "--out", tmp_path / "audit", code=0)
    audited = Audited(tmp_path / "audit", result.output)
    assert {row["chunk"] for row in audited.continuations if row["text"] is None} == {0}
    assert all(row["rouge_l"] is not None for row in audited.continuations)
    beginnings = [" ".join(text.split()[:20]) for text in judged.texts]
    assert [beginning in audited.html for beginning in beginnings] == [False] + [True] * 15
    for path in audited.folder.iterdir():
        assert judged.texts[0][-30:].encode() not in path.read_bytes()
    assert "<b>&" not in audited.html
    assert invoke(*command, "--out", tmp_path / "without", "--hide-texts").exit_code == 0
    hidden = (tmp_path / "without" / "audit.html").read_text()
    assert not any(beginning in hidden for beginning in beginnings)
