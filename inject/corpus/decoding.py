"""The documents of a corpus as text again: its tokens decoded, without their end tokens.

A document longer than `PIECE` tokens is decoded in pieces that overlap by `OVERLAP` tokens, so
that a file without document ends needs no more memory than a document.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.corpus.corpus import Corpus

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PIECE, OVERLAP = 1 << 17, 1 << 13


class DocumentPiece(NamedTuple):
    """A document, or a part of a long one."""

    document: int
    """Index of the document."""
    start: int
    """Position of its first token."""
    stop: int
    """One past its last one."""
    read_to: int
    """Where its text ends, which overlaps with the next piece of a long document."""


def document_pieces(
    starts: npt.NDArray[np.int64], n_tokens: int, *, since: int = 0
) -> Iterator[DocumentPiece]:
    """Yield the documents of a stream, long ones in pieces.

    Args:
        starts: document starts, ascending from 0.
        n_tokens: length of the stream.
        since: position of the first piece to yield.
    """
    first = int(np.searchsorted(starts, since, side="right")) - 1
    for document in range(max(first, 0), len(starts)):
        start = int(starts[document])
        stop = int(starts[document + 1]) if document + 1 < len(starts) else n_tokens
        for place in range(start, stop, PIECE):
            if place >= since:
                end = min(place + PIECE, stop)
                yield DocumentPiece(document, place, end, min(end + OVERLAP, stop))


def decode_piece(corpus: Corpus, tokenizer: "PreTrainedTokenizerBase", piece: DocumentPiece) -> str:
    """Return the text of a piece."""
    ids = corpus.read(piece.start, piece.read_to)
    text = tokenizer.decode(ids[ids != corpus.end_token], clean_up_tokenization_spaces=False)
    return str(text)
