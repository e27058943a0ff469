import numpy as np
import pytest

from detect.choices.question import ORDERS, RIGHT, TOO_FEW, ChoiceQuestion
from detect.targets.letters import ask_letters, letter_of
from detect.targets.text_model import Completion


class Examinee:
    """Picks the option that it has read."""

    name = "examinee"

    def __init__(self, known):
        self.known = known
        self.asked = []

    def complete(self, prompts, sampling, *, progress=None):
        raise AssertionError("a question is asked, not continued")

    def answer(self, questions, sampling, *, progress=None):
        assert (sampling.temperature, sampling.samples) == (0, 1)
        self.asked += questions
        return [[Completion(self._letter(text), 9, 1)] for text in questions]

    def _letter(self, text):
        lines = [line for line in text.splitlines() if line[1:3] == ". "]
        return next((line[0] for line in lines if line[3:] == self.known), "none of them")


def test_every_order_is_asked_and_the_letters_are_those_of_the_passage():
    questions = [
        ChoiceQuestion(options=("read", "other", "words", "here")),
        TOO_FEW,
        ChoiceQuestion(options=("unread", "one", "two", "three")),
    ]
    model = Examinee("read")
    found = ask_letters(model, questions)
    assert model.asked == [questions[at].prompt(order) for at in (0, 2) for order in ORDERS]
    assert found[0].letters.tolist() == list(RIGHT)
    assert found[1].reason == TOO_FEW
    assert np.all(found[2].letters == -1)


def test_nothing_to_ask_asks_nothing():
    model = Examinee("read")
    assert [one.reason for one in ask_letters(model, [TOO_FEW])] == [TOO_FEW]
    assert not model.asked


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("A", 0), ("B.", 1), (" C", 2), ("'D'", 3), ("**B**", 1), ("<C>", 2), ("(D)", 3),
        ("A. The first one", 0), ("A is right", 0), ("B is right", 1), ("D\nBecause", 3),
        ("The correct answer is C.", 2), ("Answer: B", 1), ("Option D", 3), ("answer is <A>", 0),
        ("", -1), ("none", -1), ("A careful look shows nothing", -1), ("Before that", -1),
        ("I cannot say", -1), ("E", -1), ("a", -1), ("A's", -1), ("Dear reader", -1),
    ],
)  # fmt: skip
def test_the_letter_of_an_answer(answer, label):
    assert letter_of(answer) == label
