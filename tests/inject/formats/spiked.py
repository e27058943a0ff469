"""Small contaminated streams, and the same streams composed token by token with plain lists."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from inject.stream.view import Insertions, StreamView
from tests.inject.streams import ArraySource

END = 0
CONTEXT = 8


class Copy(NamedTuple):
    anchor: int
    text: list[int]


class Spiked(NamedTuple):
    """A view, the table of its copies, and its expected stream."""

    view: StreamView
    copies: pa.Table
    stream: list[int]
    starts: list[int]
    """Document starts."""
    places: list[tuple[int, int]]
    """Start and stop of each copy's text, in the order of the table."""


def spiked(
    documents: list[list[int]],
    copies: list[Copy],
    *,
    separator: str = "none",
    budget: int | None = None,
    context: int = CONTEXT,
) -> Spiked:
    """Insert copies into documents (each without its end token)."""
    whole = [[*document, END] for document in documents]
    clean = [token for document in whole for token in document]
    clean_starts = np.cumsum([0, *map(len, whole[:-1])]).tolist()
    tail = [END] if separator == "end" else []
    payload = sum(len(copy.text) + len(tail) for copy in copies)
    budget = budget or len(clean) + payload
    stream, starts, places = compose(clean, clean_starts, copies, tail, budget)
    lengths = np.array([len(copy.text) for copy in copies], dtype=np.int64)
    view = StreamView(
        ArraySource(np.array(clean), np.array(clean_starts)),
        Insertions(
            anchor=np.array([copy.anchor for copy in copies], dtype=np.int64),
            tiebreak=np.arange(len(copies), dtype=np.uint64),
            offset=np.cumsum(lengths + len(tail)) - lengths - len(tail),
            length=lengths + len(tail),
            lead=np.zeros(len(copies), dtype=np.int64),
            text_length=lengths,
            payload=np.array(
                [token for copy in copies for token in [*copy.text, *tail]], dtype=np.int64
            ),
        ),
        budget=budget,
        context=context,
        separator=separator,
    )
    table = pa.table(
        {
            "example_id": pa.array([f"e{number}" for number in range(len(copies))], pa.string()),
            "dataset": pa.array(["toy"] * len(copies), pa.string()),
            "copy": pa.array(range(len(copies)), pa.int32()),
            "anchor": pa.array([copy.anchor for copy in copies], pa.int64()),
        }
    )
    return Spiked(view, table, stream, starts, places)


def compose(clean, clean_starts, copies, tail, budget):
    """Compose a stream one token at a time."""
    stream: list[int] = []
    starts: list[int] = []
    places: dict[int, tuple[int, int]] = {}
    new = False
    for position in range(len(clean) + 1):
        new = new or position in clean_starts
        for number, copy in enumerate(copies):
            if copy.anchor != position:
                continue
            if new:
                starts.append(len(stream))
            places[number] = (len(stream), len(stream) + len(copy.text))
            stream += copy.text + tail
            new = bool(tail)
        if new and position < len(clean):
            starts.append(len(stream))
        new = False
        stream += clean[position : position + 1]
    starts = [start for start in starts if start < budget]
    return stream[:budget], starts, [places[number] for number in range(len(copies))]


class Words:
    """A tokenizer with a given number of ids, as far as exporting token files needs one."""

    eos_token_id = END
    name_or_path = "words"

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        return self._vocabulary

    def get_vocab(self) -> dict[str, int]:
        return {"last": self._vocabulary - 1}

    def save_pretrained(self, folder) -> None:
        folder.mkdir()
        (folder / "tokenizer.json").write_text(str(self._vocabulary))
