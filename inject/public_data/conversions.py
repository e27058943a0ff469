"""From rows of the hub to the files of the layout: what becomes of a row, and how rows are written.

Everything is deterministic: keys sorted, no times, one way to write a value; the same rows give the
same bytes wherever the compression library is the same.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SHORTEST_ABSTRACT = 200


def _truthfulqa(row: Mapping[str, Any]) -> Mapping[str, Any]:
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


def _wikipedia(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return text and meta, as RedPajama has them."""
    meta = {name: row[name] for name in ("id", "title", "url")}
    return {"text": row["text"], "meta": {**meta, "source": "wikimedia/wikipedia 20231101.en"}}


def _arxiv(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return text and meta, as RedPajama has them; None for an abstract of a few words."""
    text = str(row["abstract"]).strip()
    if len(text) < _SHORTEST_ABSTRACT:
        return None
    meta = {"arxiv_id": row["id"], "title": row["title"], "categories": row["categories"]}
    return {"text": text, "meta": {**meta, "source": "arxiv_abstract"}}


CONVERSIONS: Mapping[str | None, Callable[[Mapping[str, Any]], Mapping[str, Any] | None]] = {
    None: lambda row: row,
    "truthfulqa": _truthfulqa,
    # The first task, which the preset asks for where a file holds several.
    "tofu_forget": lambda row: {**row, "task_id": "1"},
    "wikipedia": _wikipedia,
    "arxiv": _arxiv,
}
"""From a row of the hub to the row that is written; None leaves it out."""


def encoded(rows: Sequence[Mapping[str, Any]], name: str) -> bytes:
    """Return rows in the format that a file's name says.

    Args:
        rows: at least one.
        name: ends in `.csv`, `.jsonl`, or either of `.jsonl.gz` and `.json.gz`.
    """
    if name.endswith(".csv"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True).encode() + b"\n" for row in rows]
    if not name.endswith(".gz"):
        return b"".join(lines)
    file = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.writelines(lines)
    return file.getvalue()
