"""The page of one audit: the verdict, every number, and what is still written of each text.

It is drawn from the audit's artifact. A text is shown where it is not protected (its artifact then
lacks it) and nobody asked to hide it; else its id stands alone.
"""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from analysis.findings import read_table
from analysis.page.parts import Note, Section, present, render_page
from analysis.page.table import Column, Entry, Table, listing
from analysis.unlearning_audit.audit import AUDIT_FILE, CHUNKS_FILE, MODELS, QUESTION, finding_lines
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.files import write_text
from inject.tables import read_parquet

Row = Mapping[str, Any]
_WRITTEN = 2
"""Findings that say what the original and the unlearned model still write; they come first."""


def write_audit_page(
    path: Path, folder: Path, *, title: str, about: Mapping[str, str], hide_texts: bool = False
) -> None:
    """Write the page of an audit, whole or not at all.

    Args:
        path: of the page.
        folder: of the audit's artifact.
        title: of the page.
        about: what it was found of, such as the models.
        hide_texts: show ids in place of all texts.
    """
    record = json.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))
    findings = read_table(folder, QUESTION).to_pylist()
    closest = _closest(read_parquet(folder / CONTINUATIONS_FILE).to_pylist())
    chunks = [
        row for row in read_parquet(folder / CHUNKS_FILE).to_pylist() if row["part"] == "audited"
    ]
    facts = [(name, value, "") for name, value in about.items()]
    parts = present(
        [Note(note) for note in record["notes"]],
        _still_written(findings),
        listing(
            "The audit",
            ("Of the chunks", "Found", "About"),
            [*facts, *finding_lines(findings, record)],
        ),
        _texts(chunks, closest, hide_texts=hide_texts),
    )
    section = Section("audit", "Audit", "What the audit found", parts)
    kind = "spikein audit of an unlearned model"
    write_text(path, render_page(kind, title, [record["headline"]], [section], script=False))


def _still_written(findings: list[Row]) -> Table | None:
    """Return the picture: how much of the texts each model still writes."""
    shares = {row["quantity"].removeprefix("remembered_"): row for row in findings[:_WRITTEN]}
    rows = [
        (
            name,
            Entry(f"{row['value']:.2f}", ends, kind="interval"),
        )
        for name, row in shares.items()
        if isfinite(row["low"])
        for ends in (f"{row['low']:.2f} to {row['high']:.2f}",)
    ]
    columns = (Column("Model"), Column("Share of the texts", right=True))
    return Table(title="Still written", columns=columns, rows=tuple(rows)) if rows else None


def _closest(continuations: list[Row]) -> dict[tuple[int, str], Row]:
    """Return of each chunk and model the continuation that is closest to the truth."""
    found: dict[tuple[int, str], Row] = {}
    for row in continuations:
        key = row["chunk"], row["model"]
        if key not in found or row["rouge_l"] > found[key]["rouge_l"]:
            found[key] = row
    return found


def _texts(
    chunks: list[Row], closest: Mapping[tuple[int, str], Row], *, hide_texts: bool
) -> Table | None:
    """Return the table of chunks: remembered ones first, then the least changed ones."""
    models = [name for name in MODELS if any((row["chunk"], name) in closest for row in chunks)]
    heads = ("Text", "Remembered", "Suspicious", "Ratio", *(f"ROUGE-L, {name}" for name in models))
    shown = [] if hide_texts else ["Beginning", "Truth", *(f"Closest, {name}" for name in models)]
    rows = []
    for row in sorted(chunks, key=_order):
        own = [closest.get((row["chunk"], name)) for name in models]
        texts = [row["prompt"], row["truth"], *(one and one["text"] for one in own)]
        rows.append(
            (
                f"{row['text_id']}, characters {row['start']:,} to {row['stop']:,}",
                _judged(row["remembered"]),
                _judged(None if row["ratio"] is None else row["suspicious"]),
                "" if row["ratio"] is None else f"{row['ratio']:.2f}",
                *("" if one is None else f"{one['rouge_l']:.2f}" for one in own),
                *(text or "" for text in texts[: len(shown)]),
            )
        )
    return listing(
        "Text by text",
        (*heads, *shown),
        rows,
        "Remembered: whether the unlearned model writes more of the text than the control does of "
        "any. Suspicious: whether the rule flags it. Ratio: the unlearned model's score over the "
        "original's. ROUGE-L: recall of each model's closest continuation.",
    )


def _order(row: Row) -> tuple[bool, float, int]:
    ratio = row["ratio"]
    changed = max(ratio, 1 / ratio) if ratio and isfinite(ratio) else float("inf")
    return not row["remembered"], changed, row["chunk"]


def _judged(answer: bool | None) -> str:
    return "not judged" if answer is None else "yes" if answer else "no"
