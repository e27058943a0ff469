"""The ratio rule and the chunks that it looks at: exact slices, and ratios of negative scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.unlearning_audit.ratio import Band, score_ratios
from analysis.unlearning_audit.settings import AuditRule
from analysis.unlearning_audit.text_chunks import SourceText, cut_chunks
from inject.errors import InputError

WORDS = st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1), min_size=6)


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
