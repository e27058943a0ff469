"""The audit before training: is every copy at its planned position, and is nothing else there?

Read from the view itself, the very stream that training reads: every member's token sequence must
occur exactly as often as its copies carry it, every copy (of whatever variant) must be intact at
its planned position, every non-member's sequence (and every zero-copy member's) must never occur;
and no example may occur in the clean corpus, where the sequence is looked for without its first and
last two tokens, because a neighbouring letter can change how the edges of a text are tokenised.

The search is exact and streams: the tokens in blocks, a rolling hash of eight tokens from
the middle of each text, and a full comparison wherever a hash agrees. Cost: about eight
multiplications a token; memory: one block.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from inject.corpus.corpus import TOKENS, corpus_tokenizer
from inject.examples.example import AUDITED, Example, read_held_out
from inject.keyed import I64, U64
from inject.overlap.filter import overlaps_between_sides
from inject.overlap.settings import OverlapSettings
from inject.plan.plan import read_plan
from inject.settings import plain
from inject.step import Step, StepContext
from inject.stream.audit_report import AuditReport, write_audit
from inject.stream.exposures import CopyName, TextKey
from inject.stream.inputs import (
    copy_texts,
    corpus_execution,
    example_tokens,
    read_pool_and_corpus,
    variants_of,
)
from inject.stream.view import StreamView, TokenSource
from inject.variants.rendition import WHOLE

_PROBE = 8
_EDGE = 2
_LEAST_CORE = 8
_BLOCK = 1 << 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_LISTED = 50
_MOST_NAMED = 5
HELD_OUT_SIDE = "held_out"
"""The value of `sides` for a row that is on neither side and must not occur either."""
Stream = TokenSource | StreamView
"""Anything with tokens in order: a view, or a clean corpus."""


def audit_step(rules: OverlapSettings, corpus: Step, examples: Step, plan: Step) -> Step:
    """Search the contaminated stream and the clean corpus for every example.

    Held-out rows are looked for as non-members are. The corpus is hashed on the way: an edit of a
    token file is noticed before anything trains.
    """
    return Step(
        kind="audit",
        label=plan.label,
        function=f"{__name__}:build",
        settings={"ngram": rules.ngram, "share": rules.share},
        inputs={"corpus": corpus, "examples": examples, "plan": plan, **variants_of(plan)},
        libraries=("unicode",),
        reads={"corpus": TOKENS, "examples": AUDITED},
        facets={"passed": "inject.stream.audit_report:passed"},
        execution={**corpus_execution(corpus), "rules": plain(rules)},
    )


def build(context: StepContext) -> None:
    """Search the stream, and write the findings."""
    rules = OverlapSettings.model_validate(context.execution["rules"])
    pool, tokens, clean = read_pool_and_corpus(context)
    clean.verify()
    held_out = read_held_out(context.inputs["examples"])
    if held_out:
        encoder = corpus_tokenizer(context.inputs["corpus"])
        tokens = {**tokens, **example_tokens(held_out, encoder)}
    sides: dict[str, str] = {example.example_id: example.side for example in pool}
    sides |= dict.fromkeys((example.example_id for example in held_out), HELD_OUT_SIDE)
    planned = read_plan(context.inputs["plan"])
    view = planned.view(clean)
    report = audit(
        view,
        clean,
        clean.doc_starts,
        tokens=tokens,
        names=planned.names(),
        starts=view.text_starts(),
        texts=copy_texts(context, tokens),
        sides=sides,
    )
    shared = overlaps_between_sides(pool, rules) if rules.ngram is not None else []
    report = replace(name_rows(report, [*pool, *held_out]), between_sides=tuple(shared))
    write_audit(context.out, report)


def find_occurrences(stream: Stream, patterns: Mapping[Any, I64]) -> Iterator[tuple[Any, int]]:
    """Yield name and place of every occurrence of every pattern, overlapping ones included.

    Args:
        stream: the tokens to search.
        patterns: token ids by name, each of at least one token.
    """
    probes: dict[int, dict[int, list[tuple[Any, int]]]] = defaultdict(lambda: defaultdict(list))
    longest = 0
    for name, pattern in patterns.items():
        size = min(_PROBE, len(pattern))
        offset = (len(pattern) - size) // 2
        value = int(_rolling_hashes(pattern[offset : offset + size], size)[0])
        probes[size][value].append((name, offset))
        longest = max(longest, len(pattern))
    if not patterns:
        return
    for start in range(0, stream.n_tokens, _BLOCK):
        # A block owns the occurrences whose pattern starts in it; the overlap completes them.
        block = stream.read(start, min(start + _BLOCK + longest, stream.n_tokens))
        owned = min(_BLOCK, stream.n_tokens - start)
        for size, by_value in probes.items():
            if len(block) < size:
                continue
            hashes = _rolling_hashes(block, size)
            pattern_hashes = np.array(sorted(by_value), dtype=np.uint64)
            slots = np.minimum(np.searchsorted(pattern_hashes, hashes), len(pattern_hashes) - 1)
            for position in np.flatnonzero(pattern_hashes[slots] == hashes):
                for name, offset in by_value[int(hashes[position])]:
                    first = int(position) - offset
                    pattern = patterns[name]
                    if 0 <= first < owned and np.array_equal(
                        block[first : first + len(pattern)], pattern
                    ):
                        yield name, start + first


def audit(
    view: Stream,
    corpus: Stream,
    document_starts: I64,
    *,
    tokens: Mapping[str, I64],
    names: Sequence[CopyName],
    starts: I64,
    texts: Mapping[TextKey, I64],
    sides: Mapping[str, str],
) -> AuditReport:
    """Search the contaminated stream and the clean corpus for every example.

    Args:
        view: the stream that will be trained on.
        corpus: the whole clean corpus, the base model's part included.
        document_starts: its ascending document starts.
        tokens: token ids of each example's whole text, by example_id.
        names: every planned copy.
        starts: the start of each one's text in the view, in the same order.
        texts: token ids of each text that copies carry, by example_id and variant.
        sides: `member`, `nonmember` or `HELD_OUT_SIDE`, by example_id.
    """
    planned = Counter((name.example_id, name.variant) for name in names)
    realised = Counter(name.example_id for name in names)
    whole = {(name, WHOLE): pattern for name, pattern in tokens.items()}
    occurrences: dict[TextKey, list[int]] = defaultdict(list)
    for key, position in find_occurrences(view, {**texts, **whole}):
        occurrences[key].append(position)

    wrong, withheld = [], []
    for key, expected in _expected_counts(texts, whole, planned).items():
        name = key[0]
        count = len(occurrences[key])
        if count and not realised[name]:
            withheld.append({"example_id": name, "position": occurrences[key][0]})
        elif count != expected:
            wrong.append({"example_id": name, "expected": expected, "found": count})
    positions = {key: set(places) for key, places in occurrences.items()}
    displaced = [
        name._asdict()
        for name, start in zip(names, starts.tolist(), strict=True)
        if start not in positions.get((name.example_id, name.variant), ())
    ]
    background = [
        {
            "example_id": name,
            "position": position,
            "document": int(np.searchsorted(document_starts, position, side="right")) - 1,
        }
        for name, position in find_occurrences(
            corpus, {name: _core(pattern) for name, pattern in tokens.items()}
        )
    ]
    return AuditReport(
        passed=not (wrong or withheld or background or displaced),
        members=sum(side == "member" for side in sides.values()),
        nonmembers=sum(side == "nonmember" for side in sides.values()),
        zero_copy_members=sum(sides[name] == "member" and realised[name] == 0 for name in sides),
        copies_expected=len(names),
        copies_found=len(names) - len(displaced),
        displaced=tuple(displaced[:_MOST_LISTED]),
        wrong_counts=tuple(wrong[:_MOST_LISTED]),
        nonmembers_found=tuple(withheld[:_MOST_LISTED]),
        background_hits=tuple(background[:_MOST_LISTED]),
        tokens_searched=view.n_tokens + corpus.n_tokens,
        held_out=sum(side == HELD_OUT_SIDE for side in sides.values()),
    )


def _expected_counts(
    texts: Mapping[TextKey, I64], whole: Mapping[TextKey, I64], planned: Mapping[TextKey, int]
) -> dict[TextKey, int]:
    """Return the expected count of each whole text: in its own copies, and in their variants.

    A whole text inside a copy of *another* example is never expected: it would be seen more often
    than its realised number of copies.
    """
    expected = {key: planned.get(key, 0) for key in whole}
    for key, copies in planned.items():
        own = (key[0], WHOLE)
        if key[1] != WHOLE and len(texts[key]) >= len(whole[own]):
            stretches = sliding_window_view(texts[key], len(whole[own]))
            inside = int((stretches == whole[own]).all(axis=1).sum())
            expected[own] += copies * inside
    return expected


def _core(pattern: I64) -> I64:
    if len(pattern) < _LEAST_CORE + 2 * _EDGE:
        return pattern
    return pattern[_EDGE:-_EDGE]


def _rolling_hashes(tokens: I64, size: int) -> U64:
    """Return a hash of every `size` consecutive tokens, shape [len(tokens) - size + 1]."""
    values = tokens.astype(np.uint64)
    count = len(values) - size + 1
    hashes = np.zeros(count, dtype=np.uint64)
    for index in range(size):
        hashes = (hashes + values[index : index + count] + np.uint64(1)) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return hashes


def name_rows(report: AuditReport, examples: Sequence[Example]) -> AuditReport:
    """Return the report with `row` in each finding, and `inside` if rows contain it.

    The audit knows examples by the hash of their text. Who has to take a row out of a data file
    needs the row's own id, and that of the row whose text its text is a part of.

    Args:
        report: findings by example_id.
        examples: all examples that were searched for.
    """
    by_id = {example.example_id: example for example in examples}

    def named(finding: dict[str, object], *, inside: bool) -> dict[str, object]:
        example = by_id[str(finding["example_id"])]
        around = _find_containing(example, examples) if inside else []
        return {**finding, "row": _row(example), **({"inside": around} if around else {})}

    return replace(
        report,
        displaced=tuple(named(finding, inside=False) for finding in report.displaced),
        wrong_counts=tuple(named(finding, inside=True) for finding in report.wrong_counts),
        nonmembers_found=tuple(named(finding, inside=True) for finding in report.nonmembers_found),
        background_hits=tuple(named(finding, inside=False) for finding in report.background_hits),
    )


def _find_containing(example: Example, examples: Sequence[Example]) -> list[str]:
    text = example.text.strip()
    around = [other for other in examples if other is not example and text in other.text]
    return [_row(other) for other in around[:_MOST_NAMED]]


def _row(example: Example) -> str:
    return f"{example.dataset} {example.source_id}"
