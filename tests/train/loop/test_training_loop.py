"""The inputs, results and files of one run, and the global state that it preserves."""

import contextlib
import copy
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from inject.errors import InputError
from inject.stream.exposures import ExposureRecorder, TrainedWindow, read_exposures
from inject.stream.order import window_order
from inject.stream.view import StreamView
from tests.train.killable import SHAPE, WINDOWS, spiked_view
from train.loop.log import TrainingProgress, read_log
from train.loop.training_loop import (
    TrainingData,
    TrainingRun,
    check_compatibility,
    train,
)
from train.models.shapes import build_model
from train.schedule import schedule_factor
from train.settings import TrainSettings


class FakeView:
    """Windows of random tokens that are identifiable by their content."""

    def __init__(self, n_windows: int, context: int = 16) -> None:
        self.n_windows = n_windows
        self.context = context

    def window(self, index: int) -> npt.NDArray[np.int64]:
        random = np.random.Generator(np.random.Philox(key=index))
        return random.integers(0, 512, self.context)


def settings(**changes: Any) -> TrainSettings:
    chosen = {"context": 16, "batch_tokens": 64, "lr": 5e-3, "precision": "float32", **changes}
    return TrainSettings.model_validate(chosen)


def run(
    out: Path,
    tokenizer: Any,
    *,
    view: Any = None,
    recorder: Any = None,
    model: PreTrainedModel | None = None,
    seed: int = 0,
    progress: Any = None,
    **changes: Any,
) -> None:
    out.mkdir(exist_ok=True)
    if view is None:
        view, names, texts = spiked_view()
        recorder = ExposureRecorder(view, names, texts)
    train(
        out,
        model=model or build_model(SHAPE, 512, 0, 0),
        tokenizer=tokenizer,
        data=TrainingData(view=view, recorder=recorder),
        run=TrainingRun(settings=settings(**changes), seed=seed),
        progress=progress,
    )


EPOCHS, SEED = 2, 7
COURSE = {"schedule": "cosine", "warmup": 0.4}


class Trained(NamedTuple):
    """One run and what was observed from outside."""

    out: Path
    model: PreTrainedModel
    view: StreamView
    rows: list[dict[str, Any]]
    fed: torch.Tensor
    """The input of the embedding."""
    moments: list[TrainingProgress]
    printed: str


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_tokenizer) -> Trained:
    out, moments = tmp_path_factory.mktemp("trained"), []
    view, names, texts = spiked_view()
    recorder = ExposureRecorder(view, names, texts)
    rows, record = [], recorder.record

    def keep(window: TrainedWindow, ids: np.ndarray) -> None:
        rows.append({**window._asdict(), "ids": ids.copy()})
        record(window, ids)

    recorder.record = keep
    model, fed = build_model(SHAPE, 512, 0, 0), []
    hook = model.get_input_embeddings().register_forward_pre_hook(
        # Passes outside training mode only probe the model.
        lambda module, inputs: fed.append(inputs[0].clone()) if module.training else None
    )
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run(
            out,
            tiny_tokenizer,
            view=view,
            recorder=recorder,
            model=model,
            seed=SEED,
            progress=moments.append,
            epochs=EPOCHS,
            **COURSE,
        )
    hook.remove()
    return Trained(out, model, view, rows, torch.cat(fed), moments, printed.getvalue())


def test_windows_are_trained_on_once_per_epoch_in_keyed_order(trained) -> None:
    expected = [(e, int(w)) for e in range(EPOCHS) for w in window_order(SEED, e, WINDOWS)]
    assert [(row["epoch"], row["window"]) for row in trained.rows] == expected
    n = EPOCHS * WINDOWS
    assert [row["step"] for row in trained.rows] == [1 + at // 4 for at in range(n)]
    assert [row["tokens_before"] for row in trained.rows] == [16 * at for at in range(n)]
    for row in trained.rows:
        assert np.array_equal(row["ids"], trained.view.window(row["window"]))


def test_exposures_record_the_input_of_the_model(trained) -> None:
    assert np.array_equal(trained.fed.numpy(), np.stack([row["ids"] for row in trained.rows]))


def test_exposures_match_the_tokens_of_their_windows(trained) -> None:
    _, _, texts = spiked_view()
    order = [window_order(SEED, epoch, WINDOWS).tolist() for epoch in range(EPOCHS)]
    rows = read_exposures(trained.out).to_pylist()
    for row in rows:
        assert row["status"] in ("whole", "fragment")
        tokens = trained.view.window(row["window"])[row["start"] : row["stop"]]
        text = texts[row["example_id"], "whole"]
        assert np.array_equal(tokens, text[row["text_start"] : row["text_stop"]])
        place = row["epoch"] * WINDOWS + order[row["epoch"]].index(row["window"])
        assert row["step"] == 1 + place // 4
    fed = sum(row["stop"] - row["start"] for row in rows)
    assert fed == EPOCHS * 4 * sum(len(ids) for ids in texts.values())


def test_log_contains_all_steps(trained) -> None:
    rows = read_log(trained.out)
    steps, tokens = EPOCHS * WINDOWS // 4, EPOCHS * WINDOWS * 16
    assert [row.step for row in rows] == list(range(1, steps + 1))
    assert [row.tokens for row in rows] == list(range(64, tokens + 1, 64))
    assert [row.lr for row in rows] == pytest.approx(
        [5e-3 * schedule_factor(settings(**COURSE), at, steps=steps) for at in range(1, steps + 1)]
    )
    assert all(row.tokens_per_second > 0 for row in rows)
    assert [m[:3] for m in trained.moments] == [(row.tokens, tokens, row.loss) for row in rows]


def test_output_folder_is_a_transformers_model(trained, tiny_tokenizer) -> None:
    assert sorted(path.name for path in trained.out.iterdir()) == [
        "config.json",
        "exposures.parquet",
        "generation_config.json",
        "log.parquet",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    loaded = AutoModelForCausalLM.from_pretrained(trained.out)
    assert loaded.config.use_cache
    for name, weight in trained.model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    text = "The river town school."
    tokenizer = AutoTokenizer.from_pretrained(trained.out)
    assert tokenizer(text).input_ids == tiny_tokenizer(text).input_ids
    assert trained.printed == ""


def test_full_fine_tuning_equals_continued_training_in_any_process(
    trained, tmp_path, tiny_tokenizer
) -> None:
    """A rerun in the other mode is bit-identical and preserves global random states."""
    torch.manual_seed(5)
    np.random.seed(5)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy())
    run(tmp_path, tiny_tokenizer, seed=SEED, epochs=EPOCHS, mode="finetune", **COURSE)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    weights = [(out / "model.safetensors").read_bytes() for out in (trained.out, tmp_path)]
    assert weights[0] == weights[1]


def test_bfloat16_run_saves_float32_weights(trained, tmp_path, tiny_tokenizer) -> None:
    run(tmp_path, tiny_tokenizer, seed=SEED, precision="bfloat16")
    full, half = (read_log(out)[0].loss for out in (trained.out, tmp_path))
    assert full != half
    assert full == pytest.approx(half, abs=0.05)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).dtype == torch.float32


def bare_losses(view: StreamView, chosen: TrainSettings, seed: int) -> list[float]:
    """Return the losses of the same training without Trainer, loaders or our schedule."""
    model = build_model(SHAPE, 512, 0, 0)
    groups: dict[bool, list[torch.nn.Parameter]] = {True: [], False: []}
    for name, weight in model.named_parameters():
        groups["norm" not in name].append(weight)
    optimiser = torch.optim.AdamW(
        [
            {"params": groups[True], "weight_decay": chosen.weight_decay},
            {"params": groups[False], "weight_decay": 0.0},
        ],
        betas=chosen.betas,
        foreach=False,
    )
    order, losses = window_order(seed, 0, view.n_windows), []
    total = view.n_windows // chosen.batch_windows
    for step in range(total):
        rows = order[step * chosen.batch_windows :][: chosen.batch_windows]
        ids = torch.tensor(np.stack([view.window(row) for row in rows]))
        log_probabilities = torch.log_softmax(model(input_ids=ids).logits[:, :-1], dim=-1)
        loss = -log_probabilities.gather(2, ids[:, 1:, None]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = chosen.lr * (step + 1 if step < 2 else 2) / 2
        optimiser.step()
        losses.append(loss.item())
    return losses


def test_losses_match_a_bare_loop(tmp_path, tiny_tokenizer) -> None:
    run(tmp_path, tiny_tokenizer, seed=3, warmup=0.2)
    rows = read_log(tmp_path)
    expected = bare_losses(spiked_view()[0], settings(warmup=0.2), seed=3)
    assert [row.loss for row in rows] == pytest.approx(expected, abs=1e-5)
    assert max(expected) - min(expected) > 0.05


def test_incompatible_parts_are_rejected(tiny_tokenizer) -> None:
    def check(view: Any, rows: int = 512, **changes: Any) -> None:
        check_compatibility(
            build_model(SHAPE, rows, 0, 0), tiny_tokenizer, view, settings(**changes)
        )

    with pytest.raises(InputError, match="shorter than one window"):
        check(FakeView(0))
    with pytest.raises(InputError, match="more than the model's 64 positions"):
        check(FakeView(2, 128), context=128, batch_tokens=128)
    with pytest.raises(InputError, match="ids up to 386, and the model's embedding has 256 rows"):
        check(FakeView(10), rows=256)


def test_unused_special_tokens_may_exceed_the_embedding(tiny_tokenizer) -> None:
    rows = len(tiny_tokenizer)
    model = build_model(SHAPE, rows, 0, 0)

    def check(tokenizer: Any) -> None:
        check_compatibility(model, tokenizer, FakeView(4), settings())

    check(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())))
    spare = copy.deepcopy(tiny_tokenizer)
    spare.add_special_tokens({"additional_special_tokens": ["<image>"]})
    assert len(spare) == rows + 1
    check(spare)
    # Windows contain end tokens and tokens of plain text.
    spare.eos_token = "<image>"
    with pytest.raises(InputError, match=f"ids up to {rows}, and .* embedding has {rows} rows"):
        check(spare)
    plain = copy.deepcopy(tiny_tokenizer)
    plain.add_tokens(["river-bank"])
    with pytest.raises(InputError, match=f"ids up to {rows}"):
        check(plain)
