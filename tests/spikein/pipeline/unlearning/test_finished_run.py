"""One finished experiment with unlearned models, against the artifacts of its store.

The oracle of the retrained model reads the corpus, both plans and both lists of exposures.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from analysis.trajectory.insertion import NO_CHECKPOINTS
from inject.corpus.background.mixture import mixed_documents
from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.overlap.general_text_step import OPENING
from inject.plan.plan import read_plan
from inject.stream.exposures import (
    NEVER,
    read_exposures,
    require_unexposed,
    seen_copy_counts,
    write_exposures,
)
from spikein.api.plan import plan
from spikein.pipeline.arm_nodes import detector_steps
from spikein.runs.audit import audit_run
from tests.analysis.oracles import auc
from tests.spikein.shared_run import SharedRun
from tests.spikein.tiny import build, graph_of, run, write_tiny
from train.models.rounded_weights import rounded

pytestmark = pytest.mark.slow
METHOD = '''
"""A user's own method: the forget texts become less likely, the retain texts stay."""


def push_away(batch):
    return -batch.forget.loss + batch.retain.loss
'''
AUDIT = "{detector: loss, samples: 3, max_tokens: 24}"


def overrides_of(root: Path) -> tuple[str, ...]:
    """Return the overrides that add unlearning to the tiny experiment."""
    methods = (
        "[{method: gradient_ascent, lr: 3.0e-3, epochs: 2}, "
        "{method: npo, lr: 3.0e-3, epochs: 2}, "
        f"{{method: '{root}/mine.py:push_away', name: mine, lr: 3.0e-3, epochs: 1}}]"
    )
    return (
        f"unlearning={{forget: {{share: 0.5}}, methods: {methods}, audit: {AUDIT}}}",
        "placement={policy: window}",
        "copies={levels: [1, 3]}",
        "train.context=128",
        "pool.long_examples=truncate",
        "detect.detectors=[loss, reference, blind]",
        "analysis.task_accuracy=false",
        "corpus.tokens=20_000",
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> SharedRun:
    """A tiny experiment with unlearned models, one of them by a method of a user's file."""
    root = tmp_path_factory.mktemp("unlearning")
    write_tiny(root)
    (root / "mine.py").write_text(METHOD)
    overrides = overrides_of(root)
    run(root, *overrides)
    return SharedRun(root, graph_of(root, *overrides))


def rows_of(folder):
    return pq.read_table(folder / "examples.parquet").to_pylist()


def members_of(folder):
    return {row["example_id"] for row in rows_of(folder) if row["side"] == "member"}


def forget_ids(run):
    nodes = run.node.unlearning
    return members_of(run.stored(nodes.examples)) - members_of(run.stored(nodes.membership))


def losses(folder):
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    return {row["example_id"]: row["score"] for row in rows if row["detector"] == "loss"}


def trained_rows(folder):
    return [row for row in read_exposures(folder).to_pylist() if row["status"] != NEVER]


def test_the_retrained_model_saw_no_forgotten_row_and_all_others_in_the_same_order(finished):
    node = finished.node
    twin = node.twins.retrained
    original, retrained = (finished.stored(step) for step in (node.trained, twin.trained))
    forget = forget_ids(finished)
    assert len(forget) == 12
    original_rows, retrained_rows = trained_rows(original), trained_rows(retrained)
    assert {row["example_id"] for row in original_rows} >= forget
    assert not {row["example_id"] for row in read_exposures(retrained).to_pylist()} & forget
    require_unexposed(retrained, forget)
    with pytest.raises(InputError, match=r"fed copies of 12 forgotten"):
        require_unexposed(original, forget)

    corpus = Corpus.open(finished.stored(node.corpus))
    plans = [read_plan(finished.stored(step)) for step in (node.plan, twin.plan)]
    # A copy that did not fit into a full window can move once the window has room.
    redrawn = {
        (row["example_id"], row["copy"])
        for plan in plans
        for row in plan.copies.to_pylist()
        if row["redraws"]
    }
    names = ("epoch", "step", "window", "status")
    place = [
        {
            (row["example_id"], row["copy"]): tuple(row[name] for name in names)
            for row in rows
            if row["example_id"] not in forget and (row["example_id"], row["copy"]) not in redrawn
        }
        for rows in (original_rows, retrained_rows)
    ]
    assert place[0] == place[1]
    assert len(place[0]) > 15
    # The time at which each window was trained on.
    moment: dict[int, set[int]] = {}
    for row in (*original_rows, *retrained_rows):
        moment.setdefault(row["window"], set()).add((row["tokens_before"] - row["start"]) // 128)
    assert all(len(times) == 1 for times in moment.values())

    views = [plan.view(corpus) for plan in plans]
    assert views[0].n_windows == views[1].n_windows
    touched = {
        row["window"]
        for row in (*original_rows, *retrained_rows)
        if row["example_id"] in forget or (row["example_id"], row["copy"]) in redrawn
    }
    differing = {
        window
        for window in range(views[0].n_windows)
        if not np.array_equal(*(view.read(128 * window, 128 * (window + 1)) for view in views))
    }
    assert differing
    assert differing <= touched
    logs = [pq.read_table(folder / "log.parquet") for folder in (original, retrained)]
    for column in ("step", "tokens", "lr"):
        assert logs[0][column].to_pylist() == logs[1][column].to_pylist()


def test_a_retrained_model_whose_exposures_contain_a_forgotten_copy_is_refused(finished, tmp_path):
    node = finished.node
    twin = node.twins.retrained
    forget = forget_ids(finished)
    exposures = read_exposures(finished.stored(twin.trained))
    original_rows = read_exposures(finished.stored(node.trained)).to_pylist()
    forgotten_row = next(row for row in original_rows if row["example_id"] in forget)
    edited = [*exposures.to_pylist(), forgotten_row]
    write_exposures(tmp_path, exposures.from_pylist(edited, schema=exposures.schema))
    with pytest.raises(InputError, match=forgotten_row["example_id"]):
        require_unexposed(tmp_path, forget)


LABELS = ["gradient_ascent", "npo", "mine"]


def test_a_run_without_checkpoints_reports_how_to_get_the_insertion_contrast(finished):
    (row,) = read_table(finished.folder, "insertion").to_pylist()
    assert row["interval"] == f"none: {NO_CHECKPOINTS}"
    assert "add train.checkpoints" in (finished.folder / "detectors.html").read_text()


def test_the_forget_set_became_less_likely(finished):
    unlearning, forget = finished.node.unlearning, forget_ids(finished)

    def likely(step):
        scores = losses(finished.stored(step))
        return sum(scores[name] for name in forget) / len(forget)

    before = likely(unlearning.model("original").scores)
    for model in unlearning.unlearned:
        assert likely(model.scores) < before


def test_each_method_trained_on_the_forget_set_and_no_non_member(finished):
    node, forget = finished.node, forget_ids(finished)
    pool = pq.read_table(finished.stored(node.examples) / "examples.parquet").to_pylist()
    retain = {row["example_id"] for row in pool if row["side"] == "member"} - forget
    for model in node.unlearning.unlearned:
        rows = pq.read_table(finished.stored(model.trained) / "exposures.parquet").to_pylist()
        trained_ids = {row["example_id"] for row in rows if row["step"] is not None}
        assert trained_ids >= forget
        assert trained_ids <= forget | retain
        assert bool(trained_ids - forget) == model.setting.needs_retain


def test_a_second_run_finds_everything_and_the_run_can_be_planned_and_audited(finished):
    path = finished.root / "tiny.yaml"
    planned = plan(path, overrides=overrides_of(finished.root), store=finished.root / "store")
    assert all(row.stored for row in planned.rows if row.kind in ("model", "scores"))
    labels = [row.label for row in planned.rows if row.kind == "model"]
    assert {f"{label}, seed 0" for label in LABELS} < set(labels)
    again = run(finished.root, *overrides_of(finished.root))
    assert again.built == 0
    # The streams are those of the arm and of the retrained model; unlearning has none.
    assert len(audit_run(finished.root / "runs" / "tiny" / "1", rules=None).streams) == 2
    assert detector_steps(finished.graph.nodes)


def test_an_edit_of_the_users_file_makes_another_model(finished):
    file = finished.root / "mine.py"
    text = file.read_text()
    file.write_text(text.replace("-batch.forget", "-2 * batch.forget"))
    try:
        (edited,) = graph_of(finished.root, *overrides_of(finished.root)).nodes
    finally:
        file.write_text(text)
    before = {row.setting.label: row.trained.digest for row in finished.node.unlearning.unlearned}
    after = {row.setting.label: row.trained.digest for row in edited.unlearning.unlearned}
    assert {label for label in LABELS if before[label] != after[label]} == {"mine"}


def row_of(rows, **filters):
    filters = {"dataset": "all", "copies": "all", "method": "-", **filters}
    (match,) = [row for row in rows if all(row[key] == value for key, value in filters.items())]
    return match


@pytest.fixture(scope="module")
def tables(finished):
    folder = finished.stored(finished.graph.unlearning)
    return {name: read_table(folder, name) for name in ("unlearning", "verdict")}


def test_aucs_match_the_stored_scores(finished, tables):
    nodes = finished.node.unlearning
    pool = read_examples(finished.stored(nodes.examples))
    copies = seen_copy_counts(read_exposures(finished.stored(nodes.model("original").trained)))
    tested = {example.example_id for example in pool if example.split == "test"}
    forget = [name for name in forget_ids(finished) & tested if copies.get(name)]
    holdout = [row.example_id for row in pool if (row.side, row.split) == ("nonmember", "test")]
    rows = tables["unlearning"].to_pylist()
    models = [(name, "-", nodes.model(name).scores) for name in ("original", "retrained")]
    models += [("unlearned", node.setting.label, node.scores) for node in nodes.unlearned]
    aucs = {}
    for model, method, step in models:
        score = losses(finished.stored(step))
        value = auc([score[name] for name in forget], [score[name] for name in holdout])
        aucs[model, method] = value
        row = row_of(rows, measure="auc", detector="loss", model=model, method=method)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert (row["forget"], row["holdout"]) == (len(forget), len(holdout))
    for (model, method), value in aucs.items():
        if model == "retrained":
            continue
        gap = row_of(rows, measure="auc_difference", detector="loss", model=model, method=method)
        assert gap["value"] == pytest.approx(value - aucs["retrained", "-"], abs=1e-12)


def test_general_text_follows_the_corpus_and_is_not_part_of_it(finished):
    node = finished.node
    folder = finished.stored(node.corpus)
    corpus, tokenizer = Corpus.open(folder), corpus_tokenizer(folder)
    general = read_examples(finished.stored(node.unlearning.general))
    ids = [encode_texts(tokenizer, [example.text])[0] for example in general]
    assert sum(map(len, ids)) >= finished.graph.experiment.unlearning.general_tokens
    assert sum(map(len, ids[:-1])) < finished.graph.experiment.unlearning.general_tokens
    stream = corpus.read(0, corpus.n_tokens)
    ends = np.flatnonzero(stream == corpus.facts.end_token)
    used = {tuple(document.tolist()) for document in np.split(stream, ends + 1)}
    for token_ids in ids:
        assert not any(document[: len(token_ids)] == tuple(token_ids.tolist()) for document in used)
        # Nor is it the document that the end of the corpus cuts.
        last = stream[ends[-1] + 1 :]
        assert not len(last) or token_ids[: len(last)].tolist() != last.tolist()
    # They are the next documents: corpus and general text are one span of the mixture.
    sources = node.arm.experiment.corpus.sources
    texts = [row.text for row in mixed_documents(sources, seed=node.arm.experiment.corpus.seed)]
    first = next(at for at, text in enumerate(texts) if text.startswith(general[0].text))
    following = texts[first : first + len(general)]
    assert all(text.startswith(row.text) for text, row in zip(following, general, strict=True))
    assert max(map(len, ids)) < 2 * OPENING
    assert first >= corpus.facts.documents


def test_each_unlearned_model_is_audited_on_the_forgotten_texts(finished):
    nodes = finished.node.unlearning
    pool = {row.example_id: row for row in read_examples(finished.stored(nodes.examples))}
    copies = seen_copy_counts(read_exposures(finished.stored(nodes.model("original").trained)))
    forgotten = {name for name in forget_ids(finished) if copies.get(name)}
    audits = finished.graph.unlearning_audits
    steps = [audits.inputs[name] for name in sorted(audits.inputs)]
    assert len(steps) == len(nodes.unlearned)
    assert len({step.inputs["original-written"].digest for step in steps}) == 1
    assert len({step.inputs["retrained-written"].digest for step in steps}) == 1
    rows = read_table(finished.stored(audits), "unlearning_audits").to_pylist()
    for step, node in zip(steps, nodes.unlearned, strict=True):
        folder = finished.stored(step)
        chunks = pq.read_table(folder / "chunks.parquet").to_pylist()
        outside = [row for row in chunks if row["part"] == "holdout"]
        chunks = [row for row in chunks if row["part"] == "audited"]
        assert {row["text_id"] for row in chunks} == forgotten
        scores = {
            name: losses(finished.stored(scored))
            for name, scored in (
                ("original", nodes.model("original").scores),
                ("unlearned", node.scores),
                ("retrained", nodes.model("retrained").scores),
            )
        }
        for row in chunks:
            ratio = scores["unlearned"][row["text_id"]] / scores["original"][row["text_id"]]
            assert row["ratio"] == pytest.approx(ratio)
            assert row["copies"] == copies[row["text_id"]]
        own = {row["quantity"]: row["value"] for row in rows if row["method"] == node.setting.label}
        assert own["flagged"] == pytest.approx(np.mean([row["suspicious"] for row in chunks]))
        low, high = 1 / 1.15, 1.15
        alarms = [low < row["retrained_ratio"] < high for row in chunks]
        assert own["false_alarms"] == pytest.approx(np.mean(alarms))
        strangers = {name for name, example in pool.items() if example.side == "nonmember"}
        assert {row["text_id"] for row in outside} == strangers
        flagged = [
            low < scores["unlearned"][name] / scores["original"][name] < high for name in strangers
        ]
        assert own["flagged_holdout"] == pytest.approx(np.mean(flagged))
        written = pq.read_table(folder / "continuations.parquet").to_pylist()
        assert len(written) == 3 * 3 * len(chunks)
        best: dict[tuple[str, int], float] = {}
        for row in written:
            key = row["model"], row["chunk"]
            best[key] = max(best.get(key, 0), row["longest_common_substring"])
        level = max(value for (model, _), value in best.items() if model == "retrained")
        remembered = [best["unlearned", row["chunk"]] > level for row in chunks]
        assert own["remembered_unlearned"] == pytest.approx(np.mean(remembered))
        assert json.loads((folder / "unlearning_audit.json").read_text())["verdict"]


def test_the_detector_must_be_one_of_the_experiments(tmp_path):
    write_tiny(tmp_path)
    section = "unlearning={forget: {share: 0.5}, methods: [npo], audit: {detector: zlib}}"
    with pytest.raises(InputError, match=r"detect\.detectors.*not among the detectors"):
        graph_of(tmp_path, section, "detect.detectors=[loss]")


MORE = (
    "unlearning.methods=[{method: gradient_ascent, lr: 3.0e-3, epochs: 2}]",
    "unlearning.relearn={steps: [1, 4], lr: 3.0e-3}",
    "unlearning.conditions=[8bit, 4bit, paraphrase]",
    "detect.detectors=[loss, reference]",
)


@pytest.fixture(scope="module")
def probed(finished) -> SharedRun:
    graph = graph_of(finished.root, *overrides_of(finished.root), *MORE)
    goals = [step for step in graph.graph.steps if step.kind in ("scores", "unlearning")]
    build(finished.root, *goals)
    return SharedRun(finished.root, graph)


def test_one_half_of_the_forget_set_is_relearned_and_all_rows_are_scored(probed):
    unlearning = probed.node.unlearning
    forget = forget_ids(probed)
    half = members_of(probed.stored(unlearning.relearn_half))
    assert half < forget
    assert abs(len(half) - len(forget) / 2) <= 2
    (unlearned,) = unlearning.unlearned
    assert unlearning.model("original").relearned == {}
    for further in (unlearned, unlearning.model("retrained")):
        assert list(further.relearned) == [1, 4]
        start = losses(probed.stored(further.scores))
        later = {step: losses(probed.stored(node)) for step, node in further.relearned.items()}
        assert later[1].keys() == start.keys()
        mean = [
            sum(scores[name] for name in half) / len(half) for scores in (start, *later.values())
        ]
        assert mean == sorted(mean)
        step = next(iter(further.relearned.values())).inputs["view-text"].inputs["model"]
        exposures = pq.read_table(probed.stored(step) / "exposures.parquet")
        assert set(exposures["example_id"].to_pylist()) == half


def test_weights_are_rounded_and_scores_change_little(probed):
    from safetensors.torch import load_file

    unlearning = probed.node.unlearning
    for further in (unlearning.model("original"), unlearning.unlearned[0]):
        before = load_file(probed.stored(further.trained) / "model.safetensors")
        plain = losses(probed.stored(further.scores))
        off = {}
        for bits in ("8bit", "4bit"):
            step = further.conditions[bits].inputs["view-text"].inputs["model"]
            after = load_file(probed.stored(step) / "model.safetensors")
            for name, weight in before.items():
                expected = rounded(weight, bits) if name.endswith("_proj.weight") else weight
                assert (after[name] == expected).all()
            after_scores = losses(probed.stored(further.conditions[bits]))
            assert after_scores.keys() == plain.keys()
            off[bits] = sum(abs(after_scores[name] - plain[name]) for name in plain)
        assert 0 < off["8bit"] < off["4bit"]


def test_a_paraphrase_is_scored_under_the_id_of_its_row(probed):
    unlearning = probed.node.unlearning
    rows = {row["example_id"]: row for row in rows_of(probed.stored(unlearning.examples))}
    step = unlearning.unlearned[0].conditions["paraphrase"]
    other = rows_of(probed.stored(step.inputs["examples"]))
    assert {row["example_id"] for row in other} == {
        name for name, row in rows.items() if row["paraphrases"]
    }
    for row in other:
        before = rows[row["example_id"]]
        assert row["text"] == before["paraphrases"][0] != before["text"]
        assert (row["side"], row["split"]) == (before["side"], before["split"])
    assert losses(probed.stored(step)).keys() == {row["example_id"] for row in other}
