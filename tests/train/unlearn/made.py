"""A tiny LLaMA and its texts, for the tests of unlearning.

`python -m tests.train.unlearn.made JOB.json` runs an unlearning job and prints each step, so that
a test can kill it.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedModel

from inject.corpus.tokenizer import train_tokenizer
from inject.errors import SpikeinError
from inject.examples.example import Example, Span, example_id, write_examples
from inject.stream.exposures import read_exposures
from tests.conftest import make_texts
from tests.train.shapes import tiny_shape
from train.execution import ExecutionSettings
from train.loop.log import read_log
from train.models.model_node import GivenModel
from train.models.shapes import build_model
from train.unlearn.job import unlearn_job
from train.unlearn.unlearning_job import UnlearningJob

N_FORGET, N_RETAIN, N_OTHER = 7, 9, 4
SHARED: dict[str, dict[str, Any]] = {
    "npo": {"method": "npo", "retain_weight": 1.0},
    "kl": {"method": "kl"},
    "gradient_difference": {"method": "gradient_difference", "mode": "lora"},
    "rmu": {"method": "rmu", "layer": 1},
}
"""Methods that passes, processes and engines divide among them."""
FAST = {"lr": 3e-3, "epochs": 2, "batch_texts": 4, "precision": "float32", "context": 48}


def examples() -> list[Example]:
    """Return texts of different lengths, half of them with an answer; the last are non-members."""
    texts = make_texts(N_FORGET + N_RETAIN + N_OTHER, seed=11, words=14)
    rows = []
    for place, words in enumerate(texts):
        beginning = " ".join(words.split()[: 4 + place % 10])
        text, spans = beginning, {}
        if place % 2 == 0:
            text = f"Question: {beginning} Answer: yes {place}"
            spans = {"answer": Span(text.index("yes"), len(text))}
        rows.append(
            Example(
                example_id=example_id(text),
                dataset="made" if place % 3 else "other",
                source_id=str(place),
                group=str(place),
                text=text,
                spans=spans,
                side="member" if place < N_FORGET + N_RETAIN else "nonmember",
            )
        )
    return rows


def make_world(folder: Path) -> Path:
    """Write examples, a model with random weights and its tokenizer."""
    all_examples = examples()
    (folder / "examples").mkdir(parents=True)
    write_examples(folder / "examples", all_examples)
    tokenizer = train_tokenizer([example.text for example in all_examples], 320)
    tokenizer.save_pretrained(folder / "model")
    build_model(tiny_shape(layers=3), 512, 0, 3).save_pretrained(folder / "model")
    return folder


def forget_ids() -> tuple[str, ...]:
    return tuple(example.example_id for example in examples()[:N_FORGET])


def retain_ids() -> tuple[str, ...]:
    return tuple(example.example_id for example in examples()[N_FORGET : N_FORGET + N_RETAIN])


def job(world: Path, out: Path, method: str | dict[str, Any], **more: Any) -> UnlearningJob:
    """Return a job that writes to `out`."""
    (out / "out").mkdir(parents=True, exist_ok=True)
    entry = {"method": method} if isinstance(method, str) else method
    defaults: dict[str, Any] = {
        "out": str(out / "out"),
        "unfinished": str(out / "unfinished"),
        "identity": "this run",
        "original": GivenModel(path=str(world / "model")),
        "examples": str(world / "examples"),
        "forget_ids": forget_ids(),
        "retain_ids": retain_ids(),
        "method": {**FAST, **entry},
        "execution": ExecutionSettings(),
        "seed": 5,
    }
    return UnlearningJob(**{**defaults, **more})


def unlearn(world: Path, out: Path, method: str | dict[str, Any], **more: Any) -> Path:
    """Run a job and return the model's folder."""
    made = job(world, out, method, **more)
    unlearn_job(made)
    return Path(made.out)


def write_job(world: Path, out: Path, method: dict[str, Any], **execution: Any) -> str:
    """Write the file of a job that writes to `out` and return its path."""
    file = out / "job.json"
    made = job(world, out, method, execution=ExecutionSettings(**execution))
    file.write_text(made.model_dump_json(), encoding="utf-8")
    return str(file)


def check_same_unlearning(out: Path, other: Path, *, tolerance: float) -> None:
    """Compare losses and weights up to rounding, and exposures exactly except for their rank."""
    losses, others = ([row.loss for row in read_log(folder)] for folder in (out, other))
    np.testing.assert_allclose(losses, others, rtol=tolerance, atol=tolerance)
    assert [row.tokens for row in read_log(out)] == [row.tokens for row in read_log(other)]
    seen, expected = (read_exposures(folder).drop_columns(["rank"]) for folder in (out, other))
    assert seen.equals(expected)
    weights, exact = (load_file(folder / "model.safetensors") for folder in (out, other))
    assert weights.keys() == exact.keys()
    for name in weights:
        assert (weights[name] - exact[name]).abs().mean() < 2e-4, name


def load(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def text_loss(model: PreTrainedModel, tokens: np.ndarray) -> float:
    """Return the mean negative log-likelihood of a text's tokens except the first."""
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens)[None]).logits[0].double()
    lost = 0.0
    for place in range(1, len(tokens)):
        row = logits[place - 1]
        lost -= float(row[tokens[place]] - torch.logsumexp(row, 0))
    return lost / (len(tokens) - 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unlearning_job = UnlearningJob.model_validate_json(
        Path(sys.argv[1]).read_text(encoding="utf-8")
    )
    try:
        unlearn_job(unlearning_job, progress=lambda moment: print(moment.tokens, flush=True))
    except SpikeinError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
