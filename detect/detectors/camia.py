"""`camia`: many signals from a text's sequence of log-probabilities, each ranked among unseen
texts.

The base signals of CAMIA (Chang et al. 2025, "Context-aware membership inference attacks against
pre-trained large language models"), without the repetition of the text. Each signal of a text
becomes the share of its dataset's held-out rows, which the model has not seen, that are at least as
member-like in it; score = −mean of these p-values (Edgington).

The member-like end of a signal follows from its meaning, not from labels: members are likelier,
more of their tokens are likely, and their sequence of log-probabilities is simpler. The direction
of the `shape` signals is less certain; tuning may exclude them (`signals`).

- `likelihood`: over the first 200, the first 300 and all tokens: mean ℓ, perplexity, and each of
  them divided by the token diversity (different ids / ids); over the first 200: the shares of
  tokens with ℓ ≥ −1, −2, −3.
- `shape`: over the first 200: the share of tokens above the text's mean ℓ, that of tokens above the
  mean of those before them, the Lempel-Ziv complexity of ℓ in 3, 4 and 5 bins; over the first 600,
  800 and 1,000: the slope of ℓ over the position, and the absolute value of its approximate entropy
  (m = 8, r = 0.8 standard deviations; that of few patterns can be negative); over the first 200,
  the first 300 and all: the token diversity, which is large for members if ℓ is divided by it.

Bins and complexity are those of the authors' code: ℓ is cut into 99 steps from its least value to
0, and these into bins of equal width; a last phrase that occurred before is not counted.
If a text is too short for a signal, the average omits it. The last token counts like all others.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.held_out import HeldOut
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64
from inject.settings import Settings

FEWEST_HELD_OUT = 10
"""Fewest held-out rows for a meaningful percentile."""
FEW = f"fewer than {FEWEST_HELD_OUT} held-out rows of its dataset to compare with"
_PATTERN, _RADIUS = 8, 0.8


class CamiaParameters(Settings):
    """The signals that count."""

    signals: Literal["all", "likelihood"] = "all"
    """All base signals, or only those that compare how likely tokens are."""


class Signal(NamedTuple):
    """One signal of one text; larger is more member-like."""

    name: str
    value: float
    shape: bool
    """Whether it is of `shape`."""


def signals(statistics: TokenStatistics) -> Iterator[Signal]:
    """Yield the base signals of a text with at least one scored token; see the module."""
    log_probability = statistics.log_probability.astype(np.float64)
    for first in (200, 300, len(log_probability)):
        values = log_probability[:first]
        label = "all" if first == len(log_probability) else str(first)
        diversity = len(np.unique(statistics.ids[:first])) / len(values)
        mean = float(values.mean())
        # The exponential of a large loss overflows; a high limit preserves the order.
        perplexity = math.exp(min(-mean, 700.0))
        yield Signal(f"mean-{label}", mean, False)
        yield Signal(f"perplexity-{label}", -perplexity, False)
        yield Signal(f"mean/diversity-{label}", mean / diversity, False)
        yield Signal(f"perplexity/diversity-{label}", -perplexity / diversity, False)
        yield Signal(f"diversity-{label}", diversity, True)
    values = log_probability[:200]
    for limit in (-1, -2, -3):
        yield Signal(f"share>={limit}", float(np.mean(values >= limit)), False)
    yield Signal("share>mean", float(np.mean(values > values.mean())), True)
    if len(values) > 1:
        before = np.cumsum(values)[:-1] / np.arange(1, len(values))
        yield Signal("share>running", float(np.mean(values[1:] > before)), True)
    for bins in (3, 4, 5):
        yield Signal(f"lempel-ziv-{bins}", -float(lempel_ziv(in_bins(values, bins))), True)
    course: dict[int, tuple[float, float]] = {}
    for first in (600, 800, 1000):
        part = log_probability[:first]
        if len(part) > _PATTERN + 1:
            if len(part) not in course:
                course[len(part)] = slope(part), -approximate_entropy(part)
            yield Signal(f"slope-{first}", course[len(part)][0], True)
            yield Signal(f"entropy-{first}", course[len(part)][1], True)


def in_bins(values: F64, bins: int) -> tuple[int, ...]:
    """Return the bin of each log-probability, as in the authors' code."""
    steps = np.digitize(values, np.linspace(values.min(), 0, 100), right=True)
    edges = np.linspace(steps.min(), steps.max(), bins + 1)[1:]
    return tuple(np.searchsorted(edges, steps).tolist())


def lempel_ziv(symbols: Sequence[int]) -> float:
    """Return the number of different phrases of the LZ78 parsing, per symbol."""
    phrases: set[tuple[int, ...]] = set()
    phrase: tuple[int, ...] = ()
    for symbol in symbols:
        phrase = (*phrase, symbol)
        if phrase not in phrases:
            phrases.add(phrase)
            phrase = ()
    return len(phrases) / len(symbols)


def slope(values: F64) -> float:
    """Return the least-squares slope over the position."""
    place = np.arange(len(values)) - (len(values) - 1) / 2
    return float((place * values).sum() / (place**2).sum())


def approximate_entropy(values: F64) -> float:
    """Return |approximate entropy| (Pincus 1991), of patterns of 8 within 0.8 deviations."""
    near = np.abs(values[:, None] - values[None, :]) <= _RADIUS * float(values.std())
    patterns = len(values) - _PATTERN + 1
    # Two patterns are near if all of their values are, that is along a diagonal.
    alike = np.ones((patterns, patterns), dtype=bool)
    for shift in range(_PATTERN):
        alike &= near[shift : shift + patterns, shift : shift + patterns]
    longer = alike[:-1, :-1] & near[_PATTERN:, _PATTERN:]
    return abs(float(np.log(alike.mean(axis=1)).mean() - np.log(longer.mean(axis=1)).mean()))


def _held_out(evidence: Evidence) -> dict[str, dict[str, F64]]:
    """Return the sorted values of each signal over each dataset's held-out rows."""
    held_out = evidence.held_out
    values: dict[str, dict[str, list[float]]] = {}
    if held_out is not None:
        for dataset, text in zip(held_out.datasets, held_out.statistics, strict=True):
            for signal in signals(text) if len(text) else ():
                values.setdefault(dataset, {}).setdefault(signal.name, []).append(signal.value)
    return {
        dataset: {name: np.sort(samples) for name, samples in of.items()}
        for dataset, of in values.items()
    }


def p_value(value: float, held_out: F64) -> float:
    """Return the share of unseen texts, and the text, that are at least as member-like as it."""
    above = len(held_out) - int(np.searchsorted(held_out, value, side="left"))
    return (1 + above) / (1 + len(held_out))


def _score(evidence: Evidence, settings: Sequence[CamiaParameters]) -> list[Column]:
    reference = _held_out(evidence)
    datasets = evidence.datasets or [""] * len(evidence.texts)
    columns: list[list[Score]] = [[] for _ in settings]
    for text, dataset in zip(evidence.statistics[TEXT], datasets, strict=True):
        p_values = [
            (signal.shape, p_value(signal.value, reference[dataset][signal.name]))
            for signal in (signals(text) if len(text) else ())
            if len(reference.get(dataset, {}).get(signal.name, ())) >= FEWEST_HELD_OUT
        ]
        for column, setting in zip(columns, settings, strict=True):
            used = [p for shape, p in p_values if setting.signals == "all" or not shape]
            if used:
                column.append(Score(-float(np.mean(used))))
            else:
                column.append(Score(math.nan, text.reason if not len(text) else FEW))
    return [Column(scores) for scores in columns]


DETECTOR = Detector(
    name="camia",
    title="CAMIA",
    summary="many signals of the token log-probabilities, placed among unseen texts",
    source="Chang et al. 2025 (CAMIA), base signals, Edgington's combination",
    needs=(View(TEXT), HeldOut(fewest=FEWEST_HELD_OUT)),
    assumption=(
        "held-out rows are like the scored non-members, and members differ from both in each "
        "signal's direction"
    ),
    order=70,
    parameters=CamiaParameters,
    grid=(CamiaParameters(), CamiaParameters(signals="likelihood")),
    score=_score,
)
