"""`cdd`: are sampled continuations nearly equal to the greedy one?

Dong et al. 2024, "Generalization or Memorization: Data Contamination and Trustworthy Evaluation for
Large Language Models" (CDD): the share of samples whose edit distance to the greedy continuation
is at most α times the longest of all the continuations, over their first 100 tokens. A model that
memorised writes the same text each time. It does not use the text's true rest. Dong et al. call a
text contaminated above a share of 0.01.

Tokens are words here, and single characters of scripts without spaces (`inject.words`), so that it
also works with a server. The authors' code cuts answers at "```"; ours cuts nothing. The beginning
is half of the words; their prompts are questions. With `samples=10:temperature=1:top_k=50` the
samples are those of `samia`.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import Field
from rapidfuzz.distance import Levenshtein

from detect.access import Access
from detect.detector import Detector, Score, each_setting, exact_floor
from detect.detectors.samia import sampled
from detect.evidence import ExampleEvidence
from detect.evidence.continuations import Continuations
from detect.evidence.needs import Need
from detect.generation.continuations import ContinuationRequest
from inject.settings import PositiveFloat, PositiveInt, Settings
from inject.words import words_of

COMPARED = 100
"""Tokens of each continuation."""


class CddParameters(Settings):
    """The distance threshold and the sampling."""

    alpha: Annotated[Decimal, Field(ge=0, le=1)] = Decimal("0.05")
    """α: the largest distance that counts as near, as a share of the longest continuation."""
    samples: PositiveInt = 50
    """Continuations of each text."""
    temperature: Annotated[PositiveFloat, Field(le=2)] = 0.8
    """Sampling temperature; 1 leaves the model's distribution unchanged."""
    top_k: PositiveInt | None = None
    """Number of likeliest tokens to sample from; none for all."""
    share: Annotated[Decimal, Field(gt=0, lt=1)] = Decimal("0.5")
    """Share of the words in the prompt."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the sampling."""


def _requests(parameters: CddParameters) -> tuple[ContinuationRequest, ContinuationRequest]:
    """Return the requests for the greedy continuation and for the samples."""
    samples = sampled(parameters)
    return ContinuationRequest(beginning=samples.beginning), samples


def _needs(parameters: CddParameters) -> tuple[Need, ...]:
    return tuple(Continuations(request) for request in _requests(parameters))


def near_share(greedy: str, samples: Sequence[str], alpha: Decimal) -> float:
    """Return the share of samples within α of the greedy continuation."""
    first = words_of(greedy)[:COMPARED]
    others = [words_of(sample)[:COMPARED] for sample in samples]
    longest = max(map(len, [first, *others]))
    allowed = exact_floor(longest, Fraction(alpha))
    near = sum(Levenshtein.distance(first, other) <= allowed for other in others)
    return near / len(others)


def _score(example: ExampleEvidence, setting: CddParameters) -> Score:
    greedy, sampled = (example.continuations[request] for request in _requests(setting))
    if greedy.reason is not None:
        return Score(math.nan, greedy.reason)
    return Score(near_share(greedy.texts[0], sampled.texts, setting.alpha))


DETECTOR = Detector(
    name="cdd",
    title="CDD",
    summary="share of sampled continuations that nearly equal the greedy one",
    source="Dong et al. 2024 (CDD)",
    needs=(),
    further_needs=_needs,
    access=Access.TEXT,
    assumption="a model writes the same text repeatedly only if it memorised it",
    order=124,
    libraries=("unicode",),
    parameters=CddParameters,
    grid=tuple(CddParameters(alpha=Decimal(part) / 20) for part in range(5)),
    score=each_setting(_score),
)
