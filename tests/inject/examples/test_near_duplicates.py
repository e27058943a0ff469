from hypothesis import given, settings
from hypothesis import strategies as st

from inject.examples.pool import near_duplicate_pairs

WORDS = ["red", "green", "blue", "dog", "cat", "ran", "sat"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def naive_grams(text):
    words = text.lower().split()
    size = 3 if len(words) >= 3 else 1
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


@given(st.lists(TEXT, max_size=12), st.sampled_from([0.2, 0.5, 1.0]))
@settings(max_examples=100, deadline=None)
def test_pairs_equal_brute_force(texts, threshold):
    grams = [naive_grams(text) for text in texts]
    expected = {
        (i, j)
        for i in range(len(texts))
        for j in range(i + 1, len(texts))
        if grams[i] | grams[j] and len(grams[i] & grams[j]) / len(grams[i] | grams[j]) >= threshold
    }
    assert {
        (pair.first, pair.second) for pair in near_duplicate_pairs(texts, threshold=threshold)
    } == expected


def test_a_light_edit_is_found_and_another_text_is_not():
    text = " ".join(f"word{index}" for index in range(80))
    edited = text.replace("word40", "changed")
    other = " ".join(f"other{index}" for index in range(80))
    pairs = near_duplicate_pairs([text, other, edited], threshold=0.7)
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 2)]


def test_no_texts_no_pairs():
    assert near_duplicate_pairs([], threshold=0.5) == []
    assert near_duplicate_pairs(["", "!!", ""], threshold=0.5) == []
