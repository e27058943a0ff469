"""What injection will amount to, before anything is built: copies, tokens, share, disk, time.

Counts follow from the experiment alone. Tokens follow from the rows of the datasets, of which at
most a few hundred are read and measured: with the tokenizer where there is one, else by their
bytes, and the figure says which. The background is not read at all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError, Unreachable
from inject.examples.contaminant import Contaminant
from inject.examples.datasets.registry import get_dataset
from inject.examples.load import load_examples
from inject.formats.index_only import IndexOnlyImport
from inject.plan.separators import separated_placements, separators_for, text_room
from inject.plan.training_range import EXACT
from inject.settings import Copies, PoolSettings
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment

BYTES_A_TOKEN = 4.0
"""English text and a common vocabulary; used only where no tokenizer is at hand."""
BYTES_A_COPY = 32
"""Of `plan.parquet`; measured by `python -m scripts.bench.inject`."""
COPIES_A_SECOND = 200_000
"""Planned on one core; measured by the same benchmark."""
WINDOWS_A_SECOND = 800_000
"""Put in the order of training on one core, which a stretch of it needs."""
_SEPARATORS = 2
"""Tokens around a copy, where there is no tokenizer to ask."""
SAMPLE = 400
COUNTED_TO = 5


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What one arm's injection is expected to be."""

    label: str
    copies_rule: str
    placement: str
    members: int
    copies: float
    """Expected number of copies; exact unless `spread` is positive."""
    spread: float
    """Standard deviation of the number of copies."""
    counts: tuple[float, ...]
    """Members expected with 0, 1, … copies; the last entry holds all higher counts."""
    tokens: float | None
    """Payload tokens expected; None where the rows cannot be read here."""
    text_tokens: float | None
    """Tokens of all texts that are scored, on both sides; None where the rows cannot be read."""
    measured: bool
    """Whether a tokenizer counted the tokens, or their bytes were divided."""
    stream: int
    """Tokens of the training stream."""
    disk_bytes: float | None
    """Of the arm's plan."""
    seconds: float
    """To plan it."""
    note: str
    """Why tokens are unknown; empty when all is well."""
    problem: str
    """What a run would refuse, as far as it can be foreseen; empty when nothing."""

    @property
    def share(self) -> float | None:
        """Share of the stream that the copies take."""
        return None if self.tokens is None else self.tokens / self.stream


@dataclass(frozen=True, kw_only=True)
class _Lengths:
    """Mean and largest length of the texts of the members, in tokens."""

    mean: float | None
    longest: int
    measured: bool
    note: str
    problem: str


def outlooks(every: Sequence[ArmExperiment], tokenizer: Any | None) -> tuple[Outlook, ...]:
    """Return the outlook of every arm; arms that differ in training alone appear once.

    Args:
        every: the arms of an experiment.
        tokenizer: a fast tokenizer; None where there is none yet.
    """

    measured: dict[str, _Lengths] = {}
    found: dict[str, Outlook] = {}
    for one in every:
        arm = one.experiment
        room = _text_room(every, arm.train.context, tokenizer)
        rows = f"{arm.contaminants!r} {arm.pool!r} {room} {one.seed}"
        if rows not in measured:
            measured[rows] = _lengths(arm.contaminants, arm.pool, room, tokenizer, one.seed)
        key = f"{rows} {arm.copies!r} {arm.placement!r} {arm.corpus.tokens}"
        if key not in found:
            found[key] = _outlook(one, measured[rows], tokenizer)
    return tuple(found.values())


def _text_room(every: Sequence[ArmExperiment], context: int, tokenizer: Any | None) -> int:
    """Return how many tokens of a window a text may take, in every arm."""
    placements = separated_placements(arm.experiment.placement for arm in every)
    if tokenizer is None:
        return context - (_SEPARATORS if placements else 0)
    return text_room(context, placements, tokenizer)


def _lengths(
    contaminants: Sequence[Contaminant],
    pool: PoolSettings,
    room: int,
    tokenizer: Any | None,
    seed: int,
) -> _Lengths:
    total, members, longest = 0.0, 0, 0
    for contaminant in contaminants:
        try:
            rows = load_examples(sampled(contaminant), seed=seed).examples
        except Unreachable as error:
            return _unknown(note=str(error))
        except InputError as error:
            return _unknown(problem=str(error))
        texts = [row.text for row in rows[:: max(len(rows) // SAMPLE, 1)]]
        if tokenizer is None:
            lengths = [math.ceil(len(text.encode()) / BYTES_A_TOKEN) for text in texts]
        else:
            lengths = [len(ids) for ids in encode_texts(tokenizer, texts)]
        fitting = [
            min(length, room) if pool.long_examples == "truncate" else length
            for length in lengths
            if length >= pool.min_tokens and (pool.long_examples != "drop" or length <= room)
        ]
        if fitting:
            total += contaminant.members * sum(fitting) / len(fitting)
            members += contaminant.members
            longest = max(longest, *fitting)
    mean = total / members if members else None
    return _Lengths(mean=mean, longest=longest, measured=tokenizer is not None, note="", problem="")


def _unknown(*, note: str = "", problem: str = "") -> _Lengths:
    return _Lengths(mean=None, longest=0, measured=False, note=note, problem=problem)


def sampled(contaminant: Contaminant) -> Contaminant:
    """Return a contaminant that makes no more rows than a sample of them needs.

    Files are read whole, since only so is it known whether their rows suffice.
    """
    if not get_dataset(contaminant.dataset).endless:
        return contaminant
    fewer = {side: min(getattr(contaminant, side), SAMPLE) for side in ("members", "nonmembers")}
    return contaminant.model_copy(update=fewer)


def _outlook(one: ArmExperiment, lengths: _Lengths, tokenizer: Any | None) -> Outlook:
    arm = one.experiment
    members = sum(contaminant.members for contaminant in arm.contaminants)
    copies, spread, counts = expected_counts(arm.copies, members)
    separators = _SEPARATORS if arm.placement.separated_by != "none" else 0
    if tokenizer is not None:
        separators = separators_for(arm.placement, tokenizer).tokens
    tokens = disk = None
    note, problem = lengths.note, lengths.problem
    if lengths.mean is not None:
        tokens = copies * (lengths.mean + separators)
        width = 2 if tokenizer is None or len(tokenizer) <= 1 << 16 else 4
        disk = copies * BYTES_A_COPY + members * (lengths.mean + separators) * width
        problem = _no_room(one, tokens, lengths.longest + separators)
    if isinstance(arm.corpus.imported, IndexOnlyImport):
        problem = _described_problem(arm.corpus.imported, arm) or problem
        note = note or "the corpus is only described: this can be planned and not run"
    return Outlook(
        label=one.label,
        copies_rule=arm.copies.label(),
        placement=arm.placement.label(),
        members=members,
        copies=copies,
        spread=spread,
        counts=counts,
        tokens=tokens,
        text_tokens=None
        if lengths.mean is None
        else lengths.mean * sum(one.members + one.nonmembers for one in arm.contaminants),
        measured=lengths.measured,
        stream=arm.corpus.tokens,
        disk_bytes=disk,
        seconds=copies / COPIES_A_SECOND + _ordered(arm) / WINDOWS_A_SECOND,
        note=note,
        problem=problem,
    )


def _ordered(arm: Experiment) -> int:
    """Return how many windows are put in order to plan an arm."""
    windows = arm.corpus.tokens // arm.train.context
    return windows if arm.placement.timed and windows <= EXACT else 0


def _no_room(one: ArmExperiment, tokens: float, longest: int) -> str:
    """Say what will be refused when the plan is made, as far as it can be foreseen."""
    arm = one.experiment
    share = arm.placement.between[1] - arm.placement.between[0]
    room = arm.corpus.tokens * share
    if tokens > room:
        return (
            f"the copies need about {tokens:,.0f} tokens and have room for {room:,.0f}: raise "
            "corpus.tokens, or lower the copies or the number of members"
        )
    if arm.placement.contained and longest > arm.train.context:
        return (
            f"the longest example takes about {longest:,} tokens and must lie inside one window "
            f"of {arm.train.context:,}: set pool.long_examples to truncate or drop, or raise "
            "train.context"
        )
    return ""


def _described_problem(described: IndexOnlyImport, arm: Experiment) -> str:
    """Say what stands in the way of a corpus that is known by its index alone."""
    source = described.source()
    if source.n_tokens < arm.corpus.tokens:
        return (
            f"the corpus described holds {source.n_tokens:,} tokens, fewer than the "
            f"{arm.corpus.tokens:,} asked for"
        )
    if arm.placement.policy == "document" and not source.knows_documents:
        return (
            "the description does not say where documents start, so no copy can be put between "
            "two: give `documents`, or use another policy"
        )
    return ""


def expected_counts(copies: Copies, members: int) -> tuple[float, float, tuple[float, ...]]:
    """Return the expected number of copies, its standard deviation, and members by count.

    Args:
        copies: the rule.
        members: how many members there are.
    """
    by_count = [0.0] * (COUNTED_TO + 1)
    if copies.poisson is not None:
        rate = copies.poisson
        for count in range(COUNTED_TO):
            by_count[count] = members * math.exp(-rate) * rate**count / math.factorial(count)
        by_count[COUNTED_TO] = members - sum(by_count)
        return members * rate, math.sqrt(members * rate), tuple(by_count)
    levels = (copies.fixed,) if copies.fixed is not None else copies.levels or ()
    total = 0.0
    for level in levels:
        by_count[min(level, COUNTED_TO)] += members / len(levels)
        total += level * members / len(levels)
    return total, 0.0, tuple(by_count)
