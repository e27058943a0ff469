"""`spikein audit-unlearning` on tiny saved models: what it writes is true, and made once."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.spikein.unlearning_audit.conftest import OPTIONS, Audited, invoke


def test_ratios_are_those_of_the_papers_rule(judged, audit):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    unlearned = judged.unlearned["forgot"]
    found = audit(judged.original, unlearned, judged.retrained)

    def min_k(folder: Path, text: str) -> float:
        model = AutoModelForCausalLM.from_pretrained(folder)
        ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            logs = model(ids).logits[0, :-1].double().log_softmax(-1)
        own = sorted(logs[at, token].item() for at, token in enumerate(ids[0, 1:]))
        return float(np.mean(own[: int(len(own) * 0.2)]))

    for row in (found.chunks[0], found.chunks[-1]):
        text = judged.texts[row["chunk"]]
        ratio = min_k(unlearned, text) / min_k(judged.original, text)
        assert np.isclose(row["ratio"], ratio, rtol=1e-4)
        assert row["suspicious"] == (1 / 1.15 < ratio < 1.15)
        assert f"{row['prompt']}{row['truth']}" == text[row["start"] : row["stop"]]


def test_the_same_audit_again_is_the_same_and_asks_no_model(judged, rows, store, tmp_path, audit):
    first = audit(judged.original, judged.unlearned["untouched"], holdout=False)
    command = [judged.original, judged.unlearned["untouched"], "--texts", rows, "--store", store]
    command += [*OPTIONS, "all_chunks=true"]
    kept = sorted(path.name for path in store.glob("[!.]*/[!.]*"))
    invoke(*command, "--out", tmp_path / "again", code=0)
    for path in first.folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    assert sorted(path.name for path in store.glob("[!.]*/[!.]*")) == kept
    refused = invoke(*command, "--out", first.folder, code=2)
    assert "nothing is replaced" in refused.output


def test_a_book_is_cut_and_suspicious_chunks_are_continued(judged, audit, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("\n\n".join(judged.texts), encoding="utf-8")
    models = (judged.original, judged.unlearned["untouched"])
    options = ("chunk_words=60", "others=0", "band=1.2")
    found = audit(*models, texts=book, holdout=False, options=options)
    assert [row["text_id"] for row in found.chunks] == ["book"] * 16
    text = book.read_text()
    assert [text[row["start"] : row["stop"]] for row in found.chunks] == judged.texts
    suspicious = {row["chunk"] for row in found.chunks if row["suspicious"]}
    assert {row["chunk"] for row in found.continuations} == suspicious
    assert len(found.continuations) == 2 * 2 * len(suspicious)
    assert "there is neither a retrained model nor a held-out text" in found.output


def test_questions_kept_by_the_ratio_stand_against_the_rest(judged, audit, tmp_path):
    asked = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"question": " ".join(text.split()[:20]), "answer": " ".join(text.split()[20:])})
        for text in [*judged.texts, *judged.control]
    ]
    asked.write_text("\n".join(lines))
    models = (judged.original, judged.unlearned["untouched"])
    found = audit(*models, holdout=False, options=(f"questions={asked}",))
    chunks = pq.read_table(found.folder / "chunks.parquet").to_pylist()
    kept = {row["chunk"]: row["suspicious"] for row in chunks if row["part"] == "question"}
    assert len(kept) == 32
    recall: dict[int, list[float]] = {chunk: [] for chunk in kept}
    for row in found.continuations:
        if row["chunk"] in recall:
            assert row["model"] == "unlearned"
            recall[row["chunk"]].append(row["rouge_l"])
    for side, name in ((True, "recall_kept"), (False, "recall_rest")):
        own = [np.mean(recall[chunk]) for chunk in kept if kept[chunk] is side]
        assert np.isclose(found.value(name), np.mean(own)) if own else np.isnan(found.value(name))


def test_rows_that_are_left_out_are_counted_and_said(judged, audit, tmp_path):
    first, *others = [{"id": at, "text": text} for at, text in enumerate(judged.texts)]
    path = tmp_path / "texts.jsonl"
    given = [first, {"text": None}, {"text": " "}, *others, first, others[0], {"text": ""}]
    path.write_text("\n".join(map(json.dumps, given)))
    models = (judged.original, judged.unlearned["forgot"])
    found = audit(*models, texts=path, holdout=False, options=("samples=0",))
    assert [row["text_id"] for row in found.chunks] == [str(at) for at in range(16)]
    assert not any(row["continued"] for row in found.chunks)
    for said in (
        f"empty or null: 3 rows, the first at {path}:2",
        f"there a second time: 2 rows, the first at {path}:{len(given) - 2}",
    ):
        assert any(said in note for note in found.record["notes"])
        assert said in found.html
        assert said in found.output


def test_one_model_with_a_smaller_context_shortens_what_all_of_them_write(
    judged, rows, tmp_path, monkeypatch
):
    from transformers import AutoTokenizer

    from detect.targets import local

    asked: list[tuple[int, int]] = []
    sample = local.sample_continuations

    def counted(target, prompts, **how):
        asked.append((len(prompts), how["max_tokens"]))
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
    assert asked == [(16, room)] * 3


def test_the_page_shows_texts_where_it_may(judged, store, tmp_path):
    path = tmp_path / "texts.jsonl"
    lines = [{"text": f"{text} <b>&", "protected": at == 0} for at, text in enumerate(judged.texts)]
    path.write_text("\n".join(map(json.dumps, lines)))
    command = [judged.original, judged.unlearned["untouched"], "--texts", path, "--store", store]
    command += [*OPTIONS, "all_chunks=true"]
    result = invoke(*command, "--out", tmp_path / "audit", code=0)
    found = Audited(tmp_path / "audit", result.output)
    assert {row["chunk"] for row in found.continuations if row["text"] is None} == {0}
    assert all(row["rouge_l"] is not None for row in found.continuations)
    beginnings = [" ".join(text.split()[:20]) for text in judged.texts]
    assert [beginning in found.html for beginning in beginnings] == [False] + [True] * 15
    for path in found.folder.iterdir():
        assert judged.texts[0][-30:].encode() not in path.read_bytes()
    assert "<b>&" not in found.html
    assert invoke(*command, "--out", tmp_path / "without", "--hide-texts").exit_code == 0
    hidden = (tmp_path / "without" / "audit.html").read_text()
    assert not any(beginning in hidden for beginning in beginnings)
