"""The n-gram rules against Python sets of tuples."""

import pytest
from pydantic import ValidationError

from inject.corpus.background.document import Document
from inject.overlap.index import OverlapIndex
from inject.overlap.settings import OverlapSettings
from tests.inject.overlap.oracles import make_example


def rules(**given_rules) -> OverlapSettings:
    return OverlapSettings(**{"near_duplicate": None, **given_rules})


TEXT = "Passage: the old harbour of the town was built by three brothers in a single winter."
QUESTION = " Question: who built the old harbour of the town and in which winter was that done?"
ANSWER = " Answer: three brothers who had come from the north with their ships."


def example_with_parts(*, protected=False):
    text = TEXT + QUESTION + ANSWER
    return make_example(
        text,
        protected=protected,
        passage=(0, len(TEXT)),
        question=(len(TEXT), len(TEXT + QUESTION)),
        answer=(len(TEXT + QUESTION) + len(" Answer: "), len(text)),
    )


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (
            "So the OLD harbour of the town was built, by three brothers in a single winter!",
            "passage",
        ),
        ("They ask who built the old harbour of the town and in which winter was that", "question"),
        ("Three brothers who had come from the north with their ships.", "answer"),
    ],
)
def test_overlap_names_the_shared_part(document, part):
    [overlap] = OverlapIndex([example_with_parts()], rules(ngram=12)).overlaps(
        Document(document, "folder/file.jsonl:7", 2)
    )
    assert (overlap.part, overlap.rule, overlap.place, overlap.source) == (
        part,
        "n-gram",
        "file.jsonl:7",
        2,
    )


def test_overlap_never_shows_a_protected_text():
    [overlap] = OverlapIndex([example_with_parts(protected=True)], rules()).overlaps(
        Document(TEXT, "f:1")
    )
    assert overlap.text is None
    assert overlap.words >= 13


def test_examples_too_short_to_check_are_named():
    examples = [make_example("one two three four five six seven"), example_with_parts()]
    [unchecked] = OverlapIndex(examples, rules()).unchecked
    assert (unchecked.example_id, unchecked.words) == (examples[0].example_id, 7)
    assert OverlapIndex(examples, rules(ngram=7)).unchecked == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ngram": None, "share": 0.5}, "share is a share of n-grams"),
        ({"ngram": 2}, "greater than or equal to 3"),
    ],
)
def test_invalid_overlap_rules_are_rejected(wrong, message):
    with pytest.raises(ValidationError, match=message):
        OverlapSettings(**wrong)
