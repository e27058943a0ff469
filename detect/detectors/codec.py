"""`codec`: does a preceding text of the same dataset make a text likelier?

CoDeC (contamination detection via context; after a description, not its authors' code): d = mean
ℓ(x | C) − mean ℓ(x), where C is one other text of the dataset and an empty line, averaged over some
draws of C; the first tokens of x, which any context helps, are skipped. Context helps with an
unknown text and disturbs a memorised one, so score = −d. The share of d < 0 over a whole dataset is
its verdict on the dataset (below 60 % clean, above 80 % contaminated, by its authors); the note
reports it. The texts C are held-out rows, the same for all texts of a dataset.
"""

import math
from collections import defaultdict
from typing import Annotated

import numpy as np
from pydantic import Field

from detect.detector import Detector, Score, each_setting
from detect.detectors.recall import notes_on
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.prefixed import Prefixed
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings


class CodecParameters(Settings):
    """The contexts and the tokens that count."""

    draws: Annotated[int, Field(ge=1, le=50)] = 5
    """Contexts of one text each, over which d is averaged."""
    skip: Annotated[int, Field(ge=0)] = 10
    """Initial scored tokens of the text that do not count."""


def _contexts(setting: CodecParameters) -> tuple[Prefixed, ...]:
    return tuple(Prefixed(shots=1, first=draw) for draw in range(setting.draws))


def _mean(statistics: TokenStatistics, skip: int) -> float:
    return float(np.mean(statistics.log_probability[skip:], dtype=np.float64))


def _score(example: ExampleEvidence, setting: CodecParameters) -> Score:
    text = example.statistics[TEXT]
    contexts = [example.prefixed[need.name] for need in _contexts(setting)]
    read = [context for context in contexts if len(context)]
    if not read:
        return Score(math.nan, contexts[0].reason)
    if len(text) <= setting.skip:
        return Score(math.nan, f"no token behind the first {setting.skip}")
    plain = _mean(text, setting.skip)
    changes = [_mean(context, setting.skip) - plain for context in read]
    return Score(-float(np.mean(changes)))


def _note(evidence: Evidence, setting: CodecParameters) -> str | None:
    """Return each dataset's share of texts that a context makes less likely."""
    signs: dict[str, list[bool]] = defaultdict(list)
    datasets = evidence.datasets or [""] * len(evidence.texts)
    for dataset, example in zip(datasets, evidence.examples(), strict=True):
        if len(example.statistics[TEXT]):
            score = _score(example, setting)
            if not math.isnan(score.value):
                signs[dataset].append(score.value > 0)
    shares = [
        f"{f'{name}: ' if name else ''}{np.mean(falls):.0%} of {len(falls)} texts are less likely "
        "behind another text of their dataset"
        for name, falls in sorted(signs.items())
    ]
    return "; ".join([*shares, *notes_on(evidence, _contexts(setting))]) or None


DETECTOR = Detector(
    name="codec",
    title="CoDeC",
    summary="how much less likely a text is behind another text of its dataset",
    source="Zawalski et al. 2025 (CoDeC)",
    needs=(View(TEXT),),
    further_needs=_contexts,
    assumption="texts of a dataset help to predict one another, and the contexts are unseen",
    order=64,
    parameters=CodecParameters,
    score=each_setting(_score, _note),
)
