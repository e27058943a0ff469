"""Cost of a text after a cached prefix, compared with its plain pass, on the CPU.

Run as `python -m scripts.bench.recall`; the last line is one JSON object. The model of
`scripts.bench.scoring` reads 32 texts of 128 tokens, plain and after 7 shots of 48 tokens; both
passes make token statistics. `recall_over_plain` includes reading the prefix itself once and the
check of the cached way; `without_cache` reads the prefix before every text. The passes alternate,
and each ratio is the median over rounds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

TEXTS, LENGTH, SHOTS, SHOT = 32, 128, 7, 48


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="triples of passes")
    print(json.dumps(measure(parser.parse_args().rounds)))


def measure(rounds: int) -> dict[str, Any]:
    """Return the ratios, and seconds for all texts."""
    from detect.engine.forward_pass import token_statistics
    from detect.engine.prefix import join_shots, shared_prefix
    from detect.settings import ScoringPolicy
    from scripts.bench.scoring import VOCABULARY, make_target_and_texts, ratio

    target, _, _ = make_target_and_texts()
    policy = ScoringPolicy()
    # Random words, the same in all runs.
    words = iter(number * 7919 % VOCABULARY for number in range(TEXTS * LENGTH + SHOTS * SHOT))
    texts = [" ".join(f"w{next(words)}" for _ in range(LENGTH)) for _ in range(TEXTS)]
    shots = [" ".join(f"w{next(words)}" for _ in range(SHOT)) for _ in range(SHOTS)]
    ids = [token for part in join_shots(target.tokenizer, shots, "", policy) for token in part]

    def read_after_prefix(*, cached: bool) -> None:
        prefix = shared_prefix(target, ids, cached=cached)
        token_statistics(target, texts, policy, prefix, compile_mode="never")

    passes: dict[str, Callable[[], Any]] = {
        "plain": lambda: token_statistics(target, texts, policy, compile_mode="never"),
        "cached": lambda: read_after_prefix(cached=True),
        "without_cache": lambda: read_after_prefix(cached=False),
    }
    times: dict[str, list[float]] = {name: [] for name in passes}
    for action in passes.values():
        action()
    for _ in range(rounds):
        for name, action in passes.items():
            started = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - started)
    return {
        "recall_over_plain": ratio(times["cached"], times["plain"]),
        "recall_without_cache_over_plain": ratio(times["without_cache"], times["plain"]),
        "recall_plain_seconds": round(statistics.median(times["plain"]), 3),
        "recall_prefix_tokens": len(ids),
    }


if __name__ == "__main__":
    main()
