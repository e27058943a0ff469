import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from inject.errors import InputError
from inject.stream.exposures import CopyName, ExposureRecorder, read_exposures
from inject.stream.order import window_order
from inject.stream.view import Insertions, View
from train.loop.log import read_log
from train.loop.record import TrainingDiverged, TrainingProgress
from train.loop.training_loop import (
    TrainingData,
    TrainingRun,
    check_compatibility,
    train,
)
from train.models.shapes import Shape, build_model
from train.schedule import learning_rate
from train.settings import TrainSettings

SHAPE = Shape(
    architecture="llama", hidden=32, layers=2, heads=2, intermediate=48, context=64, init_std=0.1
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On a busy machine, two threads on matrices this small mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class FakeView:
    """Windows of random tokens, each recognisable by its content."""

    def __init__(self, n_windows: int, context: int = 16) -> None:
        self.n_windows = n_windows
        self.context = context

    def window(self, index: int) -> npt.NDArray[np.int64]:
        random = np.random.Generator(np.random.Philox(key=index))
        return random.integers(0, 512, self.context)


class ListRecorder:
    """Keeps every window that it is given."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def record(self, **row: Any) -> None:
        self.rows.append({**row, "ids": row["ids"].copy()})

    def write(self, folder: Path) -> None:
        (folder / "exposures.parquet").write_text(str(len(self.rows)))


def settings(**changes: Any) -> TrainSettings:
    chosen = {"context": 16, "batch_tokens": 64, "lr": 5e-3, "precision": "float32", **changes}
    return TrainSettings.model_validate(chosen)


def run(
    out: Path,
    tokenizer: Any,
    *,
    view: Any = None,
    ledger: Any = None,
    model: PreTrainedModel | None = None,
    seed: int = 0,
    progress: Any = None,
    **changes: Any,
) -> None:
    out.mkdir(exist_ok=True)
    train(
        out,
        model=model or build_model(SHAPE, 512, 0, 0),
        tokenizer=tokenizer,
        data=TrainingData(view=view or FakeView(10), recorder=ledger or ListRecorder()),
        run=TrainingRun(settings=settings(**changes), seed=seed),
        progress=progress,
    )


def test_a_tokenizer_without_start_and_end_fits() -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (None, None)
    model = build_model(SHAPE, 512, 0, 0)
    view = FakeView(10)
    check_compatibility(model, tokenizer, view, settings(context=view.context))


def test_every_window_is_fed_once_an_epoch_in_the_keyed_order(tmp_path, tiny_tokenizer) -> None:
    view, ledger = FakeView(10), ListRecorder()
    run(tmp_path, tiny_tokenizer, view=view, ledger=ledger, epochs=3, seed=7)
    expected = [(e, int(w)) for e in range(3) for w in window_order(7, e, 10)]
    assert [(row["epoch"], row["window"]) for row in ledger.rows] == expected
    assert [row["step"] for row in ledger.rows] == [1 + i // 4 for i in range(30)]
    assert [row["tokens_before"] for row in ledger.rows] == [16 * i for i in range(30)]
    for row in ledger.rows:
        assert np.array_equal(row["ids"], view.window(row["window"]))
    assert read_log(tmp_path)[-1][:2] == (8, 480)


def test_exposures_are_recorded_of_what_the_model_was_given(tmp_path, tiny_tokenizer) -> None:
    model, ledger = build_model(SHAPE, 512, 0, 0), ListRecorder()
    seen: list[torch.Tensor] = []
    hook = model.get_input_embeddings().register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].clone())
    )
    run(tmp_path, tiny_tokenizer, model=model, ledger=ledger)
    hook.remove()
    assert np.array_equal(torch.cat(seen).numpy(), np.stack([row["ids"] for row in ledger.rows]))


def bare_losses(view: FakeView, chosen: TrainSettings, seed: int) -> list[float]:
    """The same training, written down once more without Trainer, loaders or our schedule."""
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


def test_losses_are_those_of_a_bare_loop(tmp_path, tiny_tokenizer) -> None:
    view = FakeView(40)
    run(tmp_path, tiny_tokenizer, view=view, seed=3, warmup=0.2)
    rows = read_log(tmp_path)
    expected = bare_losses(view, settings(warmup=0.2), seed=3)
    assert [row.loss for row in rows] == pytest.approx(expected, abs=1e-5)
    assert max(expected) - min(expected) > 0.05


def test_the_log_holds_every_step(tmp_path, tiny_tokenizer) -> None:
    done: list[TrainingProgress] = []
    run(
        tmp_path,
        tiny_tokenizer,
        schedule="cosine",
        warmup=0.4,
        epochs=2,
        progress=done.append,
    )
    rows = read_log(tmp_path)
    chosen = settings(schedule="cosine", warmup=0.4)
    assert [row.step for row in rows] == [1, 2, 3, 4, 5]
    assert [row.tokens for row in rows] == [64, 128, 192, 256, 320]
    assert [row.lr for row in rows] == pytest.approx(
        [learning_rate(chosen, step, steps=5) for step in range(1, 6)]
    )
    assert all(row.tokens_per_second > 0 for row in rows)
    assert [moment[:3] for moment in done] == [(row.tokens, 320, row.loss) for row in rows]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_a_rerun_is_bit_identical_and_leaves_global_randomness_alone(
    tmp_path, tiny_tokenizer
) -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy())
    run(tmp_path / "a", tiny_tokenizer)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    torch.manual_seed(6)
    run(tmp_path / "b", tiny_tokenizer)
    run(tmp_path / "c", tiny_tokenizer, seed=1)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


def test_the_folder_holds_a_model_that_transformers_opens(tmp_path, tiny_tokenizer, capfd) -> None:
    model = build_model(SHAPE, 512, 0, 0)
    run(tmp_path, tiny_tokenizer, model=model)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "exposures.parquet",
        "generation_config.json",
        "log.parquet",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.config.use_cache
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    text = "The river town school."
    assert AutoTokenizer.from_pretrained(tmp_path)(text).input_ids == tiny_tokenizer(text).input_ids
    assert capfd.readouterr().out == ""


def test_bfloat16_computes_otherwise_and_saves_float32(tmp_path, tiny_tokenizer) -> None:
    run(tmp_path / "a", tiny_tokenizer)
    run(tmp_path / "b", tiny_tokenizer, precision="bfloat16")
    full, half = (read_log(tmp_path / name)[0].loss for name in "ab")
    assert full != half
    assert full == pytest.approx(half, abs=0.05)
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "b").dtype == torch.float32


def test_exposures_of_a_real_view(tmp_path, tiny_tokenizer) -> None:
    """Two copies of one payload; the ledger's rows are found again in the windows fed."""

    class Clean:
        n_tokens = 200
        doc_starts = np.zeros(1, dtype=np.int64)

        def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
            return np.arange(start, stop, dtype=np.int64)

    payload = np.array([400, 401, 402, 403, 404])
    two = np.ones(2, dtype=np.int64)
    insertions = Insertions(
        anchor=np.array([30, 100]),
        tiebreak=np.array([1, 2], dtype=np.uint64),
        offset=0 * two,
        length=5 * two,
        lead=0 * two,
        text_length=5 * two,
        payload=payload,
    )
    view = View(Clean(), insertions, budget=160, context=16)
    names = [CopyName("e", "d", copy, "whole") for copy in range(2)]
    ledger = ExposureRecorder(view, names, {("e", "whole"): payload})
    run(tmp_path, tiny_tokenizer, view=view, ledger=ledger)
    rows = read_exposures(tmp_path).to_pylist()
    order = window_order(0, 0, 10).tolist()
    for row in rows:
        assert row["status"] in ("whole", "fragment")
        tokens = view.window(row["window"])[row["start"] : row["stop"]]
        assert np.array_equal(tokens, payload[row["text_start"] : row["text_stop"]])
        assert row["step"] == 1 + order.index(row["window"]) // 4
    assert sum(row["stop"] - row["start"] for row in rows) == 10


def test_a_loss_that_is_not_finite_stops_the_run_and_names_step_and_windows(
    tmp_path, tiny_tokenizer
) -> None:
    model = build_model(SHAPE, 512, 0, 0)
    ledger = ListRecorder()
    calls = 0

    def poison(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return output * float("nan") if calls == 2 else output

    model.get_input_embeddings().register_forward_hook(poison)
    with pytest.raises(TrainingDiverged, match=r"the loss of step 2 is nan") as caught:
        run(tmp_path, tiny_tokenizer, model=model, ledger=ledger)
    for window in window_order(0, 0, 10)[4:8]:
        assert f"{window} (epoch 0)" in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_an_interrupt_passes_through_and_leaves_nothing(tmp_path, tiny_tokenizer) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, tiny_tokenizer, progress=stop)
    assert not any(tmp_path.iterdir())


def test_parts_that_do_not_fit_are_refused(tmp_path, tiny_tokenizer) -> None:
    with pytest.raises(InputError, match="windows of 16 tokens do not fit a context of 32"):
        run(tmp_path, tiny_tokenizer, context=32)
    with pytest.raises(InputError, match="less than one window"):
        run(tmp_path, tiny_tokenizer, view=FakeView(0))
    with pytest.raises(InputError, match="more than the model's 64 positions"):
        run(tmp_path, tiny_tokenizer, view=FakeView(2, 128), context=128, batch_tokens=128)
    with pytest.raises(InputError, match="ids up to 386, and the model's embedding has 256 rows"):
        run(tmp_path, tiny_tokenizer, model=build_model(SHAPE, 256, 0, 0))


def test_special_tokens_that_no_window_holds_may_lie_beyond_the_embedding(tiny_tokenizer) -> None:
    rows = len(tiny_tokenizer)
    model = build_model(SHAPE, rows, 0, 0)

    def check(tokenizer: Any) -> None:
        check_compatibility(model, tokenizer, FakeView(4), settings())

    spare = copy.deepcopy(tiny_tokenizer)
    spare.add_special_tokens({"additional_special_tokens": ["<image>"]})
    assert len(spare) == rows + 1
    check(spare)
    # An end token stands in windows, and so does a token of plain text.
    spare.eos_token = "<image>"
    with pytest.raises(InputError, match=f"ids up to {rows}, and .* embedding has {rows} rows"):
        check(spare)
    plain = copy.deepcopy(tiny_tokenizer)
    plain.add_tokens(["river-bank"])
    with pytest.raises(InputError, match=f"ids up to {rows}"):
        check(plain)
