"""The cost that digests and flushing add to writing a checkpoint for a restart.

    python -m scripts.bench.checkpoints [--shape FILE] [--count N] [--folder FOLDER]

Trains a shape for a few steps on random tokens and writes a checkpoint after each, like a run.
Measures the total time of each checkpoint, and the time of flushing the files, digesting them and
writing the manifest; "without" is the difference. Prints medians; the first checkpoint is warm-up.
The folder selects the disk. Takes half a minute on two idle cores.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Trainer

from inject import verified_files
from inject.stream.exposures import ExposureRecorder
from inject.stream.view import clean_view
from scripts.bench.random_tokens import RandomTokens
from train.execution import ExecutionSettings
from train.loop import resume
from train.loop.trainer import ResumeCheckpoints
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.shapes import build_model, load_shape
from train.settings import TrainSettings

VOCABULARY = 4096
SETTINGS = TrainSettings(
    mode="pretrain", lr=1e-3, context=128, batch_tokens=128, precision="float32"
)


class Timed:
    """Adds up the seconds that some functions take."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds.append(time.perf_counter() - started)

        return timed


@contextmanager
def timing(trainer: Timed, callback: Timed, added: Timed) -> Iterator[None]:
    """Time the trainer's part of each checkpoint, ours, and what digests and flushing add."""
    with (
        patch.object(Trainer, "_save_checkpoint", trainer(Trainer._save_checkpoint)),
        patch.object(ResumeCheckpoints, "on_save", callback(ResumeCheckpoints.on_save)),
        patch.object(resume, "flush", added(verified_files.flush)),
        patch.object(resume, "seal", added(verified_files.seal)),
    ):
        yield


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="Checkpoints with and without digests.")
    parser.add_argument("--shape", default="llama-1m")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    steps = options.count + 1
    tokens = steps * SETTINGS.batch_tokens
    view = clean_view(RandomTokens(tokens, VOCABULARY), tokens=tokens, context=SETTINGS.context)
    model = build_model(load_shape(options.shape), VOCABULARY, 0, 0)
    trainer, callback, added = Timed(), Timed(), Timed()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        timing(trainer, callback, added),
    ):
        unfinished = Path(folder) / "unfinished"
        (Path(folder) / "out").mkdir()
        train(
            Path(folder) / "out",
            model=model,
            tokenizer=PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())),
            data=TrainingData(view=view, recorder=ExposureRecorder(view, [], {})),
            run=TrainingRun(
                settings=SETTINGS,
                seed=0,
                unfinished=unfinished,
                execution=ExecutionSettings(resume_every=1),
            ),
        )
        size = sum(path.stat().st_size for path in unfinished.glob(f"checkpoint-{steps - 1}/*"))
    whole = [
        seconds + other for seconds, other in zip(trainer.seconds, callback.seconds, strict=True)
    ]
    twice = zip(added.seconds[::2], added.seconds[1::2], strict=True)
    extra = [flushed + verified_files for flushed, verified_files in twice]
    without = [total - more for total, more in zip(whole, extra, strict=True)]
    figures = {
        "with_over_without": round(
            statistics.median(whole[1:]) / statistics.median(without[1:]), 2
        ),
        "seconds_with": round(statistics.median(whole[1:]), 4),
        "seconds_without": round(statistics.median(without[1:]), 4),
        "slowest_with": round(max(whole[1:]), 4),
        "megabytes": round(size / 1e6, 1),
        "checkpoints": len(whole) - 1,
        "parameters": model.num_parameters(),
        "shape": options.shape,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
