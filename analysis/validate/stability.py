"""Does a score stay what it is? Rows again, in halves, one by one, and in another order.

The same row under the same model has one score, unless the detector declares `depends_on_rows`
or is trained on labels. All comparisons are made on a few hundred rows, drawn by a key.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from analysis.intervals.influence import Counts, Floats
from analysis.validate.candidate import Candidate
from analysis.validate.checks import CheckFinding
from detect.detector import Detector
from detect.evidence.membership import Sides
from detect.ground_truth.ground_truth import ScoredModel
from inject.keyed import Stream, generator, item_key

Score = Callable[[Sequence[int]], Floats]

TOLERANCE = 1e-6
"""Of two scores of one row, relative to the larger of 1 and the score."""
MOST_ROWS = 200
MOST_ALONE = 25


def compare(first: Floats, second: Floats) -> tuple[int, float]:
    """Return on how many rows two series differ, and the largest difference.

    That is relative as `TOLERANCE` is; infinite if one score is NaN.
    """
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        gap = np.abs(first - second) / np.maximum(1.0, np.abs(first))
    gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    return int((gap > TOLERANCE).sum()), float(gap.max(initial=0.0))


def stability_findings(
    candidate: Candidate, model: ScoredModel, *, seed: int
) -> list[CheckFinding]:
    """Return the findings of scoring some rows again, in other ways.

    Raises:
        InputError: the detector fails, such as on a single row.
    """
    rows = _draw_rows(len(model.rows), seed)
    settings = candidate.settings_for(model)[:1]

    def scores(chosen: Sequence[int]) -> Floats:
        return candidate.score(model, chosen, settings=settings).values[:, 0]

    first = scores(rows.tolist())
    changed, largest = compare(first, scores(rows.tolist()))
    if changed:
        return [
            CheckFinding(
                "repetition",
                "wrong",
                f"{changed} of {len(rows)} rows got another score the second time "
                f"(largest difference {largest:.2g}).",
                "The detector is not deterministic, so its rank is partly luck.",
                "Draw random numbers from a generator with a fixed seed, keyed by the text, and "
                "keep nothing between calls.",
            )
        ]
    same = f"{len(rows)} rows scored twice: the same scores."
    return [
        CheckFinding("repetition", "passed", same),
        _order(first, scores, rows, seed),
        _batch(candidate.detector, first, scores, rows),
    ]


def _order(first: Floats, scores: Score, rows: Counts, seed: int) -> CheckFinding:
    random = generator(seed, Stream.BOOTSTRAP, item_key("validation order"))
    permuted = random.permutation(len(rows))
    changed, largest = compare(first[permuted], scores(rows[permuted].tolist()))
    if not changed:
        return CheckFinding(
            "order", "passed", f"{len(rows)} rows in another order: the same scores."
        )
    return CheckFinding(
        "order",
        "wrong",
        f"{changed} of {len(rows)} rows got another score when the rows came in another order "
        f"(largest difference {largest:.2g}).",
        "A score depends on the rows before it: members first would be enough to win.",
        "Use no position, no running mean, and nothing kept from one row to the next.",
    )


def _batch(detector: Detector, first: Floats, scores: Score, rows: Counts) -> CheckFinding:
    finding = partial(CheckFinding, "batch")
    listed = rows.tolist()
    trained = any(isinstance(need, Sides) for need in detector.needs)
    half = len(listed) // 2
    halves = np.concatenate([scores(listed[:half]), scores(listed[half:])])
    changed, largest = compare(first, halves)
    if detector.depends_on_rows or trained:
        why = "is trained on labels"
        if detector.depends_on_rows:
            why = "declares that it depends on the other rows"
        return finding(
            "note",
            f"It {why}; scored in halves, {changed} of {len(rows)} rows change "
            f"(largest difference {largest:.2g}).",
            "Its AUC holds for a pool as large as this one.",
        )
    # A row without a score may be one that the detector fails on, both in a batch and individually.
    places = np.flatnonzero(~np.isnan(first))[:MOST_ALONE]
    alone_rows = rows[places].tolist()
    alone = compare(first[places], np.array([scores([row])[0] for row in alone_rows]))
    if not changed and not alone[0]:
        return finding(
            "passed",
            f"{len(rows)} rows in halves, and {len(alone_rows)} one by one: the same scores.",
        )
    return finding(
        "wrong",
        f"{changed} of {len(rows)} rows got another score in halves, {alone[0]} of "
        f"{len(alone_rows)} when scored individually (largest difference "
        f"{max(largest, alone[1]):.2g}).",
        "A score depends on the other rows: one text by itself has no score, and other "
        "texts would change it.",
        "Score each row by itself; or declare `depends_on_rows=True`.",
    )


def _draw_rows(count: int, seed: int) -> Counts:
    if count <= MOST_ROWS:
        return np.arange(count)
    random = generator(seed, Stream.BOOTSTRAP, item_key("validation rows"))
    return np.sort(random.choice(count, MOST_ROWS, replace=False))
