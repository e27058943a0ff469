"""The ratio rule, remembered chunks and misses of the rule against slow counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.settings import AuditRule
from analysis.unlearning_audit.evidence import AUDITED, prompt_of, rest_of, score_ratios
from analysis.unlearning_audit.rule import Band, audit_shares, calibrated_band, conformal_edge
from analysis.unlearning_audit.shares import (
    Clusters,
    ControlOverlap,
    Written,
    control_level,
    share_false,
    share_missed,
    share_remembered,
    written_of,
)
from analysis.unlearning_audit.texts import PLACE, cut_chunks
from inject.errors import InputError
from inject.examples.example import Example
from tests.analysis.unlearning_audit.made import chunks

WORDS = st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1), min_size=6)
LEVEL = ControlOverlap(3.0, 30, "the retrained model")


def singletons(count: int) -> Clusters:
    return Clusters(tuple(map(str, range(count))))


def remembering(
    remembered: np.ndarray,
    weights: list[float] | None = None,
    undrawn: int = 0,
    level: ControlOverlap = LEVEL,
) -> Written:
    """Return the memory of a model; `undrawn` further chunks were not sampled."""
    all_weights = np.array(weights or [1.0] * len(remembered))
    return Written(remembered, all_weights, undrawn, level, singletons(len(remembered)))


def runs(first: int, count: int, **longest: float) -> list[dict]:
    """Return a continuation of each chunk by each model, with its longest run of true words."""
    return [
        {"chunk": at, "model": model, "longest_common_substring": run}
        for model, run in longest.items()
        for at in range(first, first + count)
    ]


def test_remembered_chunks_exceed_the_maximum_of_the_control():
    written = [
        *({"chunk": at, "model": "unlearned", "longest_common_substring": run}
          for at, run in ((0, 2.0), (0, 9.0), (1, 3.0), (1, None))),
        *({"chunk": at, "model": "retrained", "longest_common_substring": run}
          for at, run in ((0, 3.0), (1, 1.0))),
    ]  # fmt: skip
    made = chunks(3, continuations=written)
    level = control_level(made.closest("retrained"), "the retrained model")
    assert (level.value, level.chunks) == (3.0, 2)
    assert "weak" in level.about
    own = made.closest("unlearned")
    assert own[:2].tolist() == [9.0, 3.0]
    memory = written_of(own, np.zeros(3, bool), np.isfinite(own), level, singletons(3))
    assert memory.known.tolist() == [True, False, False]
    assert memory.remembered == [(0, True), (1, False)]


def test_misses_are_unmeasurable_without_a_control():
    level = control_level(np.array([]), "")
    assert math.isnan(level.value)
    assert "neither a retrained model nor" in level.about
    assert "was not continued" in control_level(np.array([]), "the retrained model").about
    remembered = np.array([True] * 20)
    written = remembering(remembered, level=level)
    assert "cannot be measured" in share_missed(written, remembered).reason
    assert share_remembered(written).reason


def test_misses_are_counted_among_remembered_chunks():
    remembered = np.array([True] * 12 + [False] * 18)
    flagged = np.array([True] * 9 + [False] * 3 + [True] * 2 + [False] * 16)
    estimate = share_missed(remembering(remembered), flagged)
    assert estimate.value == pytest.approx(3 / 12)
    assert share_false(remembering(remembered), flagged).value == pytest.approx(2 / 11)
    none = share_missed(remembering(np.zeros(30, bool)), flagged)
    assert "cannot be measured" in none.reason


def test_audit_counts_misses_by_ratios_and_continuation_weights():
    ratios = np.where(np.arange(30) < 20, 1.0, 2.0)
    # Ten of thirty remembered texts are not flagged, and two of these have no ratio.
    ratios[[25, 26]] = np.nan
    rows = runs(0, 30, original=9.0, unlearned=9.0, retrained=1.0)
    of_models = {"unlearned": ratios, "retrained": np.linspace(1.0, 2.0, 30)}

    def shares_of(rows: list[dict]) -> dict:
        audited = chunks(30, ratios=of_models, continuations=rows)
        return audit_shares(audited, chunks(0), band=Band(), rate=0.2).shares

    shares = shares_of(rows)
    assert shares["missed"].value == pytest.approx(8 / 28)
    edge = shares["calibrated_edge"].value
    assert edge < 2.0
    assert shares["calibrated_missed"].value == pytest.approx((8 if edge > 1.0 else 28) / 28)
    # Of the ten unflagged texts only the last two were continued.
    continued = np.array([at < 20 or at >= 28 for at in range(30)])
    written = written_of(np.full(30, 9.0), Band().holds(ratios), continued, LEVEL, singletons(30))
    assert written.weights.tolist() == [1.0] * 20 + [0.0] * 8 + [5.0] * 2
    assert written.undrawn == 8
    shares = shares_of([row for row in rows if continued[row["chunk"]]])
    assert shares["missed"].value == pytest.approx(10 / 30)


def test_share_of_the_original_is_independent_of_the_other_model():
    """Its control is its own longest run on unseen texts, regardless of the other model."""

    def original_share(other: float) -> float:
        rows = runs(0, 60, original=5.0, unlearned=other)
        kinds = [
            chunks(30, first=first, ratios={"unlearned": np.ones(30)}, continuations=rows)
            for first in (0, 30)
        ]
        return audit_shares(*kinds, band=Band(), rate=0.2).shares["remembered_original"].value

    assert original_share(1.0) == original_share(9.0) == 0


def test_sampled_chunks_represent_the_others():
    """Ten suspicious chunks and 20 sampled of 200 others, of which two or none are remembered."""
    flagged = np.arange(30) < 10
    weights = [1.0] * 10 + [10.0] * 20
    written = remembering(np.arange(30) < 12, weights, undrawn=180)
    assert share_missed(written, flagged).value == pytest.approx(20 / 30)
    assert share_remembered(written).value == pytest.approx(30 / 210)
    none = share_missed(remembering(flagged, weights, undrawn=180), flagged)
    hidden = 200 * (1 - 0.025 ** (1 / 20))
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(hidden / (hidden + 10))
    reason = share_missed(remembering(flagged, undrawn=180), flagged).reason
    assert "only suspicious" in reason


def test_calibrated_edge_is_the_conformal_quantile():
    ratios = np.array([0.5, 1.0, 1.2, 1.5, *np.linspace(2, 3, 36)])
    # floor(0.05 · 41) = 2: the second lowest above the lower edge.
    assert conformal_edge(ratios, 0.8, 0.05) == 1.2
    assert conformal_edge(ratios, 0.0, 0.05) == 1.0
    assert conformal_edge(ratios[:10], 0.0, 0.05) is None
    band, edge, _ = calibrated_band(ratios, singletons(40), 0.8, 0.05)
    assert band == (0.8, 1.2)
    assert edge.low <= 1.2 <= edge.high
    band, edge, _ = calibrated_band(ratios[:10], singletons(10), 0.8, 0.05)
    assert band is None
    assert "19" in edge.reason


def test_band_is_the_papers_open_interval():
    ratios = np.array([1 / 1.15, 0.87, 1.0, 1.1499, 1.15, 1.2, math.nan])
    assert Band().holds(ratios).tolist() == [False, True, True, True, False, False, False]
    for ends in ((1.0, 1.0), (2.0, 1.0), (-1.0, 2.0)):
        with pytest.raises(ValueError, match="contains no ratio"):
            AuditRule(band=ends)


@given(st.floats(allow_infinity=True, allow_nan=True), st.floats(-50, -1e-6))
def test_negative_scores_have_a_ratio_and_others_a_reason(original: float, unlearned: float):
    values, reasons = score_ratios([original], [unlearned])
    if -math.inf < original < 0:
        assert values[0] == unlearned / original
        assert reasons == [None]
    else:
        assert math.isnan(values[0])
        assert "original model" in reasons[0]


@given(WORDS, st.sampled_from([" ", "\n\n", "\t "]), st.integers(1, 4))
def test_chunks_contain_the_words_in_order(words: list[str], space: str, prompt: int):
    text = space.join(["", *words, ""])
    source = Example(
        example_id="", dataset=AUDITED, source_id="a", group="g", text=text,
        fields={PLACE: "a.txt:1"},
    )  # fmt: skip
    cut = cut_chunks([source], words=5, prompt_words=prompt, first=3)
    assert [chunk.example_id for chunk in cut] == [str(at) for at in range(3, 3 + len(cut))]
    own: list[str] = []
    for chunk in cut:
        slice_ = text[chunk.fields["start"] : chunk.fields["stop"]]
        assert slice_ == chunk.text == prompt_of(chunk) + rest_of(chunk)
        assert len(prompt_of(chunk).split()) == prompt < len(chunk.text.split()) <= 5
        own += chunk.text.split()
    whole = text.split()
    assert own == whole[: len(own)]
    # The remainder is at most as long as a prompt.
    assert len(whole) - len(own) <= prompt
    (uncut,) = cut_chunks([source], words=None, prompt_words=prompt)
    assert uncut.text == space.join(words)
    with pytest.raises(InputError, match="prompt alone takes"):
        cut_chunks([source], words=None, prompt_words=len(whole))
