"""The measures of a finished experiment, against what lies in its store and its run folder."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import spikein
from analysis.findings import read_table
from inject.corpus.background.mixture import mixed_documents
from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.corpus.tokenizer import encode_texts
from inject.examples.example import read_examples
from inject.overlap.general_text_step import OPENING
from inject.stream.exposures import read_exposures, seen_copy_counts
from tests.analysis.oracles import auc

pytestmark = pytest.mark.slow


def row_of(rows, **wanted):
    wanted = {"dataset": "all", "copies": "all", "method": "-", **wanted}
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found


@pytest.fixture(scope="module")
def tables(finished):
    folder = finished.stored(finished.graph.unlearning)
    return {name: read_table(folder, name) for name in ("unlearning", "verdict")}


def test_the_aucs_are_those_of_the_stored_scores(finished, tables):
    nodes = finished.node.unlearning
    pool = read_examples(finished.stored(nodes.examples))
    seen = {
        one.example_id
        for one in read_examples(finished.stored(nodes.membership))
        if one.side == "member"
    }
    copies = seen_copy_counts(read_exposures(finished.stored(nodes.model("original").trained)))
    forget = [
        one.example_id
        for one in pool
        if one.side == "member" and one.split == "test" and one.example_id not in seen
        and copies.get(one.example_id)
    ]  # fmt: skip
    holdout = [one.example_id for one in pool if (one.side, one.split) == ("nonmember", "test")]
    rows = tables["unlearning"].to_pylist()
    models = [(name, "-", nodes.model(name).scores) for name in ("original", "retrained")]
    models += [("unlearned", one.setting.label, one.scores) for one in nodes.unlearned]
    found = {}
    for model, method, step in models:
        table = pq.read_table(finished.stored(step) / "scores.parquet").to_pylist()
        score = {row["example_id"]: row["score"] for row in table if row["detector"] == "loss"}
        value = auc([score[one] for one in forget], [score[one] for one in holdout])
        found[model, method] = value
        row = row_of(rows, measure="auc", detector="loss", model=model, method=method)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert (row["forget"], row["holdout"]) == (len(forget), len(holdout))
    for (model, method), value in found.items():
        if model == "retrained":
            continue
        gap = row_of(rows, measure="auc_difference", detector="loss", model=model, method=method)
        assert gap["value"] == pytest.approx(value - found["retrained", "-"], abs=1e-12)


def test_the_run_folder_holds_the_tables_and_the_page_shows_them(finished):
    run = spikein.load_run(finished.root / "runs" / "tiny" / "1")
    (made,) = run.artifacts("unlearning").values()
    for table, name in ((run.unlearning(), "unlearning"), (run.unlearning_verdict(), "verdict")):
        assert repr(table.to_pylist()) == repr(read_table(made, name).to_pylist())
    page = run.report.read_text()
    assert all(method in page for method in run.unlearning_verdict()["method"].to_pylist())


def test_general_text_lies_behind_the_corpus_and_is_in_none_of_it(finished):
    node = finished.node
    folder = finished.stored(node.corpus)
    corpus, tokenizer = Corpus.open(folder), corpus_tokenizer(folder)
    general = read_examples(finished.stored(node.unlearning.general))
    ids = [encode_texts(tokenizer, [one.text])[0] for one in general]
    assert sum(map(len, ids)) >= finished.graph.experiment.unlearning.general_tokens
    assert sum(map(len, ids[:-1])) < finished.graph.experiment.unlearning.general_tokens
    stream = corpus.read(0, corpus.n_tokens)
    ends = np.flatnonzero(stream == corpus.facts.end_token)
    used = {tuple(one.tolist()) for one in np.split(stream, ends + 1)}
    for one in ids:
        assert not any(document[: len(one)] == tuple(one.tolist()) for document in used)
        # Nor is it the document that the end of the corpus cuts.
        last = stream[ends[-1] + 1 :]
        assert not len(last) or one[: len(last)].tolist() != last.tolist()
    # They are the very next ones: the corpus and they are one stretch of the mixture.
    sources = node.arm.experiment.corpus.sources
    every = [one.text for one in mixed_documents(sources, seed=node.arm.experiment.corpus.seed)]
    first = next(at for at, text in enumerate(every) if text.startswith(general[0].text))
    following = every[first : first + len(general)]
    assert all(text.startswith(one.text) for text, one in zip(following, general, strict=True))
    assert max(map(len, ids)) < 2 * OPENING
    assert first >= corpus.facts.documents
