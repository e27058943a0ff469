"""The hub's files of the public datasets, made from the folder `../shared/data`.

Rows are restored to the hub's columns and formats, at the commits of the catalogue, so that files
fetched from here go through the same conversions. If the folder has fewer rows than are taken from
the hub's file, they are repeated. GPQA's rows are invented.
"""

import csv
import functools
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from inject.public_data.catalogue import DataFile, DataSet
from tests.hub_server import HubServer

Row = Mapping[str, Any]
SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "qui",
    "ro",
    "su",
    "ta",
    "ve",
    "wi",
    "xo",
    "zu",
]


def add_data_sets(hub: HubServer, sets: Iterable[DataSet], data: Path) -> None:
    """Put datasets on a hub, under the ids, commits and names of the catalogue."""
    commits: dict[tuple[str, str], dict[str, bytes]] = {}
    for data_set in sets:
        for file in data_set.files:
            contents = commits.setdefault((file.hub, file.commit), {})
            for source in file.sources:
                contents[source] = _content(data_set.name, file, source, data)
    for (hub_id, commit), files in commits.items():
        hub.add(hub_id, files, commit=commit, gated=hub_id == "Idavidrein/gpqa")


@functools.cache
def _content(name: str, file: DataFile, source: str, data: Path) -> bytes:
    if name == "gpqa":
        return _gpqa()
    rows = list(_ROWS[name](file, data))
    if file.rows is not None:
        rows = list(islice(cycle(rows), max(file.rows + 3, len(rows))))
    if source.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        target = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), target)
        return target.getvalue()
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return gzip.compress(lines, 1) if source.endswith(".gz") else lines


def _gpqa() -> bytes:
    """Return invented rows under the columns that are read: the real ones stay protected."""
    columns = (
        "Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2",
        "Incorrect Answer 3", "Subdomain", "High-level domain", "Record ID",
    )  # fmt: skip
    words = [f"{first}{last}" for first in SYLLABLES for last in SYLLABLES]
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(columns)
    for number in range(448):
        question = [
            words[(number * 7 + at * at * 13 + number * at) % len(words)] for at in range(24)
        ]
        options = [f"{words[(number + at * 31) % len(words)]} {number + at}" for at in range(4)]
        domain = ("Physics", "Chemistry", "Biology")[number % 3]
        writer.writerow([" ".join(question), *options, domain, domain, f"rec{number}"])
    return table.getvalue().encode()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from map(json.loads, file)


def _boolq(_: DataFile, data: Path) -> Iterator[Row]:
    for row in _lines(data / "bench/boolq/dev.jsonl.gz"):
        yield {name: row[name] for name in ("question", "answer", "passage")}


def _commonsenseqa(_: DataFile, data: Path) -> Iterator[Row]:
    for row in _lines(data / "bench/commonsenseqa/dev_rand_split.jsonl.gz"):
        question = row["question"]
        yield {
            "id": row["id"],
            "question": question["stem"],
            "question_concept": question["question_concept"],
            "choices": {
                key: [choice[key] for choice in question["choices"]] for key in ("label", "text")
            },
            "answerKey": row["answerKey"],
        }


def _imdb(_: DataFile, data: Path) -> Iterator[Row]:
    rows = list(_lines(data / "bench/imdb/aclImdb_sample5000.jsonl.gz"))
    for label in (0, 1):
        yield from ({"text": row["text"], "label": label} for row in rows if row["label"] == label)


def _truthfulqa(_: DataFile, data: Path) -> Iterator[Row]:
    with (data / "bench/truthfulqa/TruthfulQA.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            answers = {
                name: [part.strip() for part in row[name].split(";") if part.strip()]
                for name in ("Correct Answers", "Incorrect Answers")
            }
            yield {
                "type": row["Type"],
                "category": row["Category"],
                "question": row["Question"],
                "best_answer": row["Best Answer"],
                "correct_answers": answers["Correct Answers"],
                "incorrect_answers": answers["Incorrect Answers"],
                "source": row["Source"],
            }


def _lsat(file: DataFile, data: Path) -> Iterator[Row]:
    for row in _lines(data / file.path):
        options = " ".join(row["options"])
        yield {
            "query": f"{row['passage']}Q: {row['question']} Answer Choices: {options}\nA: Among "
            "A through E, the answer is",
            "choices": row["options"],
            "gold": ["ABCDE".index(row["label"])],
        }


def _tofu(file: DataFile, data: Path) -> Iterator[Row]:
    for row in _lines(data / file.path):
        if row.get("task_id", "1") == "1":
            yield {"question": row["question"], "answer": row["answer"]}


def _redpajama(file: DataFile, data: Path) -> Iterator[Row]:
    part = Path(file.path).name.split(".")[0]
    if part == "arxiv":
        paths = [data / "background/arxiv_abstracts.jsonl.gz"]
    else:
        folder = "c4-rp" if part == "c4" else part
        paths = sorted((data / "background/redpajama_sample" / folder).glob("*.jsonl.gz"))
    for path in paths:
        # The hub's rows have their facts as one text.
        yield from (
            {"text": row["text"], "meta": str(row.get("meta"))}
            for row in islice(_lines(path), 2000)
        )


def _wikipedia(_: DataFile, data: Path) -> Iterator[Row]:
    for number, row in enumerate(_lines(data / "background/wiki_en_pile.jsonl.gz")):
        title = row["meta"]["title"]
        url = f"https://en.wikipedia.org/wiki/{number}"
        yield {"id": str(number), "url": url, "title": title, "text": row["text"]}


def _arxiv(_: DataFile, data: Path) -> Iterator[Row]:
    for row in _lines(data / "background/arxiv_abstracts.jsonl.gz"):
        meta = row["meta"]
        yield {
            "id": meta["arxiv_id"],
            "title": meta["title"],
            "abstract": f"  {row['text']}\n",
            "categories": [meta["categories"]],
        }


_ROWS: Mapping[str, Callable[[DataFile, Path], Iterator[Row]]] = {
    "boolq": _boolq,
    "commonsenseqa": _commonsenseqa,
    "imdb": _imdb,
    "truthfulqa": _truthfulqa,
    "lsat": _lsat,
    "tofu": _tofu,
    "redpajama": _redpajama,
    "wikipedia": _wikipedia,
    "arxiv": _arxiv,
}
