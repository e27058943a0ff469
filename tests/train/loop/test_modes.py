"""The modes in the whole loop: loss tokens, trained weights and written files."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from inject.plan.settings import Copies, Placement
from inject.stream.exposures import ExposureRecorder
from inject.stream.order import window_order
from tests.inject.streams import plan_for, random_source, spiked_examples, whole_texts
from tests.train.shapes import tiny_shape
from train.execution import ExecutionSettings
from train.loop.log import LogRow, TrainingProgress, read_log
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.lora import AdapterUntrained
from train.models.pretrained import load_causal_model
from train.models.shapes import FAMILIES, build_model
from train.settings import TrainSettings
from train.window_inputs import IGNORED, window_inputs

CONTEXT = 32
ROWS = 600
BATCH = 4


def built(architecture: str = "llama") -> PreTrainedModel:
    return build_model(tiny_shape(architecture), ROWS, 0, 0)


def spiked(copies: int = 2):
    """Return a stream of 16 windows with copies as documents, and each copy's answer tokens."""
    examples, tokens = spiked_examples(4, 0)
    tokens = {name: ids % 500 + 50 for name, ids in tokens.items()}
    source = random_source(700, seed=1)
    settings = {"copies": Copies(fixed=copies), "budget": 16 * CONTEXT, "context": CONTEXT}
    plan = plan_for(examples, tokens, Placement(policy="document"), source=source, **settings)
    view = plan.view(source)
    masks = [np.arange(len(tokens[name.example_id])) % 3 == 1 for name in plan.names()]
    return view, masks, ExposureRecorder(view, plan.names(), whole_texts(tokens))


def run(
    out: Path,
    tokenizer: Any,
    model: PreTrainedModel,
    execution: ExecutionSettings | None = None,
    *,
    extra_inputs: Any = None,
    unfinished: Path | None = None,
    progress: Any = None,
    **changes: Any,
) -> list[LogRow]:
    """Train and return the log; labels follow the settings unless `extra_inputs` is given."""
    view, masks, recorder = spiked()
    sizes = {"context": CONTEXT, "batch_tokens": BATCH * CONTEXT, "lr": 1e-2}
    settings = TrainSettings.model_validate({"precision": "float32", **sizes, **changes})
    own_inputs = window_inputs(
        view,
        masks=masks if settings.loss_on == "completion" else None,
        separate=settings.separate_documents,
    )
    out.mkdir(exist_ok=True)
    train(
        out,
        model=model,
        tokenizer=tokenizer,
        data=TrainingData(view=view, recorder=recorder, extra_inputs=extra_inputs or own_inputs),
        run=TrainingRun(
            settings=settings,
            seed=0,
            execution=execution or ExecutionSettings(),
            unfinished=unfinished,
            identity="run",
        ),
        progress=progress,
    )
    return read_log(out)


def steps() -> list[list[int]]:
    order = window_order(0, 0, 16).tolist()
    return [order[first : first + BATCH] for first in range(0, 16, BATCH)]


@torch.inference_mode()
def losses(model: PreTrainedModel, ids: np.ndarray) -> np.ndarray:
    """Return each token's loss given the previous ones, shape [tokens]; NaN for the first."""
    logits = model(input_ids=torch.from_numpy(ids)[None]).logits[0]
    own = torch.log_softmax(logits.double(), -1)[:-1].gather(-1, torch.from_numpy(ids)[1:, None])
    return np.append(np.nan, -own[:, 0].numpy())


def test_a_step_without_labels_is_not_a_divergence(tmp_path: Path, tiny_tokenizer) -> None:
    labelled = set(steps()[0] + steps()[2])

    def extra_inputs(window: int, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {"labels": ids if window in labelled else np.full_like(ids, IGNORED)}

    model = built()
    log = run(tmp_path, tiny_tokenizer, model, extra_inputs=extra_inputs, mode="finetune")
    assert [np.isnan(row.loss) for row in log] == [False, True, False, True]
    assert all(torch.isfinite(weight).all() for weight in model.parameters())
    assert log[-1].tokens == 16 * CONTEXT


def test_separate_documents_have_the_losses_of_single_documents(
    tmp_path: Path, tiny_tokenizer
) -> None:
    view, _, _ = spiked()
    start = built()
    starts = view.document_starts()
    expected = []
    for window in steps()[0]:
        ids = view.window(window)
        first = window * CONTEXT
        inside = [int(place) - first for place in starts if first < place < first + CONTEXT]
        for begin, end in zip([0, *inside], [*inside, CONTEXT], strict=True):
            expected.extend(losses(start, ids[begin:end])[1:])
    assert len(expected) < BATCH * (CONTEXT - 1)
    log = run(tmp_path, tiny_tokenizer, built(), separate_documents=True)
    assert log[0].loss == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize("architecture", ["llama", "gpt_neox"])
def test_lora_on_answers_writes_a_merged_model_and_its_adapter(
    tmp_path: Path, tiny_tokenizer, architecture: str
) -> None:
    """The loss of a step is the mean over its answer tokens; new adapters have no effect yet."""
    view, masks, _ = spiked()
    answers, everything = [], []
    for window in steps()[0]:
        own = losses(built(architecture), view.window(window))
        everything.extend(own[1:])
        for piece in view.pieces(window * CONTEXT, (window + 1) * CONTEXT):
            for place in range(piece.start, piece.stop):
                if masks[piece.copy][piece.text_start + place - piece.start] and place > 0:
                    answers.append(own[place])
    log = run(
        tmp_path,
        tiny_tokenizer,
        built(architecture),
        mode="lora",
        lora={"rank": 4, "dropout": 0.1},
        loss_on="completion",
    )
    assert len(log) == 4
    assert log[0].loss == pytest.approx(np.mean(answers), rel=1e-5)
    assert log[0].loss != pytest.approx(np.mean(everything), rel=1e-2)
    before, after = built(architecture).state_dict(), load_causal_model(str(tmp_path)).state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    adapted = FAMILIES[architecture].adapted
    assert changed == {
        name
        for name in before
        if name.removesuffix(".weight").split(".")[-1] in adapted and name.endswith(".weight")
    }
    assert {path.name for path in (tmp_path / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }


def test_lora_without_any_label_is_an_error(tmp_path: Path, tiny_tokenizer) -> None:
    def extra_inputs(window: int, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {"labels": np.full_like(ids, IGNORED)}

    with pytest.raises(AdapterUntrained, match="LoRA trained nothing"):
        run(tmp_path, tiny_tokenizer, built(), extra_inputs=extra_inputs, mode="lora")
    assert not list(tmp_path.glob("*.safetensors"))


def test_checkpointing_and_kernel_change_no_number(tmp_path: Path, tiny_tokenizer) -> None:
    """Embeddings are frozen, which reentrant checkpointing would not support."""
    plain = run(tmp_path / "plain", tiny_tokenizer, built(), mode="lora")
    model = built()
    execution = ExecutionSettings(gradient_checkpointing=True, attention="eager")
    again = run(tmp_path / "again", tiny_tokenizer, model, execution, mode="lora")
    assert any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    assert [row.loss for row in again] == pytest.approx([row.loss for row in plain], rel=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_model_learns_the_same(tmp_path: Path, tiny_tokenizer) -> None:
    plain, compiled = built(), built()
    plain_log = run(tmp_path / "a", tiny_tokenizer, plain, separate_documents=True)
    execution = ExecutionSettings(compile=True)
    compiled_log = run(tmp_path / "b", tiny_tokenizer, compiled, execution, separate_documents=True)
    assert [row.loss for row in compiled_log] == pytest.approx(
        [row.loss for row in plain_log], rel=1e-5
    )
    saved = load_causal_model(str(tmp_path / "b")).state_dict()
    assert set(saved) == set(plain.state_dict())
    for name, weight in plain.state_dict().items():
        torch.testing.assert_close(saved[name], weight, rtol=1e-3, atol=1e-3)


def test_adapters_of_a_stopped_run_resume_exactly(tmp_path: Path, tiny_tokenizer) -> None:
    """Moments and dropout are also restored, regardless of the process's random state."""

    def start(name: str, unfinished: str, progress: Any = None) -> Path:
        run(
            tmp_path / name,
            tiny_tokenizer,
            built(),
            ExecutionSettings(resume_every=2),
            unfinished=tmp_path / unfinished,
            progress=progress,
            mode="lora",
            loss_on="completion",
            epochs=2,
            lora={"dropout": 0.2},
        )
        return tmp_path / name

    def stop(moment: TrainingProgress) -> None:
        if moment.tokens >= 5 * BATCH * CONTEXT:
            raise KeyboardInterrupt

    torch.manual_seed(1)
    whole = start("whole", "unfinished-a")
    torch.manual_seed(2)
    with pytest.raises(KeyboardInterrupt):
        start("stopped", "unfinished-b", stop)
    assert list((tmp_path / "unfinished-b").glob("checkpoint-4"))
    again = start("again", "unfinished-b")
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        assert (again / file).read_bytes() == (whole / file).read_bytes(), file
    losses = [[row.loss for row in read_log(path)] for path in (whole, again)]
    np.testing.assert_array_equal(*losses)
