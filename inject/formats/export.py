"""A contaminated stream as files that other trainers read, with the ground truth.

Next to the tokens are `copies.parquet` (the position of each copy in the export), `tokenizer/`
and `export.json` (facts, and the digest of each file; no times, no paths: the same stream gives
the same bytes). Nothing is visible before everything is there. Tokens are read, converted and
written in blocks of 8 MB, 50 M tokens/s if copies are dense, most of it the view's; files are
read once more to hash them.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inject.corpus.corpus import TOKENIZER_FOLDER
from inject.corpus.tokenizer import AnyTokenizer, end_token_id, vocabulary_size
from inject.corpus.tokens import token_dtype
from inject.errors import InputError
from inject.formats.exported_rows import ExportedRows, RowKind
from inject.formats.folder import exporting, file_facts
from inject.formats.huggingface import write_dataset
from inject.formats.jsonl import write_texts
from inject.formats.megatron import write_index
from inject.formats.olmo import write_tokens
from inject.stream.view import StreamView

Format = Literal["megatron", "olmo", "datasets", "jsonl"]
_IN_WINDOWS = ("megatron", "datasets")
_NAMES = {"example_id": pa.string(), "dataset": pa.string(), "copy": pa.int32()}
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """The settings of an export.

    Raises:
        InputError: for rows that the format does not have.
    """

    format: Format
    """Of the files."""
    rows: RowKind = "documents"
    """Whether a row is a document or a window, for `megatron` and `datasets`."""
    show_protected: bool = False
    """Export although there are copies of examples whose texts must not be shown."""

    def __post_init__(self) -> None:
        if self.rows == "windows" and self.format not in _IN_WINDOWS:
            raise InputError(
                f"the format {self.format} has no rows of windows",
                allowed=f"windows for {' and '.join(_IN_WINDOWS)}",
            )


@dataclass(frozen=True, kw_only=True)
class ExportFacts:
    """The content of `export.json`."""

    version: int
    format: Format
    rows: RowKind | None
    """The unit of a row (a line, a sequence of Megatron-LM); null for OLMo, which has none."""
    row_count: int | None
    tokens: int
    """Exported tokens; in windows, a last partial one is left out."""
    tokens_left_out: int
    documents: int
    unended_documents: int
    """Documents without an end token, including a last one that the stream cuts."""
    context: int
    """Tokens in a window of the stream."""
    dtype: str | None
    """Element type of token files."""
    vocabulary: int
    end_token: int
    copies: int
    """Copies in the stream."""
    copies_left_out: int
    """Copies that are missing from the exported tokens, or cut."""
    protected: bool
    """The export contains texts of protected examples, and must not be shared."""
    texts: dict[str, int] | None
    """For text: how many documents do not give their tokens again."""
    files: dict[str, dict[str, Any]]
    """Digest and size of every other file, by its relative path."""


def export_view(
    view: StreamView,
    out: Path,
    settings: ExportSettings,
    *,
    tokenizer: AnyTokenizer,
    copies: pa.Table | None = None,
    protected: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> ExportFacts:
    """Write a stream to the new folder `out`.

    Args:
        view: the stream.
        out: a folder that does not exist, or is empty.
        settings: of the export.
        tokenizer: the corpus's; gives the vocabulary and the end token.
        copies: the plan's table, a row for each insertion of the view, in their order: columns
            example_id, dataset, copy, and variant if present; None without insertions.
        protected: ids of examples whose text must not be shown.
        progress: called with the number of tokens so far.

    Returns:
        The facts, as in `export.json`.

    Raises:
        InputError: protected texts, `out` exists, a document is too long for the format, or no
            window is whole.
    """
    format, rows = settings.format, settings.rows
    table = _truth(view, copies)
    protected_ids = set(protected).intersection(table["example_id"].to_pylist())
    if protected_ids and not settings.show_protected:
        raise InputError(
            f"the stream has the texts of {len(protected_ids)} protected examples, and tokens are "
            "text",
            hint="Give --show-protected if the export stays with you, or --clean for the stream "
            "without any copy.",
        )
    if rows == "windows" and view.n_tokens < view.context:
        raise InputError(
            f"the stream of {view.n_tokens:,} tokens is shorter than one window of {view.context:,}"
        )
    vocabulary, end = vocabulary_size(tokenizer), end_token_id(tokenizer)
    with exporting(out) as folder:
        lines = ExportedRows(view, rows, end=end, progress=progress)
        texts: dict[str, int] | None = None
        dtype = _dtype(format, vocabulary)
        if format == "jsonl":
            path = folder / "documents.jsonl"
            texts = write_texts(path, lines, tokenizer=tokenizer, end=end)
        elif format == "datasets":
            write_dataset(folder, lines)
        else:
            name = "tokens.bin" if format == "megatron" else "tokens.npy"
            write_tokens(folder / name, lines.blocks(), dtype)
        if format == "megatron":
            write_index(folder / "tokens.idx", lines, dtype)
        table = table.append_column(
            "exported", pa.array(table["stop"].to_numpy() <= lines.n_tokens)
        )
        pq.write_table(table, folder / "copies.parquet")
        tokenizer.save_pretrained(folder / TOKENIZER_FOLDER)
        facts = ExportFacts(
            version=_VERSION,
            format=format,
            rows=None if format == "olmo" else rows,
            row_count=None if format == "olmo" else lines.count,
            tokens=lines.n_tokens,
            tokens_left_out=view.n_tokens - lines.n_tokens,
            documents=int(np.searchsorted(lines.starts, lines.n_tokens)),
            unended_documents=lines.unended(),
            context=view.context,
            dtype=None if format == "jsonl" else dtype.str,
            vocabulary=vocabulary,
            end_token=end,
            copies=len(table),
            copies_left_out=int((table["stop"].to_numpy() > lines.n_tokens).sum()),
            protected=bool(protected_ids),
            texts=texts,
            files=file_facts(folder),
        )
        text = json.dumps(asdict(facts), indent=1, ensure_ascii=False)
        (folder / "export.json").write_text(text + "\n", encoding="utf-8")
    return facts


def _dtype(format: Format, vocabulary: int) -> np.dtype:
    if format == "datasets":
        return np.dtype("<i4")
    width = np.dtype(token_dtype(vocabulary))
    # Megatron-LM has no code for u32.
    return np.dtype("<i4") if format == "megatron" and width.itemsize == 4 else width


def _truth(view: StreamView, copies: pa.Table | None) -> pa.Table:
    """Return the position of each copy in the stream: one row per insertion, in stream order."""
    starts = view.text_starts()
    if copies is None:
        copies = pa.table({name: pa.array([], kind) for name, kind in _NAMES.items()})
    documents = view.document_starts()
    names = [name for name in (*_NAMES, "variant") if name in copies.column_names]
    table = copies.select(names)
    columns = {
        "start": starts,
        "stop": starts + view.insertions.text_length,
        "document": np.searchsorted(documents, starts, side="right") - 1,
        "window": starts // view.context,
    }
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table.take(np.argsort(starts, kind="stable"))
