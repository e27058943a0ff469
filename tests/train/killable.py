"""A small training run, in this or a separate process, for tests that stop or kill it.

`python -m tests.train.killable OUT UNFINISHED TOKENIZER` trains, prints each step, and exits with
the code of an error that occurs.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from inject.corpus.tokenizer import load_tokenizer
from inject.errors import SpikeinError
from inject.stream.exposures import CopyName, ExposureRecorder, read_exposures
from inject.stream.view import Insertions, StreamView
from tests.train.shapes import tiny_shape
from train.execution import ExecutionSettings
from train.loop.log import TrainingProgress, read_log
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.shapes import build_model
from train.settings import CheckpointSettings, TrainSettings

SHAPE = tiny_shape()
WINDOWS, CONTEXT = 44, 16
STEPS = 22
"""Two epochs of 44 windows, 4 per step; step 12 is the first of epoch 2."""
SETTINGS = TrainSettings(
    context=CONTEXT,
    batch_tokens=4 * CONTEXT,
    lr=5e-3,
    epochs=2,
    schedule="cosine",
    warmup=0.1,
    precision="float32",
    checkpoints=CheckpointSettings(steps=(2,), every=7),
)
KEPT = (2, 7, 14, 21)
"""Steps whose models are kept."""


class Stopped(Exception):
    """What `stop_at` raises."""


def stop_at(step: int, batch_windows: int = 4):
    """Return a progress callback that ends a run after this many steps."""

    def stop(moment: TrainingProgress) -> None:
        if moment.tokens >= step * batch_windows * CONTEXT:
            raise Stopped

    return stop


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread: sums keep their order, and two threads would mostly wait on tiny matrices."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def check_same_run(out: Path, other: Path) -> None:
    """Compare weights, kept models, files, exposures and log bit for bit."""
    steps = sorted(path.name for path in other.glob("step-*"))
    for model in ("", *steps):
        names = sorted(path.name for path in (out / model).iterdir())
        assert names == sorted(path.name for path in (other / model).iterdir())
        weights, others = (load_file(path / model / "model.safetensors") for path in (out, other))
        assert weights.keys() == others.keys()
        assert all(torch.equal(weights[name], others[name]) for name in others)
    assert read_exposures(out).equals(read_exposures(other))
    logs = [read_log(path) for path in (out, other)]
    assert [row[:4] for row in logs[0]] == [row[:4] for row in logs[1]]


class Clean:
    """A corpus of synthetic tokens."""

    n_tokens = 2 * WINDOWS * CONTEXT
    doc_starts = np.zeros(1, dtype=np.int64)

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.arange(start, stop, dtype=np.int64) * 7919 % 380 + 1


def spiked_view() -> tuple[StreamView, list[CopyName], dict]:
    """Twelve copies of three texts."""
    random = np.random.default_rng(3)
    texts = {f"e{index}": random.integers(1, 380, 5 + index) for index in range(3)}
    names = [CopyName(f"e{copy % 3}", "toy", copy // 3, "whole") for copy in range(12)]
    lengths = np.array([len(texts[name.example_id]) for name in names])
    starts = np.cumsum([0, 5, 6])
    insertions = Insertions(
        anchor=np.sort(random.integers(0, 500, 12)),
        tiebreak=np.arange(12, dtype=np.uint64),
        offset=np.array([starts[int(name.example_id[1])] for name in names]),
        length=lengths,
        lead=np.zeros(12, dtype=np.int64),
        text_length=lengths,
        payload=np.concatenate(list(texts.values())),
    )
    view = StreamView(Clean(), insertions, budget=WINDOWS * CONTEXT, context=CONTEXT)
    return view, names, {(name, "whole"): ids for name, ids in texts.items()}


def train_run(
    out: Path,
    unfinished: Path | None,
    tokenizer: Path,
    *,
    dropout: bool,
    batch_windows: int = 4,
    execution: ExecutionSettings | None = None,
    **more,
) -> None:
    """Train from new weights; with `dropout` the result also depends on the random state."""
    view, names, texts = spiked_view()
    model = build_model(SHAPE, 512, 0, 0)
    if dropout:
        model.config.attention_dropout = 0.2
        for layer in model.model.layers:
            layer.self_attn.attention_dropout = 0.2
    out.mkdir(parents=True, exist_ok=True)
    with one_thread():
        train(
            out,
            model=model,
            tokenizer=load_tokenizer(str(tokenizer)),
            data=TrainingData(view=view, recorder=ExposureRecorder(view, names, texts)),
            run=TrainingRun(
                settings=SETTINGS.model_copy(update={"batch_tokens": batch_windows * CONTEXT}),
                seed=5,
                unfinished=unfinished,
                identity="this run",
                execution=execution or ExecutionSettings(resume_every=3),
            ),
            **more,
        )


if __name__ == "__main__":
    try:
        train_run(
            *map(Path, sys.argv[1:4]),
            dropout=True,
            progress=lambda moment: print(moment.tokens, flush=True),
        )
    except SpikeinError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
