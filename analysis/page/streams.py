"""The training streams as the page shows them: how long, how many copies, and what share they are.

A copy counts as read when the model saw all of its tokens; the columns that follow say what became
of the others, so that planned and read copies always add up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analysis.arm import Cohort
from inject.stream.exposures import CopyOutcomes

_MUCH = 0.05
"""A larger share of copies than this is remarked upon."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What one model was trained on."""

    axes: Mapping[str, str]
    model: str
    seed: int
    tokens: int
    """Of the stream, copies included."""
    payload: int
    """Tokens of it that are copies, with what stands around them."""
    copies: CopyOutcomes
    """What became of its copies."""

    @property
    def share(self) -> float:
        """The part of the stream that is copies."""
        return self.payload / self.tokens if self.tokens else 0.0


class StreamRow(NamedTuple):
    """One arm of one model, summed over its seeds."""

    arm: str
    model: str
    seeds: str
    tokens: str
    planned: str
    read: str
    share: str


def stream_rows(streams: Sequence[Stream]) -> list[StreamRow]:
    """Return one row a model and arm, in order of first appearance."""
    found: dict[Cohort, list[Stream]] = {}
    for stream in streams:
        found.setdefault(Cohort(tuple(stream.axes.items()), stream.model), []).append(stream)
    return [
        StreamRow(
            arm=cohort.label() or "the only one",
            model=cohort.model,
            seeds=", ".join(str(one.seed) for one in same),
            # Seeds differ in nothing else, hence not in the length of their stream.
            tokens=f"{same[0].tokens:,}",
            planned=f"{sum(one.copies.planned for one in same):,}",
            read=f"{sum(one.copies.whole for one in same):,}",
            share=_shares(same),
        )
        for cohort, same in found.items()
    ]


def stream_sentences(streams: Sequence[Stream]) -> list[str]:
    """Say which copies were not read and why, and what the share of copies means."""
    planned = sum(one.copies.planned for one in streams)
    lost = {
        "never reached, as training ends with the last whole window of its epochs": sum(
            one.copies.never for one in streams
        ),
        "cut by the end of the last whole window and read in part": sum(
            one.copies.partly for one in streams
        ),
        "read with other tokens than they should have": sum(one.copies.altered for one in streams),
    }
    told = ", ".join(f"{count:,} {what}" for what, count in lost.items() if count)
    sentences = []
    if told:
        sentences.append(
            f"Of {planned:,} planned copies {planned - sum(lost.values()):,} were read whole: "
            f"{told}. Members are counted by the copies that were read."
        )
    spiked = [one for one in streams if one.payload]
    if spiked:
        sentences.append(_share_sentence(spiked))
    return sentences


def _share_sentence(spiked: Sequence[Stream]) -> str:
    shares = sorted(one.share for one in spiked)
    said = _percent(shares[0])
    if _percent(shares[-1]) != said:
        said = f"{said} to {_percent(shares[-1])}"
    sentence = f"Copies make up {said} of the tokens of a training stream."
    if shares[-1] > _MUCH:
        sentence += (
            " In a real corpus a benchmark is a far smaller share. Where copies are so dense, much "
            "of the training is on the examples themselves and on texts of their kind, so these "
            "AUCs compare detectors and settings with each other; they do not say how detectable "
            "a text is in a large corpus."
        )
    return sentence


def _shares(same: Sequence[Stream]) -> str:
    ends = min(one.share for one in same), max(one.share for one in same)
    return " to ".join(dict.fromkeys(_percent(share) for share in ends))


def _percent(share: float) -> str:
    """Return a share with two digits that count: `52 %`, `0.31 %`."""
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.2g} %"
