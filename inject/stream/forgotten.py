"""A retrained model must not have seen what the unlearned models were to forget: its exposures say.

A retrained model stands for one that never knew. A copy of a forgotten example in its stream, or in
another text that a member carries, would make it the wrong target, so it is refused.

Cost: one column of `exposures.parquet`.
"""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from inject.errors import InputError
from inject.stream.exposures import EXPOSURES_FILE, NEVER, read_exposures

_NAMED = 3


def require_unexposed(folder: Path, forget_ids: Collection[str]) -> None:
    """Refuse a retrained model that was fed any part of a copy of a forgotten example.

    Copies that were planned and never reached count, too: its corpus still holds them.

    Args:
        folder: the retrained model's, with its `exposures.parquet`.
        forget_ids: the example_id of each forgotten example.

    Raises:
        InputError: naming examples with the number of their copies that it saw, or still holds.
    """
    table = read_exposures(folder, columns=["example_id", "copy", "status"])
    forgotten = set(forget_ids)
    fed: dict[str, set[int]] = {}
    planned: Counter[str] = Counter()
    for row in table.to_pylist():
        if row["example_id"] not in forgotten:
            continue
        planned[row["example_id"]] += 1
        if row["status"] != NEVER:
            fed.setdefault(row["example_id"], set()).add(row["copy"])
    if not planned:
        return
    if fed:
        first = [f"{name} ({len(fed[name])})" for name in sorted(fed)[:_NAMED]]
        said = f"was fed copies of {len(fed)} forgotten example(s): {', '.join(first)}"
    else:
        first = sorted(planned)[:_NAMED]
        said = (
            f"has copies of {len(planned)} forgotten example(s) in its corpus, though it never "
            f"reached them: {', '.join(first)}"
        )
    raise InputError(
        f"the retrained model {said}; so it does not show what a model that never saw them does",
        where=str(folder / EXPOSURES_FILE),
        hint="Train it on a stream without the forget set, or name the forget set that it was "
        "trained without.",
    )
