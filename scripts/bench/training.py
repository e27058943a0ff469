"""How fast is `train.loop.training_loop.train` beside a bare PyTorch loop on the same model and
batches?

    python -m scripts.bench.training [--threads N] [--steps N] [--fast PRECISION]

Both train the 1 M LLaMA shape on the same windows of random tokens in the same order, with the
same fused AdamW, clipping and schedule. The bare loop has its batches ready in memory and records
nothing; ours reads windows through a view, tells the ledger and keeps the log. The two take turns
step by step (on a GPU: block by block, as the losses are read), so that other work on the machine
falls on both; a turn of ours lasts from one progress call to the next and so holds all that
`Trainer` does around a step. The ratio is that of the median turns. Expect a minute on 2
idle cores (4 to 8 were seen on busy ones; there, --threads 1 wastes less).

`trainer_over_eager_float32_loop` sets ours under `precision: fastest` (or --fast) against the same
bare loop in float32. Where `fastest` is float32 here, it is the first ratio again, and
`fast_precision` says so.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from tokenizers import Tokenizer, models
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from inject.stream.exposures import ExposureRecorder
from inject.stream.view import View, clean_view
from scripts.bench.random_tokens import RandomTokens
from train.device import default_device
from train.loop.dataset import WindowSequence, collate
from train.loop.record import TrainingProgress
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.shapes import build_model, load_shape
from train.schedule import schedule_factor
from train.settings import TrainSettings

SHAPE = "llama-1m"
VOCABULARY = 4096
WARM_UP_TURNS = 3
SETTINGS = TrainSettings(
    mode="pretrain",
    lr=1e-3,
    schedule="cosine",
    warmup=0.25,
    context=256,
    batch_tokens=4096,
    precision="float32",
)


class BareLoop:
    """Training with nothing around it, one batch at a time."""

    def __init__(self, model: PreTrainedModel, steps: int) -> None:
        self._model = model
        self._steps = steps
        self._done = 0
        self._optimiser = torch.optim.AdamW(
            [
                {
                    "params": [weight for weight in model.parameters() if weight.dim() > 1],
                    "weight_decay": SETTINGS.weight_decay,
                },
                {
                    "params": [weight for weight in model.parameters() if weight.dim() == 1],
                    "weight_decay": 0.0,
                },
            ],
            betas=SETTINGS.betas,
            fused=True,
        )
        model.config.use_cache = False
        model.train()

    def step(self, batch: torch.Tensor) -> torch.Tensor:
        """Make one optimiser step; return its loss, which a GPU may still be computing."""
        self._done += 1
        for group in self._optimiser.param_groups:
            group["lr"] = SETTINGS.lr * schedule_factor(SETTINGS, self._done, steps=self._steps)
        ids = batch.to(self._model.device)
        loss = self._model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), SETTINGS.clip or float("inf"))
        self._optimiser.step()
        self._optimiser.zero_grad()
        return loss.detach()


class Turns:
    """Lets the bare loop catch up at each progress call of ours, and times both."""

    def __init__(self, bare: BareLoop, batches: list[torch.Tensor]) -> None:
        self.ours: list[float] = []
        self.bare: list[float] = []
        self.losses: list[tuple[float, float]] = []
        self._loop = bare
        self._batches = batches
        self._done = 0
        self._resumed = time.perf_counter()

    def __call__(self, moment: TrainingProgress) -> None:
        """Take the times of one turn: seconds a step."""
        started = time.perf_counter()
        done = moment.tokens // SETTINGS.batch_tokens
        steps = done - self._done
        for batch in self._batches[self._done : done]:
            last = self._loop.step(batch)
        self.losses.append((moment.loss, last.item()))
        finished = time.perf_counter()
        self.ours.append((started - self._resumed) / steps)
        self.bare.append((finished - started) / steps)
        self._done = done
        self._resumed = time.perf_counter()


def new_model() -> PreTrainedModel:
    """Return the model that both start from."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return build_model(load_shape(SHAPE), VOCABULARY, 0, 0).to(device)


class Measured(NamedTuple):
    """The median turns of ours and of the bare loop, in seconds a step."""

    ours: float
    bare: float
    turns: Turns

    @property
    def ratio(self) -> float:
        """Tokens a second of ours over those of the bare loop."""
        return self.bare / self.ours


def measure(settings: TrainSettings, stream: WindowSequence, view: View) -> Measured:
    """Train both, ours under these settings, the bare loop in float32."""
    batches = [
        collate([stream[i] for i in range(first, first + settings.batch_windows)])["input_ids"]
        for first in range(0, len(stream), settings.batch_windows)
    ]
    turns = Turns(BareLoop(new_model(), len(batches)), batches)
    with tempfile.TemporaryDirectory() as folder:
        train(
            Path(folder),
            model=new_model(),
            tokenizer=PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())),
            data=TrainingData(view=view, recorder=ExposureRecorder(view, [], {})),
            run=TrainingRun(settings=settings, seed=0),
            progress=turns,
        )
    ours, bare = (
        statistics.median(seconds[WARM_UP_TURNS:]) for seconds in (turns.ours, turns.bare)
    )
    return Measured(ours, bare, turns)


def loading_seconds(stream: WindowSequence) -> float:
    """Return the seconds that the windows of a step take to be read and put together."""
    size = SETTINGS.batch_windows
    started = time.perf_counter()
    for first in range(0, len(stream), size):
        collate([stream[i] for i in range(first, first + size)])
    return (time.perf_counter() - started) * size / len(stream)


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="Our training loop against a bare one.")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--fast", choices=("fastest", "float32", "bfloat16"), default="fastest")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    tokens = options.steps * SETTINGS.batch_tokens
    view = clean_view(RandomTokens(tokens, VOCABULARY), tokens=tokens, context=SETTINGS.context)
    stream = WindowSequence(view, epochs=1, seed=0)
    loading = loading_seconds(stream)
    same = measure(SETTINGS, stream, view)
    precision = default_device().training_precision(options.fast)
    fast = same
    if precision != SETTINGS.precision:
        fast = measure(SETTINGS.model_copy(update={"precision": precision}), stream, view)
    turns = same.turns
    figures = {
        "trainer_over_bare_loop": round(same.ratio, 4),
        "trainer_over_eager_float32_loop": round(fast.ratio, 4),
        "fast_precision": precision,
        "trainer_tokens_per_second": round(SETTINGS.batch_tokens / same.ours),
        "fast_tokens_per_second": round(SETTINGS.batch_tokens / fast.ours),
        "bare_tokens_per_second": round(SETTINGS.batch_tokens / same.bare),
        "fastest_turns_ratio": round(min(turns.bare) / min(turns.ours), 4),
        "loader_share": round(loading / same.ours, 5),
        "largest_loss_difference": max(abs(a - b) for a, b in turns.losses),
        "settings": {
            "shape": SHAPE,
            "vocabulary": VOCABULARY,
            "steps": options.steps,
            "threads": options.threads,
            "load": round(os.getloadavg()[0], 1),
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            **SETTINGS.model_dump(mode="json"),
        },
        "versions": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
