"""GPQA (Rein et al., 2023): graduate-level science questions. A protected dataset.

Its authors request that no example be shown in plain text, so that it stays out of training
corpora. Read from the (gated) hub, or from the authors' encrypted zip, which is opened in
memory and never unpacked; no message of this module contains a word of a question. Columns are
taken by exact name, since `Pre-Revision …` and `Extra Revised …` twins exist. The four
options are shuffled by a draw keyed by (seed, Record ID). Decrypting costs about one second.
"""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from inject.bounded_files import check_regular
from inject.errors import InputError
from inject.examples.datasets.choices import choice_fields
from inject.examples.datasets.source import Dataset, DatasetSource, placed_rows, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.keyed import Stream, item_key, words
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_HUB = "Idavidrein/gpqa"
_LARGEST = 1 << 26
"""Bytes that a file of the zip may unpack to; the authors' have less than a tenth of it."""
_OPTIONS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


class GpqaOptions(Settings):
    """Options of `gpqa`."""

    subset: Literal["main", "diamond", "extended"] = "main"
    """Subset; main contains diamond, extended contains main."""
    password: str = "deserted-untie-orchid"
    """Password of the zip; the default is published by the authors."""


def gpqa_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields question, options (list, shuffled), answer (the letter),
    answer_letter, answer_text, domain, subdomain.
    """
    options = GpqaOptions.model_validate(source.options)
    if source.path is not None and source.path.lower().endswith(".zip"):
        rows = _zip_rows(Path(source.path), options)
    else:
        hub = HubDataset(_HUB, "train", f"gpqa_{options.subset}")
        rows = _without_quotes(placed_rows(source, hub, purpose="gpqa"))
    for row in rows:
        record = text_field(row, "Record ID").strip()
        texts = [text_field(row, name).strip() for name in _OPTIONS]
        order = np.argsort(
            words(source.seed, Stream.SHUFFLE_OPTIONS, item_key(record), range(len(texts)))
        )
        gold = int(np.flatnonzero(order == 0)[0])
        choice = choice_fields([texts[index] for index in order], gold)
        domain = text_field(row, "High-level domain")
        yield Row(
            fields={
                "question": text_field(row, "Question").strip(),
                "answer": choice["answer_letter"] if texts[0] else "",
                "domain": domain,
                "subdomain": text_field(row, "Subdomain"),
                **choice,
            },
            source_id=record,
            stratum=domain,
        )


def _without_quotes(rows: Iterator[PlacedRow]) -> Iterator[PlacedRow]:
    # A reader's message may quote the row that it cannot read.
    try:
        yield from rows
    except InputError as error:
        raise InputError("gpqa: cannot be read.", where=error.where, hint=error.hint) from None


def _zip_rows(path: Path, options: GpqaOptions) -> Iterator[PlacedRow]:
    name = f"gpqa_{options.subset}.csv"
    text = _decrypt(path, name, options.password)
    for number, values in enumerate(csv.DictReader(io.StringIO(text, newline="")), start=1):
        yield PlacedRow(f"{path}!{name} row {number}", dict(values))


def _decrypt(path: Path, name: str, password: str) -> str:
    check_regular(path)
    content = b""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.split("/")[-1] == name:
                    # Announced sizes can be untrue, so no more than the bound is ever unpacked.
                    with archive.open(member, pwd=password.encode()) as file:
                        content = file.read(_LARGEST + 1)
                    break
        text = content[:_LARGEST].decode("utf-8-sig")
    except (zipfile.BadZipFile, zlib.error, RuntimeError, UnicodeDecodeError, OSError):
        # A wrong password passes the format's one-byte check once in 256 times and then shows
        # as damage. `from None`: the library's message may quote bytes of the file.
        raise InputError(
            "cannot be opened: it is not a zip, the password is wrong, or the file is damaged.",
            where=f"{path}!{name}",
            hint="Leave `options.password` out to use the one that the authors publish.",
        ) from None
    if not content or len(content) > _LARGEST:
        problem = (
            f"unpacks to more than {_LARGEST >> 20} MiB" if content else "contains no such file"
        )
        raise InputError(
            f"the zip {problem}.", where=f"{path}!{name}", hint="Is it the authors' zip?"
        )
    return text


DATASET = Dataset(
    name="gpqa",
    summary="GPQA: graduate-level science questions; protected, its text is never shown.",
    template=(
        "What is the correct answer to this question: {question}\n"
        "Choices:\n{options:(A)}\nAnswer: ({answer})"
    ),
    rows=gpqa_rows,
    hub=_HUB,
    protected=True,
    seeded=True,
    options=GpqaOptions,
    unidentified=frozenset({"password"}),
)
