"""`wbc`: in how many windows of tokens is the target more certain than the reference model?

Window-based comparison (arXiv 2601.02751): with Δ_i = ℓ_i − ℓ_ref,i, T(w) is the share of windows
of w tokens whose sum of Δ is above 0, and the score the mean of T(w) over ten widths. The widths
are those of the authors' code; their equation 12, round(2·20^((k−1)/9)), gives others. A text
shorter than a width is one window, once for each such width. Comparisons of sums are strict and in
float64, so that two equal models give 0.

Δ requires two models that read the same tokens: if the reference model's differ, no row is scored.
Cost: one addition per token and unit of width, 40 in all.
"""

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
import numpy.typing as npt

from detect.detector import Column, Detector, Score, each_setting
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.views import Reference, View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT

Floats = npt.NDArray[np.float64]

WIDTHS = (2, 3, 4, 6, 9, 13, 18, 25, 32, 40)
OTHER_TOKENS = "the reference model reads other tokens: its tokenizer is another one"
OTHER_LENGTH = "the reference model reads fewer or more of the text's tokens"


def log_ratios(target: TokenStatistics, reference: TokenStatistics) -> Floats:
    """Return Δ_i = ℓ_i − ℓ_ref,i of each token, in float64; both read the same tokens."""
    return target.log_probability.astype(np.float64) - reference.log_probability


def with_same_tokens(
    score: Callable[[TokenStatistics, TokenStatistics, Any], Score],
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return a detector's `score` from one that compares target and reference model by token.

    If one text's tokens differ, the tokenizers do, and no row gets a score: only short texts happen
    to be encoded alike. A text of which one model reads less has no score.
    """

    def checked(example: ExampleEvidence, setting: Any) -> Score:
        text, reference = example.statistics[TEXT], example.reference
        if reference is None or not len(reference):
            reason = "no statistics" if reference is None else reference.reason
            return Score(math.nan, f"reference model: {reason}")
        if len(reference) != len(text):
            return Score(math.nan, OTHER_LENGTH)
        return score(text, reference, setting)

    each = each_setting(checked)

    def score_all(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        pairs = zip(evidence.statistics[TEXT], evidence.reference or (), strict=False)
        if not all(_reads_alike(*pair) for pair in pairs):
            rows = [Score(math.nan, OTHER_TOKENS)] * len(evidence.texts)
            return [Column(rows, (f"{OTHER_TOKENS}.",))] * len(settings)
        return each(evidence, settings)

    return update_wrapper(score_all, score)


def _reads_alike(target: TokenStatistics, reference: TokenStatistics) -> bool:
    """Return whether the tokens and their ends agree as far as both texts were read.

    Ids below 0 are unknown: a server did not report them. Parts of a character end where it does.
    """
    size = min(len(target), len(reference))
    ids, other_ids = target.ids[:size], reference.ids[:size]
    if not np.array_equal(ids, other_ids) and min(ids.min(), other_ids.min()) >= 0:
        return False
    if (target.offsets < 0).all() or (reference.offsets < 0).all():
        return True
    return np.array_equal(target.offsets[:size, 1], reference.offsets[:size, 1])


def window_share(differences: Floats) -> float:
    """Return the mean over `WIDTHS` of the share of windows whose sum is above 0."""
    count = len(differences)
    shares: dict[int, float] = {}
    sums = np.zeros(count)
    for width in range(1, min(count, WIDTHS[-1]) + 1):
        # Each window is summed separately: its score does not depend on preceding tokens.
        sums = sums[: count - width + 1] + differences[width - 1 :]
        shares[width] = float((sums > 0).mean())
    return sum(shares[min(width, count)] for width in WIDTHS) / len(WIDTHS)


def _score(target: TokenStatistics, reference: TokenStatistics, setting: object) -> Score:
    return Score(window_share(log_ratios(target, reference)))


DETECTOR = Detector(
    name="wbc",
    title="WBC",
    summary="share of token windows in which the target is more certain than a reference model",
    source="arXiv 2601.02751 (USENIX Security 2026), with the window widths of its code",
    needs=(View(TEXT), Reference()),
    assumption="the reference model is the target without the members, with the same tokenizer",
    order=42,
    score=with_same_tokens(_score),
)
