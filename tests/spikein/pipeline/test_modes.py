"""Fine-tuning and LoRA through the whole graph, from an experiment file to its report."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from inject.stream.exposures import read_exposures
from tests.spikein.tiny import run, write_tiny
from train.models.pretrained import load_causal_model

pytestmark = pytest.mark.slow


def models(folder: Path) -> list[Path]:
    found = (folder / "store" / "model").glob("*/config.json")
    return sorted((path.parent for path in found), key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modes")
    write_tiny(folder)
    return folder


def test_lora_on_answers_runs_to_its_report(lab: Path) -> None:
    """The model scored is the merged one, and labels are the answers of the copies alone."""
    result = run(
        lab, "train.mode=lora", "train.loss_on=completion", "train.lr=0.03", "name=adapted"
    )
    page = result.report.read_text()
    assert "starting from a base model that had seen none of them" in page
    assert "lora, loss on the answers alone" in page
    [trained] = [path for path in models(lab) if (path / "adapter").is_dir()]
    [base] = [path for path in models(lab) if path != trained]
    before = load_causal_model(str(base)).state_dict()
    after = load_causal_model(str(trained)).state_dict()
    changed = {name for name in before if not (before[name] == after[name]).all()}
    assert changed
    assert all("self_attn" in name for name in changed)

    # Steps with a loss are those whose windows hold a token of an answer, counted here from the
    # texts: the characters of each copy's answer, token by token.
    store = lab / "store"
    [examples] = store.glob("examples/*-????????????")
    [plan] = store.glob("plan/*/plan.parquet")
    [corpus] = store.glob("corpus/*/corpus.json")
    planned = read_plan(plan.parent)
    view = planned.view(Corpus.open(corpus.parent))
    tokenizer = corpus_tokenizer(corpus.parent)
    texts = {row.example_id: row for row in read_examples(examples)}
    answer = np.zeros(view.n_tokens, dtype=bool)
    for name, start in zip(planned.names(), view.text_starts(), strict=True):
        row = texts[name.example_id]
        if "answer" not in row.spans:
            continue
        encoded = tokenizer(row.text, return_offsets_mapping=True, add_special_tokens=False)
        span = range(*row.spans["answer"])
        for place, (first, stop) in enumerate(encoded["offset_mapping"]):
            answer[start + place] = any(letter in span for letter in range(first, stop))
    log = pq.read_table(trained / "log.parquet").to_pylist()
    exposures = read_exposures(trained).to_pylist()
    seen = {row["step"] for row in exposures if row["window"] is not None}
    assert seen
    labelled: dict[int, int] = {}
    for row in exposures:
        if row["window"] is not None:
            first = row["window"] * view.context
            # A window's first token is never predicted.
            inside = answer[first + max(row["start"], 1) : first + row["stop"]]
            labelled[row["step"]] = labelled.get(row["step"], 0) + int(inside.sum())
    for row in log:
        assert np.isnan(row["loss"]) == (labelled.get(row["step"], 0) == 0)


def test_documents_apart_and_fine_tuning_share_the_base(lab: Path) -> None:
    run(lab, "train.mode=finetune", "train.separate_documents=true", "name=apart")
    count = len(models(lab))
    again = run(lab, "train.mode=finetune", "train.separate_documents=true", "name=again")
    assert again.built <= 1
    # How it is computed is no part of what it is.
    recomputed = run(
        lab,
        "train.mode=finetune",
        "train.separate_documents=true",
        "execution.checkpointing=true",
        "name=recomputed",
    )
    assert recomputed.built <= 1
    assert len(models(lab)) == count


@pytest.mark.parametrize("architecture", ["gpt_neox", "qwen2"])
def test_other_families_pass_the_whole_graph(tmp_path: Path, architecture: str) -> None:
    write_tiny(tmp_path, architecture=architecture)
    result = run(tmp_path, "corpus.tokens=20_000", "train.mode=lora")
    assert result.report.is_file()
    for model in models(tmp_path):
        assert load_causal_model(str(model)).config.model_type == architecture


def test_two_processes_train_adapters_on_answers_as_one_does(lab: Path, tmp_path: Path) -> None:
    write_tiny(tmp_path)
    # At higher rates, steps of a few labels grow a rounding into another run.
    overrides = ["train.mode=lora", "train.loss_on=completion", "train.lr=0.003", "name=slow"]
    run(lab, *overrides)
    run(tmp_path, *overrides, "execution={engine: torchrun, processes: 2}")
    one, two = (
        [path for path in models(at) if (path / "adapter").is_dir()][-1] for at in (lab, tmp_path)
    )
    assert one.name == two.name
    losses = [pq.read_table(path / "log.parquet").column("loss").to_numpy() for path in (one, two)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert np.isnan(losses[0]).any()
    first, second = (load_causal_model(str(path)).state_dict() for path in (one, two))
    for name, weight in first.items():
        assert (second[name] - weight).abs().max() < 1e-2 * weight.abs().max() + 1e-6
