"""From rows of the hub to the files of the layout: what becomes of a row, and how rows are written.

Everything is deterministic: keys sorted, no times, one way to write a value; the same rows give the
same bytes wherever the compression library is the same.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Convert = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""From a row of the hub to the row that is written; None leaves it out."""

_SHORTEST_ABSTRACT = 200


def as_they_are(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row."""
    return row


def truthfulqa(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row under the names of the authors' CSV, its answers joined by `; `."""
    return {
        "Type": row.get("type", ""),
        "Category": row.get("category", ""),
        "Question": row["question"],
        "Best Answer": row["best_answer"],
        "Correct Answers": "; ".join(row["correct_answers"]),
        "Incorrect Answers": "; ".join(row["incorrect_answers"]),
        "Source": row.get("source", ""),
    }


def tofu_forget(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row as the first task, which the preset asks for where a file holds several."""
    return {**row, "task_id": "1"}


def wikipedia(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return text and meta, as RedPajama has them."""
    meta = {name: row[name] for name in ("id", "title", "url")}
    return {"text": row["text"], "meta": {**meta, "source": "wikimedia/wikipedia 20231101.en"}}


def arxiv(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return text and meta, as RedPajama has them; None for an abstract of a few words."""
    text = str(row["abstract"]).strip()
    if len(text) < _SHORTEST_ABSTRACT:
        return None
    meta = {"arxiv_id": row["id"], "title": row["title"], "categories": row["categories"]}
    return {"text": text, "meta": {**meta, "source": "arxiv_abstract"}}


def write_rows(target: Path, rows: Iterable[Mapping[str, Any]], *, name: str) -> int:
    """Write rows in the format that a file's name says; return how many there were.

    Args:
        target: where they are written.
        rows: at least one.
        name: ends in `.csv`, `.jsonl`, or either of `.jsonl.gz` and `.json.gz`.
    """
    with target.open("wb") as raw:
        if name.endswith(".csv"):
            with io.TextIOWrapper(raw, encoding="utf-8", newline="") as text:
                return _write_csv(text, rows)
        if not name.endswith(".gz"):
            return _write_lines(raw, rows)
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            return _write_lines(packed, rows)


def _write_lines(file: Any, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False, sort_keys=True).encode() + b"\n")
        count += 1
    return count


def _write_csv(file: Any, rows: Iterable[Mapping[str, Any]]) -> int:
    writer, count = None, 0
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
        count += 1
    return count
