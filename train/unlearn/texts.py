"""The forget and retain texts as rows of one length, and who stands beside whom.

A text is its tokens and an end token, cut into pieces of at most `longest` tokens; each piece is a
row, filled up at the right with end tokens, which no token before them sees. The retain piece
beside a forget piece is drawn anew in each epoch, by (seed, forget text, piece, epoch) alone, so
that batch size, processes, restarts and other forget texts do not enter. All rows are as long as
the longest piece, rounded up to a multiple of 8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from inject import keyed
from inject.corpus.tokenizer import encode_texts, end_token_id
from inject.errors import InputError
from inject.examples.example import Example
from train.completion import answer_masks
from train.unlearn.method import LossOn
from train.window_inputs import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

I64 = npt.NDArray[np.int64]
_MULTIPLE = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A text, or a part of a long one."""

    example_id: str
    dataset: str
    index: int
    """Which of the text's pieces, from 0."""
    start: int
    """First token of the piece in its text."""
    text_length: int
    """Tokens of the whole text, the end token included."""
    ids: I64
    """[tokens]"""
    labels: I64
    """[tokens]; `IGNORED` where a token carries no loss."""

    @property
    def stop(self) -> int:
        """One past the last token of the piece in its text."""
        return self.start + len(self.ids)


class Row(NamedTuple):
    """Ids and labels of a piece, filled up to one length, each [length]."""

    ids: I64
    labels: I64


def text_pieces(
    examples: Sequence[Example],
    tokenizer: "PreTrainedTokenizerBase",
    *,
    longest: int,
    loss_on: LossOn = "all",
) -> list[Piece]:
    """Return the pieces of some texts, in order; pieces without a label are left out.

    Args:
        examples: the texts.
        tokenizer: the model's.
        longest: tokens of a piece at most.
        loss_on: which tokens are labels.

    Raises:
        InputError: a text without a token; the tokenizer has no end token, or does not say where
            tokens stand (`loss_on: answer`).
    """
    end = end_token_id(tokenizer)
    encoded = encode_texts(tokenizer, [one.text for one in examples])
    masks = answer_masks(examples, tokenizer) if loss_on == "answer" else None
    found = []
    for place, (example, tokens) in enumerate(zip(examples, encoded, strict=True)):
        if len(tokens) == 0:
            raise InputError(
                "the text has no token, so there is nothing to forget or to keep",
                where=f"example {example.example_id} ({example.dataset})",
                hint="Take it out of the forget and retain sets.",
            )
        ids = np.append(tokens, end)
        labels = ids.copy()
        if masks is not None and masks[place].any():
            labels[:-1][~masks[place]] = IGNORED
        found += _cut(example, ids, labels, longest)
    return found


def _cut(example: Example, ids: I64, labels: I64, longest: int) -> list[Piece]:
    pieces = []
    for start in range(0, len(ids), longest):
        part = labels[start : start + longest]
        # A model predicts no first token of a row, so a piece of one token teaches nothing.
        if (part[1:] == IGNORED).all():
            continue
        pieces.append(
            Piece(
                example_id=example.example_id,
                dataset=example.dataset,
                index=start // longest,
                start=start,
                text_length=len(ids),
                ids=ids[start : start + longest],
                labels=part,
            )
        )
    return pieces


def row_length(pieces: Sequence[Piece], *, longest: int) -> int:
    """Return the tokens of a row: the longest piece, rounded up, but no more than `longest`."""
    needed = max(len(piece.ids) for piece in pieces)
    return max(needed, min(-(-needed // _MULTIPLE) * _MULTIPLE, longest), 2)


def row_of(ids: I64, labels: I64, *, length: int, end: int) -> Row:
    """Return a piece filled up at the right with end tokens that carry no loss."""
    row = Row(np.full(length, end, dtype=np.int64), np.full(length, IGNORED, dtype=np.int64))
    row.ids[: len(ids)] = ids
    row.labels[: len(labels)] = labels
    return row


def retain_beside(piece: Piece, *, n_retain: int, seed: int, epoch: int) -> int:
    """Return which retain piece stands beside a forget piece in an epoch.

    Args:
        piece: of the forget set.
        n_retain: pieces of the retain set.
        seed: of the run.
        epoch: from 0.
    """
    item = keyed.item_key(f"unlearning/retain/{piece.example_id}/{piece.index}")
    word = keyed.words(seed, keyed.Stream.FORGET, [item], epoch)
    return int(keyed.below(n_retain, word)[0])
