"""Rows are cut or dropped for their length, and named as such in errors and on the page."""

import json

import pyarrow.parquet as pq
import pytest

from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from tests.conftest import make_texts
from tests.spikein.tiny import LIGHT, build, graph_of, run, write_tiny

CONTEXT = 64


def write_rows(folder, *, fitting, long, short):
    texts = make_texts(fitting, seed=7, words=20)
    texts += make_texts(long, seed=8, words=200)
    texts += [f"{number}." for number in range(short)]
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def experiment(tmp_path, **rows):
    write_tiny(tmp_path)
    path = write_rows(tmp_path, **rows)
    return [
        f'contaminants=[{{dataset: rows, path: "{path}", members: 24, nonmembers: 24}}]',
        "pool.long_examples=drop",
        "model.tokenizer={vocab_size: 600}",
    ]


def test_too_few_rows_report_the_number_dropped_for_their_length(tmp_path):
    overrides = experiment(tmp_path, fitting=40, long=30, short=9)
    with pytest.raises(InputError) as caught:
        build(tmp_path, graph_of(tmp_path, *overrides).nodes[0].examples)
    message = str(caught.value)
    assert "contaminants.rows: 24 members and 24 non-members requested" in message
    assert "39 other rows were dropped for their length: 9 shorter than pool.min_tokens" in message
    assert "30 longer than train.context, 64 (pool.long_examples: drop)" in message
    assert "long_examples: truncate" in message


def planned(folder, *overrides):
    """Return the stored pool, plan and tokenizer of each arm."""
    write_tiny(folder)
    with (folder / "rows.jsonl").open("w") as out:
        for number, text in enumerate(make_texts(60, seed=11, words=90)):
            out.write(json.dumps({"text": text[: 120 + 8 * number]}) + "\n")
    rows = (
        f'[{{dataset: rows, name: long, path: "{folder}/rows.jsonl", members: 20, nonmembers: 20}}]'
    )
    graph = graph_of(folder, f"contaminants={rows}", "pool.long_examples=truncate", *overrides)
    return [
        [artifact.path for artifact in build(folder, node.examples, node.plan, node.tokenizer)]
        for node in graph.nodes
    ]


def lengths(pool, tokenizer):
    texts = [row.text for row in read_examples(pool)]
    return [len(ids) for ids in encode_texts(load_tokenizer(str(tokenizer)), texts)]


def test_truncated_rows_fit_a_window_with_the_separators_of_all_arms(tmp_path):
    """A copy that must fit inside one window leaves room for the separators around it."""
    arms = planned(
        tmp_path,
        "copies={fixed: 1}",
        "sweep={placement: [{policy: splice}, {policy: window, separator: end}]}",
    )
    assert len({pool for pool, _, _ in arms}) == 1
    pool, _, tokenizer = arms[0]
    # An end token before the copy and one after it.
    assert max(lengths(pool, tokenizer)) == CONTEXT - 2
    payload = [max(read_plan(plan).copies["payload_length"].to_pylist()) for _, plan, _ in arms]
    assert payload == [CONTEXT - 2, CONTEXT]
    # Copies that may cross windows are cut to the whole context.
    ((pool, _, tokenizer),) = planned(tmp_path, "placement={policy: document}")
    assert max(lengths(pool, tokenizer)) == CONTEXT


@pytest.mark.slow
def test_each_row_is_drawn_or_listed_in_the_table_of_losses(tmp_path):
    """The fate of each row in the artifact, against the input file."""
    write_tiny(tmp_path)
    texts = make_texts(40, seed=7, words=20)
    rows = [{"question": text, "answer": "the old town"} for text in texts]
    rows += [{"question": text, "answer": "no"} for text in make_texts(6, seed=8, words=200)]
    rows += [dict(rows[0]), {"question": " ", "answer": "x"}, {"question": "who", "answer": ""}]
    # Equal within the window, and cut before the answer; a special token is read as letters.
    rows += [{"question": "<|endoftext|>" * 30, "answer": answer} for answer in ("yes", "no")]
    rows += [{"question": f"{texts[1]} now", "answer": "the old town"}]
    path = tmp_path / "rows"
    path.mkdir()
    (path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "read-me.md").touch()
    done = run(
        tmp_path,
        f'contaminants=[{{dataset: rows, path: "{path}", members: 23, nonmembers: 24, '
        'template: "{question}. {answer}"}]',
        "pool.long_examples=truncate",
        "pool.min_tokens=2",
        "model.tokenizer={vocab_size: 600}",
        "train.mode=pretrain",
        "base=null",
        "corpus.tokens=20_000",
        *LIGHT,
    )
    [losses] = (tmp_path / "store").glob("examples/*/dropped_rows.parquet")
    table = pq.read_table(losses).to_pylist()
    cut = {
        row["source_id"] for row in table if "before the end of their answer" in row["drop_reason"]
    }
    assert cut == {f"mine.jsonl:{line}" for line in [*range(41, 47), 50]}
    dropped = {row["source_id"]: row for row in table if row["source_id"] not in cut}
    assert {name: row["drop_reason"] for name, row in dropped.items()} == {
        "mine.jsonl:47": "duplicates",
        "mine.jsonl:48": "empty",
        "mine.jsonl:49": "without an answer",
        "mine.jsonl:51": "equal to another row once cut",
        **{
            name: "near-duplicates" for name in ("mine.jsonl:2", "mine.jsonl:52") if name in dropped
        },
    }
    assert dropped["mine.jsonl:51"]["duplicate_of"] == "rows mine.jsonl:50"
    pool = pq.read_table(losses.with_name("examples.parquet")).column("source_id").to_pylist()
    assert sorted([*pool, *dropped]) == sorted(f"mine.jsonl:{line}" for line in range(1, 53))
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert "rows are longer than the context and were cut to it." in page
    assert "7 of these rows were cut before the end of their answer" in page
    assert "mine.jsonl:50" in page
    assert f"not read: {path}/read-me.md." in page
