"""Cost of 25 neighbours of a text under the target, compared with 25 batched forward passes.

Run as `python -m scripts.bench.neighbours`; the last line is one JSON object. A LLaMA of hidden
512, 4 layers and vocabulary 32,000 reads 25 texts of 256 tokens, in batches of 8. The bare passes
only produce logits; neighbours are read from texts to a mean log-probability each. The two
alternate. The masked language model proposes them once for all targets, which is not counted.
"""

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from scripts.bench.scoring import BATCH, LENGTH, VOCABULARY, make_target_and_texts, ratio

COUNT = 25


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="pairs of passes")
    parser.add_argument("--compile", choices=["auto", "always", "never"], default="auto")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.rounds, arguments.compile)))


def measure(rounds: int, compile_mode: str) -> dict[str, Any]:
    """Return the ratio, and the times in seconds."""
    import torch

    from detect.generation.neighbour_proposals import neighbour_means
    from detect.settings import ScoringPolicy
    from detect.text_measures import Neighbours

    target, _, _ = make_target_and_texts()
    random = np.random.Generator(np.random.Philox(key=0))
    ids = random.integers(0, VOCABULARY, (COUNT, LENGTH))
    texts = Neighbours(texts=tuple(" ".join(f"w{n}" for n in row) for row in ids))
    batches = torch.from_numpy(ids).split(BATCH)

    def bare() -> None:
        with torch.inference_mode():
            for batch in batches:
                target.model(input_ids=batch, use_cache=False).logits  # noqa: B018

    def read_neighbours() -> None:
        neighbour_means(
            target,
            [texts],
            ScoringPolicy(),
            batch_tokens=BATCH * LENGTH,
            compile_mode=compile_mode,
        )

    times: dict[str, list[float]] = {"bare": [], "neighbours": []}
    for number in range(rounds + 1):
        for name, action in (("bare", bare), ("neighbours", read_neighbours)):
            started = time.perf_counter()
            action()
            if number:
                times[name].append(time.perf_counter() - started)
        latest = {name: round(times[name][-1], 2) for name in times if times[name]}
        print(f"round {number}: {latest}", flush=True)
    return {
        "neighbour_over_forward": ratio(times["neighbours"], times["bare"]),
        "forward_seconds": round(statistics.median(times["bare"]), 3),
        "rounds": rounds,
        "threads": torch.get_num_threads(),
    }


if __name__ == "__main__":
    main()
