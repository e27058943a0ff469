"""The audit before training: is every copy where it should be, and nothing else?

Read from the view itself, the very stream that training reads: every member's token
sequence must occur exactly its realised number of times, every non-member's (and every
zero-copy member's) never; and no example may occur in the clean corpus, where the sequence
is looked for without its first and last two tokens, because a neighbouring letter can
change how the edges of a text are tokenised.

The search is exact and streams: the tokens in blocks, a rolling hash of eight tokens from
the middle of each text, and a full comparison wherever a hash agrees. Cost: about eight
multiplications a token; memory: one block.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from inject.errors import SpikeinError

I64 = npt.NDArray[np.int64]

_PROBE = 8
_EDGE = 2
_LEAST_CORE = 8
_BLOCK = 1 << 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MOST_LISTED = 50


class Stream(Protocol):
    """Anything with tokens in order: a view, or a clean corpus."""

    @property
    def n_tokens(self) -> int:
        """Length of the stream."""
        ...

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop."""
        ...


class Occurrence(NamedTuple):
    """One place where a pattern stands in a stream."""

    name: str
    position: int


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What the audit found; `passed` only when every list of problems is empty."""

    passed: bool
    members: int
    nonmembers: int
    zero_copy_members: int
    copies_expected: int
    copies_found: int
    wrong_counts: tuple[dict[str, object], ...]
    """Members whose number of occurrences differs: example_id, expected, found."""
    nonmembers_found: tuple[dict[str, object], ...]
    """Withheld examples that stand in the stream: example_id, position."""
    background_hits: tuple[dict[str, object], ...]
    """Examples that stand in the clean corpus: example_id, position, document."""
    tokens_searched: int


def find_occurrences(stream: Stream, patterns: Mapping[str, I64]) -> Iterator[Occurrence]:
    """Yield every occurrence of every pattern in a stream, overlapping ones included.

    Args:
        stream: the tokens to search.
        patterns: token ids by name, each of at least one token.
    """
    probes: dict[int, dict[int, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    longest = 0
    for name, pattern in patterns.items():
        size = min(_PROBE, len(pattern))
        offset = (len(pattern) - size) // 2
        value = int(_rolling(pattern[offset : offset + size], size)[0])
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
            hashes = _rolling(block, size)
            wanted = np.array(sorted(by_value), dtype=np.uint64)
            slots = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
            for position in np.flatnonzero(wanted[slots] == hashes):
                for name, offset in by_value[int(hashes[position])]:
                    first = int(position) - offset
                    pattern = patterns[name]
                    if 0 <= first < owned and np.array_equal(
                        block[first : first + len(pattern)], pattern
                    ):
                        yield Occurrence(name, start + first)


def audit(
    view: Stream,
    corpus: Stream,
    document_starts: I64,
    *,
    tokens: Mapping[str, I64],
    realised: Mapping[str, int],
    sides: Mapping[str, str],
) -> AuditReport:
    """Search the contaminated stream and the clean corpus for every example.

    Args:
        view: the stream that will be trained on.
        corpus: the whole clean corpus, the base model's part included.
        document_starts: its ascending document starts.
        tokens: token ids of each example's text, by example_id.
        realised: planned number of copies of each example.
        sides: `member` or `nonmember`, by example_id.
    """
    found: dict[str, list[int]] = defaultdict(list)
    for occurrence in find_occurrences(view, tokens):
        found[occurrence.name].append(occurrence.position)
    wrong, withheld = [], []
    for name in tokens:
        count = len(found[name])
        if count == realised[name]:
            continue
        if realised[name] == 0:
            withheld.append({"example_id": name, "position": found[name][0]})
        else:
            wrong.append({"example_id": name, "expected": realised[name], "found": count})
    background = [
        {
            "example_id": hit.name,
            "position": hit.position,
            "document": int(np.searchsorted(document_starts, hit.position, side="right")) - 1,
        }
        for hit in find_occurrences(
            corpus, {name: _core(pattern) for name, pattern in tokens.items()}
        )
    ]
    return AuditReport(
        passed=not (wrong or withheld or background),
        members=sum(side == "member" for side in sides.values()),
        nonmembers=sum(side == "nonmember" for side in sides.values()),
        zero_copy_members=sum(sides[name] == "member" and realised[name] == 0 for name in sides),
        copies_expected=sum(realised.values()),
        copies_found=sum(len(found[name]) for name in tokens if realised[name]),
        wrong_counts=tuple(wrong[:_MOST_LISTED]),
        nonmembers_found=tuple(withheld[:_MOST_LISTED]),
        background_hits=tuple(background[:_MOST_LISTED]),
        tokens_searched=view.n_tokens + corpus.n_tokens,
    )


def write_audit(out: Path, report: AuditReport) -> None:
    """Write `audit.json` into the folder `out`."""
    (out / "audit.json").write_text(json.dumps(asdict(report), indent=1))


def read_audit(folder: Path) -> AuditReport:
    """Read what `write_audit` wrote."""
    values = json.loads((folder / "audit.json").read_text())
    for name in ("wrong_counts", "nonmembers_found", "background_hits"):
        values[name] = tuple(values[name])
    return AuditReport(**values)


class AuditFailed(SpikeinError):
    """The stream is not what the plan says; nothing may be trained on it."""

    def __init__(self, report: AuditReport, folder: Path) -> None:
        lines = [f"the audit failed (all findings: {folder / 'audit.json'}):"]
        lines += [
            f"  member {row['example_id']} occurs {row['found']} times, planned {row['expected']}"
            for row in report.wrong_counts[:5]
        ]
        lines += [
            f"  withheld example {row['example_id']} occurs at token {row['position']}"
            for row in report.nonmembers_found[:5]
        ]
        lines += [
            f"  example {row['example_id']} occurs in background document {row['document']}"
            for row in report.background_hits[:5]
        ]
        lines.append(
            "Remove these rows from the dataset, or the documents from the background sources."
        )
        super().__init__("\n".join(lines))


def _core(pattern: I64) -> I64:
    if len(pattern) < _LEAST_CORE + 2 * _EDGE:
        return pattern
    return pattern[_EDGE:-_EDGE]


def _rolling(tokens: I64, size: int) -> npt.NDArray[np.uint64]:
    """Return a hash of every `size` consecutive tokens, shape [len(tokens) - size + 1]."""
    values = tokens.astype(np.uint64)
    count = len(values) - size + 1
    hashes = np.zeros(count, dtype=np.uint64)
    for index in range(size):
        hashes = (hashes + values[index : index + count] + np.uint64(1)) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return hashes
