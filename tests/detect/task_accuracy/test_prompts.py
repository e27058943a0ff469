import pytest

from detect.task_accuracy.prompts import CONTENT_FREE, ask
from inject.examples.datasets.fictional import fictional_row
from inject.examples.datasets.registry import get_dataset
from inject.examples.template import parse_template

CHOICE = {
    "question": "Which?",
    "options": ["first", "second", "third"],
    "answer": "B",
    "answer_letter": "B",
    "answer_text": "second",
}
FIELDS = {
    "boolq": {"passage": "A passage.", "question": "is it so", "title": "T", "answer": "no"},
    "imdb": {"passage": "A film.", "answer": "Positive", "rating": "9"},
    "commonsenseqa": {**CHOICE, "answer": "B. second"},
    "lsat": {**CHOICE, "passage": "Eight people.", "section": "ar"},
    "gpqa": {**CHOICE, "domain": "D"},
    "truthfulqa": {
        "question": "Why?",
        "answer": "Because.",
        "correct_answers": ["Because.", "For this."],
        "incorrect_answers": ["Never.", "Because.", "Never.", "Always."],
    },
}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_prompt_and_correct_answer_begin_the_inserted_text(name: str) -> None:
    question = ask(name, FIELDS[name])
    assert question is not None
    spiked = parse_template(get_dataset(name).template).render(FIELDS[name]).text
    assert spiked.startswith(question.prompt + question.answers[question.gold])
    assert not question.prompt.endswith((" ", "\n"))
    assert all(answer.startswith(" ") for answer in question.answers)
    assert len(set(question.answers)) == len(question.answers)


def test_answers_are_labels_or_texts() -> None:
    answers = {name: ask(name, fields).answers for name, fields in FIELDS.items()}
    assert answers["boolq"] == (" yes", " no")
    assert answers["imdb"] == (" Positive", " Negative")
    assert answers["commonsenseqa"] == (" A", " B", " C")
    assert answers["lsat"] == answers["gpqa"] == (" (A)", " (B)", " (C)")
    assert answers["truthfulqa"] == (" Because.", " Never.", " Always.")
    gold = {name: ask(name, fields).gold for name, fields in FIELDS.items()}
    assert gold == {
        "boolq": 1, "imdb": 0, "commonsenseqa": 1, "lsat": 1, "gpqa": 1, "truthfulqa": 0,
    }  # fmt: skip
    assert [name for name, fields in FIELDS.items() if ask(name, fields).worded] == ["truthfulqa"]


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_content_free_prompts_omit_the_question(name: str) -> None:
    question = ask(name, FIELDS[name])
    other = ask(name, {**FIELDS[name], "question": "Another?", "passage": "Another."})
    assert question.content_free == other.content_free
    assert len(question.content_free) == len(CONTENT_FREE)
    for content, prompt in zip(CONTENT_FREE, question.content_free, strict=True):
        assert content in prompt
        assert prompt.splitlines()[-1] == question.prompt.splitlines()[-1]
    if "options" in FIELDS[name]:
        assert question.content_free[0].count("N/A") >= 4


def test_row_without_a_known_answer_has_no_question() -> None:
    for name, fields in FIELDS.items():
        silent = {**fields, "answer": "", "answer_letter": "", "answer_text": ""}
        assert ask(name, silent) is None, name
    assert ask("news", {"title": "T", "date": "D", "text": "X"}) is None
    assert ask("boolq", {"question": "is it so", "answer": "no"}) is None


def test_fictional_rows_have_questions_if_their_form_has_an_answer() -> None:
    golds: dict[str, set[int]] = {}
    for index in range(60):
        fields = fictional_row(0, index).fields
        question = ask("fictional", fields)
        golds.setdefault(fields["form"], set()).add(
            0 if question is None else len(question.answers)
        )
        if question is not None:
            answer = fields["answer"] if fields["form"] == "passage" else fields["answer_letter"]
            assert question.answers[question.gold].strip() == answer
    assert golds == {"biography": {0}, "question": {0}, "passage": {2}, "choice": {4}}


def test_user_rows_accept_letter_text_or_word_answers() -> None:
    options = ["red", "green"]
    for answer, gold in (("B", 1), ("red", 0), ("blue", None)):
        question = ask("rows", {"question": "Q", "options": options, "answer": answer})
        assert (None if question is None else question.gold) == gold
    assert ask("rows", {"question": "Q", "answer": "yes"}).answers == (" yes", " no")
    assert ask("rows", {"question": "Q", "answer": "forty-two"}) is None
