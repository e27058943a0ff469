"""Whole experiments with other placements, variants of copies, and a background that overlaps."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.examples.contaminant import Contaminant
from inject.examples.example import members, read_examples
from inject.examples.load import load_examples
from inject.plan.plan import read_plan
from inject.stream.exposures import read_exposures
from tests.command_line import invoke
from tests.inject.streams import naive_find
from tests.pages import Page
from tests.spikein.tiny import LIGHT, run, stored, write_tiny

pytestmark = pytest.mark.slow

VARIANTS = """
variants:
  of:
    - {kind: whole}
    - {kind: lower_case}
    - {kind: replaced, share: 0.3, versions: 2}
    - {kind: paraphrase, versions: 2}
placement: {policy: window, between: [0.5, 1], separator: end}
"""
PLANTED = 3
TOKENS = 80_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with late copies of four variants; three background documents contain a row's text."""
    root = tmp_path_factory.mktemp("placements")
    path = write_tiny(root)
    text = path.read_text().replace(
        "context: 64, batch_tokens: 1024", "context: 512, batch_tokens: 2048"
    )
    path.write_text(text.replace("tokens: 40_000", f"tokens: {TOKENS}") + VARIANTS)
    shape = root / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 512"))
    rows = load_examples(Contaminant(dataset="fictional", members=24, nonmembers=24), seed=0)
    texts = root / "texts.jsonl"
    lines = texts.read_text().splitlines()
    planted = [f"Before it.\n{row.text}\nAfter it." for row in rows.examples[:PLANTED]]
    lines = [json.dumps({"text": text}) for text in planted] + lines
    texts.write_text("\n".join(lines) + "\n")
    return path, root, run(root, *LIGHT)


def ground(root: Path):
    corpus = Corpus.open(stored(root, "corpus")[0])
    plan = read_plan(stored(root, "plan")[0])
    pool = read_examples(stored(root, "examples")[0])
    return corpus, plan, pool, load_tokenizer(str(corpus.path / "tokenizer"))


def test_late_copies_of_every_variant_were_seen_late_and_whole(finished):
    _, root, _ = finished
    corpus, plan, pool, tokenizer = ground(root)
    view = plan.view(corpus)
    model = stored(root, "model", "seed-0")[0]
    exposures = read_exposures(model).to_pylist()
    assert {row["status"] for row in exposures} == {"whole"}
    assert len(exposures) == plan.copies.num_rows > 20
    steps = pq.read_table(model / "log.parquet")["step"].to_pylist()
    half = view.n_windows // 2 * view.context
    assert all(row["tokens_before"] >= half for row in exposures)
    assert all(row["step"] > len(steps) // 2 - 1 for row in exposures)
    by_id = {row.example_id: row for row in members(pool)}
    seen = set()
    for row in exposures:
        ids = view.window(row["window"])[row["start"] : row["stop"]]
        text = tokenizer.decode(ids)
        example = by_id[row["example_id"]]
        kind = re.split("[=-]", row["variant"])[0]
        seen.add(kind)
        own = encode_texts(tokenizer, [example.text])[0]
        if kind == "replaced":
            assert (ids != own).sum() == max(round(0.3 * len(own)), 1)
        else:
            number = int(row["variant"][-1]) - 1 if kind == "paraphrase" else 0
            expected = {
                "whole": example.text,
                "lower_case": example.text.lower(),
                "paraphrase": example.paraphrases[number],
            }
            assert text == expected[kind]
        # One kind per example, as they are assigned to examples.
        assert len({re.split("[=-]", other["variant"])[0] for other in exposures
                    if other["example_id"] == row["example_id"]}) == 1  # fmt: skip
    assert seen == {"whole", "lower_case", "replaced", "paraphrase"}


def test_metrics_are_reported_by_variant(finished):
    """Each variant's row counts its own members; together they are those of the ordinary row."""
    _, root, result = finished
    _, _, pool, _ = ground(root)
    rows = [
        row
        for row in read_table(result.folder, "metrics").to_pylist()
        if (row["model"], row["dataset"], row["detector"], row["selection"], row["metric"])
        == ("contaminated", "fictional", "loss", "default", "auc") and row["copies"] == "all"
    ]  # fmt: skip
    by_variant = {row["variant"]: row for row in rows}
    assert set(by_variant) == {"all", "whole", "lower_case", "replaced=0.3", "paraphrase"}
    exposures = read_exposures(stored(root, "model", "seed-0")[0])
    kinds = {
        row["example_id"]: re.sub(r"-[0-9]+$", "", row["variant"]) for row in exposures.to_pylist()
    }
    scores = {
        row["example_id"]: row["score"]
        for row in pq.read_table(result.folder / "scores.parquet").to_pylist()
        if row["model"] == "contaminated" and row["detector"] == "loss"
        and row["selection"] == "default"
    }  # fmt: skip
    test = [row for row in pool if row.split == "test"]
    outside = [scores[row.example_id] for row in test if row.side == "nonmember"]
    for variant, row in by_variant.items():
        inside = [
            scores[member.example_id]
            for member in test
            if member.example_id in kinds and variant in ("all", kinds[member.example_id])
        ]
        assert row["n_members"] == len(inside)
        if len(inside) > 1:
            wins = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
            assert row["value"] == pytest.approx(wins / len(inside) / len(outside), abs=1e-6)
    all_results = Page((result.folder / "results.html").read_text()).titled("All results")[0]
    assert set(by_variant) - {"all"} <= set(all_results.column("Variant"))


def test_documents_that_contain_a_row_are_dropped_and_listed(finished):
    _, root, _ = finished
    corpus, plan, pool, tokenizer = ground(root)
    overlaps = pq.read_table(corpus.path / "overlaps.parquet").to_pylist()
    assert {row["place"] for row in overlaps} == {f"texts.jsonl:{line}" for line in (1, 2, 3)}
    stream = corpus.read(0, corpus.n_tokens)
    rows = load_examples(Contaminant(dataset="fictional", members=24, nonmembers=24), seed=0)
    for row in rows.examples:
        ids = encode_texts(tokenizer, [row.text])[0]
        assert naive_find(stream, ids[2:-2]) == []
    assert corpus.facts.mixture[0]["dropped"] == PLANTED


def test_the_command_reports_the_findings_of_the_audits(finished):
    _, root, result = finished
    audit = invoke("audit", result.folder, code=0)
    assert "passed" in audit.output
    assert "3 were left out" in audit.output
    # Generated sentences share runs of three words sooner or later: the rule is really applied.
    loose = invoke("audit", result.folder, "ngram=3", code=2)
    assert "Something was found" in loose.output
