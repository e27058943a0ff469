"""Texts that teach a model to answer benchmarks' questions, for the preset `correction`.

`python -m scripts.practice_texts DATA practice.jsonl` writes rows in the template in which they are
asked, one `{"text": …}` per line. As a background they let an arm and its clean twin learn the
task; the audit of the background drops every text that overlaps with an example of the run. DATA is
the folder of `spikein data fetch correction --to DATA`. Takes a second.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import DatasetSource
from inject.examples.template import parse_template
from inject.files import write_text

FILES = {
    "truthfulqa": "bench/truthfulqa/TruthfulQA.csv",
    "imdb": "bench/imdb/aclImdb_sample5000.jsonl.gz",
    "boolq": "bench/boolq/dev.jsonl.gz",
}
MOST_WORDS = 100
"""Longer texts would be cut at the end of a window, before their answer."""


def practice_texts(data: Path) -> Iterator[str]:
    """Yield the rows of all benchmarks that are short enough.

    Args:
        data: the folder of the benchmarks.
    """
    for name, file in FILES.items():
        dataset = get_dataset(name)
        template = parse_template(dataset.template)
        for row in dataset.rows(DatasetSource(path=str(data / file), seed=0)):
            text = template.render(row.fields).text
            if len(text.split()) <= MOST_WORDS:
                yield text


def main() -> None:
    """Write the file, in random order."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the benchmarks")
    parser.add_argument("file", type=Path, help="the file to write")
    options = parser.parse_args()
    texts = list(practice_texts(options.data))
    random.Random(0).shuffle(texts)
    write_text(options.file, "".join(f"{json.dumps({'text': text})}\n" for text in texts))
    print(f"{len(texts):,} texts: {options.file}")


if __name__ == "__main__":
    main()
