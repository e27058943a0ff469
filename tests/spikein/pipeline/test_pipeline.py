"""Whole experiments, from the file to the run's folder, for real and small."""

import re
from pathlib import Path

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
from spikein.api.run import run as run_experiment
from spikein.store.store import Store
from tests.inject.streams import naive_find
from tests.pages import Page
from tests.spikein.tiny import write_tiny

pytestmark = pytest.mark.slow


def run(path: Path, root: Path, *overrides: str):
    return run_experiment(
        path,
        overrides=overrides,
        store=root / "store",
        runs=root / "runs",
        progress=False,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("pipeline")
    path = write_tiny(root)
    return path, root, run(path, root)


def one_artifact(root: Path, kind: str, label: str = "*") -> Path:
    (found,) = (root / "store" / kind).glob(f"{label}-????????????")
    return found


def test_the_run_folder_holds_what_the_documents_say(finished):
    _, root, result = finished
    names = {path.name for path in result.folder.iterdir() if not path.name.startswith(".")}
    assert names == {
        "report.html",
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
    assert read_table(result.folder, "metrics").column_names == [
        "model", "dataset", "detector", "setting", "selection", "copies", "variant", "metric",
        "value", "low", "high", "n_members", "n_nonmembers", "n_seeds", "passage_copies",
        "seed_low", "seed_high", "interval", "base_value", "base_weight", "chance_error",
    ]  # fmt: skip
    models = set(read_table(result.folder, "metrics")["model"].to_pylist())
    assert models == {"contaminated", "base"}
    records = pq.read_table(result.folder / "models.parquet").to_pylist()
    assert [row["role"] for row in records] == ["contaminated", "base"]
    assert all((root / "store" / row[made]).is_dir() for row in records
               for made in ("artifact", "scores"))  # fmt: skip
    page = result.report.read_text()
    assert "Audit of the training streams" in page
    assert not re.search(r"(src|href)=\"https?:", page)


def test_the_ledger_agrees_with_brute_force_over_the_artifacts(finished):
    """From the stored corpus and plan alone: every window again, every text searched in it."""
    _, root, _ = finished
    corpus = Corpus.open(one_artifact(root, "corpus"))
    plan = read_plan(one_artifact(root, "plan"))
    model = one_artifact(root, "model", "seed-0")
    pool = read_examples(one_artifact(root, "examples"))
    tokenizer = load_tokenizer(str(model))
    ids = encode_texts(tokenizer, [row.text for row in pool])
    view = plan.view(corpus)
    found = sorted(
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
    assert whole == found
    assert not any(row["status"] == "altered" for row in exposures)
    stream = view.read(0, view.n_tokens)
    realised = plan.realised()
    for row, text in zip(pool, ids, strict=True):
        assert len(naive_find(stream, text)) == realised[row.example_id]
    assert read_audit(one_artifact(root, "audit")).passed


def test_a_second_run_builds_nothing_and_says_the_same(finished):
    path, root, first = finished
    before = (first.folder / "findings.parquet").read_bytes()
    again = run(path, root)
    assert again.built == 0
    assert again.stored == first.built + first.stored
    assert (again.folder / "findings.parquet").read_bytes() == before
    assert again.summary == first.summary
    planned = plan_experiment(path, store=root / "store")
    assert all(row.stored for row in planned.rows)


def test_the_page_can_be_rendered_from_the_resolved_file(finished):
    _, root, result = finished
    before = result.report.read_text()
    page = render_report(result.folder, store_root=root / "store")
    assert page == result.report
    assert len(page.read_text()) > len(before) / 2


def test_links_of_the_page_lead_to_files_of_its_folder_and_a_page_elsewhere_has_none(
    finished, tmp_path
):
    _, root, result = finished

    def links(page: Path) -> set[str]:
        found = Page(page.read_text(encoding="utf-8")).tags
        return {a["href"] for tag, a in found if tag == "a" and not a["href"].startswith("#")}

    figures = {path.name for path in (result.folder / "figures").iterdir()}
    assert {name.rpartition(".")[2] for name in figures} == {"svg", "png", "csv"}
    stems = {name.rpartition(".")[0] for name in figures}
    assert figures == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png", "csv")}
    wanted = {"methods.md", "references.bib", *(f"figures/{name}" for name in figures)}
    assert links(result.report) == wanted
    alone = render_report(result.folder, store_root=root / "store", out=tmp_path / "alone.html")
    assert links(alone) == set()
    text = (result.folder / "methods.md").read_text(encoding="utf-8")
    assert "24 members and 24 non-members" in text
    assert "loss (Yeom et al. 2018)" in text
    assert "yeom2018privacy" in (result.folder / "references.bib").read_text(encoding="utf-8")


def test_an_execution_setting_changes_no_identity(finished):
    path, root, _ = finished
    assert run(path, root, "detect.batch_tokens=512", "detect.device=cpu").built == 0


def test_another_dose_reuses_corpus_base_and_pool(finished):
    path, root, first = finished
    again = run(path, root, "copies={fixed: 1}", "name=other")
    assert 0 < again.built < first.built
    for kind in ("corpus", "tokenizer", "examples", "frequency"):
        one_artifact(root, kind)


def test_seeds_and_a_sweep_and_the_document_policy(tmp_path):
    path = write_tiny(tmp_path, architecture="olmo2")
    result = run(
        path, tmp_path, "seeds=[0, 1]", "placement.policy=document",
        "sweep={train.lr: [1.0e-3, 1.0e-2]}",
    )  # fmt: skip
    metrics = read_table(result.folder, "metrics").to_pylist()
    arms = {row["train.lr"] for row in metrics if row["model"] == "contaminated"}
    assert arms == {"0.001", "0.01"}
    loss = [row for row in metrics if row["detector"] == "loss" and row["copies"] == "all"]
    assert {row["n_seeds"] for row in loss} == {2}
    exposures = read_exposures(result.folder)
    assert set(exposures["seed"].to_pylist()) == {0, 1}


def test_a_pretrained_model_is_its_own_base(tmp_path, tiny_model_path):
    path = write_tiny(tmp_path)
    result = run(path, tmp_path, f"model={{pretrained: {tiny_model_path}}}", "base=null")
    metrics = read_table(result.folder, "metrics").to_pylist()
    assert {row["model"] for row in metrics} == {"contaminated", "base"}
    values = [row["value"] for row in metrics if row["metric"] == "auc" and row["copies"] == "all"]
    assert np.isfinite(values).all()


def test_pretraining_from_new_weights_without_a_base(tmp_path):
    path = write_tiny(tmp_path)
    result = run(path, tmp_path, "train.mode=pretrain", "base=null", "detect.detectors=all")
    metrics = read_table(result.folder, "metrics").to_pylist()
    assert {row["model"] for row in metrics} == {"contaminated"}
    assert "reference" not in {row["detector"] for row in metrics}
    (left,) = Page(result.report.read_text()).titled("Detectors that are not in this run")
    lacking = {row[0].text: row[1].text for row in left.rows[1:]}
    assert lacking["reference"] == "reference model"


def test_a_protected_text_is_in_nothing_made_to_be_shared(tmp_path, monkeypatch):
    from dataclasses import replace

    from inject.examples.datasets import fictional

    monkeypatch.setattr(fictional, "DATASET", replace(fictional.DATASET, protected=True))
    path = write_tiny(tmp_path)
    result = run(path, tmp_path)
    store = Store(tmp_path / "store")
    secret = read_examples(one_artifact(tmp_path, "examples"))
    words = {word for row in secret for word in row.fields["masked"] if len(word) > 6}
    assert words
    for file in result.folder.rglob("*"):
        if file.is_file() and "artifacts" not in file.relative_to(result.folder).parts:
            content = file.read_bytes()
            if file.suffix == ".parquet":
                content = str(pq.read_table(file).to_pylist()).encode()
            assert not [word for word in words if word.encode() in content], file.name
    examples = one_artifact(tmp_path, "examples").name.rpartition("-")[2]
    found = store.find(examples)
    assert found is not None
    assert found.manifest.protected
    shown = render_report(result.folder, store_root=tmp_path / "store", show_protected=True)
    assert any(word in shown.read_text() for word in words)
