"""`ngram_coverage`: how much of the model's continuation repeats runs of words from the text's
rest?

Hallinan et al. 2025 (N-Gram Coverage Attack): words of a sampled continuation are covered if they
are in a run of at least n words that also occurs in the true rest; the covered words are divided by
the words of the continuation, of the rest (or of the longer one of the two, as in the authors'
code), or of both, and the largest value over the samples is the score. The samples are those of
`samia`. Whole words are compared; the authors' code searches for a run's characters, and so finds
`he` in `the`. Their other forms (creativity index, longest common substring) are not implemented.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Literal

from detect.access import Access
from detect.detector import Detector
from detect.detectors.prefix import each_written
from detect.detectors.samia import SamiaParameters, sampled
from detect.generation.continuations import ContinuationRequest, Continued
from detect.generation.text_overlap import covered_words
from inject.settings import PositiveInt, Settings
from inject.words import words_of

Over = Literal["generation", "reference", "both"]
Aggregate = Literal["max", "mean", "median", "min"]


_AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "max": max,
    "mean": fmean,
    "median": median,
    "min": min,
}


class CoverageParameters(Settings):
    """The runs that count, their divisor, and the combination of samples."""

    n: PositiveInt = 3
    """Fewest words in a run."""
    over: Over = "reference"
    """Covered words over those of the `generation`, of the longer of it and the `reference`, or
    twice over the sum of both."""
    aggregate: Aggregate = "max"
    """Aggregate over the samples."""
    samples: PositiveInt = 10
    """Continuations of each text, sampled as in `samia`."""


def coverage(written: str, remainder: str, n: int, over: Over) -> float:
    """Return the covered share of one continuation."""
    candidate, reference = words_of(written), words_of(remainder)
    covered = covered_words(candidate, reference, n)
    if not covered:
        return 0.0
    longer = max(len(candidate), len(reference))
    if over == "generation":
        return covered / len(candidate)
    return covered / longer if over == "reference" else 2 * covered / (len(candidate) + longer)


def _request(parameters: CoverageParameters) -> ContinuationRequest:
    return sampled(SamiaParameters(samples=parameters.samples))


def _score(written: Continued, setting: CoverageParameters) -> float:
    shares = [coverage(text, written.rest, setting.n, setting.over) for text in written.texts]
    return _AGGREGATES[setting.aggregate](shares)


DETECTOR = Detector(
    name="ngram_coverage",
    title="N-gram coverage",
    summary="share of sampled continuations that repeats runs of words of the text's rest",
    source="Hallinan et al. 2025 (N-Gram Coverage Attack); form of the authors' code",
    needs=(),
    access=Access.TEXT,
    assumption="a model writes longer runs of the words of a text that it saw",
    order=126,
    libraries=("unicode",),
    parameters=CoverageParameters,
    grid=tuple(
        CoverageParameters(n=n, aggregate=rule) for rule in ("max", "mean") for n in (2, 3, 5)
    ),
    **each_written(_request, _score),
)
