"""What sampled continuations of a chunk cost, all at once and one at a time, on the CPU.

Run as `python -m scripts.bench.continuations`; the last line is one JSON object. The audit of an
unlearned model continues the first 200 words of chunks of 512 words, 20 times each. The LLaMA of
`scripts.bench.scoring` (hidden 512, 4 layers, vocabulary 32,000, a word is a token) does the same
with 3 chunks a round: their 60 continuations of 312 tokens as `sample_continuations` batches them
(32 rows at a time), and, in turns with it in one process, a few of them one at a time: by the same
library's own `generate`, and by our decoder with one continuation a batch. No token ends a text, so
that all write as many tokens. A round's ratio is that of the seconds per continuation;
`continuations_speedup` is the median over rounds against `generate`. That sampled tokens are the
same all at once and one at a time is checked along.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

CHUNK, PROMPT, SAMPLES, CHUNKS = 512, 200, 20, 3


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of three chunks each")
    parser.add_argument("--singles", type=int, default=2, help="of 20 written one at a time")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.rounds, arguments.singles)))


def measure(rounds: int, singles: int) -> dict[str, Any]:
    """Return ratios, and seconds a continuation."""
    import torch

    from detect.targets.local import LocalTextModel, sample_continuations
    from scripts.bench.scoring import VOCABULARY, make_target_and_texts

    target, _, _ = make_target_and_texts()
    # Its default end token would end some continuations, and not others.
    target.model.generation_config.eos_token_id = None
    target.model.config.eos_token_id = None
    words = iter(number * 7919 % VOCABULARY for number in range((rounds + 1) * CHUNKS * PROMPT))
    length = CHUNK - PROMPT

    def sampled(prompts: list[str], samples: int, batch_tokens: int | None = None) -> list[str]:
        continuations = sample_continuations(
            LocalTextModel(target, batch_tokens=batch_tokens),
            prompts,
            samples=samples,
            max_tokens=length,
        )
        return [text for row in continuations for text in row]

    def generated(prompt: str) -> list[str]:
        ids = torch.tensor([target.tokenizer(prompt)["input_ids"]])
        continuations = []
        for seed in range(singles):
            torch.manual_seed(seed)
            out = target.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_k=0,
                max_new_tokens=length,
                pad_token_id=0,
            )
            continuations.append(target.tokenizer.decode(out[0, ids.shape[1] :]))
        return continuations

    ways: dict[str, Callable[[list[str]], list[str]]] = {
        "together": lambda prompts: sampled(prompts, SAMPLES),
        "generate": lambda prompts: generated(prompts[0]),
        "alone": lambda prompts: sampled(prompts[:1], singles, 1),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    equal = True
    # The first round warms up.
    for number in range(rounds + 1):
        prompts = [" ".join(f"w{next(words)}" for _ in range(PROMPT)) for _ in range(CHUNKS)]
        texts = {}
        for name, way in ways.items():
            started = time.perf_counter()
            texts[name] = way(prompts)
            if number:
                times[name].append((time.perf_counter() - started) / len(texts[name]))
            assert all(len(text.split()) == length for text in texts[name])
        equal = equal and texts["together"][:singles] == texts["alone"]
        if number:
            seconds = ", ".join(f"{name} {spent[-1]:.3f} s" for name, spent in times.items())
            print(f"round {number}: {seconds} a continuation", flush=True)
    return {
        "continuations_speedup": _ratio(times["generate"], times["together"]),
        "continuations_speedup_over_own": _ratio(times["alone"], times["together"]),
        "continuations_equal_alone": equal,
        "seconds_a_continuation": round(statistics.median(times["together"]), 4),
        "seconds_a_continuation_generate": round(statistics.median(times["generate"]), 3),
        "chunks": rounds * CHUNKS,
        "threads": torch.get_num_threads(),
    }


def _ratio(slow: list[float], fast: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(slow, fast, strict=True)), 2)


if __name__ == "__main__":
    main()
