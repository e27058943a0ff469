"""Cost of token statistics compared with the bare forward pass, on the CPU.

Run as `python -m scripts.bench.scoring [--model FOLDER_OR_GGUF]`; the last line is one JSON object.
A LLaMA of hidden 512, 4 layers and vocabulary 32,000, or the given model (then without the other
benchmarks), reads a batch of 8 × 256. The bare pass only produces logits;
token statistics (all columns that the likelihood detectors of one view need, offsets included) are
made by the engine itself, from texts to arrays. The passes alternate, and each ratio is the median
over pairs, because other work on the machine comes and goes. With `--busy` another process
multiplies matrices on the same cores all the time. The benchmarks of recall, multiple choice,
neighbours and requests to a server also run; each is also a separate command.

Memory is measured in a process of its own, as the kernel's peak of resident memory over one
pass, beyond what model and compiled code hold before it and the one chunk of logits.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, LAYERS, VOCABULARY = 512, 4, 32_000
BATCH, LENGTH = 8, 256
OTHER_ROUNDS = 5
"""Benchmarks with a separate command that are also run here."""
MIB = 1 << 20
_BUSY = "import numpy as n\nm = n.ones((700, 700))\nwhile True:\n    m @ m"


def main() -> None:
    """Measure time and memory, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="pairs of passes")
    parser.add_argument(
        "--busy", action="store_true", help="with a second process that is always busy"
    )
    parser.add_argument("--model", help="a folder or GGUF file")
    parser.add_argument("--memory", choices=["always", "never"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        print(json.dumps({"peak_extra_mib": peak_extra(arguments.memory)}))
        return
    from scripts.bench import multiple_choice, neighbours, recall, server_requests

    with busy_process() if arguments.busy else nullcontext():
        token_statistics = measure(arguments.rounds, arguments.model)
        if arguments.model:
            print(json.dumps(token_statistics | {"model": arguments.model}))
            return
        others = (
            server_requests.measure(OTHER_ROUNDS)
            | multiple_choice.measure(OTHER_ROUNDS)
            | neighbours.measure(OTHER_ROUNDS, "auto")
            | recall.measure(OTHER_ROUNDS)
        )
        print(json.dumps(others | token_statistics | {"busy": arguments.busy}))


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep the cores busy by another process."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(rounds: int, model: str | None = None) -> dict[str, Any]:
    """Return ratios, times in seconds, and memory in MiB; of a given model only the ratios."""
    import torch

    from detect.engine.vocabulary_statistics import has_compiler
    from scripts.bench.stored_scores import table_seconds

    target, texts, ids = make_target_and_texts() if model is None else load_target(model)

    def forward() -> None:
        with torch.inference_mode():
            target.model(input_ids=ids, use_cache=False).logits  # noqa: B018

    passes: dict[str, Callable[[], None]] = {
        "forward": forward,
        "compiled": lambda: run(target, texts, "always"),
        "plain": lambda: run(target, texts, "never"),
    }
    times: dict[str, list[float]] = {name: [] for name in passes}
    for name, action in passes.items():
        started = time.perf_counter()
        action()
        print(f"first {name}: {time.perf_counter() - started:.1f} s", flush=True)
    for number in range(rounds):
        for name, action in passes.items():
            started = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - started)
        print(f"round {number + 1}: " + ", ".join(f"{n} {t[-1]:.3f} s" for n, t in times.items()))
    bare = times["forward"]
    ratios = {
        "likelihood_over_forward": ratio(times["compiled"], bare),
        "plain_over_forward": ratio(times["plain"], bare),
        "compiled_over_plain": ratio(times["compiled"], times["plain"]),
        "forward_seconds": round(statistics.median(bare), 3),
        "compiled": has_compiler(),
        "rounds": rounds,
        "threads": torch.get_num_threads(),
    }
    if model is not None:
        return ratios
    table = table_seconds()
    return ratios | {
        "peak_extra_mib": measured_apart("always"),
        "plain_peak_extra_mib": measured_apart("never"),
        "table_seconds": table.total,
        "table_seconds_by_detector": table.by_detector,
    }


def make_target_and_texts() -> tuple[Any, list[str], Any]:
    """Return a random LLaMA with a tokenizer of whole words, 8 texts, and their ids [8, 256]."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from detect.engine.target import make_target

    backend = Tokenizer(models.WordLevel({f"w{n}": n for n in range(VOCABULARY)}, unk_token="w0"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=VOCABULARY,
                hidden_size=HIDDEN,
                intermediate_size=1376,
                num_hidden_layers=LAYERS,
                num_attention_heads=8,
                num_key_value_heads=8,
                max_position_embeddings=2048,
            )
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    target = make_target(model, tokenizer, name="bench")
    ids = np.random.Generator(np.random.Philox(key=0)).integers(0, VOCABULARY, (BATCH, LENGTH))
    return target, [" ".join(f"w{n}" for n in row) for row in ids], torch.from_numpy(ids)


def load_target(model: str) -> tuple[Any, list[str], Any]:
    """Return a given model, 8 texts of 256 tokens of random words, and their ids [8, 256]."""
    import torch

    from detect.engine.target import load_target

    target = load_target(model, dtype="float32")
    random = np.random.Generator(np.random.Philox(key=0))
    words = [word for word in target.tokenizer.get_vocab() if word.isascii() and word.isalpha()]
    texts, rows = [], []
    for _ in range(BATCH):
        text = " ".join(random.choice(words, LENGTH))
        rows.append(target.tokenizer.encode(text)[:LENGTH])
        texts.append(target.tokenizer.decode(rows[-1]))
    return target, texts, torch.tensor(rows)


def run(target: Any, texts: list[str], compile_mode: Any) -> None:
    """Make the token statistics of one view."""
    from detect.engine.forward_pass import token_statistics
    from detect.settings import ScoringPolicy

    token_statistics(
        target, texts, ScoringPolicy(), batch_tokens=BATCH * LENGTH, compile_mode=compile_mode
    )


def ratio(times: list[float], bare: list[float]) -> float:
    """Return the median over pairs of passes that ran one after the other."""
    return round(statistics.median(a / b for a, b in zip(times, bare, strict=True)), 3)


def measured_apart(mode: str) -> float | None:
    """Return `peak_extra` of a separate process; None if the system does not report it."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    # Freed tensors return to the system at once, so that resident memory is in use.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    command = [sys.executable, "-m", "scripts.bench.scoring", "--memory", mode]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    value: float = json.loads(result.stdout.splitlines()[-1])["peak_extra_mib"]
    return value


def peak_extra(mode: str) -> float:
    """Return MiB at the peak of one pass, minus the memory before it and one chunk."""
    import torch

    from detect.engine.vocabulary_statistics import chunk_size

    target, texts, _ = make_target_and_texts()
    run(target, texts, mode)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current resident memory
    before = resident("VmRSS")
    run(target, texts, mode)
    size = chunk_size(torch.device("cpu"), BATCH * LENGTH, VOCABULARY)
    return round((resident("VmHWM") - before - 4 * size.block * size.chunk) / MIB, 1)


def resident(key: str) -> int:
    """Return a figure of `/proc/self/status` in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


if __name__ == "__main__":
    main()
