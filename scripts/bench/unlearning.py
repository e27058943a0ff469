"""Cost of an unlearning step compared with its forward and backward passes, for each method.

    python -m scripts.bench.unlearning [--threads N] [--steps N] [--methods A,B] [--continuations]

Forgets texts of 128 tokens with the 1 M LLaMA shape, 16 a step, through `run_stage`: reading rows,
loss, update, exposures, log and all that `Trainer` does around a step are in a step. It takes turns
with the bare passes, on as many random rows of the same length, in one process: forward and
backward of all rows a method feeds under the model's own loss, and forward passes of the original
as far as the method needs them; for RMU up to its block, with only its weights trained. A turn's
ratio is step over passes; `step_over_passes` has each method's median. What a method computes
once, before training, is in none of them. `--continuations` adds the keys of
`scripts.bench.continuations`.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from inject.corpus.tokenizer import train_tokenizer
from inject.examples.example import Example, example_id, write_examples
from scripts.bench import continuations
from train.loop.log import TrainingProgress
from train.models.model_node import GivenModel
from train.models.shapes import build_model, load_shape
from train.unlearn.methods.rmu import RmuSettings, trained_weights
from train.unlearn.objective import ask, first_blocks
from train.unlearn.registry import MethodSetting, method_names, parse_methods
from train.unlearn.stages import run_stage
from train.unlearn.unlearning_job import FIRST_STAGE, UnlearningJob, first_model

SHAPE, VOCABULARY, LENGTH, BATCH, WARM_UP = "llama-1m", 4096, 128, 16, 2
OWN: dict[str, dict[str, Any]] = {
    "npo": {"retain_weight": 1.0},
    "dpo": {"retain_weight": 1.0},
    "rmu": {"layer": 2},
}
"""Differences from the default settings: methods use their retain term if they have one."""


class Passes:
    """The bare passes of a method's step, on random rows."""

    def __init__(self, model: PreTrainedModel, setting: MethodSetting) -> None:
        method, settings = setting.method, setting.settings
        self._model = model.train()
        model.config.use_cache = False
        self._rows = len(method.roles(settings)) * BATCH
        self._asks_original = method.original(settings)
        self._layer = None if method.hidden_layer is None else method.hidden_layer(settings)
        self._random = torch.Generator().manual_seed(1)
        if isinstance(settings, RmuSettings):
            names = trained_weights(model, settings)
            for name, weight in model.named_parameters():
                weight.requires_grad_(name in names)

    def __call__(self) -> None:
        """Make the passes of one step."""
        ids = torch.randint(VOCABULARY, (self._rows, LENGTH), generator=self._random)
        if self._asks_original:
            with torch.no_grad():
                ask(self._model, ids[:BATCH], self._layer)
        if self._layer is None:
            self._model(input_ids=ids, labels=ids).loss.backward()
        else:
            with first_blocks(self._model, self._layer + 1):
                base: Any = self._model.get_decoder()
                base(input_ids=ids, use_cache=False).last_hidden_state.sum().backward()
        for weight in self._model.parameters():
            weight.grad = None


class Turns:
    """Lets the bare passes follow each step, and times both."""

    def __init__(self, passes: Callable[[], None]) -> None:
        self.ratios: list[float] = []
        self._passes = passes
        self._resumed = time.perf_counter()

    def __call__(self, moment: TrainingProgress) -> None:
        """Take the times of one turn."""
        started = time.perf_counter()
        self._passes()
        finished = time.perf_counter()
        self.ratios.append((started - self._resumed) / (finished - started))
        self._resumed = finished


def make_world(folder: Path, steps: int) -> list[str]:
    """Write a model, its tokenizer and the texts; return their ids, half to be forgotten."""
    words = np.random.Generator(np.random.Philox(key=0)).integers(0, 100, (2 * steps * BATCH, 400))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    tokenizer = train_tokenizer(texts[:50], 400)
    tokenizer.save_pretrained(folder / "model")
    build_model(load_shape(SHAPE), VOCABULARY, 0, 0).save_pretrained(folder / "model")
    (folder / "examples").mkdir()
    # Texts of LENGTH tokens with the end token, so that no row is padding.
    cut = [tokenizer.decode(tokenizer(text)["input_ids"][: LENGTH - 1]) for text in texts]
    examples = [
        Example(
            example_id=example_id(text),
            dataset="made",
            source_id=str(place),
            group=str(place),
            text=text,
            side="member",
        )
        for place, text in enumerate(cut)
    ]
    write_examples(folder / "examples", examples)
    return [example.example_id for example in examples]


def measure(name: str, world: Path, ids: list[str], steps: int) -> float:
    """Return the median ratio of a method's step to its passes."""
    entry = {
        "method": name,
        "epochs": 1,
        "batch_texts": BATCH,
        "precision": "float32",
        "context": LENGTH,
        **OWN.get(name, {}),
    }
    (setting,) = parse_methods([entry])
    passes = Passes(build_model(load_shape(SHAPE), VOCABULARY, 0, 0), setting)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "out").mkdir()
        job = UnlearningJob(
            out=str(place / "out"),
            unfinished=str(place / "unfinished"),
            identity="",
            original=GivenModel(path=str(world / "model")),
            examples=str(world / "examples"),
            forget_ids=tuple(ids[: steps * BATCH]),
            retain_ids=tuple(ids[steps * BATCH :]),
            method=entry,
        )
        turns = Turns(passes)
        # The stages of relabelling make the same step.
        if setting.method.first is None:
            run_stage(job, None, progress=turns)
        else:
            first_model(job).mkdir(parents=True)
            run_stage(job, FIRST_STAGE, progress=turns)
    return statistics.median(turns.ratios[WARM_UP:])


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--methods", default=",".join(method_names()))
    parser.add_argument("--continuations", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    figures: dict[str, Any] = {"step_over_passes": {}}
    with tempfile.TemporaryDirectory() as folder:
        ids = make_world(Path(folder), options.steps)
        for name in options.methods.split(","):
            ratio = round(measure(name, Path(folder), ids, options.steps), 3)
            figures["step_over_passes"][name] = ratio
            print(f"{name}: {ratio}", flush=True)
    if options.continuations:
        figures |= continuations.measure(5, 2)
    figures |= {"steps": options.steps, "threads": options.threads, "torch": torch.__version__}
    print(json.dumps({**figures, "processor": platform.processor() or platform.machine()}))


if __name__ == "__main__":
    main()
