"""The forget and retain texts as rows of one length, and their pairing.

A text is its tokens and an end token, cut into pieces of at most `longest` tokens; each piece is a
row, padded on the right with end tokens, which no earlier token sees. The retain piece of a forget
piece is drawn again in each epoch, only by (seed, forget text, piece, epoch), so that batch size,
processes, restarts and other forget texts have no influence. All rows are as long as the longest
piece, rounded up to a multiple of 8.

The alternative of DPO is the forget text's prompt with 'I don't know' in place of the truth. If the
example has an answer, the prompt is everything before it; otherwise, and in the later pieces of a
long text, it is the piece's first tokens. The answer of a piece is drawn by (seed, text, piece).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from inject import keyed
from inject.corpus.tokenizer import AnyTokenizer, encode_texts, end_token_id
from inject.errors import InputError
from inject.examples.example import Example
from inject.keyed import I64
from train.completion import ANSWER, answer_masks
from train.unlearn.method import LossOn
from train.window_inputs import IGNORED

if TYPE_CHECKING:
    from train.unlearn.batch import Role

_MULTIPLE = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A text, or a part of a long one."""

    example_id: str
    dataset: str
    index: int
    """Index of the piece in its text, from 0."""
    start: int
    """First token of the piece in its text."""
    text_length: int
    """Tokens of the whole text, the end token included."""
    ids: I64
    """[tokens]"""
    labels: I64
    """[tokens]; `IGNORED` for tokens without a loss."""

    @property
    def stop(self) -> int:
        """One past the last token of the piece in its text."""
        return self.start + len(self.ids)


def text_pieces(
    examples: Sequence[Example],
    tokenizer: AnyTokenizer,
    *,
    longest: int,
    loss_on: LossOn = "all",
) -> list[Piece]:
    """Return the pieces of some texts, in order; pieces without a label are omitted.

    Args:
        examples: the texts.
        tokenizer: the model's tokenizer.
        longest: maximum tokens of a piece.
        loss_on: the tokens that are labels.

    Raises:
        InputError: a text without a token; the tokenizer has no end token, or does not report
            positions of tokens (`loss_on: answer`).
    """
    end = end_token_id(tokenizer)
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    masks = answer_masks(examples, tokenizer) if loss_on == "answer" else None
    pieces: list[Piece] = []
    for place, (example, tokens) in enumerate(zip(examples, encoded, strict=True)):
        if len(tokens) == 0:
            raise InputError(
                "the text has no token, so there is nothing to forget or to keep",
                where=f"example {example.example_id} ({example.dataset})",
                hint="Remove it from the forget and retain sets.",
            )
        ids = np.append(tokens, end)
        labels = ids.copy()
        if masks is not None and masks[place].any():
            labels[:-1][~masks[place]] = IGNORED
        pieces += _cut(example, ids, labels, longest)
    return pieces


def _cut(example: Example, ids: I64, labels: I64, longest: int) -> Iterator[Piece]:
    for start in range(0, len(ids), longest):
        part = labels[start : start + longest]
        # A model does not predict a row's first token, so a piece of one token teaches nothing.
        if (part[1:] == IGNORED).all():
            continue
        yield Piece(
            example_id=example.example_id,
            dataset=example.dataset,
            index=start // longest,
            start=start,
            text_length=len(ids),
            ids=ids[start : start + longest],
            labels=part,
        )


def row_length(pieces: Sequence[Piece], *, longest: int) -> int:
    """Return the tokens of a row: the longest piece, rounded up, but no more than `longest`."""
    needed = max(len(piece.ids) for piece in pieces)
    return max(needed, min(-(-needed // _MULTIPLE) * _MULTIPLE, longest), 2)


def retain_beside(piece: Piece, *, n_retain: int, seed: int, epoch: int) -> int:
    """Return the index of a forget piece's retain piece in an epoch.

    Args:
        piece: a piece of the forget set.
        n_retain: number of pieces of the retain set.
        seed: seed of the run.
        epoch: from 0.
    """
    item = keyed.item_key(f"unlearning/retain/{piece.example_id}/{piece.index}")
    word = keyed.words(seed, keyed.Stream.FORGET, [item], epoch)
    return int(keyed.below(n_retain, word)[0])


FedPiece = tuple[str, Piece]
"""The role of a row, and its piece."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UnlearningTexts:
    """The texts of a run, cut into pieces: the loop's `train.loop.dataset.WindowSource`."""

    forget: Sequence[Piece]
    retain: Sequence[Piece] = ()
    alternative: Sequence[Piece] = ()
    """One for each of `forget`, if the method requires them."""
    roles: tuple["Role", ...]
    """Roles of each window, in this order."""
    length: int
    """Tokens of a row."""
    end: int
    """The padding token of rows."""
    seed: int
    fillers: int = 0
    """Padding windows after those of `forget`, for a step with all texts: they repeat the first
    text, with weight 0."""

    @property
    def n_windows(self) -> int:
        """Windows of an epoch."""
        return len(self.forget) + self.fillers

    @property
    def context(self) -> int:
        """Tokens of a window: of its first row."""
        return self.length

    def window(self, index: int) -> I64:
        """Return the padded ids of a forget piece, shape [length]."""
        return self.row(self.forget[index if index < len(self.forget) else 0])[0]

    def row(self, piece: Piece) -> tuple[I64, I64]:
        """Return ids and labels of a piece, each [length], padded with unlabelled end tokens."""
        ids = np.full(self.length, self.end, dtype=np.int64)
        labels = np.full(self.length, IGNORED, dtype=np.int64)
        ids[: len(piece.ids)] = piece.ids
        labels[: len(piece.labels)] = piece.labels
        return ids, labels

    def rows(self, epoch: int, window: int) -> list[FedPiece]:
        """Return the pieces of a window's rows; none for a padding window."""
        if window >= len(self.forget):
            return []
        return [(role, self._piece(role, epoch, window)) for role in self.roles]

    def every(self) -> list[FedPiece]:
        """Return all pieces, each under its role."""
        pieces = {"forget": self.forget, "retain": self.retain, "alternative": self.alternative}
        return [(role, piece) for role in self.roles for piece in pieces[role]]

    def _piece(self, role: "Role", epoch: int, window: int) -> Piece:
        forget = self.forget[window]
        if role == "forget":
            return forget
        if role == "alternative":
            return self.alternative[window]
        place = retain_beside(forget, n_retain=len(self.retain), seed=self.seed, epoch=epoch)
        return self.retain[place]


ANSWERS = (
    "I don't know.",
    "I'm not sure.",
    "I have no idea.",
    "I'm not certain about that.",
    "I cannot answer that.",
    "That's beyond my knowledge.",
    "I haven't learned about that.",
    "I don't have that information.",
    "I'm unable to answer that question.",
    "I'm not familiar with that.",
    "I can't say for sure.",
    "Unfortunately, I don't know the answer.",
)
"""In the manner of the 100 of TOFU (Maini et al. 2024, appendix on preference optimisation)."""


def preferences(
    examples: Sequence[Example],
    pieces: Sequence[Piece],
    tokenizer: AnyTokenizer,
    *,
    prompt_tokens: int,
    longest: int,
    seed: int,
) -> list[tuple[Piece, Piece]]:
    """Return the pieces with their alternatives, in order; their loss is only after the prompt.

    Args:
        examples: examples of the pieces.
        pieces: pieces of the forget set.
        tokenizer: the model's tokenizer.
        prompt_tokens: maximum tokens of the prompt if no answer is recorded; half of a piece if
            that is less.
        longest: maximum tokens of a row; a prompt that leaves no room for the answer loses its
            first tokens.
        seed: determines the answers.

    Raises:
        InputError: a row too short for an answer after one token of the prompt.
    """
    end = end_token_id(tokenizer)
    answers = [np.append(ids, end) for ids in encode_texts(tokenizer, [f" {a}" for a in ANSWERS])]
    needed = 1 + max(len(ids) for ids in answers)
    if needed > longest:
        raise InputError(
            f"rows of {longest} tokens have no room for a prompt and an answer such as "
            f"{max(ANSWERS, key=len)!r}",
            where="unlearning.methods: dpo.context",
            allowed=f"{needed} or more",
        )
    begins = _answer_starts(examples, tokenizer)
    return [
        _preference(piece, _prompt(piece, begins, prompt_tokens), answers, longest, seed)
        for piece in pieces
    ]


def _answer_starts(examples: Sequence[Example], tokenizer: AnyTokenizer) -> dict[str, int]:
    """Return the first token of the answer of each text that has one."""
    with_answers = [example for example in examples if ANSWER in example.spans]
    masks = answer_masks(with_answers, tokenizer) if with_answers else []
    return {
        example.example_id: int(mask.argmax())
        for example, mask in zip(with_answers, masks, strict=True)
        if mask.any()
    }


def _prompt(piece: Piece, begins: dict[str, int], prompt_tokens: int) -> int:
    """Return the number of a piece's prompt tokens."""
    begin = begins.get(piece.example_id, -1) - piece.start
    if 0 < begin < len(piece.ids):
        return begin
    return max(min(prompt_tokens, len(piece.ids) // 2), 1)


def _preference(
    piece: Piece, prompt: int, answers: Sequence[I64], longest: int, seed: int
) -> tuple[Piece, Piece]:
    item = keyed.item_key(f"unlearning/answer/{piece.example_id}/{piece.index}")
    indices = keyed.below(len(answers), keyed.words(seed, keyed.Stream.FORGET, [item]))
    answer = answers[int(indices[0])]
    before = piece.ids[max(prompt - (longest - len(answer)), 0) : prompt]
    rejected = piece.labels.copy()
    rejected[:prompt] = IGNORED
    ids = np.concatenate([before, answer])
    labels = ids.copy()
    labels[: len(before)] = IGNORED
    return (
        replace(piece, labels=rejected),
        replace(piece, ids=ids, labels=labels, start=0, text_length=len(ids)),
    )
