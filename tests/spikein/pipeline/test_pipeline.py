"""Small real experiments, from the file to the run's folder."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.findings import read_table
from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from inject.stream.audit_report import read_audit
from inject.stream.exposures import read_exposures
from spikein.api.plan import plan as plan_experiment
from spikein.api.report import render_report
from tests.inject.streams import naive_find
from tests.pages import Page
from tests.spikein.shared_run import OVERRIDES
from tests.spikein.tiny import LIGHT, run, stored, write_tiny

pytestmark = pytest.mark.slow


def test_the_run_folder_contains_the_documented_files(shared_run):
    folder = shared_run.folder
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names == {
        "report.html",
        "results.html",
        "examples.html",
        "methods.html",
        "findings.parquet",
        "models.parquet",
        "scores.parquet",
        "examples.parquet",
        "exposures.parquet",
        "figures",
        "experiment.yaml",
        "methods.md",
        "references.bib",
        "run.json",
        "summary.json",
        "artifacts",
    }
    models = set(read_table(folder, "metrics")["model"].to_pylist())
    assert models == {"contaminated", "base", "twin", "retrained"}
    records = pq.read_table(folder / "models.parquet").to_pylist()
    assert [row["role"] for row in records[:2]] == ["contaminated", "base"]
    assert all((shared_run.root / "store" / row[made]).is_dir() for row in records
               for made in ("artifact", "scores") if row[made])  # fmt: skip


def test_the_ledger_agrees_with_brute_force_over_the_artifacts(shared_run):
    """From only the stored corpus and plan: all windows again, searched for all texts."""
    node = shared_run.node
    corpus = Corpus.open(shared_run.stored(node.corpus))
    plan = read_plan(shared_run.stored(node.plan))
    model = shared_run.stored(node.trained)
    pool = read_examples(shared_run.stored(node.examples))
    ids = encode_texts(load_tokenizer(str(model)), [row.text for row in pool])
    view = plan.view(corpus)
    occurrences = sorted(
        (row.example_id, window, start)
        for window in range(view.n_windows)
        for row, text in zip(pool, ids, strict=True)
        for start in naive_find(view.window(window), text)
    )
    exposures = read_exposures(model).to_pylist()
    whole = sorted(
        (row["example_id"], row["window"], row["start"])
        for row in exposures
        if row["status"] == "whole"
    )
    assert whole == occurrences
    assert not any(row["status"] == "altered" for row in exposures)
    stream = view.read(0, view.n_tokens)
    realised = plan.realised()
    for row, text in zip(pool, ids, strict=True):
        assert len(naive_find(stream, text)) == realised[row.example_id]
    assert read_audit(shared_run.artifacts("audit")[0]).passed


def test_a_second_run_builds_nothing_on_any_device_and_gives_the_same_findings(copied_run):
    first = (copied_run.folder / "findings.parquet").read_bytes()
    again = copied_run.run("detect.batch_tokens=512", "detect.device=cpu")
    assert again.built == 0
    assert (again.folder / "findings.parquet").read_bytes() == first
    planned = plan_experiment(
        copied_run.experiment, overrides=OVERRIDES, store=copied_run.root / "store"
    )
    assert all(row.stored for row in planned.rows)


def test_other_copy_counts_reuse_corpus_base_and_pool(shared_run):
    planned = plan_experiment(
        shared_run.experiment,
        overrides=[*OVERRIDES, "copies={fixed: 1}"],
        store=shared_run.root / "store",
    )
    stored = {(row.kind, row.label): row.stored for row in planned.rows}
    for kind in ("corpus", "tokenizer", "examples", "frequency"):
        assert all(whole for (other, _), whole in stored.items() if other == kind)
    # The base model and the clean twin saw no copy.
    reused = {label for (kind, label), whole in stored.items() if kind == "model" and whole}
    assert reused == {"base-4k", "twin-seed0"}
    assert [whole for (kind, _), whole in stored.items() if kind == "plan"].count(False) == 4


def test_a_pretrained_model_is_its_own_base(tmp_path, tiny_model_path):
    write_tiny(tmp_path)
    result = run(
        tmp_path, f"model={{pretrained: {tiny_model_path}}}", "base=null",
        "corpus.tokens=20_000", *LIGHT,
    )  # fmt: skip
    metrics = read_table(result.folder, "metrics").to_pylist()
    assert {row["model"] for row in metrics} == {"contaminated", "base"}
    values = [row["value"] for row in metrics if row["metric"] == "auc" and row["copies"] == "all"]
    assert np.isfinite(values).all()


def test_pretraining_from_new_weights_needs_no_base(tmp_path):
    write_tiny(tmp_path)
    result = run(
        tmp_path, "train.mode=pretrain", "base=null", "detect.detectors=all",
        "corpus.tokens=12_000", "train.checkpoints={fractions: [0.5]}",
        "contaminants.0.members=12", "contaminants.0.nonmembers=12",
    )  # fmt: skip
    metrics = read_table(result.folder, "metrics").to_pylist()
    assert {row["model"] for row in metrics} == {"contaminated"}
    assert "reference" not in {row["detector"] for row in metrics}
    (left,) = Page(result.report.read_text()).titled("Detectors not in this run")
    lacking = {row[0].text: row[1].text for row in left.rows[1:]}
    assert lacking["reference"] == "reference model"
    assert 0 not in read_table(result.folder, "trajectory")["step"].to_pylist()


def test_a_protected_text_is_in_no_shareable_output(tmp_path, monkeypatch, capsys):
    """Not even if a user's detector quotes it: in scores, the run's folder, or the output."""
    from dataclasses import replace

    from inject.examples.datasets import fictional

    monkeypatch.setattr(fictional, "DATASET", replace(fictional.DATASET, protected=True))
    write_tiny(tmp_path)
    quoting = tmp_path / "quoting.py"
    quoting.write_text("def score(example):\n    raise ValueError(example.text)\n")
    result = run(tmp_path, f"detect.detectors=[loss, '{quoting}:score']", "corpus.tokens=20_000")
    (examples,) = stored(tmp_path, "examples")
    secret = read_examples(examples)
    words = {word for row in secret for word in row.fields["masked"] if len(word) > 6}
    assert words
    files = [
        path
        for path in (*result.folder.rglob("*"), *(tmp_path / "store" / "scores").rglob("*"))
        if path.is_file() and "artifacts" not in path.relative_to(tmp_path).parts
    ]
    assert {"scores.parquet", "report.html", "run.json"} <= {path.name for path in files}
    for file in files:
        content = file.read_bytes()
        if file.suffix == ".parquet":
            content = f"{pq.read_table(file).to_pylist()} {pq.read_schema(file).metadata}".encode()
        assert not [word for word in words if word.encode() in content], file.name
    output = " ".join([*result.summary, *capsys.readouterr()])
    assert not [word for word in words if word in output]
    scores = pq.read_table(result.folder / "scores.parquet").to_pylist()
    reasons = {row["reason"] for row in scores if row["detector"] == "quoting.score"}
    assert all("quoting.py:2 with ValueError" in reason for reason in reasons)
    page = render_report(result.folder, store_root=tmp_path / "store", show_protected=True)
    assert any(word in page.with_name("examples.html").read_text() for word in words)
    assert not any(word in page.read_text() for word in words)
    options = {"store_root": tmp_path / "store", "show_protected": True}
    separate_page = render_report(result.folder, **options, out=tmp_path / "alone.html")
    assert any(word in separate_page.read_text() for word in words)
