"""Estimate the injection before anything is built: copies, tokens, share, disk, time.

The counts follow only from the experiment. The tokens follow from the rows of the datasets, of
which at most a few hundred are measured: with the tokenizer if there is one, else in bytes; the
estimate records which. The background is not read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inject.corpus.separators import separators_for, text_room
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError, Unreachable
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.datasets.registry import get_dataset
from inject.examples.load import load_examples
from inject.plan.settings import Copies, separations
from inject.plan.training_range import EXACT
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from train.settings import TokenizerTraining

BYTES_PER_TOKEN = 4.0
"""For English text and a common vocabulary; used only without a tokenizer."""
BYTES_A_COPY = 32
"""Of `plan.parquet`; measured by `python -m scripts.bench.inject`."""
COPIES_A_SECOND = 200_000
"""Planned on one core; measured by the same benchmark."""
WINDOWS_A_SECOND = 800_000
"""Sorted into training order on one core, which copies in a part of the training need."""
_SEPARATORS = 2
"""Tokens around a copy, if there is no tokenizer."""
SAMPLE = 400
"""Rows of a dataset that are measured."""
MAX_COUNT = 5
"""The last entry of `InjectionEstimate.counts` is the members with at least this many copies."""


@dataclass(frozen=True, kw_only=True)
class InjectionEstimate:
    """The expected additions of one arm's injection."""

    label: str
    copies_rule: str
    placement: str
    members: int
    copies: float
    """Expected number of copies; exact unless `spread` is positive."""
    spread: float
    """Standard deviation of the number of copies."""
    counts: tuple[float, ...]
    """Members expected with 0, 1, … copies; the last entry includes all higher counts."""
    tokens: float | None
    """Payload tokens expected; None if the rows cannot be read here."""
    text_tokens: float | None
    """Tokens of all texts that are scored, on both sides; None if the rows cannot be read."""
    measured: bool
    """Whether a tokenizer counted the tokens; else they follow from the bytes of the texts."""
    stream: int
    """Tokens of the training stream."""
    disk_bytes: float | None
    """Of the arm's plan."""
    seconds: float
    """To plan it."""
    note: str
    """Why the tokens are unknown; empty if they are known."""
    problem: str
    """Why a run would be refused, as far as this is known now; empty otherwise."""
    held_out: int = 0
    """Rows that are neither trained on nor scored."""

    @property
    def share(self) -> float | None:
        """Share of the stream that the copies take."""
        return None if self.tokens is None else self.tokens / self.stream


_Lengths = tuple[float | None, int, str, str]
"""Mean and largest length of the texts of the members, in tokens; why they are unknown, and why a
run would be refused (empty if not)."""


def arm_estimates(
    arms: Sequence[ArmExperiment], tokenizer: Any | None
) -> tuple[InjectionEstimate, ...]:
    """Return one estimate per arm; arms that differ only in training share that of the first.

    Args:
        arms: the arms of an experiment.
        tokenizer: a fast tokenizer; None if there is none yet.
    """
    measured: dict[str, _Lengths] = {}
    estimates: dict[str, InjectionEstimate] = {}
    by_arm = []
    for arm in arms:
        experiment = arm.experiment
        room = _text_room(arms, experiment.train.context, tokenizer)
        contaminants, pool = experiment.contaminants, experiment.pool
        rows = f"{contaminants!r} {pool!r} {room} {arm.seed}"
        if rows not in measured:
            counted = tokenizer or _bytes_per_token(experiment)
            measured[rows] = _lengths(contaminants, pool, room, counted, arm.seed)
        key = f"{rows} {experiment.copies!r} {experiment.placement!r} {experiment.corpus.tokens}"
        if key not in estimates:
            estimates[key] = _injection_estimate(arm, measured[rows], tokenizer)
        by_arm.append(estimates[key])
    return tuple(by_arm)


def _text_room(arms: Sequence[ArmExperiment], context: int, tokenizer: Any | None) -> int:
    """Return the tokens of a window that a text may take in every arm."""
    separated = separations(arm.experiment.placement for arm in arms)
    if tokenizer is None:
        return context - (_SEPARATORS if separated else 0)
    return text_room(context, separated, tokenizer)


def _bytes_per_token(experiment: Experiment) -> float:
    """Return the expected bytes per token; a small vocabulary that is yet to be trained has few.

    Invented facts and BoolQ under tokenizers trained on docstrings, 512 to 16,384 entries: within
    15 %; below 512 entries the number is too high by up to 0.45.
    """
    tokenizer = experiment.model.tokenizer
    if not isinstance(tokenizer, TokenizerTraining):
        return BYTES_PER_TOKEN
    return min(1.7 + 0.26 * math.log2(tokenizer.vocab_size / 512), BYTES_PER_TOKEN)


def _lengths(
    contaminants: Sequence[Contaminant],
    pool: PoolSettings,
    room: int,
    tokenizer: Any,
    seed: int,
) -> _Lengths:
    """Return the lengths of the members' texts; `tokenizer` may be a number of bytes per token."""
    total, members, longest = 0.0, 0, 0
    for contaminant in contaminants:
        try:
            rows = load_examples(sample(contaminant), seed=seed).examples
        except Unreachable as error:
            return None, 0, str(error), ""
        except InputError as error:
            return None, 0, "", str(error)
        texts = [row.text for row in rows[:: max(len(rows) // SAMPLE, 1)]]
        if isinstance(tokenizer, float):
            lengths = [math.ceil(len(text.encode()) / tokenizer) for text in texts]
        else:
            lengths = [len(ids) for ids in encode_texts(tokenizer, texts)]
        policy = "truncate" if pool.max_tokens else pool.long_examples
        fitting = [
            min(length, pool.max_tokens or room) if policy == "truncate" else length
            for length in lengths
            if length >= pool.min_tokens and (policy != "drop" or length <= room)
        ]
        if fitting:
            total += contaminant.members * sum(fitting) / len(fitting)
            members += contaminant.members
            longest = max(longest, *fitting)
    return total / members if members else None, longest, "", ""


def sample(contaminant: Contaminant) -> Contaminant:
    """Return a contaminant that generates no more rows than a sample needs.

    Files are read whole, because only then is it known whether they have enough rows.
    """
    if not get_dataset(contaminant.dataset).endless:
        return contaminant
    parts = ("members", "nonmembers", "held_out")
    fewer = {part: min(getattr(contaminant, part), SAMPLE) for part in parts}
    return contaminant.model_copy(update=fewer)


def _injection_estimate(
    arm: ArmExperiment, lengths: _Lengths, tokenizer: Any | None
) -> InjectionEstimate:
    experiment = arm.experiment
    members = sum(contaminant.members for contaminant in experiment.contaminants)
    copies, spread, counts = expected_counts(experiment.copies, members)
    separators = _SEPARATORS if experiment.placement.separated_by != "none" else 0
    if tokenizer is not None:
        separators = separators_for(experiment.placement.separation, tokenizer).tokens
    tokens = disk = None
    mean, longest, note, problem = lengths
    if mean is not None:
        tokens = copies * (mean + separators)
        width = 2 if tokenizer is None or len(tokenizer) <= 1 << 16 else 4
        disk = copies * BYTES_A_COPY + members * (mean + separators) * width
        problem = _no_room(arm, tokens, longest + separators)
    return InjectionEstimate(
        label=arm.label,
        copies_rule=experiment.copies.label(),
        placement=experiment.placement.label(),
        members=members,
        copies=copies,
        spread=spread,
        counts=counts,
        tokens=tokens,
        text_tokens=None
        if mean is None
        else mean * sum(part.members + part.nonmembers for part in experiment.contaminants),
        measured=mean is not None and tokenizer is not None,
        stream=experiment.corpus.tokens,
        disk_bytes=disk,
        seconds=copies / COPIES_A_SECOND + _ordered_windows(experiment) / WINDOWS_A_SECOND,
        note=note,
        problem=problem,
        held_out=sum(part.held_out for part in experiment.contaminants),
    )


def _ordered_windows(experiment: Experiment) -> int:
    """Return the number of windows to sort for an experiment's plan."""
    windows = experiment.corpus.tokens // experiment.train.context
    return windows if experiment.placement.timed and windows <= EXACT else 0


def _no_room(arm: ArmExperiment, tokens: float, longest: int) -> str:
    """Return why the plan will be refused, as far as this is known now; empty otherwise."""
    experiment = arm.experiment
    context = experiment.train.context
    low, high = experiment.placement.shares(experiment.corpus.tokens // context, context)
    room = experiment.corpus.tokens * float(high - low)
    if tokens > room:
        return (
            f"the copies need about {tokens:,.0f} tokens and have room for {room:,.0f}: raise "
            "corpus.tokens, or lower the copies or the number of members"
        )
    if experiment.placement.contained and longest > context:
        return (
            f"the longest example takes about {longest:,} tokens and must fit into one window "
            f"of {context:,}: set pool.long_examples to truncate or drop, or "
            "raise train.context"
        )
    return ""


def expected_counts(copies: Copies, members: int) -> tuple[float, float, tuple[float, ...]]:
    """Return the expected number of copies, its standard deviation, and members by count.

    Args:
        copies: the rule.
        members: the number of members.
    """
    by_count = [0.0] * (MAX_COUNT + 1)
    if copies.poisson is not None:
        rate = copies.poisson
        for count in range(MAX_COUNT):
            by_count[count] = members * math.exp(-rate) * rate**count / math.factorial(count)
        by_count[MAX_COUNT] = members - sum(by_count)
        return members * rate, math.sqrt(members * rate), tuple(by_count)
    levels = (copies.fixed,) if copies.fixed is not None else copies.levels or ()
    total = 0.0
    for level in levels:
        by_count[min(level, MAX_COUNT)] += members / len(levels)
        total += level * members / len(levels)
    return total, 0.0, tuple(by_count)
