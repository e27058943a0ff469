import pytest

from detect.choices import (
    EMPTY,
    LABELS,
    ORDERS,
    RIGHT,
    SAME,
    TOO_FEW,
    ChoiceQuestion,
    choice_question,
)


def test_orders_are_distinct_and_record_the_verbatim_position():
    assert len(set(ORDERS)) == len(ORDERS) == 24
    for order, right in zip(ORDERS, RIGHT, strict=True):
        assert sorted(order) == [0, 1, 2, 3]
        assert order[right] == 0
    # Labels are correct equally often, so a model that always answers A scores 1/4.
    assert [RIGHT.count(place) for place in range(4)] == [6, 6, 6, 6]


def test_prompt_matches_the_paper():
    question = ChoiceQuestion(options=("one", "two", "three", "four"), title="T", author="W")
    assert question.prompt((2, 0, 3, 1)) == (
        "You are entering a multiple choice questions exam. You should directly answer each "
        "question by choosing the correct option. Be concise and straight to the point in your "
        "answer. Output only the letter corresponding to the correct answer.\n\n"
        'Question: Which of the following passages is verbatim from the "T" by W?\n'
        "Options:\nA. three\nB. one\nC. four\nD. two\nAnswer:"
    )


def test_question_uses_the_first_three_paraphrases_and_the_title():
    question = choice_question(
        "a", ["b", "c", "d", "e"], {"title": " T ", "author": ["no", "text"]}
    )
    assert question == ChoiceQuestion(options=("a", "b", "c", "d"), title="T")
    assert len(question.options) == len(LABELS)


@pytest.mark.parametrize(
    ("text", "paraphrases", "reason"),
    [
        ("a", ["b", "c"], TOO_FEW),
        ("a", [], TOO_FEW),
        ("a", ["b", " a ", "c"], SAME),
        ("a b", ["b", "c", "a  b"], SAME),
        ("a", ["b", "b", "c"], SAME),
        ("", ["b", "c", "d"], EMPTY),
        ("a", ["b", " ", "c"], EMPTY),
    ],
)
def test_incomplete_question_has_a_reason(text, paraphrases, reason):
    assert choice_question(text, paraphrases) == reason
