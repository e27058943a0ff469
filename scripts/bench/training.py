"""How fast is `train.loop.training_loop.train` next to a bare PyTorch loop on the same model and
batches?

    python -m scripts.bench.training [--threads N] [--steps N] [--fast PRECISION]
    python -m scripts.bench.training --model FOLDER_OR_GGUF     # a real model, and DeepSpeed
    python -m scripts.bench.training --loss                     # memory of the loss only

Both train the 1 M LLaMA shape (or --model) on the same windows of random tokens in the same order,
with the same fused AdamW, clipping and schedule. The bare loop has its batches ready in memory and
records nothing; ours reads windows through a view, tells the ledger and keeps the log. The two take
turns step by step (on a GPU: block by block, as the losses are read), so that other work on the
machine falls on both; a turn of ours lasts from one progress call to the next and so holds all that
`Trainer` does around a step. The ratio is that of the median turns. Expect a minute on 2 idle
cores, or ten with a model of 135 M parameters.

`fast_over_bare_loop` compares ours under `precision: fastest` (or --fast) with a bare loop in the
same arithmetic, `fast_over_float32` with ours in float32. If `fastest` is float32 on this machine,
both are the figures of float32, and `fast_precision` reports it.

With --model, `deepspeed_tokens_per_second` is that of two processes with one thread each (ZeRO
stage 0, as in the presets), and the peak memory of each way is measured in processes of its own.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer, models
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.loss.loss_utils import ForCausalLMLoss

from inject.stream.exposures import ExposureRecorder
from inject.stream.view import StreamView, clean_view
from scripts.bench.random_tokens import RandomTokens
from scripts.bench.scoring import MIB, resident
from train.device import default_device
from train.loop.dataset import WindowSequence, collate
from train.loop.log import TrainingProgress
from train.loop.training_loop import TrainingData, TrainingRun, train
from train.models.pretrained import load_causal_model
from train.models.shapes import build_model, load_shape
from train.schedule import schedule_factor
from train.settings import TrainSettings

SHAPE = "llama-1m"
VOCABULARY = 4096
WARM_UP_TURNS = 3
LARGE_WARM_UP_TURNS = 6
"""The heap that both models share grows for the first five turns of --model."""
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
    """A bare training loop, one batch at a time."""

    def __init__(self, model: PreTrainedModel, steps: int, settings: TrainSettings) -> None:
        self._model = model
        self._steps = steps
        self._settings = settings
        self._bfloat16 = settings.precision == "bfloat16"
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
            factor = schedule_factor(self._settings, self._done, steps=self._steps)
            group["lr"] = self._settings.lr * factor
        ids = batch.to(self._model.device)
        with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=self._bfloat16):
            loss = self._model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self._model.parameters(), SETTINGS.max_grad_norm or float("inf")
        )
        self._optimiser.step()
        self._optimiser.zero_grad()
        return loss.detach()


class Turns:
    """Lets the bare loop catch up at each progress call of ours, and times both."""

    def __init__(
        self, bare: BareLoop, batches: list[torch.Tensor], settings: TrainSettings
    ) -> None:
        self._batch_tokens = settings.batch_tokens
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
        done = moment.tokens // self._batch_tokens
        steps = done - self._done
        for batch in self._batches[self._done : done]:
            last = self._loop.step(batch)
        self.losses.append((moment.loss, last.item()))
        finished = time.perf_counter()
        self.ours.append((started - self._resumed) / steps)
        self.bare.append((finished - started) / steps)
        self._done = done
        self._resumed = time.perf_counter()


def new_model(name: str | None) -> PreTrainedModel:
    """Return the model that both start from."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if name is not None:
        return load_causal_model(name).to(device)
    return build_model(load_shape(SHAPE), VOCABULARY, 0, 0).to(device)


class Measured(NamedTuple):
    """The median turns of ours and of the bare loop, in seconds a step."""

    ours: float
    bare: float
    turns: Turns

    @property
    def ratio(self) -> float:
        """Our tokens per second over the bare loop's."""
        return self.bare / self.ours


def measure(
    settings: TrainSettings, stream: WindowSequence, view: StreamView, model: str | None
) -> Measured:
    """Train both in the same arithmetic."""
    batches = [
        collate([stream[i] for i in range(first, first + settings.batch_windows)])["input_ids"]
        for first in range(0, len(stream), settings.batch_windows)
    ]
    turns = Turns(BareLoop(new_model(model), len(batches), settings), batches, settings)
    with tempfile.TemporaryDirectory() as folder:
        train(
            Path(folder),
            model=new_model(model),
            tokenizer=PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())),
            data=TrainingData(view=view, recorder=ExposureRecorder(view, [], {})),
            run=TrainingRun(settings=settings, seed=0),
            progress=turns,
        )
    warm_up = WARM_UP_TURNS if model is None else LARGE_WARM_UP_TURNS
    trainer, bare = (statistics.median(seconds[warm_up:]) for seconds in (turns.ours, turns.bare))
    return Measured(trainer, bare, turns)


def loading_seconds(stream: WindowSequence, size: int) -> float:
    """Return the seconds that the windows of a step take to be read and put together."""
    started = time.perf_counter()
    for first in range(0, len(stream), size):
        collate([stream[i] for i in range(first, first + size)])
    return (time.perf_counter() - started) * size / len(stream)


def peak_of_bare_loop(model: str, precision: str) -> float:
    """Return the peak memory in GB of a process that makes two steps of the bare loop."""
    command = [sys.executable, "-m", "scripts.bench.training", "--model", model]
    result = subprocess.run(
        [*command, "--bare-memory", precision], capture_output=True, text=True, check=True
    )
    return float(result.stdout.splitlines()[-1])


def in_processes(model: str, precision: str, processes: int) -> dict[str, Any]:
    """Train a model in separate processes: DeepSpeed for several, else one with all threads."""
    from scripts.bench import utilisation

    return utilisation.run(
        {
            "model": model,
            "context": SETTINGS.context,
            "windows": 4,
            "steps": 8,
            "precision": precision,
            "execution": {"processes": processes, "zero": 0},
            "threads": max(1, (os.cpu_count() or 1) // processes),
        }
    )


def loss_memory(vocabulary: int, kind: str) -> float:
    """Return the peak memory in MiB that one loss and its gradients add."""
    from train.loop.chunked_loss import causal_loss

    def measured(hidden: torch.Tensor, head: torch.nn.Linear, labels: torch.Tensor) -> None:
        if kind == "chunked":
            loss = causal_loss(hidden, head, labels)
        else:
            loss = ForCausalLMLoss(head(hidden), labels, vocab_size=head.out_features)
        loss.backward()

    # The libraries allocate their own memory at the first product.
    measured(torch.ones(1, 65, 576).requires_grad_(), torch.nn.Linear(576, 512, bias=False),
             torch.arange(65)[None])  # fmt: skip
    hidden = torch.zeros(4, 257, 576).normal_().requires_grad_()
    head = torch.nn.Linear(576, vocabulary, bias=False)
    labels = torch.arange(4 * 257).reshape(4, 257)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current resident memory
    before = resident("VmRSS")
    measured(hidden, head, labels)
    return (resident("VmHWM") - before) / MIB


def loss_figures() -> dict[str, float]:
    """Return the share of the plain loss's peak memory that the loss in chunks takes."""
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    figures = {}
    for vocabulary in (49_152, 100_000):
        peaks = []
        for kind in ("chunked", "plain"):
            command = [sys.executable, "-m", "scripts.bench.training", "--loss-memory", kind]
            result = subprocess.run(
                [*command, str(vocabulary)],
                env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            peaks.append(float(result.stdout.splitlines()[-1]))
        figures[f"loss_peak_share_{vocabulary}"] = round(peaks[0] / peaks[1], 3)
        figures[f"loss_peak_mib_{vocabulary}"] = round(peaks[0])
    return figures


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="Our training loop against a bare one.")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int)
    parser.add_argument("--fast", choices=("fastest", "float32", "bfloat16"), default="fastest")
    parser.add_argument("--model", help="a folder or GGUF file, in place of the 1 M shape")
    parser.add_argument("--loss", action="store_true", help="the memory of the loss only")
    parser.add_argument("--bare-memory", help=argparse.SUPPRESS)
    parser.add_argument("--loss-memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.loss_memory:
        print(loss_memory(int(options.loss_memory[1]), options.loss_memory[0]))
        return
    if options.loss:
        print(json.dumps(loss_figures()))
        return
    steps = options.steps or (40 if options.model is None else 18)
    settings, vocabulary = SETTINGS, VOCABULARY
    if options.model is not None:
        settings = SETTINGS.model_copy(update={"batch_tokens": 1024, "lr": 5e-5})
        vocabulary = len(new_model(options.model).get_input_embeddings().weight)
    tokens = steps * settings.batch_tokens
    view = clean_view(RandomTokens(tokens, vocabulary), tokens=tokens, context=settings.context)
    stream = WindowSequence(view, epochs=1, seed=0)
    if options.bare_memory:
        settings = settings.model_copy(update={"precision": options.bare_memory})
        loop = BareLoop(new_model(options.model), 2, settings)
        for first in (0, settings.batch_windows):
            windows = [stream[i] for i in range(first, first + settings.batch_windows)]
            loop.step(collate(windows)["input_ids"])
        print(resident("VmHWM") / 1e9)
        return
    loading = loading_seconds(stream, settings.batch_windows)
    same = measure(settings, stream, view, options.model)
    precision = default_device().training_precision(options.fast)
    fast = same
    if precision != settings.precision:
        settings_fast = settings.model_copy(update={"precision": precision})
        fast = measure(settings_fast, stream, view, options.model)
    turns = same.turns
    per_second = {
        "trainer": same.ours, "fast": fast.ours, "bare": same.bare, "fast_bare": fast.bare
    }  # fmt: skip
    figures = {
        "trainer_over_bare_loop": round(same.ratio, 4),
        "fast_over_bare_loop": round(fast.ratio, 4),
        "fast_over_float32": round(same.ours / fast.ours, 4),
        "fast_precision": precision,
        **{
            f"{name}_tokens_per_second": round(settings.batch_tokens / seconds)
            for name, seconds in per_second.items()
        },
        "fastest_turns_ratio": round(min(turns.bare) / min(turns.ours), 4),
        "loader_share": round(loading / same.ours, 5),
        "largest_loss_difference": max(abs(a - b) for a, b in turns.losses),
    }
    print(json.dumps(figures), file=sys.stderr, flush=True)
    if options.model is not None:
        for name in dict.fromkeys(("float32", precision)):
            alone, two = (in_processes(options.model, name, count) for count in (1, 2))
            figures |= {
                f"bare_peak_gb_{name}": round(peak_of_bare_loop(options.model, name), 2),
                f"trainer_peak_gb_{name}": alone["peak_gb"],
                f"deepspeed_tokens_per_second_{name}": two["tokens_per_second"],
                f"deepspeed_peak_gb_each_{name}": two["peak_gb"],
            }
    print(json.dumps(figures | {
        "settings": {
            "model": options.model or SHAPE,
            "vocabulary": vocabulary,
            "steps": steps,
            "threads": options.threads,
            "load": round(os.getloadavg()[0], 1),
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            **settings.model_dump(mode="json"),
        },
        "versions": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
    }))  # fmt: skip


if __name__ == "__main__":
    main()
