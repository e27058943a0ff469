"""`codec`: does a preceding text of the same dataset make a text likelier?

CoDeC (contamination detection via context; after a description, not its authors' code): d = mean
ℓ(x | C) − mean ℓ(x), where C is one other text of the dataset and an empty line, averaged over some
draws of C; the first tokens of x, which any context helps, are skipped. Context helps with an
unknown text and disturbs a memorised one, so score = −d. The share of d < 0 over a whole dataset is
its verdict on the dataset (below 60 % clean, above 80 % contaminated, by its authors); the note
reports it. The texts C are held-out rows, the same for all texts of a dataset.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from detect.detector import Detector, Score, each_example
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.needs import Need
from detect.evidence.prefixed import Prefixed
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

NAN = float("nan")


class CodecParameters(Settings):
    """The contexts and the tokens that count."""

    draws: Annotated[int, Field(ge=1, le=50)] = 5
    """Contexts of one text each, over which d is averaged."""
    skip: Annotated[int, Field(ge=0)] = 10
    """Initial scored tokens of the text that do not count."""


def _contexts(setting: CodecParameters) -> tuple[Prefixed, ...]:
    return tuple(Prefixed(shots=1, first=draw) for draw in range(setting.draws))


def _needs(setting: CodecParameters) -> tuple[Need, ...]:
    return _contexts(setting)


def _mean(statistics: TokenStatistics, skip: int) -> float:
    return float(np.mean(statistics.log_probability[skip:], dtype=np.float64))


def _score(example: ExampleEvidence, settings: Sequence[CodecParameters]) -> list[Score]:
    text = example.statistics[TEXT]
    scores = []
    for setting in settings:
        contexts = [example.prefixed[need.name] for need in _contexts(setting)]
        read = [context for context in contexts if len(context)]
        if not read:
            scores.append(Score(NAN, contexts[0].reason))
        elif len(text) <= setting.skip:
            scores.append(Score(NAN, f"no token behind the first {setting.skip}"))
        else:
            plain = _mean(text, setting.skip)
            changes = [_mean(context, setting.skip) - plain for context in read]
            scores.append(Score(-float(np.mean(changes))))
    return scores


def _note(evidence: Evidence, setting: CodecParameters) -> str | None:
    """Return each dataset's share of texts that a context makes less likely."""
    signs: dict[str, list[bool]] = defaultdict(list)
    datasets = evidence.datasets or [""] * len(evidence.texts)
    for dataset, example in zip(datasets, evidence.examples(), strict=True):
        [score] = _score(example, [setting]) if len(example.statistics[TEXT]) else [Score(NAN)]
        if score.reason is None and score.value == score.value:
            signs[dataset].append(score.value > 0)
    shares = [
        f"{f'{name}: ' if name else ''}{np.mean(falls):.0%} of {len(falls)} texts are less likely "
        "behind another text of their dataset"
        for name, falls in sorted(signs.items())
    ]
    notes = [note for need in _contexts(setting) for note in evidence.prefixed[need.name].notes]
    return "; ".join([*shares, *dict.fromkeys(notes)]) or None


DETECTOR = Detector(
    name="codec",
    title="CoDeC",
    summary="how much less likely a text is behind another text of its dataset",
    source="Zawalski et al. 2025 (CoDeC)",
    needs=(View(TEXT),),
    further_needs=_needs,
    assumption="texts of a dataset help to predict one another, and the contexts are unseen",
    order=64,
    parameters=CodecParameters,
    score=each_example(_score, _note),
)
