"""The one pass: texts → token statistics, regardless of batch, padding and order.

Windows of all texts are sorted by length and batched (`detect.engine.batching`); valid positions
go to the reduction over the vocabulary (`detect.engine.vocabulary_statistics`). Results are in
input order and independent of batch size, padding side and order to 1e-4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from detect.engine.batching import (
    PaddingSide,
    default_batch_tokens,
    pad_sequences,
    run_in_batches,
)
from detect.engine.encoding import EncodedText, Window, encode_rows, windows
from detect.engine.prefix import SharedPrefix, batch_inputs, start_ids
from detect.engine.target import Target
from detect.engine.vocabulary_statistics import VocabularyReduction, VocabularyStatistics
from detect.settings import CompileMode, ScoringPolicy
from detect.token_statistics import (
    EMPTY_TEXT,
    ONE_TOKEN,
    TemperedStatistics,
    TokenStatistics,
    unscored,
)
from inject.errors import InputError

_CACHED_A_TOKEN = 8
"""Cached tokens, over all sequences of a batch, per padded token of the batch limit."""


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """One window: its ids, and the slots for the statistics of its scored tokens."""

    ids: npt.NDArray[np.int64]
    first: int
    slot: int

    @property
    def scored(self) -> int:
        return len(self.ids) - self.first


@torch.inference_mode()
def token_statistics(
    target: Target,
    texts: Sequence[str | list[int]],
    policy: ScoringPolicy,
    prefix: SharedPrefix | None = None,
    *,
    batch_tokens: int | None = None,
    padding_side: PaddingSide = "right",
    compile_mode: CompileMode = "auto",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[TokenStatistics]:
    """Return the statistics of each text's own tokens (not of a prefix), in the order given.

    The same tokens are scored with and without a prefix: if a text has no start token, its first id
    is not scored in either case. A text longer than the context minus the prefix is read in
    windows, each after the prefix.

    Args:
        target: model and tokenizer.
        texts: any texts, or lists of exact token ids; an empty one, or one of a single token, gets
            a reason and no rows.
        policy: start token, first token, long texts, inverse temperatures.
        prefix: ids read before each text; they begin with the start token if texts have one.
        batch_tokens: padded tokens in one batch, the prefix excluded; by default chosen
            for the device.
        padding_side: has no influence on the result.
        compile_mode: whether the reduction over the vocabulary is compiled.
        progress: called with (tokens scored, tokens in all) after each batch.

    Raises:
        InputError: a text beyond the context under `long=error`, a required start token that the
            tokenizer lacks, a token that the model lacks, a prefix that leaves no room for a text,
            or a single sequence that exceeds the memory.
    """
    context = scoring_context(target, policy)
    encoded = encode_rows(target.tokenizer, texts, policy)
    opening = start_ids(target.tokenizer, policy) if prefix is not None else []
    pieces: list[_Piece] = []
    slots = [0]
    stops = []
    for row, (ids, _) in enumerate(encoded):
        target.check_ids(ids, f"text {row + 1}")
        slot = slots[-1]
        cuts = windows(len(ids), context, policy, place=f"text {row + 1}") if texts[row] else []
        stop = cuts[-1].stop if cuts else 1
        if prefix is not None and context is not None:
            cuts = _windows_after_prefix(prefix, stop, context, policy, target)
        for window in cuts:
            piece = _Piece(
                ids=ids[window.start : window.stop],
                first=window.first - window.start,
                slot=slot + window.first - 1,
            )
            if prefix is not None:
                piece = _prepend_prefix(prefix, piece, opening if window.start == 0 else [])
            pieces.append(piece)
        stops.append(stop)
        slots.append(slot + max(0, stop - 1))
    reduction = VocabularyReduction(
        positions=slots[-1],
        vocabulary=target.vocabulary,
        device=target.device,
        compile_mode=compile_mode,
        inverse_temperatures=policy.inverse_temperatures,
    )
    _run(
        target,
        sorted(pieces, key=lambda piece: -len(piece.ids)),
        reduction,
        prefix,
        batch_tokens=batch_tokens or default_batch_tokens(target),
        padding_side=padding_side,
        progress=progress,
    )
    reduced = reduction.finish(target.head)
    result = []
    for row, (start, stop) in enumerate(pairwise(slots)):
        if start == stop:
            result.append(unscored(ONE_TOKEN if texts[row] else EMPTY_TEXT))
        else:
            ids, offsets = encoded[row]
            scored = EncodedText(ids[1 : stops[row]], offsets[1 : stops[row]])
            result.append(_statistics(scored, reduced, slice(start, stop), policy))
    return result


def _statistics(
    scored: EncodedText, reduced: VocabularyStatistics, slots: slice, policy: ScoringPolicy
) -> TokenStatistics:
    """Return one text's part of the reduced statistics."""
    mean = reduced.mean[slots]
    return TokenStatistics(
        ids=scored.ids.astype(np.int32),
        log_probability=reduced.log_probability[slots],
        mean_log_prob=mean,
        std_log_prob=reduced.deviation[slots],
        entropy=-mean,
        rank=reduced.rank[slots],
        top_log_probability=reduced.top_log_probability[slots],
        top_id=reduced.top_id[slots],
        offsets=scored.offsets,
        tempered={
            beta: TemperedStatistics(
                log_probability=values[0, slots],
                mean_log_prob=values[1, slots],
                std_log_prob=values[2, slots],
            )
            for beta, values in zip(policy.inverse_temperatures, reduced.tempered, strict=True)
        },
    )


def _windows_after_prefix(
    prefix: SharedPrefix, length: int, context: int, policy: ScoringPolicy, target: Target
) -> list[Window]:
    """Return the windows of a text's first `length` ids in the context minus the prefix.

    Raises:
        InputError: if the prefix leaves no room.
    """
    room = context - len(prefix.ids)
    if room < 2:
        raise InputError(
            f"a prefix of {len(prefix.ids)} tokens leaves {max(room, 0)} of a context of {context}",
            where=target.name,
            hint="Request fewer shots.",
        )
    return windows(length, room, replace(policy, long="window"), place=target.name)


def _prepend_prefix(prefix: SharedPrefix, piece: _Piece, start: list[int]) -> _Piece:
    """Return a window after the prefix, without the start token, which the prefix already has."""
    repeated = np.array(prefix.repeated, dtype=np.int64)
    own = int(piece.ids[:1].tolist() == start)
    return _Piece(
        ids=np.concatenate([repeated, piece.ids[own:]]),
        first=piece.first - own + len(repeated),
        slot=piece.slot,
    )


def scoring_context(target: Target, policy: ScoringPolicy) -> int | None:
    """Return the maximum ids per window; None if there is no limit.

    Raises:
        InputError: if the policy requires more than the model has.
    """
    if policy.context is None:
        return target.context
    if target.context is not None and policy.context > target.context:
        raise InputError(
            f"a context of {policy.context} is more than this model's {target.context}",
            where=target.name,
            allowed=f"2 to {target.context}",
        )
    return policy.context


def _run(
    target: Target,
    pieces: list[_Piece],
    reduction: VocabularyReduction,
    prefix: SharedPrefix | None,
    *,
    batch_tokens: int,
    padding_side: PaddingSide,
    progress: Callable[[int, int], None],
) -> None:
    # A model that transforms its logits computes them itself: one sequence at a time, so that no
    # [batch, length, vocabulary] array exists.
    sequences = 1 if target.head is None else None
    if prefix is not None and target.head is not None:
        sequences = max(1, _CACHED_A_TOKEN * batch_tokens // max(1, len(prefix.ids)))
    total = sum(piece.scored for piece in pieces)
    done = 0
    for batch, predicted in run_in_batches(
        target,
        pieces,
        lambda batch: _forward(target, batch, padding_side, prefix),
        length=lambda piece: len(piece.ids),
        batch_tokens=batch_tokens,
        max_sequences=sequences,
    ):
        if target.head is not None:
            reduction.push_hidden(target.head, *predicted)
        else:
            reduction.push_logits(*predicted)
        done += sum(piece.scored for piece in batch)
        progress(done, total)


def _forward(
    target: Target,
    pieces: Sequence[_Piece],
    padding_side: PaddingSide,
    prefix: SharedPrefix | None,
) -> tuple[torch.Tensor, torch.Tensor, npt.NDArray[np.int64]]:
    """Return hidden states, or logits, of the valid positions only.

    With the ids that they predict, and the slots for their statistics.
    """
    padded, starts, length = pad_sequences(
        target,
        [piece.ids for piece in pieces],
        side=padding_side,
        always_mask=prefix is not None,
    )
    inputs: dict[str, Any] = dict(padded)
    if prefix is not None:
        inputs = batch_inputs(prefix, inputs, target.takes("position_ids"))
    flat, targets, slots = [], [], []
    for row, piece in enumerate(pieces):
        # The state at i − 1 predicts token i.
        predicting = np.arange(piece.first, len(piece.ids)) - 1
        flat.append(row * length + starts[row] + predicting)
        targets.append(piece.ids[piece.first :])
        slots.append(piece.slot + np.arange(piece.scored))
    positions = torch.from_numpy(np.concatenate(flat)).to(target.device)
    if target.head is not None:
        rows = target.hidden(**inputs).flatten(0, 1)[positions]
    else:
        first, last = int(positions[0]), int(positions[-1])
        logits: torch.Tensor = target.model(**inputs, use_cache=False).logits
        rows = logits[0, first : last + 1]
    predicted = torch.from_numpy(np.concatenate(targets)).to(target.device)
    return rows, predicted, np.concatenate(slots)
