"""Cost of DE-COP's 24 orders through a tree of key/value caches, compared with 24 prompts.

Run as `python -m scripts.bench.multiple_choice`; the last line is one JSON object. A LLaMA of
hidden 512, 4 layers and vocabulary 32,000 is asked about passages of 128 tokens, an instruction of
70 tokens before them. Separate prompts are read in batches of the same size, without a cache,
and logits are computed only at the last position. The two alternate.
"""

import argparse
import json
import statistics
import time
from itertools import permutations
from typing import Any

import numpy as np

from scripts.bench.scoring import VOCABULARY, make_target_and_texts, ratio

BEFORE, PASSAGE, AFTER = 70, 128, 4


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="pairs of passages")
    print(json.dumps(measure(parser.parse_args().rounds)))


def measure(rounds: int) -> dict[str, Any]:
    """Return the speed-up, the times of a passage in seconds, and the largest difference."""
    import torch

    from detect.engine.prefix_tree import SharedPrefixes, prefix_tree

    target, _, _ = make_target_and_texts()
    shared, apart = SharedPrefixes(target), SharedPrefixes(target, usable=False)
    labels = (11, 12, 13, 14)
    tree: list[float] = []
    alone: list[float] = []
    differences: list[float] = []
    shared.following(question(0), labels)
    for number in range(1, rounds + 1):
        sequences = question(number)
        started = time.perf_counter()
        following = shared.following(sequences, labels)
        tree.append(time.perf_counter() - started)
        started = time.perf_counter()
        expected = apart.following(sequences, labels)
        alone.append(time.perf_counter() - started)
        differences.append(float(np.abs(following - expected).max()))
        print(f"round {number}: tree {tree[-1]:.2f} s, on their own {alone[-1]:.2f} s", flush=True)
    sequences = question(0)
    return {
        "decop_trie_speedup": ratio(alone, tree),
        "token_ratio": round(sum(map(len, sequences)) / prefix_tree(sequences).tokens, 3),
        "tree_seconds": round(statistics.median(tree), 3),
        "alone_seconds": round(statistics.median(alone), 3),
        "largest_difference": max(differences),
        "rounds": rounds,
        "threads": torch.get_num_threads(),
    }


def question(seed: int) -> list[tuple[int, ...]]:
    """Return 24 prompts: random passages of about one length, in all orders."""
    random = np.random.Generator(np.random.Philox(key=seed))

    def ids(count: int) -> tuple[int, ...]:
        return tuple(random.integers(0, VOCABULARY, count).tolist())

    before, after = ids(BEFORE), ids(AFTER)
    passages = [ids(PASSAGE - 6 * place) for place in range(4)]
    return [before + sum(order, ()) + after for order in permutations(passages)]


if __name__ == "__main__":
    main()
