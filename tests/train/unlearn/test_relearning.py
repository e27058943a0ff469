"""Relearning has all texts in each step, and its models match a plain loop."""

import copy
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from inject.corpus.tokenizer import end_token_id
from inject.errors import InputError
from inject.examples.example import read_examples
from tests.train.unlearn.made import forget_ids
from train.execution import ExecutionSettings
from train.models.model_node import GivenModel
from train.unlearn.job import unlearn_job
from train.unlearn.registry import parse_methods
from train.unlearn.relearning import relearning_entry
from train.unlearn.unlearning_job import UnlearningJob

LR = 1e-3


def relearn(
    world: Path,
    out: Path,
    steps: tuple[int, ...],
    *,
    execution: ExecutionSettings | None = None,
    model: Path | None = None,
) -> Path:
    rows = [row for row in read_examples(world / "examples") if row.example_id in forget_ids()]
    out.mkdir()
    job = UnlearningJob(
        out=str(out),
        unfinished=str(out.parent / f"{out.name}-unfinished"),
        identity="relearn",
        original=GivenModel(path=str(model or world / "model")),
        examples=str(world / "examples"),
        forget_ids=tuple(row.example_id for row in rows),
        method=relearning_entry(steps=steps, lr=LR, precision="float32"),
        execution=execution or ExecutionSettings(),
        seed=0,
    )
    unlearn_job(job)
    return out


def plain_loop(world: Path, saved_steps: tuple[int, ...]) -> dict[int, dict[str, torch.Tensor]]:
    """Return states after AdamW steps on mean losses of all texts, gradients clipped at 1."""
    model = AutoModelForCausalLM.from_pretrained(world / "model")
    tokenizer = AutoTokenizer.from_pretrained(world / "model")
    rows = [row for row in read_examples(world / "examples") if row.example_id in forget_ids()]
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=LR, betas=(0.9, 0.999), weight_decay=0.0, eps=1e-8
    )
    states = {}
    for step in range(1, saved_steps[-1] + 1):
        optimiser.zero_grad()
        for row in rows:
            ids = tokenizer(row.text, add_special_tokens=False)["input_ids"]
            inputs = torch.tensor([[*ids, end_token_id(tokenizer)]])
            (model(input_ids=inputs, labels=inputs).loss / len(rows)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step in saved_steps:
            states[step] = copy.deepcopy(model.state_dict())
    return states


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def fed(out: Path) -> list[tuple[str, int]]:
    rows = pq.read_table(out / "exposures.parquet").to_pylist()
    return sorted((row["example_id"], row["step"]) for row in rows if row["start"] is not None)


@pytest.fixture(scope="module")
def relearned(world, tmp_path_factory) -> Path:
    return relearn(world, tmp_path_factory.mktemp("relearned") / "out", (1, 2, 4))


def test_relearned_models_match_a_plain_loop(world, relearned):
    assert sorted(path.name for path in relearned.glob("step-*")) == ["step-1", "step-2"]
    start = weights(world / "model")
    folders = {1: relearned / "step-1", 2: relearned / "step-2", 4: relearned}
    expected = plain_loop(world, (1, 2, 4))
    for steps, folder in folders.items():
        trained = weights(folder)
        for name, weight in trained.items():
            torch.testing.assert_close(weight, expected[steps][name], atol=1e-4, rtol=0)
        moved = max(float((trained[name] - start[name]).abs().max()) for name in trained)
        assert moved > 0.5 * LR


def test_each_text_is_trained_on_once_per_step(relearned):
    assert fed(relearned) == sorted((name, step) for name in forget_ids() for step in (1, 2, 3, 4))
    assert pq.read_table(relearned / "log.parquet")["step"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "execution",
    [
        {"micro_batch_windows": 3},
        pytest.param(
            {"engine": "torchrun", "processes": 2, "micro_batch_windows": 3}, marks=pytest.mark.slow
        ),
    ],
)
def test_seven_texts_are_one_step_for_any_division(world, relearned, tmp_path, execution):
    execution = ExecutionSettings(**execution)
    shared = relearn(world, tmp_path / "shared", (1, 2, 4), execution=execution)
    for name in ("step-1", ""):
        torch.testing.assert_close(
            weights(shared / name), weights(relearned / name), atol=1e-4, rtol=0
        )
    losses = [pq.read_table(out / "log.parquet")["loss"].to_pylist() for out in (shared, relearned)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert fed(shared) == fed(relearned)


def test_steps_are_complete_for_a_model_with_other_position_settings(world, tmp_path):
    """GPT-2's `n_positions` are fewer than a text's tokens, so texts are split into pieces."""
    folder = tmp_path / "gpt2"
    tokenizer = AutoTokenizer.from_pretrained(world / "model")
    tokenizer.save_pretrained(folder)
    config = GPT2Config(
        vocab_size=512,
        n_positions=8,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    assert "max_position_embeddings" not in (folder / "config.json").read_text()
    out = relearn(world, tmp_path / "again", (1, 3), model=folder)
    assert [path.name for path in out.glob("step-*")] == ["step-1"]
    assert pq.read_table(out / "log.parquet")["step"].to_pylist() == [1, 2, 3]
    rows = pq.read_table(out / "exposures.parquet").to_pylist()
    places = {(row["example_id"], row["text_start"]) for row in rows}
    assert len(places) > len(forget_ids())
    assert Counter((row["example_id"], row["text_start"]) for row in rows) == dict.fromkeys(
        places, 3
    )


def test_batch_texts_does_not_apply_to_relearning():
    with pytest.raises(InputError, match="batch_texts does not apply"):
        parse_methods([{"method": "relearn", "batch_texts": 4}], of_job=True)
