"""Draw a plan: copy counts, variants and anchors of one arm, and the payload they need; the step.

Every draw is keyed (`inject.keyed`): by the seed, the example and the copy. A million copies of
10,000 examples take about ten seconds and half a GiB; of the corpus, only its length and its
document starts are read.

Rows of one group share text, so they have one count: a member's number of copies is then also how
its passage was seen, up to the size of its group (`passage_copies` counts that). A Poisson count is
the quantile of one keyed uniform number a group, so it depends only on (seed, dataset, group), and
a higher rate never gives an example fewer copies: arms of a sweep over the rate share their
randomness. Levels are assigned in turn to each dataset's groups, which are ordered stratum by
stratum in keyed order, beginning with a level drawn for the dataset: every group has each level
with the same probability (in proportion to its repeats, which are spread evenly over a turn), and
the numbers of groups with distinct levels differ by at most one in a dataset and in a stratum. So
there (and only there) a new row of the same dataset can change another's
level; its anchors keep their positions. Counts do not depend on the split into tune and test.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import TypeAdapter

from inject import keyed
from inject.corpus.corpus import TOKENS, corpus_tokenizer
from inject.corpus.separators import Separators, separators_for
from inject.corpus.tokens import token_dtype
from inject.errors import InputError
from inject.examples.example import UNSPLIT, Example, members, read_examples
from inject.examples.strata import keyed_strata
from inject.plan.placement import place_copies
from inject.plan.plan import COPIES_SCHEMA, COPY_COUNTS_SCHEMA, Plan, PlanFacts, write_plan
from inject.plan.settings import Copies, Placement
from inject.plan.windows import UnplacedCopies
from inject.settings import plain
from inject.step import Step, StepContext
from inject.stream.inputs import corpus_execution, read_pool_and_corpus, renditions_of
from inject.stream.view import SourceSlice, TokenSource, concatenated, repeated
from inject.variants.choice import choose_renditions
from inject.variants.rendition import Rendition, whole_renditions
from inject.variants.settings import Variants


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """The settings that determine one arm's copies, given examples, corpus and tokenizer."""

    copies: Copies
    """The setting for numbers of copies."""
    placement: Placement
    """Where."""
    budget: int
    """Tokens in the training stream, payload included."""
    context: int
    """Tokens in a window."""
    seed: int
    """The arm's."""
    variants: Variants = field(default_factory=Variants)
    """Which variants copies carry, and how they are assigned."""
    draw_number: int = 0
    """The number of the draw of copy counts; each number has its own draws."""
    repeat: int = 1
    """How often the unique tokens of the background are laid out."""

    def identity(self) -> dict[str, Any]:
        """Return all of it as plain JSON values.

        Weights and assignment of the variants; their texts are in the renditions.
        """
        values = {**vars(self), "copies": plain(self.copies)}
        values["placement"] = self.placement.identity()
        if self.repeat == 1:
            del values["repeat"]
        weights = [variant.weight for variant in self.variants.of]
        values["variants"] = {**plain(self.variants, exclude={"of"}), "weights": weights}
        return values


def make_plan(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    settings: PlanSettings,
    *,
    source: TokenSource,
    separators: Separators,
    vocabulary: int,
    renditions: Sequence[Rendition] | None = None,
    candidates: Sequence[Example] | None = None,
) -> Plan:
    """Draw counts, variants and anchors for every member.

    Args:
        examples: members and non-members of all datasets.
        tokens: the token ids of each example's text, by example_id.
        settings: how many copies, where, and in which stream.
        source: the clean corpus, at least as long as the unique tokens of the stream.
        separators: the separators around each copy.
        vocabulary: number of token ids, which fixes the width of `payload.bin`.
        renditions: the texts of all variants of all members; None if all copies carry the whole
            example.
        candidates: all examples that counts and variants are drawn for, if these are more than
            the members: each member gets the copies it would have if all of these were spiked.

    Raises:
        InputError: for an example in two datasets, a budget too small for the payload, a
            corpus smaller than the budget, a budget smaller than one window, or no room.
    """
    _check_unique(examples)
    budget, context, seed = settings.budget, settings.context, settings.seed
    if budget < context:
        raise InputError(
            f"the training stream of {budget:,} tokens is shorter than one window of {context:,}",
            where="corpus.tokens",
        )
    unique = math.ceil(budget / settings.repeat)
    if source.n_tokens < unique:
        raise InputError(
            f"the corpus has {source.n_tokens:,} tokens, but the budget requires {unique:,}",
            where="corpus.tokens",
        )
    source = repeated(source, tokens=budget, times=settings.repeat)
    inside = {example.example_id for example in members(examples)}
    spiked = members(examples) if candidates is None else candidates
    rates, realised = draw_copy_counts(
        settings.copies, spiked, seed=seed, draw_number=settings.draw_number
    )
    outside = np.array([example.example_id not in inside for example in spiked], dtype=bool)
    rates[outside], realised[outside] = 0.0, 0
    member = np.repeat(np.arange(len(spiked)), realised)
    copy = np.arange(len(member)) - np.repeat(np.cumsum(realised) - realised, realised)
    if renditions is None:
        renditions = whole_renditions(spiked, tokens)
    text = choose_renditions(renditions, settings.variants, spiked, member, copy, seed=seed)

    def row_name(copy_index: int) -> str:
        example = spiked[member[copy_index]]
        return f"row {example.source_id} of {example.dataset}"

    payload, offset, length = _payload(renditions, text, separators)
    offset, length = offset[text], length[text]
    keys = keyed.item_keys([example.example_id for example in spiked])
    anchors = place_copies(
        UnplacedCopies(
            example_keys=keys[member],
            numbers=copy,
            lengths=length,
            name=row_name,
            seed=seed,
            context=context,
        ),
        placement=settings.placement,
        budget=budget,
        document_starts=SourceSlice(source, 0, budget).doc_starts,
    )
    n_copies = len(member)
    names = pa.array([example.example_id for example in spiked], pa.string())
    datasets = pa.array([example.dataset for example in spiked], pa.string())
    labels = pa.array([rendition.variant for rendition in renditions], pa.string())
    columns = {
        "example_id": names.take(member),
        "dataset": datasets.take(member),
        "copy": copy,
        "variant": labels.take(text),
        "rate": rates[member],
        "realised": realised[member],
        "policy": pa.repeat(settings.placement.policy, n_copies),
        "anchor": anchors.position,
        "drawn": anchors.drawn,
        "redraws": anchors.redraws,
        "tiebreak": anchors.tiebreak,
        "payload_offset": offset,
        "payload_length": length,
        "lead": np.full(n_copies, len(separators.lead)),
        "text_length": length - separators.tokens,
    }
    return Plan(
        facts=PlanFacts(
            budget=budget,
            background=budget - int(length.sum()),
            context=context,
            seed=seed,
            policy=settings.placement.policy,
            separator=separators.kind,
            vocabulary=vocabulary,
            repeat=settings.repeat,
        ),
        copies=pa.table(
            [pa.array(columns[field.name]).cast(field.type) for field in COPIES_SCHEMA],
            schema=COPIES_SCHEMA,
        ),
        copy_counts=_copy_count_table(examples, tokens, spiked, rates, realised),
        payload=payload.astype(token_dtype(vocabulary)),
    )


def _payload(
    renditions: Sequence[Rendition], used: npt.NDArray[np.int64], separators: Separators
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the tokens of the renditions in use, with their separators, one after the other.

    Then the start of each rendition in them, and its number of tokens.
    """
    offset = np.zeros(len(renditions), dtype=np.int64)
    length = np.zeros(len(renditions), dtype=np.int64)
    pieces = []
    end = 0
    for index in np.unique(used):
        piece = separators.around(renditions[index].tokens)
        pieces.append(piece)
        offset[index], length[index] = end, len(piece)
        end += len(piece)
    return concatenated(pieces), offset, length


def _copy_count_table(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    spiked: Sequence[Example],
    rates: npt.NDArray[np.float64],
    realised: npt.NDArray[np.int64],
) -> pa.Table:
    """Return the draws for each example; `passage_copies` sums over the rows of its group."""
    draws_by_id = {
        example.example_id: (rate, count)
        for example, rate, count in zip(spiked, rates.tolist(), realised.tolist(), strict=True)
    }
    draws = [draws_by_id.get(example.example_id, (0.0, 0)) for example in examples]
    shared: Counter[tuple[str, str]] = Counter()
    for example, (_, count) in zip(examples, draws, strict=True):
        shared[example.dataset, example.group] += count
    return pa.Table.from_pylist(
        [
            {
                "example_id": example.example_id,
                "dataset": example.dataset,
                "side": example.side,
                "rate": rate,
                "realised": count,
                "passage_copies": shared[example.dataset, example.group],
                "text_length": len(tokens[example.example_id]),
            }
            for example, (rate, count) in zip(examples, draws, strict=True)
        ],
        schema=COPY_COUNTS_SCHEMA,
    )


def _check_unique(examples: Sequence[Example]) -> None:
    seen: dict[str, Example] = {}
    for example in examples:
        other = seen.setdefault(example.example_id, example)
        if other is not example:
            raise InputError(
                f"the same text is an example twice: {other.dataset} {other.source_id} and "
                f"{example.dataset} {example.source_id}",
                where="contaminants",
                hint="Remove it from one of the two, or use one dataset only.",
            )


def draw_copy_counts(
    copies: Copies, members: Sequence[Example], *, seed: int, draw_number: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return each member's rate (fixed count, Poisson rate or level) and its number of copies.

    In the order given, shape [members] each. Each `draw_number` has its own draws.
    """
    if copies.fixed is not None:
        rates = np.full(len(members), float(copies.fixed))
        counts = np.full(len(members), copies.fixed, dtype=np.int64)
    elif copies.poisson is not None:
        # Half a second to import, which a run that finds its plan in the store need not pay.
        from scipy.stats import poisson

        rates = np.full(len(members), copies.poisson)
        keys = keyed.item_keys([f"{member.dataset}\n{member.group}" for member in members])
        uniform = keyed.unit(keyed.words(seed, keyed.Stream.COPY_COUNT, keys, draw_number))
        counts = poisson.ppf(uniform, copies.poisson).astype(np.int64)
    else:
        counts = _levels_in_turn(copies.level_cycle, members, seed, draw_number)
        rates = counts.astype(np.float64)
    return rates, counts


def _levels_in_turn(
    levels: tuple[int, ...], members: Sequence[Example], seed: int, draw_number: int
) -> npt.NDArray[np.int64]:
    """Assign the levels in turn to each dataset's groups, from a drawn one on."""
    datasets: dict[str, list[Example]] = defaultdict(list)
    for member in members:
        datasets[member.dataset].append(member)
    level_of: dict[tuple[str, str], int] = {}
    for dataset, rows in datasets.items():
        first = keyed.words(seed, keyed.Stream.LEVEL, keyed.item_key(dataset), draw_number)
        turn = int(keyed.below(len(levels), first))
        for stratum in keyed_strata(rows, stream=keyed.Stream.LEVEL, seed=seed, number=draw_number):
            for group in stratum.groups:
                level_of[dataset, group.rows[0].group] = levels[turn % len(levels)]
                turn += 1
    return np.array([level_of[member.dataset, member.group] for member in members], dtype=np.int64)


_SETTINGS = TypeAdapter(PlanSettings)


def plan_step(
    settings: PlanSettings,
    corpus: Step,
    examples: Step,
    variants: Step | None,
    *,
    pool: Step | None = None,
    label: str | None = None,
) -> Step:
    """Draw copies, their variants and their anchors for one arm.

    Args:
        settings: how many copies, where, and in which stream.
        corpus: the clean corpus.
        examples: the pool.
        variants: the variants that copies can carry; None if all carry whole examples.
        pool: the arm's own examples, whose members get copy counts, or all of them (see
            `PlanSettings.draw_number`); None for the members of `examples`.
        label: for people; None for the settings' own.
    """
    return Step(
        kind="plan",
        label=label
        or f"{settings.copies.label()}-{settings.placement.label()}-seed{settings.seed}",
        function=f"{__name__}:build",
        settings=settings.identity(),
        inputs={
            "corpus": corpus,
            "examples": examples,
            **({"pool": pool} if pool else {}),
            **({"variants": variants} if variants else {}),
        },
        libraries=("scipy",),
        reads={"corpus": TOKENS, "examples": UNSPLIT, "pool": UNSPLIT},
        execution={
            **corpus_execution(corpus),
            "plan": _SETTINGS.dump_python(settings, mode="json"),
        },
    )


def build(context: StepContext) -> None:
    """Draw the plan, and write it."""
    settings = _SETTINGS.validate_python(context.execution["plan"])
    pool, tokens, clean = read_pool_and_corpus(context)
    tokenizer = corpus_tokenizer(context.inputs["corpus"])
    candidates = None
    if "pool" in context.inputs:
        candidates = read_examples(context.inputs["pool"])
        candidates = candidates if settings.draw_number else members(candidates)
    plan = make_plan(
        pool,
        tokens,
        settings,
        source=clean,
        separators=separators_for(settings.placement.separation, tokenizer),
        vocabulary=clean.facts.vocabulary,
        renditions=renditions_of(context),
        candidates=candidates,
    )
    write_plan(context.out, plan)
