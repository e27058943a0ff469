"""Loss on held-out background: intervals against a known truth, numbers against the models."""

from types import SimpleNamespace

import numpy as np
import pytest

from analysis.findings import read_table
from analysis.page.sections.experiment import background_losses
from analysis.task_accuracy import gain_step
from analysis.task_accuracy.gain_step import BackgroundArm, background_loss_table
from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.examples.example import read_examples
from tests.spikein import tiny


def table_of(arms, monkeypatch):
    """Return the table of arms that have losses in place of folders."""
    monkeypatch.setattr(gain_step, "_losses", lambda losses: losses or {})
    return background_loss_table(arms, confidence=0.95)


@pytest.mark.parametrize("seeds", [1, 3])
def test_interval_of_the_change_covers_a_known_truth(monkeypatch, seeds):
    """Losses are skewed, the change grows with the loss, and seeds share documents."""
    truth, covered = 0.03, 0
    for number in range(300):
        random = np.random.default_rng(number)
        before = dict(enumerate(random.lognormal(1.0, 0.4, 24)))
        shared = dict(enumerate(random.gamma(2.0, truth / 2, 24)))
        arms = []
        for seed in range(seeds):
            own = random.normal(0, 0.01, 24)
            after = {name: before[name] + shared[name] + own[name] for name in before}
            arms.append(BackgroundArm({"train.lr": "1e-4"}, seed, before, after))
        change = table_of(arms, monkeypatch).to_pylist()[2]
        assert (change["metric"], change["documents"], change["n_seeds"]) == ("change", 24, seeds)
        covered += change["low"] <= truth <= change["high"]
    assert 0.90 <= covered / 300 <= 0.99


def test_arms_are_separate_and_documents_without_tokens_are_omitted(monkeypatch):
    before = {"a": 2.0, "b": 3.0, "c": 4.0, "d": np.nan}
    arms = [
        BackgroundArm(
            {"train.lr": lr}, 0, before, {name: loss + by for name, loss in before.items()}
        )
        for lr, by in (("1e-5", 0.0), ("1e-4", 0.5))
    ]
    rows = table_of(arms, monkeypatch).to_pylist()
    values = {(row["train.lr"], row["metric"]): row["value"] for row in rows}
    assert values["1e-5", "before"] == values["1e-4", "before"] == 3.0
    assert values["1e-4", "after"] == 3.5
    assert (values["1e-5", "change"], values["1e-4", "change"]) == (0.0, 0.5)
    [without_base] = table_of([BackgroundArm({}, 0, None, before)], monkeypatch).to_pylist()
    assert without_base["metric"] == "after"


def test_page_shows_no_interval_of_one_document(monkeypatch):
    table = table_of([BackgroundArm({}, 0, None, {"a": 2.0})], monkeypatch)
    inputs = SimpleNamespace(background_loss=table, arm_of=lambda _: "")
    [(_, _, after, _)] = background_losses(inputs).rows
    assert (after.text, after.ends) == ("2.000", "")


@pytest.mark.slow
def test_losses_match_the_models_on_unseen_text(tmp_path):
    import torch
    from transformers import AutoModelForCausalLM

    tiny.write_tiny(tmp_path)
    result = tiny.run(
        tmp_path, *tiny.LIGHT, "analysis.background_tokens=1500", "detect.long=truncate"
    )
    artifacts = tmp_path / "store"
    [texts] = artifacts.glob("general_text/*")
    [corpus] = artifacts.glob("corpus/*")
    tokenizer = corpus_tokenizer(corpus)
    clean = Corpus.open(corpus)
    everything = tokenizer.decode(clean.read(0, clean.n_tokens).tolist())
    documents = read_examples(texts)
    assert len(documents) > 5
    assert not any(document.text in everything for document in documents)
    losses = {}
    for folder in artifacts.glob("model/*"):
        model = AutoModelForCausalLM.from_pretrained(folder)
        of_model = []
        for document in documents:
            ids = torch.tensor(
                [tokenizer.encode(document.text)[: model.config.max_position_embeddings]]
            )
            of_model.append(float(model(input_ids=ids, labels=ids).loss))
        losses["before" if "base" in folder.name else "after"] = float(np.mean(of_model))
    losses["change"] = losses["after"] - losses["before"]
    rows = read_table(result.folder, "background_loss").to_pylist()
    assert {row["metric"]: row["value"] for row in rows} == pytest.approx(losses, abs=1e-4)
    page = (result.folder / "report.html").read_text()
    assert "Loss on held-out background" in page
    assert f"{losses['after']:.3f}" in page
