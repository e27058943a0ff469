"""Loss on completions only: the answer tokens of a copy, from the spans of characters.

A token belongs to the answer if it contains at least one of its characters: so does ` yes`, whose
blank lies before the answer, and so does each of several tokens that share a character. Variants
keep their answer if tokens stay in place (`whole`, `replaced`, `truncated`) or the text is
lower-cased; `question` and `no_answer` have none. Cost: the tokenizer runs once over the texts.
"""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from inject.corpus.tokenizer import AnyTokenizer, encode_with_offsets
from inject.errors import InputError
from inject.examples.example import Example, Span
from inject.stream.exposures import TextKey
from inject.variants.rendition import Rendition
from inject.variants.settings import Variants

Mask = npt.NDArray[np.bool_]

ANSWER = "answer"
_IN_PLACE = ("whole", "replaced", "truncated")

_log = logging.getLogger(__name__)


def answer_tokens(offsets: npt.NDArray[np.integer], span: Span | None) -> Mask:
    """Return a mask of the tokens with a character of the span, shape [tokens].

    Args:
        offsets: first character and one past the last of each token, shape [tokens, 2].
        span: of characters; None for a text without an answer.
    """
    if span is None:
        return np.zeros(len(offsets), dtype=bool)
    start, stop = offsets[:, 0], offsets[:, 1]
    return (start < stop) & (start < span.stop) & (stop > span.start)


def answer_masks(examples: Sequence[Example], tokenizer: AnyTokenizer) -> list[Mask]:
    """Return a mask of the answer tokens of each text."""
    encoded = encode_with_offsets(tokenizer, [example.text for example in examples])
    return [
        answer_tokens(offsets, example.spans.get(ANSWER))
        for example, (_, offsets) in zip(examples, encoded, strict=True)
    ]


def completion_masks(
    members: Sequence[Example],
    renditions: Sequence[Rendition],
    variants: Variants,
    *,
    tokenizer: AnyTokenizer,
) -> dict[TextKey, Mask]:
    """Return a mask of the answer tokens of each text that copies can carry.

    Args:
        members: the spiked examples, with the spans of their answers.
        renditions: the texts that copies can carry, as tokens.
        variants: the settings that produced them.
        tokenizer: the tokenizer that encoded them.

    Raises:
        InputError: for paraphrases, whose answers are not recorded; if no text has an answer.
    """
    kinds = {variant.kind for variant in variants.of}
    if "paraphrase" in kinds:
        raise InputError(
            "the position of the answer in a paraphrase is not recorded",
            where="train.loss_on",
            allowed="completion with the variants whole, question, no_answer, lower_case, "
            "replaced, truncated",
            hint="Set train.loss_on to all, or remove the variant paraphrase.",
        )
    masks: dict[str, dict[str, Mask]] = {}
    if kinds & set(_IN_PLACE):
        whole = answer_masks(members, tokenizer)
        masks["whole"] = {row.example_id: mask for row, mask in zip(members, whole, strict=True)}
    if "lower_case" in kinds:
        masks["lower_case"] = _lower_case_masks(members, tokenizer)
    by_text = {
        (text.example_id, text.variant): _mask(text, variants.of[text.kind].kind, masks)
        for text in renditions
    }
    empty = sum(not mask.any() for mask in by_text.values())
    if empty == len(by_text):
        raise InputError(
            "no copy contains an answer, so completion leaves nothing to train on",
            where="train.loss_on",
            hint="Give the contaminants templates that name {answer}, or set train.loss_on to all.",
        )
    if empty:
        _log.warning(
            "%d of %d texts contain no answer, and their copies carry no loss", empty, len(by_text)
        )
    return by_text


def _lower_case_masks(members: Sequence[Example], tokenizer: AnyTokenizer) -> dict[str, Mask]:
    # Lower case can have another number of letters, so the spans are measured again.
    texts = [example.text.lower() for example in members]
    masks = {}
    for example, (_, offsets) in zip(members, encode_with_offsets(tokenizer, texts), strict=True):
        span = example.spans.get(ANSWER)
        if span is not None:
            start = len(example.text[: span.start].lower())
            span = Span(start, start + len(example.text[span.start : span.stop].lower()))
        masks[example.example_id] = answer_tokens(offsets, span)
    return masks


def _mask(rendition: Rendition, kind: str, masks: Mapping[str, Mapping[str, Mask]]) -> Mask:
    length = len(rendition.tokens)
    if kind in _IN_PLACE:
        mask = masks["whole"][rendition.example_id][:length]
    elif kind == "lower_case":
        mask = masks["lower_case"][rendition.example_id]
    else:
        return np.zeros(length, dtype=bool)
    if len(mask) != length:
        name = f"{rendition.example_id} {rendition.variant}"
        raise ValueError(f"{name}: {length} tokens, {len(mask)} offsets")
    return mask
