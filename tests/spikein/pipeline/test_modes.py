"""Fine-tuning and LoRA through the whole graph, in one process and in two."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.corpus.corpus import Corpus, corpus_tokenizer
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from inject.stream.exposures import read_exposures
from spikein.store.store import Store
from tests.spikein.shared_run import CONTAMINATION
from tests.spikein.tiny import build, graph_of, write_tiny
from train.loop.log import read_log
from train.models.pretrained import load_causal_model

pytestmark = pytest.mark.slow
ANSWERS = ("train.mode=lora", "train.loss_on=completion")


def test_lora_on_answers_trains_only_on_the_answers_of_the_copies(copied_run):
    """The scored model is the merged one, and labels are only the answers of the copies."""
    (node,) = graph_of(copied_run.root, *CONTAMINATION, *ANSWERS, "train.lr=0.03").nodes
    [trained] = (artifact.path for artifact in build(copied_run.root, node.trained))
    base = copied_run.stored(node.base.node.step)
    assert (trained / "adapter").is_dir()
    before = load_causal_model(str(base)).state_dict()
    after = load_causal_model(str(trained)).state_dict()
    changed = {name for name in before if not (before[name] == after[name]).all()}
    assert changed
    assert all("self_attn" in name for name in changed)

    # Steps with a loss are those whose windows contain a token of an answer, counted here from the
    # texts: the characters of each copy's answer, token by token.
    corpus = copied_run.stored(node.corpus)
    planned = read_plan(copied_run.stored(node.plan))
    view = planned.view(Corpus.open(corpus))
    tokenizer = corpus_tokenizer(corpus)
    texts = {row.example_id: row for row in read_examples(copied_run.stored(node.examples))}
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
    seen = [row for row in read_exposures(trained).to_pylist() if row["window"] is not None]
    assert seen
    labelled: dict[int, int] = {}
    for row in seen:
        first = row["window"] * view.context
        # A window's first token is never predicted.
        inside = answer[first + max(row["start"], 1) : first + row["stop"]]
        labelled[row["step"]] = labelled.get(row["step"], 0) + int(inside.sum())
    for row in log:
        assert np.isnan(row["loss"]) == (labelled.get(row["step"], 0) == 0)


@pytest.mark.parametrize(
    ("architecture", "mode"),
    [("gpt_neox", "lora"), ("llama", "finetune")],
)
def test_families_and_modes_pass_from_the_base_to_the_scores(tmp_path, architecture, mode):
    write_tiny(tmp_path, architecture=architecture)
    more = ["train.separate_documents=true"] if architecture == "llama" else []
    (node,) = graph_of(
        tmp_path, "corpus.tokens=16_000", f"train.mode={mode}", "detect.detectors=[loss]", *more
    ).nodes
    models = [made.path for made in build(tmp_path, node.trained, node.base.node.step, node.scores)]
    for model in models[:2]:
        assert load_causal_model(str(model)).config.model_type == architecture


def test_two_processes_train_the_models_of_one_process(tmp_path: Path, monkeypatch):
    """A base model by all of its weights, and from it adapters on answers."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    write_tiny(tmp_path)
    made = []
    for name, engine in (
        ("one", []),
        ("two", ["training_runtime={engine: torchrun, processes: 2}"]),
    ):
        # At higher rates training is chaotic, and rounding grows from step to step.
        calm = ["base.lr=1e-3", "train.lr=3e-3", "corpus.tokens=20_000"]
        (node,) = graph_of(tmp_path, *calm, *ANSWERS, *engine).nodes
        made.append(build(tmp_path / name, node.base.node.step, node.trained))
    for left, right in zip(*made, strict=True):
        assert left.path.name == right.path.name
        losses = [[row.loss for row in read_log(made.path)] for made in (left, right)]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
        tables = [read_exposures(made.path).drop_columns(["rank"]) for made in (left, right)]
        assert tables[0].equals(tables[1])
        first, second = (load_causal_model(str(made.path)).state_dict() for made in (left, right))
        for name, weight in first.items():
            assert (second[name] - weight).abs().max() < 1e-2 * weight.abs().max() + 1e-6
    store = Store(tmp_path / "two" / "store")
    for artifact in made[1]:
        store.verify(artifact)
    assert not list((tmp_path / "two" / "store" / ".unfinished").glob("model-*"))
