import math

import numpy as np
import pytest

from detect.choices import LABELS, ORDERS, RIGHT, TOO_FEW, ChoiceQuestion
from detect.targets.letters import ask_label_probabilities, ask_letters, letter_of
from detect.targets.text_model import Completion


class Examinee:
    """Picks the option that it has read."""

    name = "examinee"

    def __init__(self, right_option):
        self.right_option = right_option
        self.asked = []

    def complete(self, prompts, sampling, *, progress=None):
        raise AssertionError("a question is asked, not continued")

    def answer(self, questions, sampling, *, progress=None):
        assert (sampling.temperature, sampling.samples) == (0, 1)
        self.asked += questions
        return [[Completion(self._letter(text), 9, 1)] for text in questions]

    def _letter(self, text):
        lines = [line for line in text.splitlines() if line[1:3] == ". "]
        return next((line[0] for line in lines if line[3:] == self.right_option), "none of them")


def test_letters_of_all_orders_follow_the_passage():
    questions = [
        ChoiceQuestion(options=("read", "other", "words", "here")),
        TOO_FEW,
        ChoiceQuestion(options=("unread", "one", "two", "three")),
    ]
    model = Examinee("read")
    answers = ask_letters(model, questions)
    assert model.asked == [questions[at].prompt(order) for at in (0, 2) for order in ORDERS]
    assert answers[0].letters.tolist() == list(RIGHT)
    assert answers[1].reason == TOO_FEW
    assert np.all(answers[2].letters == -1)


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
def test_letter_is_parsed_from_an_answer(answer, label):
    assert letter_of(answer) == label


class Lists:
    """A model that prefers the label of the verbatim passage, and lists four tokens."""

    def __init__(self, passage: str) -> None:
        self.passage = passage

    def first_tokens(self, questions, *, progress=None):
        tables = []
        for question in questions:
            right = next(label for label in LABELS if f"{label}. {self.passage}\n" in question)
            wrong = next(label for label in LABELS if label != right)
            tables.append({f" {right}": -0.7, right: -1.5, " The": -2.0, wrong: -3.0})
        return tables


def test_listed_tokens_give_the_labels_probabilities():
    question = ChoiceQuestion(options=("one", "two", "three", "four"))
    answers, reason = ask_label_probabilities(Lists("one"), [question, "no paraphrases"])
    assert reason.reason == "no paraphrases"
    assert answers.letters is None
    assert answers.log_probability.shape == (24, 4)
    assert answers.log_probability.argmax(axis=1).tolist() == list(RIGHT)
    both = math.log(math.exp(-0.7) + math.exp(-1.5))
    assert answers.log_probability.max(axis=1) == pytest.approx([both] * 24, abs=1e-6)
    # Two labels are not listed, and count as the least likely token of the list.
    assert sorted(answers.log_probability[0].tolist())[:3] == pytest.approx([-3.0] * 3)
