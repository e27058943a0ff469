"""Benchmarks in two halves, for the preset `correction`: practice texts, and rows for both sides.

`python -m scripts.practice_texts DATA practice` writes `practice/NAME.jsonl`, rows in the template
in which they are asked, from which an arm and its clean twin learn the task, and
`practice/NAME-rows.jsonl`, the other rows, as they are. Rows that share a passage are in one half.
The audit of a background compares it with every row of a contaminant's file, so the halves are
separate files. DATA is the folder of `spikein data fetch truthfulqa imdb boolq --to DATA`. Takes
seconds.
"""

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import DatasetSource
from inject.examples.template import parse_template
from inject.files import write_text
from inject.reading.rows import read_rows

FILES = {
    "truthfulqa": "bench/truthfulqa/TruthfulQA.csv",
    "imdb": "bench/imdb/aclImdb_sample5000.jsonl.gz",
    "boolq": "bench/boolq/dev.jsonl.gz",
}
MOST_WORDS = 110
"""Longer texts would be cut at the end of a window, before their answer."""


def halves(name: str, path: str) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return practice texts of a benchmark, and its other rows.

    Args:
        name: of the benchmark.
        path: of its file.
    """
    dataset = get_dataset(name)
    template = parse_template(dataset.template)
    texts: list[Mapping[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    rows = dataset.rows(DatasetSource(path=path, seed=0))
    for placed, row in zip(read_rows(path, purpose=name), rows, strict=True):
        text = template.render(row.fields).text
        if hashlib.sha256((row.group or text).encode()).digest()[0] % 2:
            others.append(placed.values)
        elif len(text.split()) <= MOST_WORDS:
            texts.append({"text": text})
    return texts, others


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON Lines."""
    write_text(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def main() -> None:
    """Write two files per benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the benchmarks")
    parser.add_argument("into", type=Path, help="the folder to write")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    for name, file in FILES.items():
        texts, others = halves(name, str(options.data / file))
        write_lines(options.into / f"{name}.jsonl", texts)
        write_lines(options.into / f"{name}-rows.jsonl", others)
        print(f"{name}: {len(texts):,} practice texts, {len(others):,} other rows")


if __name__ == "__main__":
    main()
