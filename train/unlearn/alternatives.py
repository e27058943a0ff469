"""The answers of DPO: the forget text's prompt with 'I don't know' in place of the truth.

Where the example has an answer, the prompt is all before it; elsewhere, and in the later pieces of
a long text, it is the piece's first tokens. Which answer a piece gets is drawn by (seed, text,
piece), so that other texts do not enter.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from inject import keyed
from inject.corpus.tokenizer import encode_texts, end_token_id
from inject.errors import InputError
from inject.examples.example import Example
from train.completion import ANSWER, answer_masks
from train.unlearn.texts import I64, Piece
from train.window_inputs import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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
    tokenizer: "PreTrainedTokenizerBase",
    *,
    prompt_tokens: int,
    longest: int,
    seed: int,
) -> list[tuple[Piece, Piece]]:
    """Return the pieces with their alternatives, in order; their loss is behind the prompt alone.

    Args:
        examples: of the pieces.
        pieces: of the forget set.
        tokenizer: the model's.
        prompt_tokens: tokens of the prompt at most where no answer is recorded; half of a piece
            where that is less.
        longest: tokens of a row at most; a prompt that leaves no room for the answer loses its
            first tokens.
        seed: decides the answers.

    Raises:
        InputError: a row so short that no answer fits behind a token of the prompt.
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


def _answer_starts(
    examples: Sequence[Example], tokenizer: "PreTrainedTokenizerBase"
) -> dict[str, int]:
    """Return the first token of the answer of each text that has one."""
    asked = [one for one in examples if ANSWER in one.spans]
    masks = answer_masks(asked, tokenizer) if asked else []
    return {
        one.example_id: int(mask.argmax())
        for one, mask in zip(asked, masks, strict=True)
        if mask.any()
    }


def _prompt(piece: Piece, begins: dict[str, int], prompt_tokens: int) -> int:
    """Return how many of a piece's first tokens are its prompt."""
    begin = begins.get(piece.example_id, -1) - piece.start
    if 0 < begin < len(piece.ids):
        return begin
    return max(min(prompt_tokens, len(piece.ids) // 2), 1)


def _preference(
    piece: Piece, prompt: int, answers: Sequence[I64], longest: int, seed: int
) -> tuple[Piece, Piece]:
    item = keyed.item_key(f"unlearning/answer/{piece.example_id}/{piece.index}")
    drawn = keyed.below(len(answers), keyed.words(seed, keyed.Stream.FORGET, [item]))
    answer = answers[int(drawn[0])]
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
