"""The ratio rule, its chunks, what is remembered and what the rule misses, by slow counts."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.unlearning_audit.estimates import Clusters
from analysis.unlearning_audit.findings import Ratioed, find
from analysis.unlearning_audit.ratio import Band, calibrated_band, conformal_edge, score_ratios
from analysis.unlearning_audit.remembered import (
    Level,
    Sampled,
    best_overlaps,
    control_level,
    remembered,
    sampled_chunks,
    share_false,
    share_missed,
    share_remembered,
)
from analysis.unlearning_audit.settings import AuditRule
from analysis.unlearning_audit.text_chunks import Chunk, SourceText, cut_chunks
from inject.errors import InputError

WORDS = st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1), min_size=6)
LEVEL = Level(3.0, 30, "the retrained model")


def design(count: int, weights: list[float] | None = None, undrawn: int = 0) -> Sampled:
    return Sampled(tuple(range(count)), np.array(weights or [1.0] * count), undrawn)


def alone(count: int) -> Clusters:
    return Clusters(tuple(map(str, range(count))))


def test_a_chunk_is_remembered_beyond_what_the_control_reaches_anywhere():
    table = pa.table(
        {
            "chunk": [0, 0, 1, 1, 0, 1],
            "model": ["unlearned", "unlearned", "unlearned", "unlearned", *["retrained"] * 2],
            "longest_common_substring": [2.0, 9.0, 3.0, None, 3.0, 1.0],
        }
    )
    level = control_level(best_overlaps(table, "retrained"), "the retrained model")
    assert (level.value, level.chunks) == (3.0, 2)
    assert "weak" in level.about
    own = best_overlaps(table, "unlearned")
    assert own == {0: 9.0, 1: 3.0}
    assert remembered(own, [0, 1, 2], level).tolist() == [True, False, False]


def test_without_a_control_nothing_is_measured():
    level = control_level({}, "")
    assert math.isnan(level.value)
    assert "neither a retrained model nor" in level.about
    assert "nothing was continued" in control_level({}, "the retrained model").about
    known = np.array([True] * 20)
    assert "cannot be measured" in share_missed(known, known, design(20), alone(20), level).reason
    assert share_remembered(known, design(20), alone(20), level).reason


def test_misses_are_counted_among_what_is_remembered():
    known = np.array([True] * 12 + [False] * 18)
    flagged = np.array([True] * 9 + [False] * 3 + [True] * 2 + [False] * 16)
    found = share_missed(known, flagged, design(30), alone(30), LEVEL)
    assert found.value == pytest.approx(3 / 12)
    assert share_false(known, flagged, design(30), alone(30), LEVEL).value == pytest.approx(2 / 11)
    none = share_missed(np.zeros(30, bool), flagged, design(30), alone(30), LEVEL)
    assert "cannot be measured" in none.reason


def test_an_audit_finds_misses_among_the_ratios_and_the_design_from_what_was_continued():
    chunks = [Chunk(at, str(at), str(at), 0, 9, "a b c d e", 1) for at in range(30)]
    ratios = np.where(np.arange(30) < 20, 1.0, 2.0)
    # Of thirty remembered texts ten are not flagged, and two of these have no ratio.
    ratios[[25, 26]] = np.nan
    rows = [
        {"chunk": at, "model": model, "longest_common_substring": value}
        for model, value in (("original", 9.0), ("unlearned", 9.0), ("retrained", 1.0))
        for at in range(30)
    ]
    ratioed = Ratioed(chunks, ratios, np.linspace(1.0, 2.0, 30))
    found = find(ratioed, None, pa.Table.from_pylist(rows), band=Band(), rate=0.2).shares
    assert found["missed"].value == pytest.approx(8 / 28)
    edge = found["calibrated_edge"].value
    assert edge < 2.0
    assert found["calibrated_missed"].value == pytest.approx((8 if edge > 1.0 else 28) / 28)
    # Of the ten that are not flagged the last two alone were continued.
    drawn = [row for row in rows if not 20 <= row["chunk"] < 28]
    sampled = sampled_chunks(Band().holds(ratios), [at < 20 or at >= 28 for at in range(30)])
    assert sampled.weights.tolist() == [1.0] * 20 + [5.0] * 2
    assert sampled.undrawn == 8
    found = find(ratioed, None, pa.Table.from_pylist(drawn), band=Band(), rate=0.2).shares
    assert found["missed"].value == pytest.approx(10 / 30)


def test_share_of_the_original_is_independent_of_the_other_model():
    """Its own longest run on unseen texts is its control, whatever the other model writes."""
    audited, held_out = (
        [Chunk(at, str(at), str(at), 0, 9, "a b c d e", 1) for at in range(start, start + 30)]
        for start in (0, 30)
    )

    def original_share(other: float) -> float:
        rows = [
            {"chunk": at, "model": model, "longest_common_substring": run}
            for model, run in (("original", 5.0), ("unlearned", other))
            for at in range(60)
        ]
        kinds = [Ratioed(chunks, np.ones(30), None) for chunks in (audited, held_out)]
        found = find(*kinds, pa.Table.from_pylist(rows), band=Band(), rate=0.2)
        return found.shares["remembered_original"].value

    assert original_share(1.0) == original_share(9.0) == 0


def test_chunks_that_were_drawn_stand_for_the_others():
    """Ten suspicious ones; twenty drawn of two hundred others, two of them or none remembered."""
    flagged = np.arange(30) < 10
    sampled = design(30, [1.0] * 10 + [10.0] * 20, undrawn=180)
    known = np.arange(30) < 12
    assert share_missed(known, flagged, sampled, alone(30), LEVEL).value == pytest.approx(20 / 30)
    share = share_remembered(known, sampled, alone(30), LEVEL)
    assert share.value == pytest.approx(30 / 210)
    none = share_missed(flagged, flagged, sampled, alone(30), LEVEL)
    hidden = 200 * (1 - 0.025 ** (1 / 20))
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(hidden / (hidden + 10))
    only = design(30, undrawn=180)
    reason = share_missed(flagged, flagged, only, alone(30), LEVEL).reason
    assert "only suspicious" in reason


def test_the_edge_is_the_conformal_quantile():
    ratios = np.array([0.5, 1.0, 1.2, 1.5, *np.linspace(2, 3, 36)])
    # floor(0.05 · 41) = 2: the second lowest above the lower edge.
    assert conformal_edge(ratios, 0.8, 0.05) == 1.2
    assert conformal_edge(ratios, 0.0, 0.05) == 1.0
    assert conformal_edge(ratios[:10], 0.0, 0.05) is None
    found = calibrated_band(ratios, alone(40), 0.8, 0.05)
    assert found.band == (0.8, 1.2)
    assert found.edge.low <= 1.2 <= found.edge.high
    few = calibrated_band(ratios[:10], alone(10), 0.8, 0.05)
    assert few.band is None
    assert "19" in few.edge.reason


def test_the_band_is_the_papers_and_open():
    ratios = np.array([1 / 1.15, 0.87, 1.0, 1.1499, 1.15, 1.2, math.nan])
    assert Band().holds(ratios).tolist() == [False, True, True, True, False, False, False]
    for ends in ((1.0, 1.0), (2.0, 1.0), (-1.0, 2.0)):
        with pytest.raises(ValueError, match="holds no ratio"):
            AuditRule(band=ends)


@given(st.floats(allow_infinity=True, allow_nan=True), st.floats(-50, -1e-6))
def test_negative_scores_have_a_ratio_and_others_a_reason(original: float, unlearned: float):
    found = score_ratios([original], [unlearned])
    if -math.inf < original < 0:
        assert found.values[0] == unlearned / original
        assert found.reasons == [None]
    else:
        assert math.isnan(found.values[0])
        assert "original model" in found.reasons[0]


@given(WORDS, st.sampled_from([" ", "\n\n", "\t "]), st.integers(1, 4))
def test_chunks_hold_the_words_in_order(words: list[str], space: str, prompt: int):
    text = space.join(["", *words, ""])
    source = SourceText("a", "g", text, "a.txt:1")
    chunks = cut_chunks([source], words=5, prompt_words=prompt, first=3)
    assert [chunk.chunk for chunk in chunks] == list(range(3, 3 + len(chunks)))
    own: list[str] = []
    for chunk in chunks:
        assert text[chunk.start : chunk.stop] == chunk.text == chunk.prompt + chunk.rest
        assert len(chunk.prompt.split()) == prompt < len(chunk.text.split()) <= 5
        own += chunk.text.split()
    whole = text.split()
    assert own == whole[: len(own)]
    # What is left is no longer than a prompt.
    assert len(whole) - len(own) <= prompt
    (uncut,) = cut_chunks([source], words=None, prompt_words=prompt)
    assert uncut.text == space.join(words)
    with pytest.raises(InputError, match="prompt alone takes"):
        cut_chunks([source], words=None, prompt_words=len(whole))
