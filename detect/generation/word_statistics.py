"""How surprising each word of a text is to a reference model: its log-probability and its rank.

A masked model reads the text with all pieces of a word masked, one word at a time; a causal model
reads the text once, from left to right, and so does not see the text after a word. A word of
several pieces has two kinds of statistics: those of the first piece, and for all pieces the sum of
the log-probabilities and the largest rank, the number of pieces that the model finds likelier
(Ravichander et al. 2025, equations 2 and 3).

Cost: one pass over each text for a causal model; one pass per word for a masked one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from detect.engine.open_target import open_target
from detect.generation.masked_parts import TOKEN, WORD, WordStatistics
from detect.settings import DetectSettings, ScoringPolicy
from detect.token_statistics import TokenStatistics
from inject.corpus.tokenizer import encode_with_offsets
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.step import StepContext
from inject.tables import part_table
from train.models.model_node import ModelNode

if TYPE_CHECKING:
    from detect.engine.masked_model import MaskedModel
    from detect.engine.target import Target

WORDS_FILE = "words.parquet"
BATCH = 32
"""Masked texts of one pass."""

write_words, read_words = part_table(WORDS_FILE, WordStatistics)


def build(context: StepContext) -> None:
    """Query the reference model, a masked or a causal one, and write the statistics."""
    from detect.engine.masked_model import MaskedModel

    detect = DetectSettings.model_validate(context.execution["detect"])
    rows = read_examples(context.inputs["examples"])
    node = ModelNode.given(context, "model")
    with node.unchanged():
        model = open_reference(
            node.path, load_causal=lambda _: open_target(context), device=detect.device
        )
    texts = [row.text for row in rows]
    if isinstance(model, MaskedModel):
        words = masked_words(model, texts, progress=partial(context.report, unit="texts"))
    else:
        report = partial(context.report, unit="tokens")
        words = causal_words(model, texts, batch_tokens=detect.batch_tokens, progress=report)
    write_words(context.out, [row.example_id for row in rows], words)


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's words, of either kind."""
    return sorted({word.span() for kind in (WORD, TOKEN) for word in kind.finditer(text)})


def _word(span: tuple[int, int], pieces: Sequence[tuple[float, int]]) -> WordStatistics:
    """Return a word's statistics from the log-probability and the rank of each of its pieces."""
    whole = sum(likely for likely, _ in pieces), max(rank for _, rank in pieces)
    return WordStatistics(*span, *whole, *pieces[0])


def causal_words(
    model: "Target",
    texts: Sequence[str],
    *,
    batch_tokens: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[WordStatistics]]:
    """Return the words of each text under a causal model.

    Words with the first piece, which has no history, are omitted.
    """
    from detect.engine.forward_pass import token_statistics

    text_statistics = token_statistics(
        model, texts, ScoringPolicy(), batch_tokens=batch_tokens, progress=progress
    )
    return [
        _align(text, statistics, ids, places)
        for text, statistics, (ids, places) in zip(
            texts, text_statistics, encode_with_offsets(model.tokenizer, texts), strict=True
        )
    ]


def _align(text: str, statistics: TokenStatistics, ids: Any, places: Any) -> list[WordStatistics]:
    count = min(len(statistics), len(ids))
    if count == 0 or not np.array_equal(statistics.ids[-count:], ids[-count:]):
        return []
    first = len(ids) - count
    words = []
    for span in _spans(text):
        positions = _pieces(span, places)
        if positions and positions[0] >= first:
            rows = [place - len(ids) + len(statistics) for place in positions]
            likely = statistics.log_probability[rows].astype(np.float64).tolist()
            ranks = (statistics.rank[rows] - 1).tolist()
            words.append(_word(span, list(zip(likely, ranks, strict=True))))
    return words


def _pieces(span: tuple[int, int], places: Any) -> list[int]:
    """Return the pieces of a word, by the characters of each piece of the text."""
    return [
        number for number, (start, stop) in enumerate(places) if start < span[1] and stop > span[0]
    ]


def masked_words(
    model: "MaskedModel",
    texts: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[WordStatistics]]:
    """Return the words of each text under a masked model."""
    words = []
    for row, text in enumerate(texts):
        words.append(_masked_text(model, text))
        progress(row + 1, len(texts))
    return words


def _masked_text(model: "MaskedModel", text: str) -> list[WordStatistics]:
    [(ids, places)] = encode_with_offsets(model.tokenizer, [text])
    spans = [(span, positions) for span in _spans(text) if (positions := _pieces(span, places))]
    words: list[WordStatistics] = []
    for start in range(0, len(spans), BATCH):
        part = spans[start : start + BATCH]
        likely = _mask_pass(model, ids, [positions for _, positions in part])
        words += [_word(span, pieces) for (span, _), pieces in zip(part, likely, strict=True)]
    return words


def _mask_pass(
    model: "MaskedModel", ids: Any, words: Sequence[list[int]]
) -> list[list[tuple[float, int]]]:
    """Return the log-probability and the rank of each piece of words, given by their positions."""
    import torch

    tokenizer = model.tokenizer
    # The special tokens that the tokenizer puts around a text.
    head, tail = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    room = model.context - len(head) - len(tail)
    rows, masked = [], []
    for positions in words:
        # A text beyond the context is cut to the part around the word.
        first = max(0, min(positions[0] - room // 2, len(ids) - room))
        window = ids[first : first + room].tolist()
        inside = [place - first for place in positions if place - first < room]
        for place in inside:
            window[place] = tokenizer.mask_token_id
        rows.append([*head, *window, *tail])
        masked.append([(1 + place, int(ids[first + place])) for place in inside])
    length = max(map(len, rows))
    batch = torch.full((len(rows), length), tokenizer.pad_token_id)
    mask = torch.zeros_like(batch)
    for row, row_ids in enumerate(rows):
        batch[row, : len(row_ids)] = torch.tensor(row_ids)
        mask[row, : len(row_ids)] = 1
    with torch.inference_mode():
        logits = model.model(
            input_ids=batch.to(model.device), attention_mask=mask.to(model.device)
        ).logits.float()
    word_scores: list[list[tuple[float, int]]] = []
    for row, pieces in enumerate(masked):
        word_scores.append([])
        for place, token in pieces:
            own = torch.log_softmax(logits[row, place].double(), dim=-1)
            word_scores[-1].append((float(own[token]), int((own > own[token]).sum())))
    return word_scores


def open_reference(
    path_or_id: str, *, load_causal: Callable[[str], "Target"], device: str = "auto"
) -> "Target | MaskedModel":
    """Return a reference model: a masked one, else the result of `load_causal`.

    Raises:
        InputError: a model that cannot be loaded, or lacks the tokens for masking.
    """
    from detect.engine.masked_model import is_masked_model, load_masked_model

    if not is_masked_model(path_or_id):
        return load_causal(path_or_id)
    model = load_masked_model(path_or_id, device=device)
    needed = ("cls_token_id", "sep_token_id", "mask_token_id", "pad_token_id")
    if lacking := [name for name in needed if getattr(model.tokenizer, name) is None]:
        raise InputError(f"its tokenizer has no {lacking[0].removesuffix('_id')}", where=path_or_id)
    return model
