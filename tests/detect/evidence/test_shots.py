"""Shots: their order, their ids, how many fit, and that they are never scored."""

import pytest

from detect.evidence.prefixed import Prefixed, shot_notes
from detect.evidence.shots import (
    IS_SHOT,
    NO_SHOT,
    SEPARATOR,
    choose_shots,
    scored_as_members,
    shot_order,
    statistics_behind,
    with_shots_apart,
)
from detect.settings import ScoringPolicy
from tests.conftest import make_texts
from tests.detect.detectors.test_prefixed_detectors import random_rows
from tests.detect.models import random_target

POLICY = ScoringPolicy()
TEXTS = make_texts(8, seed=4, words=6)


def chosen(tokenizer, shots, texts=TEXTS, *, context=None, first=0):
    return choose_shots(
        Prefixed(shots=shots, first=first),
        "one",
        texts,
        tokenizer=tokenizer,
        context=context,
        policy=POLICY,
    )


def test_three_shots_are_the_first_of_seven_in_any_file_order(tiny_tokenizer):
    seven = chosen(tiny_tokenizer, 7)
    assert chosen(tiny_tokenizer, 3, TEXTS[::-1]).texts == seven.texts[:3]
    assert chosen(tiny_tokenizer, 1, first=2).texts == seven.texts[2:3]
    assert len({*seven.texts}) == 7


def test_shot_order_is_random_per_dataset_and_without_duplicates():
    texts = [f"text {number}" for number in range(30)]
    order = shot_order("one", texts)
    assert sorted(order) == list(range(30))
    assert order not in (list(range(30)), shot_order("two", texts))
    assert len(shot_order("one", [*texts, *texts])) == 30


def test_prefix_ids_are_text_ids_and_separator_ids(tiny_tokenizer):
    prefix = chosen(tiny_tokenizer, 2)
    between = tiny_tokenizer(SEPARATOR, add_special_tokens=False)["input_ids"]
    expected = []
    for text in prefix.texts:
        expected += [*tiny_tokenizer(text, add_special_tokens=False)["input_ids"], *between]
    assert list(prefix.ids) == expected
    assert list(prefix.separator) == between


def test_prefix_takes_at_most_half_of_the_context_and_reports_it(tiny_tokenizer):
    all_of_them = chosen(tiny_tokenizer, 7)
    context = len(all_of_them.ids)
    prefix = chosen(tiny_tokenizer, 7, context=context)
    assert 0 < len(prefix.texts) < 7
    assert len(prefix.ids) <= context // 2
    assert [text for text in all_of_them.texts if text in prefix.texts] == list(prefix.texts)
    two = chosen(tiny_tokenizer, 2)
    assert chosen(tiny_tokenizer, 7, context=2 * len(two.ids)).texts[:2] == two.texts
    assert chosen(tiny_tokenizer, 7, context=2 * len(two.ids) - 1).texts[:2] != two.texts
    fewer = chosen(tiny_tokenizer, len(prefix.texts) - 1, context=context)
    assert fewer.texts == prefix.texts[:-1]
    [note] = shot_notes(Prefixed(shots=7), {"one": prefix}, ["one"])
    assert note == (
        f"at most {len(prefix.texts)} shots precede the texts of one: more do not fit into "
        "half of the context"
    )
    [note] = shot_notes(Prefixed(shots=9), {"one": chosen(tiny_tokenizer, 9)}, ["one"])
    assert note == "at most 8 shots precede the texts of one: there are no more such rows"
    assert shot_notes(Prefixed(shots=7), {"one": all_of_them}, ["one"]) == ()
    assert chosen(tiny_tokenizer, 7, context=4).ids == ()
    [note] = shot_notes(Prefixed(shots=2), {}, ["two"])
    assert note.startswith("at most 0 shots precede the texts of two")


def test_texts_of_a_dataset_without_shots_are_not_scored(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    texts = make_texts(4, seed=9, words=5)
    shots = {"one": chosen(tiny_tokenizer, 1)}
    rows = statistics_behind(target, texts, ["one", "two", "one", "two"], shots, POLICY)
    assert [row.reason for row in rows] == [None, NO_SHOT, None, NO_SHOT]
    alone = statistics_behind(target, texts[2:3], ["one"], shots, POLICY)
    assert alone[0].log_probability == pytest.approx(rows[2].log_probability, abs=1e-4)


def test_known_members_and_their_passages_get_no_score(tiny_tokenizer):
    """Known mistake: taking shots from evaluated rows."""
    shots = {"one": scored_as_members(chosen(tiny_tokenizer, 2), ["g1", "g1"])}
    rows = with_shots_apart(random_rows(0)[:3], ["one", "one", "two"], ["g1", "g2", "g1"], shots)
    assert [row.reason for row in rows] == [IS_SHOT, None, None]
